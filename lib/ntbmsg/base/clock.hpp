// SPDX-License-Identifier: BSD-3-Clause
// The clock that time-outs read.
#ifndef NTBMSG_BASE_CLOCK_HPP
#define NTBMSG_BASE_CLOCK_HPP

#include <cstdint>

namespace ntbmsg
{

/// Microseconds of the clock that ntbmsg_clock_set() chose.
uint64_t clock_us();

/// Microseconds of the TSC, whatever ntbmsg_clock_set() chose: for waits that a test's clock must
/// not hold.
uint64_t real_us();

/// Gives way for a moment while nothing happens. @return false: a signal handler ran
bool nap();

} // namespace ntbmsg

#endif
