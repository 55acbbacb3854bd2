// SPDX-License-Identifier: BSD-3-Clause
#include "spin.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <sched.h>
#include <thread>

using namespace ntb;

namespace
{

constexpr std::uint64_t us = 1000;
constexpr std::uint64_t lap_ns = 150;

std::uint64_t now;
// What runs on the same processor while it is given away.
std::uint64_t others_ns;
// What the kernel says of it, and how often it was asked.
bool is_displaced;
unsigned asked;

class Spins : public testing::Test
{
protected:
    Spins()
    {
        now = 1000;
        others_ns = 300;
    }

    struct Wait {
        unsigned laps = 0;
        bool slept = false;
    };
    /// Waits for something that comes so much later; a sleeper is awake so long after it.
    Wait wait(SpinTime &of, std::uint64_t for_ns, std::uint64_t wake_ns = 0)
    {
        const std::uint64_t comes = now + for_ns;
        Wait made;
        Spin spin(spinning, of);
        while (now < comes) {
            if (!spin.lap()) {
                made.slept = true;
                now = comes + wake_ns;
                break;
            }
            now += lap_ns;
            made.laps++;
        }
        return made;
    }
    /// Laps until a sleep that lasts for long.
    unsigned laps(std::uint64_t for_ns = 10000 * us) { return wait(spin_time, for_ns).laps; }

    std::atomic<std::uint32_t> spinners = 0;
    Spinning spinning = {200, 2, &spinners, [] { return now; }, [] { now += others_ns; }, 16};
    SpinTime spin_time;
};

TEST_F(Spins, EachLongWaitHalvesTheWindow)
{
    for (const unsigned expected : {20u, 10u, 5u, 2u, 1u, 1u}) {
        EXPECT_EQ(spin_time.us(), expected);
        EXPECT_TRUE(wait(spin_time, 201 * us).slept);
    }
    EXPECT_EQ(spinners, 0u);
}

TEST_F(Spins, AShortWaitMakesItTwiceAsLongSleptOrNot)
{
    EXPECT_FALSE(wait(spin_time, 15 * us).slept);
    EXPECT_NEAR(spin_time.us(), 30, 2);
    EXPECT_TRUE(wait(spin_time, 35 * us, 10 * us).slept);
    EXPECT_EQ(spin_time.us(), 90u);
    EXPECT_FALSE(wait(spin_time, 3 * us).slept);
    EXPECT_EQ(spin_time.us(), 90u) << "others of its waits are longer";
    EXPECT_TRUE(wait(spin_time, 150 * us, 50 * us).slept);
    EXPECT_EQ(spin_time.us(), 200u);
    EXPECT_FALSE(wait(spin_time, 199 * us).slept);
    EXPECT_EQ(spin_time.us(), 200u);
}

TEST_F(Spins, OneThatDidNotSpinLearnsNothing)
{
    {
        Spin spin(spinning, spin_time);
        now += 100 * us;
    }
    EXPECT_EQ(spin_time.us(), 20u);
    spinners = 2;
    EXPECT_TRUE(wait(spin_time, 100 * us).slept);
    EXPECT_EQ(spin_time.us(), 20u);
}

TEST_F(Spins, NoMoreAtATimeThanProcessors)
{
    SpinTime spin_times[3];
    Spin first(spinning, spin_times[0]), second(spinning, spin_times[1]),
        third(spinning, spin_times[2]);
    EXPECT_TRUE(first.lap());
    EXPECT_TRUE(second.lap());
    EXPECT_FALSE(third.lap());
    first.stop();
    EXPECT_FALSE(first.lap());
    EXPECT_FALSE(third.lap()) << "one wait decides once";
    EXPECT_GT(laps(), 0u);
    EXPECT_EQ(spinners, 1u);
}

TEST_F(Spins, NoneWithoutAWindow)
{
    spinning.most_us = 0;
    EXPECT_EQ(laps(), 0u);
}

// ---- two ends that ask and answer, a processor each

class Ends : public Spins
{
protected:
    /// @return rounds in which an end slept
    int ask_and_answer(int rounds, std::uint64_t wake_ns, std::uint64_t work_ns)
    {
        int slept = 0;
        for (int i = 0; i < rounds; i++) {
            bool one = false;
            for (int end = 0; end < 2; end++) {
                // It has waited since it said its own; the other one has what it says now.
                const std::uint64_t said = now;
                now = waits_since[end];
                one |= wait(spin_times[end], std::max(said, now) - now, wake_ns).slept;
                now = std::max(now, said) + work_ns;
                waits_since[end] = now;
            }
            slept += one;
        }
        return slept;
    }

    std::array<SpinTime, 2> spin_times;
    std::array<std::uint64_t, 2> waits_since = {1000, 1000};
};

TEST_F(Ends, OneThatSleepsDoesNotKeepTheOtherAsleep)
{
    for (const std::uint64_t wake : {4 * us, 45 * us, 80 * us}) {
        for (SpinTime &one : spin_times)
            for (int i = 0; i < 8; i++)
                wait(one, 5000 * us);
        waits_since = {now, now};
        EXPECT_LE(ask_and_answer(100, wake, 5 * us), 3) << wake;
        EXPECT_EQ(ask_and_answer(100, wake, 5 * us), 0) << wake;
    }
}

TEST_F(Ends, WhereAWakeIsCheapTheWindowIsShort)
{
    for (SpinTime &one : spin_times)
        for (int i = 0; i < 8; i++)
            wait(one, 5000 * us);
    waits_since = {now, now};
    ask_and_answer(100, 4 * us, 2 * us);
    for (const SpinTime &one : spin_times)
        EXPECT_LE(one.us(), 30u);
}

TEST_F(Spins, WhatComesSeldomIsNotLookedFor)
{
    wait(spin_time, 180 * us);
    const std::uint64_t began = now;
    std::uint64_t looked = 0;
    for (int i = 0; i < 1000; i++)
        looked += wait(spin_time, 1000 * us).laps * lap_ns;
    EXPECT_LT(looked, (now - began) / 200);
}

TEST_F(Spins, BurstsOfShortWaitsCostTheirWindowOnceEach)
{
    for (int burst = 0; burst < 100; burst++) {
        for (int i = 0; i < 10; i++)
            wait(spin_time, 10 * us, 5 * us);
        EXPECT_LE(wait(spin_time, 10000 * us).laps * lap_ns, 40 * us);
    }
}

// ---- processors that are short

TEST_F(Spins, GiveTheProcessorAwayNowAndThen)
{
    std::uint64_t before = 0;
    others_ns = 700;
    Spin spin(spinning, spin_time);
    for (int i = 1; i <= 16; i++) {
        before = now;
        EXPECT_TRUE(spin.lap());
        EXPECT_EQ(now - before, i % 8 == 0 ? 700u : 0u) << i;
    }
}

// Where a system call takes long, giving way does as well, though no one else runs.
TEST_F(Spins, ByWhatASystemCallTakesHere)
{
    spinning.yield_ns = 1200;
    others_ns = 1500;
    {
        Spin spin(spinning, spin_time);
        for (int i = 1; i <= 64; i++) {
            const std::uint64_t before = now;
            EXPECT_TRUE(spin.lap());
            EXPECT_EQ(now - before, i % 32 == 0 ? 1500u : 0u) << i;
        }
    }
    EXPECT_FALSE(spin_time.shares());
    EXPECT_FALSE(spin_time.rests(now));
    others_ns = 2000;
    EXPECT_EQ(wait(spin_time, 20 * us).laps, 32u) << "but these were others";
    EXPECT_TRUE(spin_time.rests(now + us));
}

TEST_F(Spins, AtOnceWhereTheAnswerCameFromThere)
{
    others_ns = 3 * us;
    EXPECT_EQ(wait(spin_time, 2 * us).laps, 8u);
    EXPECT_TRUE(spin_time.shares());
    EXPECT_EQ(wait(spin_time, 2 * us).laps, 1u);
    others_ns = 300; // it has gone to another one
    EXPECT_EQ(wait(spin_time, lap_ns).laps, 1u);
    EXPECT_FALSE(spin_time.shares());
}

TEST_F(Spins, WhereOthersRanInVainSleepForSomeTime)
{
    others_ns = 10 * us;
    EXPECT_EQ(wait(spin_time, 100 * us).laps, 8u);
    EXPECT_EQ(spinners, 0u);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(wait(spin_time, 80 * us).laps, 0u);
    EXPECT_EQ(wait(spin_time, 100 * us).laps, 8u);
    EXPECT_FALSE(spin_time.shares());
}

// A program that computes has its processor for milliseconds once it is given away, but goes at
// once where somebody is woken.
TEST_F(Spins, WhoComputesBesideThemTakesLittleOfTheirTime)
{
    others_ns = 3000 * us;
    const std::uint64_t began = now;
    std::uint64_t useful = 0;
    while (now - began < 10000000 * us) {
        wait(spin_time, 6 * us, 2 * us);
        useful += 8 * us;
    }
    EXPECT_GT(useful, (now - began) / 100 * 95);
    // It has ended.
    others_ns = 300;
    now += 1000000 * us;
    for (int i = 0; i < 5; i++)
        wait(spin_time, 6 * us, 2 * us);
    EXPECT_FALSE(wait(spin_time, 6 * us, 2 * us).slept);
}

// ---- who answers does not sleep when it waits

class Servers : public Spins
{
protected:
    Servers() { spinning.answers_here = false; }
};

// A program that was woken on this processor, and sleeps again.
TEST_F(Servers, WhoRunsOnceMeanwhileDoesNotEndTheLook)
{
    Spin spin(spinning, spin_time);
    for (int i = 1; i < 8; i++)
        EXPECT_TRUE(spin.lap());
    others_ns = 3 * us;
    EXPECT_TRUE(spin.lap());
    others_ns = 300;
    EXPECT_TRUE(spin.lap());
    EXPECT_FALSE(spin_time.shares());
    EXPECT_TRUE(spin.lap());
    EXPECT_FALSE(spin_time.rests(now));
}

TEST_F(Servers, WhoRunsTwiceInARowNeedsTheProcessor)
{
    others_ns = 3 * us;
    EXPECT_EQ(wait(spin_time, 100 * us).laps, 9u);
    EXPECT_EQ(spinners, 0u);
    EXPECT_TRUE(spin_time.rests(now + 9000 * us)) << "however short it was";
    EXPECT_FALSE(spin_time.rests(now + 11000 * us));
    now += 11000 * us;
    others_ns = 2000 * us;
    EXPECT_EQ(wait(spin_time, 10000 * us).laps, 8u);
    EXPECT_TRUE(spin_time.rests(now + 50000 * us)) << "longer ones longer, and once is enough";
}

TEST_F(Servers, WhereTheyNeedItAgainSoonTheRestIsTwiceAsLong)
{
    others_ns = 3 * us;
    const auto rest_ms = [&] {
        EXPECT_GT(wait(spin_time, 100 * us).laps, 0u);
        const std::uint64_t began = now;
        while (spin_time.rests(now))
            now += 1000 * us;
        return (now - began) / (1000 * us);
    };
    for (const unsigned expected : {10u, 20u, 40u, 80u, 160u, 320u, 320u})
        EXPECT_EQ(rest_ms(), expected);
    now += 321000 * us;
    EXPECT_EQ(rest_ms(), 10u);
}

TEST_F(Servers, AlsoWhereSomethingHasComeMeanwhile)
{
    others_ns = 3 * us;
    EXPECT_EQ(wait(spin_time, 2 * us).laps, 8u);
    EXPECT_FALSE(spin_time.rests(now));
    EXPECT_EQ(wait(spin_time, 2 * us).laps, 1u);
    EXPECT_TRUE(spin_time.rests(now));
    EXPECT_EQ(wait(spin_time, 2 * us).laps, 0u);
}

TEST_F(Spins, WhoseProcessorIsTakenInALapRests)
{
    for (const bool comes_meanwhile : {false, true}) {
        {
            Spin spin(spinning, spin_time);
            EXPECT_TRUE(spin.lap());
            now += 3000 * us;
            EXPECT_TRUE(comes_meanwhile || !spin.lap());
        }
        EXPECT_TRUE(spin_time.rests(now));
        EXPECT_EQ(laps(), 0u);
        now += 32 * 3000 * us;
        EXPECT_FALSE(spin_time.rests(now));
    }
}

TEST_F(Spins, NewsEndThePauseOfALap)
{
    Spin spin(spinning, spin_time);
    unsigned looks = 0;
    EXPECT_TRUE(spin.lap([&] { return ++looks == 3; }));
    EXPECT_EQ(looks, 3u);
}

// ---- the kernel is asked whether others ran

class Asks : public Spins
{
protected:
    Asks()
    {
        asked = 0;
        is_displaced = false;
        spinning.was_displaced = [] {
            asked++;
            return is_displaced;
        };
    }
};

// Yields that take long by themselves, as in some virtual machines now and then.
TEST_F(Asks, ASlowYieldAloneDoesNotEndTheLook)
{
    others_ns = 1500;
    EXPECT_FALSE(wait(spin_time, 15 * us).slept);
    EXPECT_GT(asked, 3u);
    EXPECT_FALSE(spin_time.rests(now));
    EXPECT_FALSE(spin_time.shares());
    is_displaced = true;
    EXPECT_EQ(wait(spin_time, 15 * us).laps, 8u);
    EXPECT_TRUE(spin_time.rests(now + us));
}

TEST_F(Asks, NothingWhereTimeSaysThatNoneRan)
{
    is_displaced = true;
    EXPECT_FALSE(wait(spin_time, 15 * us).slept);
    EXPECT_EQ(asked, 0u);
}

// The host of a virtual machine runs others on its CPU: to sleep would not give it back.
TEST_F(Asks, TheHostsTimeIsNoneOfTheProcessors)
{
    for (const bool comes_meanwhile : {false, true}) {
        {
            Spin spin(spinning, spin_time);
            EXPECT_TRUE(spin.lap());
            now += 3000 * us;
            EXPECT_TRUE(comes_meanwhile || !spin.lap()) << "the spin time is over";
        }
        EXPECT_FALSE(spin_time.rests(now));
    }
    EXPECT_EQ(asked, 2u);
}

TEST(ProcessSpinning, KnowsItsProcessorsAndItsClock)
{
    EXPECT_GE(process_spinning().processors, 1u);
    EXPECT_GE(process_spinning().yield_ns, Spinning::usual_yield_ns);
    EXPECT_EQ(process_spinning().kernel_every, 16 * process_spinning().dear());
    const std::uint64_t before = process_spinning().now_ns();
    process_spinning().yield();
    EXPECT_GE(process_spinning().now_ns(), before);
    *process_spinning().spinners = 3;
    forget_spinners_after_fork();
    EXPECT_EQ(*process_spinning().spinners, 0u);
}

// Two threads that only yield, on one processor: each runs when the other one gives way.
TEST(ProcessSpinning, KnowsWhetherOthersRan)
{
    bool (*const was_displaced)() = process_spinning().was_displaced;
    cpu_set_t before, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);

    int tries = 1000;
    while (was_displaced() && tries > 0)
        tries--;
    EXPECT_GT(tries, 0) << "none ran between two calls";

    std::atomic<bool> ends = false;
    std::thread other([&] {
        while (!ends)
            sched_yield();
    });
    for (tries = 100000; !was_displaced() && tries > 0; tries--)
        sched_yield();
    ends = true;
    other.join();
    EXPECT_GT(tries, 0);
    EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

} // namespace
