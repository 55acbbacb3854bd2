// SPDX-License-Identifier: BSD-3-Clause
#include "core_probe.hpp"

#include <atomic>
#include <sched.h>
#include <thread>

#include <gtest/gtest.h>

namespace
{

/// This thread on one CPU of those it may use, and another one of them, or -1.
int other_cpu()
{
    static const cpu_set_t allowed = [] { // before any call
        cpu_set_t all;
        sched_getaffinity(0, sizeof(all), &all);
        return all;
    }();
    int here = -1, other = -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(static_cast<unsigned>(cpu), &allowed))
            (here < 0 ? here : other) = cpu;
    }
    cpu_set_t mine;
    CPU_ZERO(&mine);
    CPU_SET(static_cast<unsigned>(here), &mine);
    sched_setaffinity(0, sizeof(mine), &mine);
    return other;
}

TEST(CoreProbe, TakesATimeOrSaysThatItCannot)
{
    const int other = other_cpu();
    if (other < 0)
        GTEST_SKIP() << "one CPU only";
    const auto round_trip = app::probe_core(other);
    if (round_trip) { // on a busy machine the other thread may not get its turn
        EXPECT_GT(*round_trip, 1);
    }
    EXPECT_FALSE(app::probe_core(sched_getcpu()));
    EXPECT_FALSE(app::probe_core(-1));
    EXPECT_FALSE(app::probe_core(1 << 20));
}

/// A thread with real-time priority that keeps a CPU to itself, until it goes out of scope.
class Occupied
{
public:
    Occupied(int cpu, int priority)
        : thread_([this, cpu, priority] {
              cpu_set_t there;
              CPU_ZERO(&there);
              CPU_SET(static_cast<unsigned>(cpu), &there);
              sched_setaffinity(0, sizeof(there), &there);
              const sched_param parameters = {.sched_priority = priority};
              sched_setscheduler(0, SCHED_FIFO, &parameters);
              for (taken_ = true; !done_;) {
              }
          })
    {
        while (!taken_)
            sched_yield();
    }
    ~Occupied()
    {
        done_ = true;
        thread_.join();
    }

private:
    std::atomic<bool> taken_{false}, done_{false};
    std::thread thread_; // the last one: it uses the others
};

// With what the caller inherits from "chrt -f", beside a poller of the same priority.
TEST(CoreProbe, DoesNotWaitForAThreadThatNeverRuns)
{
    const int other = other_cpu();
    if (other < 0)
        GTEST_SKIP() << "one CPU only";
    constexpr int priority = 10;
    sched_param parameters = {.sched_priority = priority};
    if (sched_setscheduler(0, SCHED_FIFO, &parameters) != 0)
        GTEST_SKIP() << "no right to real-time priority";
    {
        const Occupied occupied(other, priority);
        app::probe_core(other); // it returns
    }
    parameters.sched_priority = 0;
    sched_setscheduler(0, SCHED_OTHER, &parameters);
}

TEST(CoreProbe, ACpuThatIsNotThereGivesNothing)
{
    other_cpu();
    EXPECT_FALSE(app::probe_core(CPU_SETSIZE - 1));
}

} // namespace
