// SPDX-License-Identifier: BSD-3-Clause
#include "timed_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <random>
#include <vector>

using ntb::TimedChoice;

namespace
{

/// Cycles a line of the two ways, of some moment. Measured on AMD Zen 4: stores to a window that
/// the peer reads, plainly and past the caches, within one complex and between two.
using Costs = std::array<double, 2>;
constexpr Costs near_costs = {4.4, 5.25}, far_costs = {56, 5.5};
/// A mesh, where stores past the caches are dear.
constexpr Costs mesh_costs = {7, 13};

constexpr double cycles_a_second = 2.6e9;

/// Work of pieces of so many lines, done by what the choice says.
class Work
{
public:
    explicit Work(std::uint64_t lines, double noise = 0)
        : lines_(lines), noise_(1 - noise, 1 + noise)
    {
    }

    /// @param costs  at so many cycles since the begin
    void run(TimedChoice &choice, double seconds, const std::function<Costs(double)> &costs)
    {
        for (const double end = now_ + seconds * cycles_a_second; now_ < end;) {
            const Costs at = costs(now_ / cycles_a_second);
            const double took = at[choice.way()] * static_cast<double>(lines_) * noise_(random_);
            choice.took(lines_, static_cast<std::uint64_t>(took));
            now_ += took;
            paid_ += took;
            least_ += std::min(at[0], at[1]) * static_cast<double>(lines_);
        }
    }
    /// What was paid over what the better way of each moment would have cost.
    double regret() const { return paid_ / least_ - 1; }

private:
    std::uint64_t lines_;
    std::uniform_real_distribution<double> noise_;
    std::minstd_rand random_;
    double now_ = 0, paid_ = 0, least_ = 0;
};

class Pieces : public testing::TestWithParam<std::tuple<std::uint64_t, double>>
{
protected:
    Work work{std::get<0>(GetParam()), std::get<1>(GetParam())};
    TimedChoice choice;
};

TEST_P(Pieces, StayWithTheBetterWay)
{
    work.run(choice, 0.05, [](double) { return near_costs; });
    EXPECT_EQ(choice.in_force(), 0u);
    EXPECT_LT(work.regret(), 0.02);
}

TEST_P(Pieces, FindTheBetterWayAtOnce)
{
    work.run(choice, 0.005, [](double) { return far_costs; });
    EXPECT_EQ(choice.in_force(), 1u);
    work.run(choice, 0.05, [](double) { return far_costs; });
    EXPECT_EQ(choice.in_force(), 1u);
    EXPECT_LT(work.regret(), 0.03);
}

TEST_P(Pieces, FollowCpusThatAreMoved)
{
    work.run(choice, 0.3, [](double at) {
        return static_cast<int>(at / 0.05) % 3 == 0   ? near_costs
               : static_cast<int>(at / 0.05) % 3 == 1 ? far_costs
                                                      : mesh_costs;
    });
    EXPECT_LT(work.regret(), 0.03);
}

TEST_P(Pieces, StayWhereNeitherIsBetter)
{
    work.run(choice, 0.05, [](double) { return Costs{5, 5}; });
    EXPECT_LT(work.regret(), 0.02);
}

INSTANTIATE_TEST_SUITE_P(OfAllSizes, Pieces,
                         testing::Combine(testing::Values(64, 300, 1024), testing::Values(0, 0.3)));

TEST(TimedChoice, LooksNotAwayFromWhatIsFixed)
{
    TimedChoice choice(1, true);
    Work work(64);
    work.run(choice, 0.1, [](double) { return near_costs; });
    EXPECT_EQ(choice.in_force(), 1u);
    EXPECT_EQ(choice.way(), 1u);
}

TEST(TimedChoice, IsNotMovedBySomebodyWhoHadTheCpu)
{
    TimedChoice choice;
    for (int i = 0; i < 100000; i++)
        choice.took(256, i % 50 == 0 ? 5000000 : choice.way() == 0 ? 1100 : 1300);
    EXPECT_EQ(choice.in_force(), 0u);
}

/// A peer can make the way in force dear, and cheap again, as often as it likes.
TEST(TimedChoice, GivesLittleToAPeerThatProvokesJumps)
{
    TimedChoice choice;
    double paid = 0, least = 0;
    for (int i = 0; i < 1000000; i++) {
        const double dear = i / 8 % 2 == 0 ? 1 : 4;
        const Costs at = {5 * dear, 50 * dear};
        choice.took(256, static_cast<std::uint64_t>(at[choice.way()] * 256));
        paid += at[choice.way()];
        least += at[0];
    }
    EXPECT_LT(paid / least, 1.1);
}

/// The same where a look at the other way is long: it may fall into any part of what the peer does.
TEST(TimedChoice, GivesLittleToAPeerThatProvokesJumpsDuringLongLooks)
{
    for (const double dearer : {3, 6})
        for (const double jump : {3, 4})
            for (int period = 4; period <= 4096; period *= 2) {
                TimedChoice choice(1, false, TimedChoice::of_stores);
                double paid = 0, least = 0;
                for (int i = 0; i < 2000000; i++) {
                    const double past = i / period % 2 == 0 ? 5 : 5 * jump;
                    const double cost = choice.way() == 1 ? past : past * dearer;
                    choice.took(256, static_cast<std::uint64_t>(cost * 256));
                    paid += cost;
                    least += past;
                }
                EXPECT_LT(paid / least, 1.2)
                    << dearer << " times, jumps of " << jump << " each " << period;
            }
}

/// What both ends pay for a line of a stream of stores, by who has it: AMD Zen 3, two CPUs of one
/// complex. What the writer sees of it is less.
struct Machine {
    double writer_through, writer_cold, writer_past; ///< cold: stored past the caches before
    double reader_through, reader_past;
};
constexpr Machine one_complex = {5, 20, 4.1, 5, 12};
constexpr Machine two_complexes = {40, 42, 13, 15, 8};
constexpr Machine four = {56, 58, 5.5, 15, 8}; ///< of AMD Zen 4, between two
constexpr Machine mesh = {7, 12, 13, 8, 9};

/// Stores over and over to the same memory, whose lines remember how they came last.
class Stream
{
public:
    Stream(TimedChoice &choice, std::size_t bytes)
        : choice_(choice), past_(bytes / piece_bytes, true)
    {
    }

    void run(double seconds, const Machine &machine)
    {
        paid_ = least_ = 0;
        for (double now = 0; now < seconds * cycles_a_second;) {
            const bool past = choice_.way() == 1, cold = past_[at_];
            const double writer = past   ? machine.writer_past
                                  : cold ? machine.writer_cold
                                         : machine.writer_through;
            choice_.took(lines, static_cast<std::uint64_t>(writer * lines * noise_(random_)));
            past_[at_] = past;
            at_ = at_ + 1 == past_.size() ? 0 : at_ + 1;
            const double both = writer + (past ? machine.reader_past : machine.reader_through);
            now += both * lines;
            paid_ += both;
            least_ += std::min(machine.writer_through + machine.reader_through,
                               machine.writer_past + machine.reader_past);
        }
    }
    double regret() const { return paid_ / least_ - 1; }

private:
    static constexpr std::size_t piece_bytes = 4096;
    static constexpr std::uint64_t lines = piece_bytes / 64;

    TimedChoice &choice_;
    std::vector<bool> past_;
    std::size_t at_ = 0;
    std::uniform_real_distribution<double> noise_{0.7, 1.3};
    std::minstd_rand random_;
    double paid_ = 0, least_ = 0;
};

class Streams : public testing::TestWithParam<std::size_t>
{
protected:
    TimedChoice choice{0, false, TimedChoice::of_stores};
    Stream stream{choice, GetParam()};
};

TEST_P(Streams, GoThroughTheCachesWithinOneComplex)
{
    stream.run(0.1, one_complex);
    EXPECT_EQ(choice.in_force(), 0u);
    stream.run(0.2, one_complex);
    EXPECT_LT(stream.regret(), 0.03);
    stream.run(0.05, mesh);
    EXPECT_EQ(choice.in_force(), 0u);
}

TEST_P(Streams, GoPastThemBetweenTwo)
{
    for (const Machine &machine : {two_complexes, four}) {
        stream.run(0.02, machine);
        EXPECT_EQ(choice.in_force(), 1u);
        stream.run(0.5, machine);
        EXPECT_EQ(choice.in_force(), 1u);
        EXPECT_LT(stream.regret(), 0.05);
        stream.run(0.5, machine);
        EXPECT_LT(stream.regret(), 0.03);
    }
}

/// Each channel has a writer of its own, which begins with what another one has found.
TEST_P(Streams, DoNotPayAgainForWhatWasFound)
{
    for (const Machine &machine : {two_complexes, four}) {
        TimedChoice told(1, false, TimedChoice::of_stores);
        Stream of_told(told, GetParam());
        of_told.run(0.01, machine); // some 20 MiB
        EXPECT_EQ(told.in_force(), 1u);
        EXPECT_LT(of_told.regret(), 0.03);
    }
}

/// Another writer may have found it in another place.
TEST_P(Streams, LeaveWhatWasFoundElsewhere)
{
    TimedChoice told(1, false, TimedChoice::of_stores);
    Stream of_told(told, GetParam());
    of_told.run(0.05, one_complex);
    EXPECT_EQ(told.in_force(), 0u);
}

/// The lines are in no cache by then, so the way through them is dear at first.
TEST_P(Streams, ComeBackIntoOneComplex)
{
    for (const Machine &before : {two_complexes, four}) {
        stream.run(1, before);
        ASSERT_EQ(choice.in_force(), 1u);
        stream.run(0.5, one_complex);
        EXPECT_EQ(choice.in_force(), 0u);
        stream.run(0.2, one_complex);
        EXPECT_LT(stream.regret(), 0.03);
    }
}

INSTANTIATE_TEST_SUITE_P(OfAllSizes, Streams,
                         testing::Values(4096, 65536, 1 << 20, 4 << 20, 6 << 20));

} // namespace
