// SPDX-License-Identifier: BSD-3-Clause
// Ethernet frames with an IPv4/UDP packet, for a peer that passes them on to a network.
#ifndef ECHO_TRAFFIC_FRAME_HPP
#define ECHO_TRAFFIC_FRAME_HPP

#include <cstddef>
#include <cstdint>
#include <span>

namespace echo
{

/// Headers alone: Ethernet, IPv4, UDP.
inline constexpr size_t frame_bytes = 14 + 20 + 8;
/// The longest: an IPv4 packet of 64 KiB.
inline constexpr size_t most_frame_bytes = 14 + 65535;

/// Writes the headers of flow 0 into a frame of frame.size() bytes, from frame_bytes to
/// most_frame_bytes. The UDP checksum is 0: none.
void write_headers(std::span<std::byte> frame);

/// Makes the frame at @p frame, whose headers write_headers() wrote, one of flow @p flow (0 to
/// 65535): its source address and its source port; the IPv4 checksum follows.
void set_flow(void *frame, uint32_t flow);

} // namespace echo

#endif
