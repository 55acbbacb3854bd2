// SPDX-License-Identifier: BSD-3-Clause
// Whether bursts of long messages ask for the lines of the next buffer: by itself, on machines that
// are made up, and in the queue.
#include "queue/ask_ahead.hpp"

#include <random>

#include <gtest/gtest.h>

#include "pair.hpp"
#include "queue/consumer.hpp"
#include "queue/lone.hpp"

namespace test_queue
{

using namespace plx;
using namespace plx::queue;

namespace
{

constexpr uint32_t burst = 32, bytes = 1518;

/// Bursts of messages whose lines cost what the machine says.
class Bursts
{
public:
    /// Cycles a line: asked for, and not.
    struct Costs {
        double asked, unasked;
    };

    explicit Bursts(double noise) : noise_(noise) {}
    /// @return part of the bytes that were asked for
    double run(const Costs &costs, uint64_t of_bytes)
    {
        uint64_t asked = 0, all = 0;
        for (; all < of_bytes; all += burst * bytes) {
            const double line = ask.asks() ? costs.asked : costs.unasked;
            asked += ask.asks() ? burst * bytes : 0;
            const double lines = burst * bytes / 64.0;
            ask.took(burst * bytes, static_cast<uint64_t>(lines * line * spread_(random_)));
        }
        return static_cast<double>(asked) / static_cast<double>(all);
    }

    AskAhead ask;

private:
    double noise_;
    std::mt19937 random_{1};
    std::uniform_real_distribution<double> spread_{1 - noise_, 1 + noise_};
};

/// An AMD Zen 3 within one complex, alone and beside other guests, an Intel mesh, and a machine to
/// which it is all one.
constexpr Bursts::Costs asking_is_dear{17, 12}, asking_is_dearer{20, 18}, asking_is_cheap{17, 20},
    all_one{13, 13};
constexpr uint64_t few = uint64_t{1} << 20, some = uint64_t{16} << 20, many = uint64_t{1} << 30;

TEST(AskAhead, EndsWhereLinesAreDearerByIt)
{
    Bursts bursts(0);
    bursts.run(asking_is_dear, few); // a quarter is seen at once
    EXPECT_FALSE(bursts.ask.in_force());
    Bursts slower(0);
    slower.run(asking_is_dearer, some);
    EXPECT_FALSE(slower.ask.in_force());
    for (const Bursts::Costs &costs : {asking_is_dear, asking_is_dearer}) {
        Bursts noisy(0.1);
        noisy.run(costs, 2 * some);
        EXPECT_FALSE(noisy.ask.in_force());
        EXPECT_LT(noisy.run(costs, many), 0.01);
    }
}

TEST(AskAhead, StaysWhereLinesAreCheaperByIt)
{
    for (const double noise : {0.0, 0.1}) {
        Bursts bursts(noise);
        bursts.run(asking_is_cheap, some);
        EXPECT_TRUE(bursts.ask.in_force()) << noise;
        EXPECT_GT(bursts.run(asking_is_cheap, many), 0.98) << noise;
    }
}

TEST(AskAhead, StaysWhereItIsAllOne)
{
    Bursts bursts(0);
    EXPECT_GT(bursts.run(all_one, many), 0.99);
}

TEST(AskAhead, FollowsAMachineThatChanges)
{
    for (const double noise : {0.0, 0.1}) {
        Bursts bursts(noise);
        for (int turn = 0; turn < 3; turn++) {
            bursts.run(asking_is_dear, many);
            ASSERT_FALSE(bursts.ask.in_force()) << noise;
            bursts.run(asking_is_cheap, many);
            ASSERT_TRUE(bursts.ask.in_force()) << noise;
        }
    }
}

/// Coherent memory that counts what was asked for ahead.
struct Counting : PLX_VARIANT::Plain {
    static inline uint64_t asked = 0;
    static void own_later(const std::byte *, size_t n) { asked += n; }
};
const Ops counting_ops{"counting", PLX_VARIANT::tx_burst<Counting>,
                       PLX_VARIANT::rx_burst<Counting>};

/// A clock that goes on with each look at it, by what was asked for since the last one.
struct CostlyClock {
    static inline uint64_t now, looks, asked, unasked, counted;
    static void set(uint64_t cycles_asked, uint64_t cycles_unasked)
    {
        now = 1;
        looks = 0;
        asked = cycles_asked;
        unasked = cycles_unasked;
        counted = Counting::asked;
    }
    static uint64_t read()
    {
        looks++;
        now += Counting::asked != counted ? asked : unasked;
        counted = Counting::asked;
        return now;
    }
};

/// Long messages, each into one buffer. The trial of stores, which has the same clock, is held.
class AskAheadInQueue : public testing::Test
{
protected:
    AskAheadInQueue()
    {
        CostlyClock::set(0, 0);
        begin();
    }

    void begin()
    {
        EXPECT_TRUE(pair_.receive(1).empty()); // offers its buffers
        pair_.tx_half->stores_due = never_due;
    }

    std::vector<rte_mbuf *> messages(unsigned n, uint16_t length = 1536)
    {
        std::vector<rte_mbuf *> mbufs(n);
        EXPECT_EQ(rte_pktmbuf_alloc_bulk(pair_.sent_pool, mbufs.data(), n), 0);
        for (rte_mbuf *m : mbufs)
            rte_pktmbuf_append(m, length);
        return mbufs;
    }
    void receive(unsigned n)
    {
        for (rte_mbuf *m : pair_.receive(n))
            rte_pktmbuf_free(m);
    }
    void send(std::vector<rte_mbuf *> mbufs)
    {
        const auto n = static_cast<unsigned>(mbufs.size());
        ASSERT_EQ(pair_.send(mbufs), static_cast<int>(n));
        receive(n);
    }
    /// Looks at the clock that sending them takes.
    uint64_t looks_of(const std::vector<rte_mbuf *> &mbufs)
    {
        const uint64_t before = CostlyClock::looks;
        send(mbufs);
        return CostlyClock::looks - before;
    }
    /// Bytes asked for in one more burst.
    uint64_t asked_in_a_burst()
    {
        const uint64_t before = Counting::asked;
        send(messages(16));
        return Counting::asked - before;
    }

    Pair pair_{counting_ops, {.buf_bytes = 2048, .stores_cycles = CostlyClock::read}};
};

TEST_F(AskAheadInQueue, IsChosenByTheCyclesOfBursts)
{
    for (const bool dear : {true, false}) {
        pair_.reopen(dear ? 8 : 9);
        begin();
        EXPECT_TRUE(tx_asks_ahead(pair_.tx_half)) << "a connection begins anew";
        CostlyClock::set(2000, dear ? 1000 : 3000);
        EXPECT_NE(asked_in_a_burst(), 0u);
        unsigned asking = 0;
        for (unsigned i = 0; i < 200; i++)
            asking += asked_in_a_burst() != 0 ? 1 : 0;
        EXPECT_EQ(tx_asks_ahead(pair_.tx_half), !dear);
        if (dear)
            EXPECT_LT(asking, 20u);
        else
            EXPECT_GT(asking, 180u);
    }
}

// A burst that waits for the peer, however long and often, is no run of stores.
TEST_F(AskAheadInQueue, TakesNothingFromBurstsThatDoNotGo)
{
    std::vector<rte_mbuf *> filling;
    do {
        filling = messages(1);
    } while (pair_.send(filling) == 1);
    rte_pktmbuf_free(filling[0]);
    std::vector<rte_mbuf *> waiting = messages(16);
    CostlyClock::set(1'000'000, 1'000'000);
    for (unsigned i = 0; i < 1000; i++)
        ASSERT_EQ(pair_.send(waiting), 0);
    for (rte_mbuf *m : waiting)
        rte_pktmbuf_free(m);
    receive(511);
    CostlyClock::set(2000, 2100);
    for (unsigned i = 0; i < 100; i++) {
        send(messages(16));
        ASSERT_TRUE(tx_asks_ahead(pair_.tx_half)) << i;
    }
}

TEST_F(AskAheadInQueue, LooksAtTheClockForRunsOfLongMessagesAlone)
{
    EXPECT_EQ(looks_of(messages(AskAhead::messages_least - 1)), 0u);
    EXPECT_EQ(looks_of(messages(32, 64)), 0u);
    EXPECT_EQ(looks_of(messages(8, AskAhead::longest)), 2u);
    std::vector<rte_mbuf *> mixed = messages(8);
    rte_pktmbuf_trim(mixed.back(), 1400);
    EXPECT_EQ(looks_of(mixed), 0u);
    Pair given(counting_ops, {.buf_bytes = 2048}); // no clock: `stores` was given
    EXPECT_TRUE(given.receive(1).empty());
    const uint64_t before = Counting::asked;
    std::vector<rte_mbuf *> mbufs;
    for (unsigned i = 0; i < 8; i++)
        mbufs.push_back(given.message(1536, i));
    ASSERT_EQ(given.send(mbufs), 8);
    EXPECT_NE(Counting::asked, before);
}

} // namespace

} // namespace test_queue
