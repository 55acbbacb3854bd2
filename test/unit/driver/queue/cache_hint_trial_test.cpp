// SPDX-License-Identifier: BSD-3-Clause
// How a reader chooses its cache hint, on machines that are made up: by itself, and in the queue.
#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "pair.hpp"
#include "queue/cache_hint_trial.hpp"

namespace test_queue
{

using namespace plx;
using namespace plx::queue;

namespace
{

constexpr unsigned all_hints = (1u << cache_hint_count) - 1;
using Costs =
    std::array<uint64_t, cache_hint_count>; ///< cycles a line, by the hint it was consumed with

/// A stream of lines through a ring: what a line costs depends on the hint with which its place was
/// consumed a lap before.
class Stream
{
public:
    static constexpr uint32_t ring_lines = 512;

    explicit Stream(const Costs &at_first, unsigned tried = all_hints,
                    CacheHint start = CacheHint::none)
        : costs(at_first), hinted_(ring_lines, start), now_(start)
    {
        trial.open(start, tried, ring_lines);
    }
    void run(uint64_t lines, uint64_t burst = 24)
    {
        for (const uint64_t end = position + lines; position < end;)
            one_burst(burst);
    }
    /// Till @p more rounds have ended, rests left out.
    void run_rounds(uint64_t more = CacheHintTrial::rounds)
    {
        const auto ended = [this] { return trial.report().rounds + trial.report().thin; };
        for (const uint64_t end = ended() + more; ended() < end;) {
            if (rests())
                skip_rest();
            one_burst(24);
            ASSERT_LT(trial.due(), position + 2 * rest_lines()) << "a rest without end";
        }
    }
    /// What was ever in force since this was called last, bit i for CacheHint i.
    unsigned take_used() { return std::exchange(used_, 0u); }
    CacheHint now() const { return now_; }
    CacheHint chosen() const { return static_cast<CacheHint>(trial.report().in_force); }
    bool rests() const { return trial.due() > position + 10 * CacheHintTrial::interval_lines_min; }
    void skip_rest()
    {
        time += (trial.due() - position) * costs[0];
        position = trial.due();
    }
    /// All lines that a round takes, times what pays for them.
    static constexpr uint64_t rest_lines()
    {
        return CacheHintTrial::rest_factor * cache_hint_count *
               (CacheHintTrial::settle_laps * ring_lines + CacheHintTrial::interval_lines_min);
    }

    CacheHintTrial trial;
    Costs costs;
    uint64_t position = 0, time = 1000;

private:
    void one_burst(uint64_t lines)
    {
        for (uint64_t i = 0; i < lines; i++) {
            CacheHint &with = hinted_[position++ % ring_lines];
            time += costs[static_cast<unsigned>(with)];
            with = now_;
        }
        used_ |= 1u << static_cast<unsigned>(now_);
        if (position >= trial.due())
            now_ = trial.step(position, time);
    }

    std::vector<CacheHint> hinted_;
    CacheHint now_;
    unsigned used_ = 0;
};

uint64_t scaled(uint64_t a, uint64_t b)
{
    return a * cache_hint_scale / b;
}

TEST(CacheHintTrial, TakesTheHintThatMakesLinesCheaper)
{
    Stream stream({40, 25, 90, 41});
    stream.run_rounds(CacheHintTrial::rounds - 1);
    EXPECT_EQ(stream.chosen(), CacheHint::none) << "too early to tell";
    stream.run_rounds(1);
    EXPECT_EQ(stream.chosen(), CacheHint::clwb);
    EXPECT_EQ(stream.now(), CacheHint::clwb);
    EXPECT_EQ(stream.take_used(), all_hints);
    const CacheHintReport &report = stream.trial.report();
    EXPECT_EQ(report.rounds, CacheHintTrial::rounds);
    EXPECT_EQ(report.thin, 0u);
    // Exactly: no interval holds lines that were consumed with the hint before.
    EXPECT_EQ(report.none_cost, 40 * cache_hint_scale);
    for (unsigned i = 0; i < cache_hint_count; i++)
        EXPECT_EQ(report.relative[i], scaled(stream.costs[i], 40)) << i;
}

TEST(CacheHintTrial, LeavesLinesAloneWhereEveryHintIsDearer)
{
    Stream stream({40, 50, 90, 41});
    stream.run_rounds();
    EXPECT_EQ(stream.chosen(), CacheHint::none);
    EXPECT_EQ(stream.now(), CacheHint::none);
    EXPECT_EQ(stream.take_used(), all_hints);
}

TEST(CacheHintTrial, AHintHasToBeBetterByAMargin)
{
    Stream little({100, 96, 100, 100});
    little.run_rounds();
    EXPECT_EQ(little.chosen(), CacheHint::none);
    Stream enough({100, 94, 93, 100});
    enough.run_rounds();
    EXPECT_EQ(enough.chosen(), CacheHint::clflushopt);
}

TEST(CacheHintTrial, WhatTheCpuLacksIsNeverTried)
{
    constexpr unsigned none_and_clflushopt = 1u << 0 | 1u << 2;
    Stream stream({40, 1, 39, 1}, none_and_clflushopt);
    stream.run_rounds();
    EXPECT_EQ(stream.chosen(), CacheHint::none);
    EXPECT_EQ(stream.take_used(), none_and_clflushopt);
    EXPECT_EQ(stream.trial.report().relative[1], 0u);
}

TEST(CacheHintTrial, NothingToChooseFromIsNeverDue)
{
    Stream fixed({40, 1, 1, 1}, 0, CacheHint::clflushopt);
    EXPECT_EQ(fixed.trial.due(), UINT64_MAX);
    EXPECT_EQ(fixed.chosen(), CacheHint::clflushopt);
    Stream none({40, 1, 1, 1}, 1);
    EXPECT_EQ(none.trial.due(), UINT64_MAX);
}

TEST(CacheHintTrial, AnotherMachineGetsAnotherHint)
{
    Stream stream({40, 25, 90, 41});
    stream.run_rounds();
    ASSERT_EQ(stream.chosen(), CacheHint::clwb);
    ASSERT_TRUE(stream.rests());
    stream.costs = {40, 60, 20, 41};
    stream.take_used();
    stream.run(20 * CacheHintTrial::interval_lines_min);
    EXPECT_EQ(stream.take_used(), 1u << 1) << "between rounds nothing is tried";
    stream.run_rounds(CacheHintTrial::rounds / 2);
    EXPECT_EQ(stream.chosen(), CacheHint::clwb) << "most rounds that count were on the old machine";
    stream.run_rounds(1);
    EXPECT_EQ(stream.chosen(), CacheHint::clflushopt);
    stream.costs = {40, 60, 80, 41};
    stream.run_rounds();
    EXPECT_EQ(stream.chosen(), CacheHint::none);
}

TEST(CacheHintTrial, RoundsAreATwoThousandthOfTheLines)
{
    Stream stream({40, 120, 120, 120});
    stream.run_rounds();
    const uint64_t before = stream.position;
    stream.skip_rest();
    const uint64_t round = stream.position;
    stream.run_rounds(1);
    EXPECT_GE(round - before, 2000 * (stream.position - round));
}

TEST(CacheHintTrial, ThinTrafficIsLeftAlone)
{
    Stream stream({CacheHintTrial::dense_cycles + 1, 1, 1, 1});
    stream.run_rounds(5);
    EXPECT_EQ(stream.take_used(), 1u << 0) << "no other hint was in force";
    EXPECT_EQ(stream.trial.report().thin, 5u);
    EXPECT_EQ(stream.trial.report().rounds, 0u);
    stream.costs = {40, 30, 90, 41};
    stream.run_rounds();
    EXPECT_EQ(stream.chosen(), CacheHint::clwb) << "dense from now on";
}

TEST(CacheHintTrial, APauseIsNotTakenForTheHintsCost)
{
    Stream stream({40, 30, 35, 41});
    stream.run(stream.trial.due() + 2 * CacheHintTrial::interval_lines_min);
    ASSERT_NE(stream.now(), CacheHint::none) << "in the middle of a round";
    stream.time += uint64_t{1} << 40;
    stream.run_rounds(1);
    EXPECT_EQ(stream.trial.report().thin, 1u);
    EXPECT_EQ(stream.now(), CacheHint::none);
    EXPECT_GE(stream.trial.due() - stream.position,
              CacheHintTrial::first_rest_factor * 2 * CacheHintTrial::interval_lines_min)
        << "what was tried has to be paid for";
    stream.run_rounds();
    EXPECT_EQ(stream.chosen(), CacheHint::clwb);
}

TEST(CacheHintTrial, AFewDisturbedRoundsDoNotDecide)
{
    Stream stream({100, 80, 120, 100});
    const Costs quiet = stream.costs;
    stream.costs = {100, 200, 120, 50};
    stream.run_rounds(CacheHintTrial::rounds / 2);
    stream.costs = quiet;
    stream.run_rounds(CacheHintTrial::rounds / 2 + 1);
    EXPECT_EQ(stream.chosen(), CacheHint::clwb);
}

TEST(CacheHintTrial, OtherTrafficIsNoOtherHint)
{
    Stream stream({40, 30, 80, 40});
    for (const uint64_t factor : {1u, 3u, 2u, 1u, 3u, 1u, 2u}) {
        stream.costs = {40 * factor, 30 * factor, 80 * factor, 40 * factor};
        stream.run_rounds(1);
    }
    EXPECT_EQ(stream.chosen(), CacheHint::clwb);
    EXPECT_EQ(stream.trial.report().relative[1], scaled(30, 40));
    EXPECT_EQ(stream.trial.report().relative[2], scaled(80, 40));
}

/// The clock of a queue whose lines cost what the test says.
struct FakeClock {
    static inline uint64_t now = 0, looks = 0;
    static uint64_t read()
    {
        looks++;
        return now;
    }
};

class CacheHintInQueue : public testing::TestWithParam<Policy>
{
protected:
    void SetUp() override
    {
        if (!cache_hint_supported(better))
            GTEST_SKIP() << "this CPU has no cache hint";
        FakeClock::looks = 0;
    }
    static const Ops &ops() { return *select_ops(GetParam()); }
    /// Bursts that almost fill the ring, until a hint was chosen.
    static void stream(Pair &pair, const Costs &costs)
    {
        constexpr uint32_t burst = 12, bytes = 1000, lines = burst * wire::inline_lines(bytes);
        rte_mbuf *mbufs[burst];
        for (unsigned i = 0; rx_cache_hint(pair.rx_half).rounds < CacheHintTrial::rounds; i++) {
            ASSERT_LT(i, 100000u);
            ASSERT_EQ(rte_pktmbuf_alloc_bulk(pair.sent_pool, mbufs, burst), 0);
            for (rte_mbuf *m : mbufs)
                rte_pktmbuf_append(m, bytes);
            ASSERT_EQ(pair.tx(mbufs, nullptr, burst), static_cast<int>(burst));
            FakeClock::now += lines * costs[static_cast<unsigned>(pair.rx_half->hint)];
            ASSERT_EQ(pair.rx(mbufs, nullptr, burst), static_cast<int>(burst));
            rte_pktmbuf_free_bulk(mbufs, burst);
        }
    }
    static constexpr CacheHint better = CacheHint::clflushopt;
};

TEST_P(CacheHintInQueue, ChoosesUnderTraffic)
{
    for (const bool cheaper : {true, false}) {
        Pair pair(ops(), {.cycles = FakeClock::read});
        ASSERT_NO_FATAL_FAILURE(stream(pair, {50, 60, cheaper ? 30u : 70u, 60}));
        const CacheHintReport report = rx_cache_hint(pair.rx_half);
        EXPECT_EQ(static_cast<CacheHint>(report.in_force), cheaper ? better : CacheHint::none);
        for (unsigned i = 0; i < cache_hint_count; i++)
            EXPECT_EQ(report.relative[i] != 0, cache_hint_supported(static_cast<CacheHint>(i)))
                << i;
        EXPECT_EQ(pair.rx_half->hint, static_cast<CacheHint>(report.in_force));
    }
}

TEST_P(CacheHintInQueue, BeginsAnewWithEachPeer)
{
    Pair pair(ops(), {.cycles = FakeClock::read});
    ASSERT_NO_FATAL_FAILURE(stream(pair, {50, 60, 30, 60}));
    pair.reopen(8);
    EXPECT_EQ(rx_cache_hint(pair.rx_half).rounds, 0u);
    EXPECT_EQ(pair.rx_half->hint, CacheHint::none);
    ASSERT_NO_FATAL_FAILURE(stream(pair, {50, 60, 70, 60}));
    EXPECT_EQ(pair.rx_half->hint, CacheHint::none);
}

TEST_P(CacheHintInQueue, AnIdleRingIsNotTimed)
{
    Pair pair(ops(), {.cycles = FakeClock::read});
    for (int i = 0; i < 10000; i++)
        EXPECT_TRUE(pair.receive(32).empty());
    EXPECT_EQ(FakeClock::looks, 0u);
    EXPECT_EQ(pair.rx_half->hint, CacheHint::none);
}

INSTANTIATE_TEST_SUITE_P(Policies, CacheHintInQueue,
                         testing::Values(Policy::plain, Policy::write_combining),
                         [](const auto &policy) {
                             return policy.param == Policy::plain ? "plain" : "write_combining";
                         });

} // namespace

} // namespace test_queue
