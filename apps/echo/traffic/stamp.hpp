// SPDX-License-Identifier: BSD-3-Clause
// What the metadata of a message says between the two sides of ntbmsg-echo. Besides this, an echo
// is the message as it came.
#ifndef ECHO_TRAFFIC_STAMP_HPP
#define ECHO_TRAFFIC_STAMP_HPP

#include <cstdint>

namespace echo
{

/// Set by the serving side: distinguishes an echo from what another sender sends.
inline constexpr uint32_t echoed_flag = 1;
/// Beside it, on a queue: the echo was built in a receive buffer of the side that gets it.
inline constexpr uint32_t built_flag = 2;

/// 40 bits of message number, and above them 24 random bits of the run, so that what an earlier
/// run left behind is not taken for an answer.
inline constexpr unsigned number_bits = 40;
inline constexpr uint64_t number_mask = (uint64_t{1} << number_bits) - 1;

constexpr uint64_t stamp(uint64_t run, uint64_t number)
{
    return run << number_bits | (number & number_mask);
}
constexpr uint64_t run_of(uint64_t stamp)
{
    return stamp >> number_bits;
}
constexpr uint64_t number_of(uint64_t stamp)
{
    return stamp & number_mask;
}

} // namespace echo

#endif
