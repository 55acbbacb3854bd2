// SPDX-License-Identifier: BSD-3-Clause
// Section 5 of doc/channel-protocol.md: requests for one-sided operations and their answers. The
// operations themselves are numbered in protocol.hpp.
#ifndef NTBMSG_WIRE_ONE_SIDED_HPP
#define NTBMSG_WIRE_ONE_SIDED_HPP

#include <cstdint>
#include <type_traits>

namespace ntbmsg::protocol
{

/// Numbers of the operations. Those up to op_probe are requests and begin with a Request.
enum OneSidedOp : uint8_t {
    op_write = 16,
    op_write_imm = 17,
    op_notify = 18,  ///< immediate data of a write whose data were stored directly before it
    op_confirm = 19, ///< asks for an answer to stores made before it
    op_read = 20,
    op_fetch_add = 21,
    op_compare_swap = 22,
    op_probe = 23,
    op_read_data = 24,
    op_done = 25,
};
inline constexpr uint8_t one_sided_first = op_write, one_sided_last = op_done;

/// Begins the payload of every request.
struct Request {
    uint64_t key;    ///< of the region
    uint64_t offset; ///< in it
    uint64_t bytes;  ///< written or read; FETCH_ADD: the addend; COMPARE_SWAP: the new value
    uint64_t
        extra; ///< immediate data; COMPARE_SWAP: the value to compare with; PROBE: the value stored
};
static_assert(sizeof(Request) == 32 && std::is_trivially_copyable_v<Request>);

/// `extra` of WRITE_IMM and NOTIFY: immediate data, and the length of the whole write if several
/// messages carry it; 0: this message alone.
constexpr uint64_t imm_and_bytes(uint32_t imm, uint32_t bytes)
{
    return imm | uint64_t{bytes} << 32;
}
constexpr uint32_t imm_of(uint64_t extra)
{
    return static_cast<uint32_t>(extra);
}
constexpr uint32_t write_bytes_of(uint64_t extra)
{
    return static_cast<uint32_t>(extra >> 32);
}

/// What became of a request.
enum class Status : uint32_t {
    done = 0,
    no_key = 1, ///< no such region (any more)
    no_right =
        2, ///< the region lacks the right, or the channel a completion queue for immediate data
    outside = 3,   ///< outside of the region, or not aligned
    not_there = 4, ///< PROBE: the value has not arrived
};

/// The payload of DONE.
struct Done {
    uint32_t status;
    uint32_t reserved; ///< 0
    uint64_t value;    ///< atomics: the previous value
};
static_assert(sizeof(Done) == 16 && std::is_trivially_copyable_v<Done>);

/// Most data of one WRITE or READ_DATA message; less if the receiver accepts only shorter messages.
inline constexpr uint32_t chunk_bytes = 16384 - sizeof(Request);

/// After a direct region comes a line for the library alone: the peer stores a value into it and
/// asks whether it has arrived.
inline constexpr uint32_t probe_bytes = 64;

/// Most unanswered requests of the peer on one channel.
inline constexpr uint32_t requests_max = 256;

/// What names a region, ntbmsg_region_token.
struct Token {
    uint64_t key;
    uint64_t bytes;
    uint64_t window; ///< offset of a direct region in the peer's memory window, for this connection
    uint32_t rights;
    uint32_t direct;   ///< 0 or 1
    uint64_t reserved; ///< 0
};
static_assert(sizeof(Token) == 40 && std::is_trivially_copyable_v<Token>);

} // namespace ntbmsg::protocol

#endif
