// SPDX-License-Identifier: BSD-3-Clause
// How a reader chooses its drain hint, on machines that are made up: by itself, and in the queue.
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

constexpr unsigned all_drains = (1u << drain_count) - 1;
using Costs = std::array<uint64_t, drain_count>; ///< cycles a line, by the hint it was drained with

/// A stream of lines through a ring: what a line costs depends on the hint with which its place was
/// drained a lap before.
class Stream
{
public:
    static constexpr uint32_t ring_lines = 512;

    explicit Stream(const Costs &at_first, unsigned tried = all_drains, Drain start = Drain::none)
        : costs(at_first), drained_(ring_lines, start), now_(start)
    {
        trial.open(start, tried, ring_lines);
    }
    void run(uint64_t lines, uint64_t burst = 24)
    {
        for (const uint64_t end = position + lines; position < end;)
            one_burst(burst);
    }
    /// Till @p more rounds have ended, rests left out.
    void run_rounds(uint64_t more = DrainTrial::rounds)
    {
        const auto ended = [this] { return trial.report().rounds + trial.report().thin; };
        for (const uint64_t end = ended() + more; ended() < end;) {
            if (rests())
                skip_rest();
            one_burst(24);
            ASSERT_LT(trial.due(), position + 2 * rest_lines()) << "a rest without end";
        }
    }
    /// What was ever in force since this was called last, bit i for Drain i.
    unsigned take_used() { return std::exchange(used_, 0u); }
    Drain now() const { return now_; }
    Drain chosen() const { return static_cast<Drain>(trial.report().in_force); }
    bool rests() const { return trial.due() > position + 10 * DrainTrial::window_lines_min; }
    void skip_rest()
    {
        time += (trial.due() - position) * costs[0];
        position = trial.due();
    }
    /// All lines that a round takes, times what pays for them.
    static constexpr uint64_t rest_lines()
    {
        return DrainTrial::rest_factor * drain_count *
               (DrainTrial::settle_laps * ring_lines + DrainTrial::window_lines_min);
    }

    DrainTrial trial;
    Costs costs;
    uint64_t position = 0, time = 1000;

private:
    void one_burst(uint64_t lines)
    {
        for (uint64_t i = 0; i < lines; i++) {
            Drain &with = drained_[position++ % ring_lines];
            time += costs[static_cast<unsigned>(with)];
            with = now_;
        }
        used_ |= 1u << static_cast<unsigned>(now_);
        if (position >= trial.due())
            now_ = trial.step(position, time);
    }

    std::vector<Drain> drained_;
    Drain now_;
    unsigned used_ = 0;
};

uint64_t scaled(uint64_t a, uint64_t b)
{
    return a * drain_scale / b;
}

TEST(DrainTrial, TakesTheHintThatMakesLinesCheaper)
{
    Stream stream({40, 25, 90, 41});
    stream.run_rounds(DrainTrial::rounds - 1);
    EXPECT_EQ(stream.chosen(), Drain::none) << "too early to tell";
    stream.run_rounds(1);
    EXPECT_EQ(stream.chosen(), Drain::clwb);
    EXPECT_EQ(stream.now(), Drain::clwb);
    EXPECT_EQ(stream.take_used(), all_drains);
    const DrainReport &report = stream.trial.report();
    EXPECT_EQ(report.rounds, DrainTrial::rounds);
    EXPECT_EQ(report.thin, 0u);
    // Exactly: no window holds lines that were drained by the hint before.
    EXPECT_EQ(report.none_cost, 40 * drain_scale);
    for (unsigned i = 0; i < drain_count; i++)
        EXPECT_EQ(report.relative[i], scaled(stream.costs[i], 40)) << i;
}

TEST(DrainTrial, LeavesLinesAloneWhereEveryHintIsDearer)
{
    Stream stream({40, 50, 90, 41});
    stream.run_rounds();
    EXPECT_EQ(stream.chosen(), Drain::none);
    EXPECT_EQ(stream.now(), Drain::none);
    EXPECT_EQ(stream.take_used(), all_drains);
}

TEST(DrainTrial, AHintHasToBeBetterByAMargin)
{
    Stream little({100, 96, 100, 100});
    little.run_rounds();
    EXPECT_EQ(little.chosen(), Drain::none);
    Stream enough({100, 94, 93, 100});
    enough.run_rounds();
    EXPECT_EQ(enough.chosen(), Drain::clflushopt);
}

TEST(DrainTrial, WhatTheCpuLacksIsNeverTried)
{
    constexpr unsigned none_and_clflushopt = 1u << 0 | 1u << 2;
    Stream stream({40, 1, 39, 1}, none_and_clflushopt);
    stream.run_rounds();
    EXPECT_EQ(stream.chosen(), Drain::none);
    EXPECT_EQ(stream.take_used(), none_and_clflushopt);
    EXPECT_EQ(stream.trial.report().relative[1], 0u);
}

TEST(DrainTrial, NothingToChooseFromIsNeverDue)
{
    Stream fixed({40, 1, 1, 1}, 0, Drain::clflushopt);
    EXPECT_EQ(fixed.trial.due(), UINT64_MAX);
    EXPECT_EQ(fixed.chosen(), Drain::clflushopt);
    Stream none({40, 1, 1, 1}, 1);
    EXPECT_EQ(none.trial.due(), UINT64_MAX);
}

TEST(DrainTrial, AnotherMachineGetsAnotherHint)
{
    Stream stream({40, 25, 90, 41});
    stream.run_rounds();
    ASSERT_EQ(stream.chosen(), Drain::clwb);
    ASSERT_TRUE(stream.rests());
    stream.costs = {40, 60, 20, 41};
    stream.take_used();
    stream.run(20 * DrainTrial::window_lines_min);
    EXPECT_EQ(stream.take_used(), 1u << 1) << "between rounds nothing is tried";
    stream.run_rounds(DrainTrial::rounds / 2);
    EXPECT_EQ(stream.chosen(), Drain::clwb) << "most rounds that count were on the old machine";
    stream.run_rounds(1);
    EXPECT_EQ(stream.chosen(), Drain::clflushopt);
    stream.costs = {40, 60, 80, 41};
    stream.run_rounds();
    EXPECT_EQ(stream.chosen(), Drain::none);
}

TEST(DrainTrial, RoundsAreATwoThousandthOfTheLines)
{
    Stream stream({40, 120, 120, 120});
    stream.run_rounds();
    const uint64_t before = stream.position;
    stream.skip_rest();
    const uint64_t round = stream.position;
    stream.run_rounds(1);
    EXPECT_GE(round - before, 2000 * (stream.position - round));
}

TEST(DrainTrial, ThinTrafficIsLeftAlone)
{
    Stream stream({DrainTrial::dense_cycles + 1, 1, 1, 1});
    stream.run_rounds(5);
    EXPECT_EQ(stream.take_used(), 1u << 0) << "no other hint was in force";
    EXPECT_EQ(stream.trial.report().thin, 5u);
    EXPECT_EQ(stream.trial.report().rounds, 0u);
    stream.costs = {40, 30, 90, 41};
    stream.run_rounds();
    EXPECT_EQ(stream.chosen(), Drain::clwb) << "dense from now on";
}

TEST(DrainTrial, APauseIsNotTakenForTheHintsCost)
{
    Stream stream({40, 30, 35, 41});
    stream.run(stream.trial.due() + 2 * DrainTrial::window_lines_min);
    ASSERT_NE(stream.now(), Drain::none) << "in the middle of a round";
    stream.time += uint64_t{1} << 40;
    stream.run_rounds(1);
    EXPECT_EQ(stream.trial.report().thin, 1u);
    EXPECT_EQ(stream.now(), Drain::none);
    EXPECT_GE(stream.trial.due() - stream.position,
              DrainTrial::first_rest_factor * 2 * DrainTrial::window_lines_min)
        << "what was tried has to be paid for";
    stream.run_rounds();
    EXPECT_EQ(stream.chosen(), Drain::clwb);
}

TEST(DrainTrial, AFewDisturbedRoundsDoNotDecide)
{
    Stream stream({100, 80, 120, 100});
    const Costs quiet = stream.costs;
    stream.costs = {100, 200, 120, 50};
    stream.run_rounds(DrainTrial::rounds / 2);
    stream.costs = quiet;
    stream.run_rounds(DrainTrial::rounds / 2 + 1);
    EXPECT_EQ(stream.chosen(), Drain::clwb);
}

TEST(DrainTrial, OtherTrafficIsNoOtherHint)
{
    Stream stream({40, 30, 80, 40});
    for (const uint64_t factor : {1u, 3u, 2u, 1u, 3u, 1u, 2u}) {
        stream.costs = {40 * factor, 30 * factor, 80 * factor, 40 * factor};
        stream.run_rounds(1);
    }
    EXPECT_EQ(stream.chosen(), Drain::clwb);
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

class DrainInQueue : public testing::TestWithParam<Policy>
{
protected:
    void SetUp() override
    {
        if (!drain_supported(better))
            GTEST_SKIP() << "this CPU has no drain hint";
        FakeClock::looks = 0;
    }
    static const Ops &ops() { return *select_ops(GetParam()); }
    /// Bursts that almost fill the ring, until a hint was chosen.
    static void stream(Pair &pair, const Costs &costs)
    {
        constexpr uint32_t burst = 12, bytes = 1000, lines = burst * wire::inline_lines(bytes);
        rte_mbuf *mbufs[burst];
        for (unsigned i = 0; rx_drain(pair.rx_half).rounds < DrainTrial::rounds; i++) {
            ASSERT_LT(i, 100000u);
            ASSERT_EQ(rte_pktmbuf_alloc_bulk(pair.sent_pool, mbufs, burst), 0);
            for (rte_mbuf *m : mbufs)
                rte_pktmbuf_append(m, bytes);
            ASSERT_EQ(pair.tx(mbufs, nullptr, burst), static_cast<int>(burst));
            FakeClock::now += lines * costs[static_cast<unsigned>(pair.rx_half->drain)];
            ASSERT_EQ(pair.rx(mbufs, nullptr, burst), static_cast<int>(burst));
            rte_pktmbuf_free_bulk(mbufs, burst);
        }
    }
    static constexpr Drain better = Drain::clflushopt;
};

TEST_P(DrainInQueue, ChoosesUnderTraffic)
{
    for (const bool cheaper : {true, false}) {
        Pair pair(ops(), {.cycles = FakeClock::read});
        ASSERT_NO_FATAL_FAILURE(stream(pair, {50, 60, cheaper ? 30u : 70u, 60}));
        const DrainReport report = rx_drain(pair.rx_half);
        EXPECT_EQ(static_cast<Drain>(report.in_force), cheaper ? better : Drain::none);
        for (unsigned i = 0; i < drain_count; i++)
            EXPECT_EQ(report.relative[i] != 0, drain_supported(static_cast<Drain>(i))) << i;
        EXPECT_EQ(pair.rx_half->drain, static_cast<Drain>(report.in_force));
    }
}

TEST_P(DrainInQueue, BeginsAnewWithEachPeer)
{
    Pair pair(ops(), {.cycles = FakeClock::read});
    ASSERT_NO_FATAL_FAILURE(stream(pair, {50, 60, 30, 60}));
    pair.reopen(8);
    EXPECT_EQ(rx_drain(pair.rx_half).rounds, 0u);
    EXPECT_EQ(pair.rx_half->drain, Drain::none);
    ASSERT_NO_FATAL_FAILURE(stream(pair, {50, 60, 70, 60}));
    EXPECT_EQ(pair.rx_half->drain, Drain::none);
}

TEST_P(DrainInQueue, AnIdleRingIsNotTimed)
{
    Pair pair(ops(), {.cycles = FakeClock::read});
    for (int i = 0; i < 10000; i++)
        EXPECT_TRUE(pair.receive(32).empty());
    EXPECT_EQ(FakeClock::looks, 0u);
    EXPECT_EQ(pair.rx_half->drain, Drain::none);
}

INSTANTIATE_TEST_SUITE_P(Policies, DrainInQueue,
                         testing::Values(Policy::plain, Policy::write_combining),
                         [](const auto &policy) {
                             return policy.param == Policy::plain ? "plain" : "write_combining";
                         });

} // namespace

} // namespace test_queue
