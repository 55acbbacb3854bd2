// SPDX-License-Identifier: BSD-3-Clause
// The bound of inline messages: as an algorithm, and in a queue pair.
#include "queue/inline_bound.hpp"

#include <algorithm>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "pair.hpp"

using namespace plx;
using namespace plx::queue;
using test_queue::FakeClock;
using test_queue::Pair;

namespace
{

constexpr uint32_t always = 256, at_most = 1024;

/// A sender of bursts whose lines cost what the test says.
class Sender
{
public:
    /// Cycles a line: in the ring, and in receive buffers by each way to store to them.
    struct Costs {
        double ring, plain, non_temporal;
        double read_in_ring = 0; ///< of the reader, which does its part beside the sender's
    };
    static constexpr uint32_t unread_most = 4096; ///< messages
    explicit Sender(Learned *learned = nullptr, Stores stores = Stores::plain, bool any = true)
    {
        bound.open({.always = always,
                    .at_most = at_most,
                    .stores = stores,
                    .any_stores = any,
                    .lap = 65536,
                    .returned = 32,
                    .learned = learned,
                    .bytes = 0});
    }
    void send(unsigned bursts, uint32_t bytes, const Costs &costs)
    {
        for (unsigned i = 0; i < bursts; i++) {
            if (bytes_ >= bound.due()) {
                way = bound.step(bytes_, messages_, unread(), static_cast<uint64_t>(time_));
                steps++;
            }
            const double line = line_of(way, bytes, costs);
            sent += uint64_t{32} * bytes / wire::line_bytes;
            if (&line_of(way, bytes, costs) != &line_of(chosen_way(), bytes, costs))
                tried += uint64_t{32} * bytes / wire::line_bytes;
            bytes_ += uint64_t{32} * bytes;
            messages_ += 32;
            const double lines = 32.0 * bytes / wire::line_bytes;
            time_ += line * lines;
            while (unread() > unread_most)
                time_ = read_.front();
            const double from = read_.empty() ? time_ : std::max(time_, read_.back());
            read_.push_back(from + (bytes <= way.at_most ? costs.read_in_ring * lines : 0));
        }
    }
    /// The way that is chosen, not one that is being tried. @return its number
    uint64_t chosen() const { return bound.report().in_force; }

    InlineBound bound;
    InlineBound::Way way{false, at_most, Stores::plain};
    unsigned steps = 0;
    uint64_t sent = 0, tried = 0; ///< lines, and those that went another way than the one chosen

private:
    static const double &line_of(const InlineBound::Way &way, uint32_t bytes, const Costs &costs)
    {
        if (bytes <= way.at_most)
            return costs.ring;
        return way.stores == Stores::plain ? costs.plain : costs.non_temporal;
    }
    InlineBound::Way chosen_way() const
    {
        return {chosen() != 0, chosen() != 0 ? always : at_most,
                chosen() == 2 ? Stores::non_temporal : Stores::plain};
    }
    uint64_t bytes_ = 0;
    uint32_t messages_ = 0;
    double time_ = 1000;
    std::deque<double> read_; ///< when the reader has read a burst, of those it may not have

    /// Messages that the reader has not read yet.
    uint32_t unread()
    {
        while (!read_.empty() && read_.front() <= time_)
            read_.pop_front();
        return static_cast<uint32_t>(32 * read_.size());
    }
};

TEST(InlineBound, TakesTheCheapestWay)
{
    constexpr struct {
        Sender::Costs costs;
        uint64_t chosen;
    } cases[] = {{{6, 10, 14}, 0}, {{10, 6, 14}, 1}, {{40, 60, 20}, 2}, {{10, 10, 10}, 1}};
    for (const auto &c : cases) {
        Sender sender;
        sender.send(20000, 1000, c.costs);
        EXPECT_EQ(sender.chosen(), c.chosen);
        EXPECT_GE(sender.bound.report().rounds, 1u);
    }
}

TEST(InlineBound, BeginsWithTheWayThatIsLikelyRight)
{
    // Where buffers cost most CPUs least, the rest is tried once before it pays.
    Sender longer;
    longer.send(4096, 1000, {10, 9, 14});
    EXPECT_EQ(longer.chosen(), 1u);
    EXPECT_LE(longer.tried, longer.sent / 4);
    Sender shorter;
    shorter.send(256, 500, {6, 9, 14});
    EXPECT_EQ(shorter.chosen(), 0u);
}

TEST(InlineBound, LeavesALikelyWayAsSoonAsAnother)
{
    // As between two complexes.
    Sender sender;
    while (sender.chosen() != 2)
        sender.send(16, 1000, {80, 160, 35});
    // The ring has not been looked at, and so costs are not by it.
    const TrialReport &report = sender.bound.report();
    EXPECT_EQ(report.by, 1u);
    EXPECT_EQ(report.relative[0], 0u);
    EXPECT_GT(report.relative[2], 0u);
    // 5 ms at 2.6 GHz would be 120,000.
    EXPECT_LE(sender.sent, 120000u);
}

TEST(InlineBound, IsNotMisledByTrafficThatBecomesFaster)
{
    // As a channel does, whose credit grows: to each way happens what happens to the others.
    for (const unsigned bursts : {20u, 30u, 40u, 50u, 60u, 80u, 120u}) {
        Sender sender;
        sender.send(bursts, 1000, {220, 200, 210});
        sender.send(200, 1000, {82, 80, 81});
        EXPECT_EQ(sender.chosen(), 1u) << bursts;
    }
}

TEST(InlineBound, SeesAReaderThatFallsBehind)
{
    // The ring is cheap to write and dear to read, and holds more than a part of a trial: by the
    // sender's time alone it would be taken, and left again when it is full.
    Sender sender;
    unsigned in_ring = 0;
    for (unsigned i = 0; i < 1000; i++) {
        sender.send(100, 1000, {5, 8, 14, 10});
        in_ring += sender.chosen() == 0;
    }
    EXPECT_LE(in_ring, 20u);
}

TEST(InlineBound, FollowsWhenTheCostsChange)
{
    Sender sender;
    sender.send(20000, 1000, {10, 6, 14});
    ASSERT_EQ(sender.chosen(), 1u);
    sender.send(200000, 1000, {40, 60, 20});
    EXPECT_EQ(sender.chosen(), 2u);
    sender.send(200000, 1000, {6, 12, 20});
    EXPECT_EQ(sender.chosen(), 0u);
}

TEST(InlineBound, IsOfAClassOfLengths)
{
    Learned learned;
    Sender sender(&learned);
    sender.send(40000, 300, {6, 10, 14});
    EXPECT_EQ(sender.chosen(), 0u);
    sender.send(20000, 1000, {10, 6, 14});
    EXPECT_EQ(sender.chosen(), 1u);
    // Each class finds its own again, also in the next connection.
    Sender next(&learned);
    next.send(2000, 300, {6, 10, 14});
    EXPECT_EQ(next.chosen(), 0u);
    next.send(2000, 1000, {10, 6, 14});
    EXPECT_EQ(next.chosen(), 1u);
}

TEST(InlineBound, SeesNothingOfOtherTraffic)
{
    for (const uint32_t bytes : {64u, always, at_most + 1, 4096u}) {
        Sender sender;
        sender.send(100000, bytes, {10, 1, 1});
        EXPECT_EQ(sender.bound.report().rounds, 0u) << bytes;
        EXPECT_EQ(sender.way.at_most, at_most) << bytes;
        EXPECT_FALSE(sender.way.decides) << bytes;
        EXPECT_GT(sender.steps, 2u) << bytes;
    }
}

TEST(InlineBound, IsNotMisledByWhatGoesBetween)
{
    // In turn with messages that take long: their time is not that of the messages tried.
    Sender sender;
    for (unsigned i = 0; i < 2000; i++) {
        sender.send(64, 1000, {6, 9, 9});
        sender.send(64, 4096, i % 4 < 2 ? Sender::Costs{0, 200, 200} : Sender::Costs{0, 2, 2});
    }
    EXPECT_EQ(sender.chosen(), 0u);
}

TEST(InlineBound, LeavesStoresThatWereGiven)
{
    Sender plain(nullptr, Stores::plain, false);
    plain.send(40000, 1000, {40, 60, 20});
    EXPECT_EQ(plain.chosen(), 0u);
    Sender past(nullptr, Stores::non_temporal, false);
    past.send(40000, 1000, {40, 20, 30});
    EXPECT_EQ(past.chosen(), 2u);
}

TEST(InlineBound, IsNeverLookedForWithOneBound)
{
    InlineBound bound;
    bound.open({.always = 512,
                .at_most = 512,
                .stores = Stores::plain,
                .any_stores = true,
                .lap = 65536,
                .returned = 32,
                .learned = nullptr,
                .bytes = 0});
    EXPECT_EQ(bound.due(), UINT64_MAX);
}

class BoundInQueue : public testing::Test
{
protected:
    void send(unsigned burst, uint32_t bytes, uint64_t cycles)
    {
        rte_mbuf *mbufs[8];
        ASSERT_EQ(rte_pktmbuf_alloc_bulk(pair.sent_pool, mbufs, burst), 0);
        for (unsigned i = 0; i < burst; i++)
            rte_pktmbuf_append(mbufs[i], static_cast<uint16_t>(bytes));
        ASSERT_EQ(pair.tx(mbufs, nullptr, burst), static_cast<int>(burst));
        FakeClock::now += cycles;
        ASSERT_EQ(pair.rx(mbufs, nullptr, burst), static_cast<int>(burst));
        for (unsigned i = 0; i < burst; i++)
            EXPECT_EQ(mbufs[i]->pkt_len, bytes);
        rte_pktmbuf_free_bulk(mbufs, burst);
    }
    uint64_t in_buffers() const { return tx_stats(pair.tx_half).cpu_messages; }

    Pair pair{*select_ops(Policy::plain),
              {.buf_bytes = 2048,
               .inline_max = always,
               .stores_cycles = FakeClock::read,
               .inline_most = at_most,
               .inline_cycles = FakeClock::read}};
};

TEST_F(BoundInQueue, AMessageThatGoesAloneIsInlineUpToTheFirstBound)
{
    EXPECT_TRUE(pair.receive(1).empty()); // offers its buffers
    send(1, always, 1000);
    EXPECT_EQ(in_buffers(), 0u);
    send(1, always + 1, 1000);
    send(1, at_most, 1000);
    EXPECT_EQ(in_buffers(), 2u);
    send(2, at_most, 1000);
    EXPECT_EQ(in_buffers(), 2u);
    send(2, at_most + 1, 1000);
    EXPECT_EQ(in_buffers(), 4u);
}

TEST_F(BoundInQueue, WithoutAReceiveBufferTheRingDoesAsWell)
{
    EXPECT_TRUE(pair.receive(1).empty());
    std::vector<rte_mbuf *> held;
    for (unsigned i = 0; i < 2 * pair.options.buffers; i++) {
        rte_mbuf *m = rte_pktmbuf_alloc(pair.sent_pool);
        ASSERT_NE(m, nullptr);
        rte_pktmbuf_append(m, at_most);
        ASSERT_EQ(pair.tx(&m, nullptr, 1), 1) << i;
        ASSERT_EQ(pair.rx(&m, nullptr, 1), 1) << i;
        EXPECT_EQ(m->pkt_len, at_most);
        held.push_back(m);
    }
    EXPECT_GT(in_buffers(), 0u);
    EXPECT_LE(in_buffers(), pair.options.buffers);
    // A longer one has to wait.
    rte_mbuf *longer = rte_pktmbuf_alloc(pair.sent_pool);
    rte_pktmbuf_append(longer, at_most + 1);
    EXPECT_EQ(pair.tx(&longer, nullptr, 1), 0);
    rte_pktmbuf_free(longer);
    rte_pktmbuf_free_bulk(held.data(), static_cast<unsigned>(held.size()));
}

TEST_F(BoundInQueue, BurstsGoWhereLinesAreCheaper)
{
    EXPECT_TRUE(pair.receive(1).empty());
    const uint64_t first_look = pair.tx_half->stores_due;
    constexpr uint32_t burst = 8, lines = burst * at_most / wire::line_bytes;
    for (unsigned i = 0; tx_inline(pair.tx_half).in_force == 0; i++) {
        ASSERT_LT(i, 120000u);
        send(burst, at_most, lines * (pair.tx_half->inline_max == at_most ? 50 : 20));
    }
    const uint64_t before = in_buffers();
    send(burst, at_most, lines * 20);
    EXPECT_EQ(in_buffers(), before + burst);
    // What decides there leaves the trial of stores alone, and returns it.
    EXPECT_TRUE(pair.tx_half->stores_left);
    for (unsigned i = 0; i < 200; i++)
        send(1, 1500, 1000); // is part of neither trial
    for (unsigned i = 0; pair.tx_half->stores_left; i++) {
        ASSERT_LT(i, 1000u);
        send(burst, 1500, lines * 20);
    }
    EXPECT_LE(pair.tx_half->stores_due - tx_stats(pair.tx_half).cpu_bytes, first_look);
}

} // namespace
