// SPDX-License-Identifier: BSD-3-Clause
#include "base/clock.hpp"

#include <atomic>
#include <ctime>

#include <rte_cycles.h>

#include "ntbmsg_test.h"

namespace
{
std::atomic<ntbmsg_clock_fn> chosen;
}

uint64_t ntbmsg::real_us()
{
    // In two parts: cycles * 1'000'000 would overflow within hours.
    const uint64_t cycles = rte_get_timer_cycles(), hz = rte_get_timer_hz();
    return cycles / hz * 1'000'000 + cycles % hz * 1'000'000 / hz;
}

bool ntbmsg::nap()
{
    constexpr timespec moment{0, 20'000};
    return nanosleep(&moment, nullptr) == 0;
}

uint64_t ntbmsg::clock_us()
{
    const ntbmsg_clock_fn clock = chosen.load(std::memory_order_acquire);
    return clock != nullptr ? clock() : real_us();
}

void ntbmsg_clock_set(ntbmsg_clock_fn clock)
{
    chosen.store(clock, std::memory_order_release);
}
