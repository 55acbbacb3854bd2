// SPDX-License-Identifier: BSD-3-Clause
// EAL's monotonic clock in the units of the control side.
#ifndef PLX_NTB_SYNC_CLOCK_HPP
#define PLX_NTB_SYNC_CLOCK_HPP

#include <cstdint>

#include <rte_cycles.h>

namespace plx::pmd
{

/// Time since the clock began, in units of 1 / @p PerSecond s. In two parts: cycles * PerSecond
/// would overflow within months.
template <uint64_t PerSecond>
inline uint64_t timer_now()
{
    const uint64_t hz = rte_get_timer_hz();
    const uint64_t cycles = rte_get_timer_cycles();
    return cycles / hz * PerSecond + cycles % hz * PerSecond / hz;
}

inline uint64_t timer_us()
{
    return timer_now<1'000'000>();
}
/// As a callback.
inline uint64_t monotonic_us(void *)
{
    return timer_us();
}
inline uint64_t timer_ns()
{
    return timer_now<1'000'000'000>();
}

} // namespace plx::pmd

#endif
