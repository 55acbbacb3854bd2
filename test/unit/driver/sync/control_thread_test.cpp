// SPDX-License-Identifier: BSD-3-Clause
// A device's control thread: jobs are called when their time has come, and never after its end.
#include "sync/control_thread.hpp"

#include <atomic>
#include <functional>
#include <thread>

#include <short_turns.hpp>

#include <gtest/gtest.h>

#include <poll.h>
#include <sched.h>

using plx::pmd::ControlThread;

namespace
{

constexpr unsigned hour_us = 3'600'000'000;

bool await(const std::function<bool()> &fact)
{
    for (int i = 0; i < 60'000 && !fact(); ++i)
        poll(nullptr, 0, 1);
    return fact();
}

struct Job {
    std::function<unsigned()> work;
    std::atomic<unsigned> calls{0};

    static unsigned on_call(void *arg)
    {
        auto *self = static_cast<Job *>(arg);
        ++self->calls;
        return self->work();
    }
};

/// The calling thread on one CPU and with real-time priority, as "chrt -f" and EAL's -l make it.
class AloneAndRealTime
{
public:
    AloneAndRealTime()
    {
        sched_getaffinity(0, sizeof(before_), &before_);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
        sched_setaffinity(0, sizeof(one), &one);
        set(SCHED_FIFO, 10);
    }
    ~AloneAndRealTime()
    {
        set(SCHED_OTHER, 0);
        sched_setaffinity(0, sizeof(before_), &before_);
    }
    bool allowed() const { return allowed_; }

private:
    void set(int policy, int priority)
    {
        const sched_param parameters = {.sched_priority = priority};
        allowed_ = sched_setscheduler(0, policy, &parameters) == 0;
    }
    cpu_set_t before_{};
    bool allowed_ = false;
};

class Control : public testing::Test
{
protected:
    void start(
        std::function<unsigned()> first, std::function<unsigned()> second = [] { return 0u; })
    {
        jobs_[0].work = std::move(first);
        jobs_[1].work = std::move(second);
        for (unsigned i = 0; i < 2; ++i)
            thread_.set_job(i, Job::on_call, &jobs_[i]);
        ASSERT_EQ(thread_.start("test-control"), 0);
    }
    unsigned calls(unsigned job = 0) const { return jobs_[job].calls; }
    bool await_calls(unsigned n, unsigned job = 0)
    {
        return await([this, n, job] { return calls(job) >= n; });
    }

    Job jobs_[2];
    ControlThread thread_; // ends first
};

TEST_F(Control, CallsAgainAsOftenAsAJobAsks)
{
    thread_.call(0); // before there is a thread
    start([] { return 100u; });
    EXPECT_TRUE(await_calls(5));
    EXPECT_EQ(calls(1), 0u) << "no one asked";
}

TEST_F(Control, ACallDoesNotWaitForATimeThatIsLater)
{
    for (const unsigned again_us : {hour_us, 0u}) {
        start([again_us] { return again_us; });
        const unsigned before = calls();
        thread_.call(0);
        ASSERT_TRUE(await_calls(before + 1));
        thread_.call(0, hour_us);
        thread_.call(0);
        EXPECT_TRUE(await_calls(before + 2)) << again_us;
        thread_.stop();
    }
}

TEST_F(Control, ALaterCallDoesNotPutOffAnEarlierOne)
{
    start([] { return 0u; });
    thread_.call(0, 2000);
    thread_.call(0, hour_us);
    EXPECT_TRUE(await_calls(1));
}

TEST_F(Control, ACallDuringACallIsOneMore)
{
    std::atomic<bool> go{false};
    start([&go] {
        await([&go] { return go.load(); });
        return hour_us;
    });
    thread_.call(0);
    ASSERT_TRUE(await_calls(1));
    thread_.call(0);
    go = true;
    EXPECT_TRUE(await_calls(2));
}

TEST_F(Control, JobsHaveTimesOfTheirOwn)
{
    start([] { return hour_us; }, [] { return 50u; });
    thread_.call(0);
    thread_.call(1, 10);
    EXPECT_TRUE(await_calls(20, 1));
    EXPECT_EQ(calls(0), 1u);
}

TEST_F(Control, AStopWaitsForTheCallUnderWay)
{
    std::atomic<bool> stopping{false};
    std::atomic<bool> done{false};
    start([&] {
        await([&] { return stopping.load(); });
        poll(nullptr, 0, 5);
        done = true;
        return 1u;
    });
    thread_.call(0);
    ASSERT_TRUE(await_calls(1));
    stopping = true;
    thread_.stop();
    EXPECT_TRUE(done);
    EXPECT_EQ(calls(), 1u);
    thread_.stop(); // again
}

TEST_F(Control, WhatWasAskedForEndsWithIt)
{
    start([] { return 0u; });
    thread_.call(0, hour_us);
    thread_.stop();
    start([] { return 0u; });
    thread_.call(1);
    ASSERT_TRUE(await_calls(1, 1));
    EXPECT_EQ(calls(0), 0u);
}

/// A scheduler that does not know it keeps no length of a turn, and says 0.
TEST_F(Control, AsksForShortTurns)
{
    std::atomic<uint64_t> turn_ns{~uint64_t{0}};
    start([&] {
        ntb::SchedAttr attr{};
        EXPECT_EQ(syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0), 0);
        turn_ns = attr.runtime;
        return 0u;
    });
    thread_.call(0);
    ASSERT_TRUE(await_calls(1));
    thread_.stop();
    EXPECT_TRUE(turn_ns == 100'000 || turn_ns == 0) << turn_ns;
}

TEST_F(Control, StartsAndStopsWhileItIsAsked)
{
    std::atomic<bool> over{false};
    start([] { return 0u; });
    std::thread asker([&] {
        while (!over)
            thread_.call(0);
    });
    for (unsigned round = 0; round < 50; ++round) {
        EXPECT_TRUE(await_calls(calls() + 1));
        thread_.stop();
        ASSERT_EQ(thread_.start("test-control"), 0);
    }
    over = true;
    asker.join();
}

TEST_F(Control, StartsUnderAThreadWithRealTimePriorityOnItsOnlyCpu)
{
    const AloneAndRealTime caller;
    if (!caller.allowed())
        GTEST_SKIP() << "no right to real-time priority";
    ASSERT_NO_FATAL_FAILURE(start([] { return 0u; }));
    thread_.call(0);
    EXPECT_TRUE(await_calls(1));
    thread_.stop();
}

} // namespace
