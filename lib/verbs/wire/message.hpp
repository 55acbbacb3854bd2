// SPDX-License-Identifier: BSD-3-Clause
// What engines say to each other: doc/verbs.md, section 3.
#ifndef NTB_VERBS_WIRE_MESSAGE_HPP
#define NTB_VERBS_WIRE_MESSAGE_HPP

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "wire/address.hpp"

namespace ntb::verbs
{

static_assert(std::endian::native == std::endian::little, "fields are stored as they are");

enum class Kind : std::uint8_t {
    Hello = 1,
    Send,
    Write,
    Read,
    FetchAdd,
    CmpSwap,
    Ack,
    Nak,
    Rnr,
    Ready,
    Data,
    NotReady,
    Again,
    Grant,
    Lend,
    Mapped,
    Lacks,
};

namespace flag
{
constexpr std::uint8_t last = 1, solicited = 2, immediate = 4, ack = 8, invalidate = 16, ask = 32,
                       lent = 64;
} // namespace flag

struct Header {
    Kind kind;
    std::uint8_t flags;
    std::uint16_t attempt;
    std::uint32_t to;
    std::uint32_t from;
    std::uint32_t seq;
    std::uint32_t bytes;
    std::uint32_t offset;
    std::uint32_t total;
    std::uint32_t value;
    std::uint32_t key;
    std::uint32_t ack;
    std::uint64_t address;
};
static_assert(sizeof(Header) == 48);

/// Payload of Hello.
struct Hello {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t longest;
    Address own;
    std::uint32_t reserved;
};
static_assert(sizeof(Hello) == 24);

/// Payload of Grant and Lend: memory of the peer that this host can map, and the region in its
/// beginning.
struct Grant {
    std::uint64_t number;
    std::uint64_t address, length;
    std::uint32_t rights; // of ntbv_access
    std::uint32_t reserved;
};
static_assert(sizeof(Grant) == 32);

/// The word that an engine leaves for its peer (Port::leave()): that it does so, and the
/// acknowledgement that it has not sent yet, if there is one. Of a queue pair's number it has the
/// place, as the link says the node.
constexpr std::uint64_t leaves_words = std::uint64_t{1} << 63;
constexpr std::uint64_t leaves_ack = std::uint64_t{1} << 62;
constexpr std::uint64_t word_of_ack(std::uint32_t to, std::uint32_t from, std::uint32_t seq)
{
    constexpr std::uint64_t slot_mask = (1U << slot_bits) - 1;
    return leaves_words | leaves_ack | (to & slot_mask) << (32 + slot_bits) |
           (from & slot_mask) << 32 | seq;
}

constexpr std::uint64_t hello_magic = 0x736272657662746e; // "ntbverbs"
constexpr std::uint32_t wire_version = 5;
constexpr std::uint32_t qpn_mask = 0xffffff;
constexpr std::uint32_t max_request = 0x80000000;

/// Copies the header of a message that arrived, once.
/// @retval false no engine sends this: unknown, of a wrong length, or out of the request that it
///               says it belongs to
bool read_header(const std::byte *message, std::uint32_t bytes, Header &header);

/// What most messages say that go alone: a SEND in one message, with data, and perhaps immediate
/// data and an acknowledgement.
struct LoneSend {
    std::uint32_t to, from, seq, bytes, value, ack;
    std::uint16_t attempt;
    std::uint8_t flags;
};
/// The same of such a message, without a copy of what it has no use for: each word of it is loaded
/// once. Whose numbers these are is not checked.
/// @param message  aligned to 8
/// @retval false it is another one
inline bool read_lone(const std::byte *message, std::uint32_t bytes, LoneSend &lone)
{
    static_assert(offsetof(Header, flags) == 1 && offsetof(Header, attempt) == 2 &&
                  offsetof(Header, to) == 4 && offsetof(Header, from) == 8 &&
                  offsetof(Header, seq) == 12 && offsetof(Header, bytes) == 16 &&
                  offsetof(Header, offset) == 20 && offsetof(Header, total) == 24 &&
                  offsetof(Header, value) == 28 && offsetof(Header, ack) == 36);
    constexpr std::uint8_t known = flag::solicited | flag::immediate | flag::ack;
    constexpr std::uint64_t shape = 0xff | std::uint64_t{0xff & ~known} << 8;
    constexpr std::uint64_t whole_send =
        static_cast<std::uint64_t>(Kind::Send) | std::uint64_t{flag::last} << 8;
    const auto word = [message](std::size_t at) {
        auto *const from = reinterpret_cast<const std::uint64_t *>(message + at);
        return std::atomic_ref(*const_cast<std::uint64_t *>(from)).load(std::memory_order_relaxed);
    };
    if (bytes <= sizeof(Header)) [[unlikely]]
        return false;
    const std::uint64_t kind_to = word(0), from_seq = word(8), total_value = word(24);
    lone.bytes = bytes - static_cast<std::uint32_t>(sizeof(Header));
    // `offset` is 0.
    if ((kind_to & shape) != whole_send || word(16) != lone.bytes ||
        static_cast<std::uint32_t>(total_value) != lone.bytes) [[unlikely]]
        return false;
    lone.flags = static_cast<std::uint8_t>(kind_to >> 8);
    lone.attempt = static_cast<std::uint16_t>(kind_to >> 16);
    lone.to = static_cast<std::uint32_t>(kind_to >> 32);
    lone.from = static_cast<std::uint32_t>(from_seq);
    lone.seq = static_cast<std::uint32_t>(from_seq >> 32);
    lone.value = static_cast<std::uint32_t>(total_value >> 32);
    lone.ack = static_cast<std::uint32_t>(word(32) >> 32);
    return true;
}

/// The acknowledgement that a peer has left, as the message that it did not send.
/// @retval false there is none
bool read_word(std::uint64_t word, Address own, Address peer, Header &header);

/// Whether it is the Hello of an engine that can be talked to. @param own  takes its address
bool read_hello(const std::byte *payload, std::uint32_t bytes, std::uint32_t longest, Address &own);

} // namespace ntb::verbs

#endif
