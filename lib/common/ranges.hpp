// SPDX-License-Identifier: BSD-3-Clause
// Ranges of the sizes that an endpoint has by its options and a device by its devargs: one table
// for both.
#ifndef NTB_COMMON_RANGES_HPP
#define NTB_COMMON_RANGES_HPP

#include <cstdint>

namespace ntb
{

struct Range {
    uint32_t low, high;
    constexpr bool has(uint32_t value) const { return low <= value && value <= high; }
};

// What the wire protocol, the mbuf and the driver's tables bear; the driver asserts that.
namespace ranges
{
inline constexpr Range queues{1, 64};
inline constexpr Range ring_lines{64, 65536};
inline constexpr Range buffers{64, 1048576};
inline constexpr Range buf_bytes{64, 65280};
inline constexpr Range queue_buffers{14, 8190};
inline constexpr Range inline_max{48, 1024};
inline constexpr Range max_message{1, 16777215};
} // namespace ranges

} // namespace ntb

#endif
