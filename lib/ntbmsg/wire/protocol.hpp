// SPDX-License-Identifier: BSD-3-Clause
// Layout of all messages between workers (doc/channel-protocol.md), and bounded decoding of what
// the peer wrote. No state.
#ifndef NTBMSG_WIRE_PROTOCOL_HPP
#define NTBMSG_WIRE_PROTOCOL_HPP

#include <bit>
#include <cstddef>
#include <cstdint>

#include "ntbmsg.h"

namespace ntbmsg::protocol
{

static_assert(std::endian::native == std::endian::little, "the protocol is little-endian");

inline constexpr uint16_t major = 1, minor = 3;

/// The 6 flag bits of a message.
enum Op : uint8_t {
    op_data = 0,
    op_hello = 1,
    op_connect = 2,
    op_accept = 3,
    op_reject = 4,
    op_credit = 5,
    op_close = 6,
    op_reset = 7,
    op_flush = 8,
    op_leave = 9,
    op_more = 10,
    op_grant = 11,
    op_recall = 12,
    op_surplus = 13,
    op_credits = 14,
};

/// The low half of the metadata: a slot of the receiver and its generation. 0 is the worker.
constexpr uint32_t slot_word(uint16_t slot, uint16_t generation)
{
    return slot | uint32_t{generation} << 16;
}
constexpr uint16_t word_slot(uint32_t word)
{
    return static_cast<uint16_t>(word);
}

constexpr uint64_t header(uint32_t word, uint32_t argument)
{
    return word | uint64_t{argument} << 32;
}
constexpr uint32_t header_word(uint64_t data)
{
    return static_cast<uint32_t>(data);
}
constexpr uint32_t header_argument(uint64_t data)
{
    return static_cast<uint32_t>(data >> 32);
}

/// Credits of one channel fit into 16 bits each.
inline constexpr uint32_t max_credit = 65535;

constexpr uint32_t credit_argument(uint32_t messages, uint32_t buffers)
{
    return messages | buffers << 16;
}
constexpr uint32_t credit_messages(uint32_t argument)
{
    return argument & 0xffff;
}
constexpr uint32_t credit_buffers(uint32_t argument)
{
    return argument >> 16;
}

/// MORE: what the sender lacks.
enum Lack : uint32_t { lack_messages = 1, lack_buffers = 2 };

/// Features of HELLO: the credit of a channel grows and shrinks (MORE to SURPLUS).
inline constexpr uint64_t feature_lending = 1;
/// ... credit of several channels comes in one message (CREDITS).
inline constexpr uint64_t feature_credits = 2;

inline constexpr uint64_t hello_magic = 0x313048434d42544e; // "NTBMCH01"

/// Bytes that hold every control message of a worker.
inline constexpr uint32_t min_message = 256;

/// Longest message that may count for no receive buffer.
inline constexpr uint32_t inline_limit = 1024;

struct Hello {
    uint64_t magic;
    uint16_t major, minor;
    uint32_t bytes;
    uint32_t channels;
    uint32_t buf_bytes;
    uint32_t inline_max; ///< of what it says, inline_limit at most is believed
    uint32_t operations;
    uint64_t features;
    uint64_t reserved[3];
};
static_assert(sizeof(Hello) == 64);

/// CONNECT and ACCEPT; private_bytes of private data follow.
struct Opening {
    uint16_t slot, generation;
    uint32_t messages;
    uint32_t buffers;
    uint32_t max_message;
    uint32_t timeout_ms;
    uint32_t private_bytes;
};
static_assert(sizeof(Opening) == 24);

struct OpeningMessage {
    Opening opening;
    uint8_t private_data[NTBMSG_MAX_PRIVATE];
};
static_assert(sizeof(OpeningMessage) == 24 + NTBMSG_MAX_PRIVATE);

/// CREDITS: what CREDIT says of one channel.
struct ChannelCredit {
    uint32_t word, argument;
};
/// Most in one message: one line of the ring.
inline constexpr unsigned credits_max = 6;

/// Why a peer with this HELLO is refused. @return NULL: it is not
inline const char *refusal(const Hello &hello)
{
    if (hello.magic != hello_magic)
        return "the peer's worker sends no hello of this library";
    if (hello.major != major)
        return "the peer's worker speaks another version of the channel protocol";
    if (hello.bytes != sizeof(Hello) || hello.channels == 0 || hello.channels > 65536)
        return "the peer's worker has impossible sizes";
    if (hello.buf_bytes < 64 || hello.buf_bytes > 65536 || hello.inline_max > 65536)
        return "the peer's worker has impossible buffers";
    return nullptr;
}

/// Whether size and contents of such a message are valid.
inline bool is_valid(const OpeningMessage &message, uint32_t bytes)
{
    const Opening &o = message.opening;
    return bytes >= sizeof(Opening) && o.private_bytes <= NTBMSG_MAX_PRIVATE &&
           bytes == sizeof(Opening) + o.private_bytes && o.generation != 0 && o.messages >= 1 &&
           o.messages <= max_credit && o.buffers <= max_credit;
}

} // namespace ntbmsg::protocol

#endif
