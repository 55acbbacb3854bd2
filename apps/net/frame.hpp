// SPDX-License-Identifier: BSD-3-Clause
// What two of these programs put between them beside plain Ethernet frames. A peer that is another
// program gets plain frames alone.
//
// A frame whose checksum or segmentation the sending kernel has left to the receiving one carries a
// tag behind its addresses, as a VLAN has:
//
//     destination 6 | source 6 | 0x88B5 | OffloadHeader 10 | type of the frame 2 | ...
//
// A hello says that this is done: addresses | 0x88B6 | Hello. Both types are IEEE 802's for local
// experiments.
#ifndef APP_NET_FRAME_HPP
#define APP_NET_FRAME_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <rte_byteorder.h>
#include <rte_ether.h>

namespace net
{

/// What the kernel puts before a frame (virtio specification, section 5.1.6, without num_buffers).
/// linux/virtio_net.h has it, but is no C++.
struct OffloadHeader {
    static constexpr uint8_t needs_checksum = 1; ///< a flag
    static constexpr uint8_t one_segment = 0;    ///< of kind

    uint8_t flags;
    uint8_t kind; ///< of segmentation
    rte_le16_t header_bytes, segment_bytes, checksum_start, checksum_offset;
};
static_assert(sizeof(OffloadHeader) == 10);

constexpr uint16_t tag_type = 0x88B5;
constexpr uint16_t hello_type = 0x88B6;
constexpr size_t addresses_bytes = 2 * RTE_ETHER_ADDR_LEN;
constexpr size_t tag_bytes = sizeof(uint16_t) + sizeof(OffloadHeader);

/// Longest frame of a port: an MTU of 65535 and a VLAN tag.
constexpr uint32_t longest_frame = UINT16_MAX + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN;
/// Longest frame of the interface, which may get a tag of ours.
constexpr uint32_t longest_inside = longest_frame - tag_bytes;
/// The kernel's limit for a tap device, whose frames are shorter than that.
constexpr uint32_t longest_mtu = UINT16_MAX - RTE_ETHER_HDR_LEN;
static_assert(longest_mtu + RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN <= longest_inside);

struct Hello {
    static constexpr uint8_t known_version = 1;
    static constexpr uint8_t offloads = 1; ///< takes tagged frames of any length there is

    uint8_t version;
    uint8_t flags;
    rte_le16_t queues; ///< that it reads and writes
};
static_assert(sizeof(Hello) == 4);
/// Zeros follow: as long as Ethernet's shortest frame.
constexpr size_t hello_bytes = RTE_ETHER_MIN_LEN - RTE_ETHER_CRC_LEN;

/// Type of the frame that begins with @p head, which holds an Ethernet header.
inline uint16_t type_of(const uint8_t *head)
{
    rte_be16_t type;
    std::memcpy(&type, head + addresses_bytes, sizeof(type));
    return rte_be_to_cpu_16(type);
}
inline void set_type(uint8_t *head, uint16_t type)
{
    const rte_be16_t wire = rte_cpu_to_be_16(type);
    std::memcpy(head + addresses_bytes, &wire, sizeof(wire));
}

} // namespace net

#endif
