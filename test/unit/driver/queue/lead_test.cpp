// SPDX-License-Identifier: BSD-3-Clause
// When a reader that has caught up leaves the writer a lead: by itself, on machines that are made
// up, and in the queue.
#include "queue/lead.hpp"

#include <gtest/gtest.h>

#include "pair.hpp"

namespace test_queue
{

using namespace plx;
using namespace plx::queue;

namespace
{

constexpr uint32_t burst = 32;

/// A writer of bursts and a reader that is faster, after each time it has caught up.
class Stream
{
public:
    /// Cycles a line: of the writer at the reader's heels, of one with a lead, and of the reader.
    struct Costs {
        double at_heels, with_lead, read;
    };

    void run(const Costs &costs, uint64_t lines)
    {
        for (const uint64_t end = position_ + lines; position_ < end;) {
            // Without a pause a burst comes next. With one, what is written in it and while that is
            // read, and while that is read.
            double next = burst;
            if (pausing_) {
                next = Lead::pause_cycles / (costs.with_lead - costs.read);
                time_ += next * costs.with_lead;
                paused_ += next;
            } else {
                time_ += next * costs.at_heels;
            }
            position_ += static_cast<uint64_t>(next);
            pausing_ = lead.caught_up(position_, static_cast<uint32_t>(position_),
                                      static_cast<uint64_t>(time_), false);
        }
    }
    /// Part of the lines that came behind a pause, since the last call.
    double take_paused(uint64_t lines)
    {
        const double part = paused_ / static_cast<double>(lines);
        paused_ = 0;
        return part;
    }

    Lead lead;

private:
    uint64_t position_ = 0;
    double time_ = 1, paused_ = 0;
    bool pausing_ = false;
};

/// AMD Zen 4, measured, within one complex; and a CPU on which heels cost nothing.
constexpr Stream::Costs heels_are_dear{33, 10, 5}, heels_are_cheap{10, 10, 5};
constexpr uint64_t many = 1 << 24;

TEST(Lead, IsLeftWhereLinesComeFasterByIt)
{
    Stream stream;
    stream.run(heels_are_dear, 8 * Lead::piece_lines);
    EXPECT_TRUE(stream.lead.in_force());
    stream.take_paused(1);
    stream.run(heels_are_dear, many);
    EXPECT_GT(stream.take_paused(many), 0.95);
}

TEST(Lead, IsTriedSeldomWhereItSavesNothing)
{
    Stream stream;
    stream.run(heels_are_cheap, many);
    EXPECT_FALSE(stream.lead.in_force());
    EXPECT_LT(stream.take_paused(many), 0.03);
    stream.run(heels_are_cheap, many);
    EXPECT_LT(stream.take_paused(many), 0.01);
}

TEST(Lead, EndsWhereItSavesNothingAnyMore)
{
    Stream stream;
    stream.run(heels_are_dear, many);
    ASSERT_TRUE(stream.lead.in_force());
    stream.run(heels_are_cheap, many);
    EXPECT_FALSE(stream.lead.in_force());
}

TEST(Lead, IsNotLeftToFewMessagesNorToThinTraffic)
{
    const struct {
        uint32_t messages;
        uint64_t cycles;
    } traffic[] = {{Lead::dense_messages - 1, 100}, {burst, burst * Lead::dense_cycles + 1}};
    for (const auto &t : traffic) {
        Lead lead;
        uint64_t position = 0, now = 1;
        for (unsigned i = 0; i < 100000; i++) {
            position += t.messages;
            now += t.cycles;
            ASSERT_FALSE(
                lead.caught_up(position, static_cast<uint32_t>(position), now, i % 2 != 0));
        }
    }
}

TEST(Lead, IsLeftWhileHintsAreTried)
{
    Lead lead;
    for (uint32_t i = 1; i <= 2 * Lead::dense_times; i++)
        EXPECT_EQ(lead.caught_up(i * burst, i * burst, i * 1000, true), i >= Lead::dense_times);
    EXPECT_FALSE(lead.in_force());
    EXPECT_EQ(lead.pauses(), uint64_t{Lead::dense_times} + 1);
}

/// Sends a burst and receives it. @return whether the half pauses behind it
bool burst_and_pause(Pair &pair, unsigned i)
{
    std::vector<rte_mbuf *> mbufs;
    for (unsigned m = 0; m < burst; m++)
        mbufs.push_back(pair.message(8, i * burst + m));
    EXPECT_EQ(pair.send(mbufs), static_cast<int>(burst));
    for (unsigned m = 0; m < burst;) {
        FakeClock::now += Lead::pause_cycles;
        for (rte_mbuf *got : pair.receive(burst)) {
            EXPECT_TRUE(Pair::matches(got, 8, i * burst + m));
            rte_pktmbuf_free(got);
            m++;
        }
    }
    EXPECT_TRUE(pair.receive(burst).empty()); // it has caught up
    return !pair.rx_half->ready;
}

/// Bursts until the half pauses. @return whether it has
bool until_it_pauses(Pair &pair)
{
    constexpr unsigned bursts = 400 * Lead::piece_lines / burst;
    unsigned i = 0;
    while (i < bursts && !burst_and_pause(pair, i))
        i++;
    return i < bursts;
}

TEST(LeadInQueue, PausesLoseNothingAndEnd)
{
    FakeClock::now = 1;
    Pair pair(*select_ops(Policy::plain), {.cycles = FakeClock::read});
    unsigned pauses = 0;
    for (unsigned i = 0; i < 4 * Lead::piece_lines / burst; i++)
        pauses += burst_and_pause(pair, i) ? 1 : 0;
    ASSERT_GT(pauses, 0u);
    ASSERT_TRUE(until_it_pauses(pair));
    // What comes in a pause is found behind it, and not before.
    std::vector<rte_mbuf *> one = {pair.message(8, 1)};
    ASSERT_EQ(pair.send(one), 1);
    FakeClock::now += Lead::pause_cycles - 1;
    EXPECT_FALSE(rx_idle(*rx_watch(pair.rx_half)));
    EXPECT_TRUE(pair.receive(1).empty());
    FakeClock::now++;
    const std::vector<rte_mbuf *> got = pair.receive(1);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_TRUE(Pair::matches(got[0], 8, 1));
    rte_pktmbuf_free(got[0]);
    // A half that is opened anew does not wait for the end of a pause.
    ASSERT_TRUE(until_it_pauses(pair));
    pair.reopen(9);
    EXPECT_TRUE(pair.rx_half->ready);
}

} // namespace

} // namespace test_queue
