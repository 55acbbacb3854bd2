// SPDX-License-Identifier: BSD-3-Clause
#ifndef APP_CLOCK_HPP
#define APP_CLOCK_HPP

#include <cstdint>
#include <ctime>

namespace app
{

inline uint64_t clock_ns(clockid_t clock)
{
    timespec ts;
    clock_gettime(clock, &ts);
    return static_cast<uint64_t>(ts.tv_sec) * 1000000000u + static_cast<uint64_t>(ts.tv_nsec);
}

inline uint64_t monotonic_ns()
{
    return clock_ns(CLOCK_MONOTONIC);
}

/// CPU time of the calling thread.
inline uint64_t thread_cpu_ns()
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

} // namespace app

#endif
