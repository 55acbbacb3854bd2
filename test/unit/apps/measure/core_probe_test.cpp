// SPDX-License-Identifier: BSD-3-Clause
#include "core_probe.hpp"

#include <sched.h>

#include <gtest/gtest.h>

namespace
{

/// This thread on one CPU of those it may use, and another one of them, or -1.
int other_cpu()
{
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof(allowed), &allowed);
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

TEST(CoreProbe, ACpuThatIsNotThereGivesNothing)
{
    other_cpu();
    EXPECT_FALSE(app::probe_core(CPU_SETSIZE - 1));
}

} // namespace
