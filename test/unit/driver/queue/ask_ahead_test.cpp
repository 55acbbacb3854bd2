// SPDX-License-Identifier: BSD-3-Clause
// Whether bursts of long messages ask for the lines of the next buffer: by itself, on machines that
// are made up, and in the queue.
#include "queue/ask_ahead.hpp"

#include <random>

#include <gtest/gtest.h>

#include "pair.hpp"

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

/// An AMD Zen 3 within one complex, an Intel mesh, and a machine to which it is all one.
constexpr Bursts::Costs asking_is_dear{16, 12}, asking_is_cheap{17, 20}, all_one{13, 13};
constexpr uint64_t few = uint64_t{4} << 20, many = uint64_t{1} << 30;

TEST(AskAhead, EndsWhereLinesAreDearerByIt)
{
    for (const double noise : {0.0, 0.3}) {
        Bursts bursts(noise);
        bursts.run(asking_is_dear, few);
        EXPECT_FALSE(bursts.ask.in_force()) << noise;
        EXPECT_LT(bursts.run(asking_is_dear, many), 0.01) << noise;
    }
}

TEST(AskAhead, StaysWhereLinesAreCheaperByIt)
{
    for (const double noise : {0.0, 0.3}) {
        Bursts bursts(noise);
        bursts.run(asking_is_cheap, few);
        EXPECT_TRUE(bursts.ask.in_force()) << noise;
        EXPECT_GT(bursts.run(asking_is_cheap, many), 0.99) << noise;
    }
}

TEST(AskAhead, StaysWhereItIsAllOne)
{
    Bursts bursts(0);
    EXPECT_GT(bursts.run(all_one, many), 0.99);
}

TEST(AskAhead, FollowsAMachineThatChanges)
{
    for (const double noise : {0.0, 0.3}) {
        Bursts bursts(noise);
        for (int turn = 0; turn < 3; turn++) {
            bursts.run(asking_is_dear, many);
            ASSERT_FALSE(bursts.ask.in_force()) << noise;
            bursts.run(asking_is_cheap, many);
            ASSERT_TRUE(bursts.ask.in_force()) << noise;
        }
    }
}

/// A clock that goes on with each look at it, by what a burst costs.
struct CostlyClock {
    static inline const Tx *of = nullptr;
    static inline uint64_t now = 1, looks = 0, asked = 0, unasked = 0;
    static uint64_t read()
    {
        looks++;
        return now += of != nullptr && of->ask_ahead.asks() ? asked : unasked;
    }
};

/// Sends bursts of @p n long messages.
void send_bursts(Pair &pair, unsigned n, unsigned times)
{
    rte_mbuf *mbufs[burst];
    for (unsigned i = 0; i < times; i++) {
        ASSERT_EQ(rte_pktmbuf_alloc_bulk(pair.sent_pool, mbufs, n), 0);
        for (unsigned m = 0; m < n; m++)
            rte_pktmbuf_append(mbufs[m], 1536);
        ASSERT_EQ(pair.tx(mbufs, nullptr, n), static_cast<int>(n));
        ASSERT_EQ(pair.rx(mbufs, nullptr, n), static_cast<int>(n));
        rte_pktmbuf_free_bulk(mbufs, n);
    }
}

const PairOptions long_messages{.buf_bytes = 2048, .stores_cycles = CostlyClock::read};

TEST(AskAheadInQueue, IsChosenByTheCyclesOfBursts)
{
    for (const bool dear : {true, false}) {
        Pair pair(*select_ops(Policy::plain), long_messages);
        CostlyClock::asked = 2000;
        CostlyClock::unasked = dear ? 1500 : 2500;
        CostlyClock::of = pair.tx_half;
        EXPECT_TRUE(tx_asks_ahead(pair.tx_half));
        EXPECT_TRUE(pair.receive(1).empty()); // offers its buffers
        send_bursts(pair, 16, 1000);
        EXPECT_EQ(tx_asks_ahead(pair.tx_half), !dear);
        CostlyClock::of = nullptr;
        pair.reopen(8);
        EXPECT_TRUE(tx_asks_ahead(pair.tx_half)) << "a connection begins anew";
    }
}

TEST(AskAheadInQueue, TimesNeitherShortBurstsNorShortMessages)
{
    Pair pair(*select_ops(Policy::plain), long_messages);
    EXPECT_TRUE(pair.receive(1).empty());
    CostlyClock::looks = 0;
    send_bursts(pair, 4, 1); // some KiB: the trial of stores is not due
    rte_mbuf *mbufs[burst];
    ASSERT_EQ(rte_pktmbuf_alloc_bulk(pair.sent_pool, mbufs, burst), 0);
    for (rte_mbuf *m : mbufs)
        rte_pktmbuf_append(m, 64);
    ASSERT_EQ(pair.tx(mbufs, nullptr, burst), static_cast<int>(burst));
    EXPECT_EQ(CostlyClock::looks, 0u);
    ASSERT_EQ(pair.rx(mbufs, nullptr, burst), static_cast<int>(burst));
    rte_pktmbuf_free_bulk(mbufs, burst);
    send_bursts(pair, 8, 1);
    EXPECT_EQ(CostlyClock::looks, 2u);
}

} // namespace

} // namespace test_queue
