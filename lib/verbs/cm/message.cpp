// SPDX-License-Identifier: BSD-3-Clause
#include "cm/message.hpp"

#include "wire/address.hpp"

namespace ntb::verbs::cm
{
namespace
{

constexpr std::uint64_t message_magic = 0x6d63616d6472746e; // "ntrdmacm"
constexpr std::uint16_t message_version = 1;
constexpr std::uint32_t mask_24 = 0xffffff;
constexpr std::uint8_t most_retries = 7;

// What InfiniBand's messages have, less the 36 bytes in a request that say the addresses.
constexpr std::uint32_t room_req = 56, room_rep = 196, room_rej = 148;
constexpr std::uint32_t room_datagram_req = 180, room_datagram_rep = 136;

} // namespace

Message message_of(Kind kind)
{
    Message message = {};
    message.magic = message_magic;
    message.version = message_version;
    message.kind = kind;
    return message;
}

std::uint32_t private_room(Kind kind, std::uint8_t type)
{
    switch (kind) {
    case Kind::Req:
        return type == type_ud ? room_datagram_req : room_req;
    case Kind::Rep:
        return type == type_ud ? room_datagram_rep : room_rep;
    case Kind::Rej:
        return type == type_ud ? room_datagram_rep : room_rej;
    default:
        return 0;
    }
}

bool is_sound(const Message &message)
{
    if (message.magic != message_magic || message.version != message_version ||
        message.kind < Kind::Req || message.kind > Kind::Drep)
        return false;
    const std::uint8_t type = message.type;
    if (type < type_rc || type > type_ud ||
        message.private_bytes > private_room(message.kind, type))
        return false;
    if (message.kind != Kind::Req && message.kind != Kind::Rep)
        return true;
    return is_lid(message.lid) && (message.qpn | message.psn) <= mask_24 &&
           message.retry_count <= most_retries && message.rnr_retry_count <= most_retries;
}

} // namespace ntb::verbs::cm
