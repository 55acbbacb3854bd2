// SPDX-License-Identifier: BSD-3-Clause
// How both ends of a ring poll before they sleep: for a time that grows while that succeeds and
// shrinks while it does not, in laps that give the CPU to others.
#ifndef NTBCLIENT_RING_POLLING_HPP
#define NTBCLIENT_RING_POLLING_HPP

#include <algorithm>
#include <atomic>
#include <cstdint>

#include <sched.h>
#include <time.h>

namespace ntbc
{

inline constexpr uint32_t spin_min_ns = 1000;
inline constexpr uint32_t spin_max_ns = 50000;

constexpr uint32_t longer_spin(uint32_t ns)
{
    return std::min(spin_max_ns, ns + ns / 2);
}
constexpr uint32_t shorter_spin(uint32_t ns)
{
    return std::max(spin_min_ns, ns / 2);
}

inline int64_t now_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

inline void pause_lap()
{
    for (int i = 0; i < 64; i++)
#if defined(__x86_64__)
        __builtin_ia32_pause();
#else
        std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
    sched_yield();
}

} // namespace ntbc

#endif
