// SPDX-License-Identifier: BSD-3-Clause
// What connection managers say to each other: doc/verbs.md, section 12.
#ifndef NTB_VERBS_CM_MESSAGE_HPP
#define NTB_VERBS_CM_MESSAGE_HPP

#include <bit>
#include <cstddef>
#include <cstdint>

namespace ntb::verbs::cm
{

static_assert(std::endian::native == std::endian::little, "fields are stored as they are");

/// Named as those of the InfiniBand communication manager.
enum class Kind : std::uint8_t { Req = 1, Rep, Rtu, Rej, Dreq, Drep };

/// Numbers of the specification.
namespace reason
{
constexpr std::uint32_t no_resources = 3, invalid_service = 8, consumer_defined = 28;
} // namespace reason

constexpr std::uint8_t type_rc = 2, type_uc = 3, type_ud = 4; // as in verbs
constexpr std::uint32_t max_private = 196;

struct Message {
    std::uint64_t magic;
    std::uint16_t version;
    Kind kind;
    std::uint8_t private_bytes;
    std::uint16_t lid; ///< of the sender's device, with Req and Rep
    std::uint8_t type; ///< of the queue pair, with Req
    std::uint8_t srq;
    std::uint32_t qpn;
    std::uint32_t psn; ///< that the sender expects first
    std::uint32_t qkey;
    std::uint32_t reason; ///< of Rej
    std::uint8_t responder_resources;
    std::uint8_t initiator_depth;
    std::uint8_t flow_control;
    std::uint8_t retry_count;
    std::uint8_t rnr_retry_count;
    std::uint8_t reserved[3];
    std::uint8_t gid[16];
    std::uint8_t source[16]; ///< of Req; IPv4 is mapped into IPv6
    std::uint8_t destination[16];
    std::uint16_t source_port;
    std::uint16_t destination_port;
    std::uint8_t private_data[max_private];
    std::uint8_t padding[96];
};
static_assert(sizeof(Message) == 384 && offsetof(Message, private_data) == 92);

/// Of one kind, all else zero.
Message message_of(Kind kind);

/// How many bytes of private data go with a message to or from a queue pair of that type.
std::uint32_t private_room(Kind kind, std::uint8_t type);

/// Whether a manager of this version sends it. @param message  a copy
bool is_sound(const Message &message);

} // namespace ntb::verbs::cm

#endif
