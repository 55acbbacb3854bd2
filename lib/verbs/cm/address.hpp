// SPDX-License-Identifier: BSD-3-Clause
// Addresses as the map has them, IPv4 in IPv6, and as programs write them.
#ifndef NTB_VERBS_CM_ADDRESS_HPP
#define NTB_VERBS_CM_ADDRESS_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace ntb::verbs::cm
{

struct Address {
    std::uint8_t bytes[16]; ///< IPv4 as ::ffff:a.b.c.d
    std::uint16_t port;     ///< in the host's order
};

constexpr std::uint8_t mapped_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

inline bool is_ipv4(const Address &address)
{
    return std::equal(mapped_prefix, mapped_prefix + sizeof(mapped_prefix), address.bytes);
}

inline bool is_any(const Address &address)
{
    return std::all_of(address.bytes + (is_ipv4(address) ? sizeof(mapped_prefix) : 0),
                       address.bytes + sizeof(address.bytes), [](auto byte) { return byte == 0; });
}

inline bool is_same_host(const Address &one, const Address &other)
{
    return std::equal(one.bytes, one.bytes + sizeof(one.bytes), other.bytes);
}

/// The room that commands have for either family.
inline sockaddr_in6 to_sockaddr(const Address &address)
{
    sockaddr_in6 room = {};
    if (is_ipv4(address)) {
        sockaddr_in four = {};
        four.sin_family = AF_INET;
        four.sin_port = htons(address.port);
        std::memcpy(&four.sin_addr, address.bytes + sizeof(mapped_prefix), sizeof(four.sin_addr));
        std::memcpy(&room, &four, sizeof(four));
        return room;
    }
    room.sin6_family = AF_INET6;
    room.sin6_port = htons(address.port);
    std::memcpy(&room.sin6_addr, address.bytes, sizeof(room.sin6_addr));
    return room;
}

/// @return false: of neither family
inline bool from_sockaddr(const sockaddr_in6 &room, Address &address)
{
    address.port = ntohs(room.sin6_port); // at the same place in both
    if (room.sin6_family == AF_INET6) {
        std::memcpy(address.bytes, &room.sin6_addr, sizeof(address.bytes));
        return true;
    }
    sockaddr_in four;
    std::memcpy(&four, &room, sizeof(four));
    std::memcpy(address.bytes, mapped_prefix, sizeof(mapped_prefix));
    std::memcpy(address.bytes + sizeof(mapped_prefix), &four.sin_addr, sizeof(four.sin_addr));
    return room.sin6_family == AF_INET;
}

} // namespace ntb::verbs::cm

#endif
