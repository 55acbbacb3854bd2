// SPDX-License-Identifier: BSD-3-Clause
#include "traffic/frame.hpp"

#include <cstddef>
#include <cstring>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

namespace echo
{

namespace
{

constexpr size_t ip_offset = sizeof(rte_ether_hdr);
constexpr size_t udp_offset = ip_offset + sizeof(rte_ipv4_hdr);
static_assert(udp_offset + sizeof(rte_udp_hdr) == frame_bytes);

// The block for benchmarks, RFC 2544: sources in one half of 198.18.0.0/15, the sink in the other.
constexpr uint32_t first_source = 0xC6120000;
constexpr uint32_t sink = 0xC6130001;
constexpr uint16_t first_port = 1024;
constexpr uint32_t ports = 60000;
constexpr uint16_t discard_port = 9;
// Locally administered.
constexpr rte_ether_addr source_mac = {{2, 0, 0, 0, 0, 1}};
constexpr rte_ether_addr sink_mac = {{2, 0, 0, 0, 0, 2}};

} // namespace

void write_headers(std::span<std::byte> frame)
{
    const auto ip_bytes = static_cast<uint16_t>(frame.size() - ip_offset);
    rte_ether_hdr ether = {};
    ether.dst_addr = sink_mac;
    ether.src_addr = source_mac;
    ether.ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
    rte_ipv4_hdr ip = {};
    ip.version_ihl = RTE_IPV4_VHL_DEF;
    ip.total_length = rte_cpu_to_be_16(ip_bytes);
    ip.time_to_live = 64;
    ip.next_proto_id = IPPROTO_UDP;
    ip.dst_addr = rte_cpu_to_be_32(sink);
    rte_udp_hdr udp = {};
    udp.dst_port = rte_cpu_to_be_16(discard_port);
    udp.dgram_len = rte_cpu_to_be_16(static_cast<uint16_t>(ip_bytes - sizeof(ip)));
    std::memcpy(frame.data(), &ether, sizeof(ether));
    std::memcpy(frame.data() + ip_offset, &ip, sizeof(ip));
    std::memcpy(frame.data() + udp_offset, &udp, sizeof(udp));
    set_flow(frame.data(), 0);
}

void set_flow(void *frame, uint32_t flow)
{
    auto *const at = static_cast<std::byte *>(frame);
    rte_ipv4_hdr ip;
    std::memcpy(&ip, at + ip_offset, sizeof(ip));
    ip.src_addr = rte_cpu_to_be_32(first_source + flow);
    ip.hdr_checksum = 0;
    ip.hdr_checksum = rte_ipv4_cksum(&ip);
    std::memcpy(at + ip_offset, &ip, sizeof(ip));
    const rte_be16_t port = rte_cpu_to_be_16(static_cast<uint16_t>(first_port + flow % ports));
    std::memcpy(at + udp_offset + offsetof(rte_udp_hdr, src_port), &port, sizeof(port));
}

} // namespace echo
