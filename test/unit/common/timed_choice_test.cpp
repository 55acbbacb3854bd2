// SPDX-License-Identifier: BSD-3-Clause
#include "timed_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <random>

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

} // namespace
