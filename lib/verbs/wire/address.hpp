// SPDX-License-Identifier: BSD-3-Clause
// Who an engine is: the LID of its host, and a number in that host, which the numbers of its queue
// pairs carry. So LID and number of a queue pair lead to its engine (doc/verbs.md, section 10).
#ifndef NTB_VERBS_WIRE_ADDRESS_HPP
#define NTB_VERBS_WIRE_ADDRESS_HPP

#include <cstdint>

namespace ntb::verbs
{

/// A LID, and below it a node's number.
using Address = std::uint32_t;

/// Of the 24 bits of a queue pair's number: the lower ones are its place in the engine.
constexpr unsigned slot_bits = 14, node_bits = 10;
constexpr std::uint32_t node_mask = (1U << node_bits) - 1;

/// Of a port: the others are of multicast groups.
constexpr bool is_lid(std::uint32_t lid)
{
    return lid != 0 && lid <= 0xbfff;
}

constexpr Address make_address(std::uint16_t lid, std::uint32_t node)
{
    return std::uint32_t{lid} << node_bits | (node & node_mask);
}
/// @param qpn  of any queue pair of the engine
constexpr Address address_of(std::uint16_t lid, std::uint32_t qpn)
{
    return make_address(lid, qpn >> slot_bits);
}
constexpr std::uint16_t node_of(Address address)
{
    return static_cast<std::uint16_t>(address & node_mask);
}
/// Of what is_address() holds for.
constexpr std::uint16_t lid_of(Address address)
{
    return static_cast<std::uint16_t>(address >> node_bits);
}
constexpr bool is_address(Address address)
{
    return is_lid(address >> node_bits);
}

} // namespace ntb::verbs

#endif
