// SPDX-License-Identifier: BSD-3-Clause
// Layout of everything that crosses the bridge. doc/wire-protocol.md is the specification; both
// change in one commit. No pointers, no DPDK types, no policy.
#ifndef PLX_QUEUE_WIRE_HPP
#define PLX_QUEUE_WIRE_HPP

#include <cstddef>
#include <cstdint>

namespace plx::wire
{

inline constexpr uint64_t magic = 0x313042544e584c50; // "PLXNTB01" in memory order
inline constexpr uint16_t version_major = 2;
inline constexpr uint16_t version_minor = 1;
inline constexpr uint16_t minor_with_channel_qps = 1;
inline constexpr uint16_t minor_with_refused_epoch = 1;

inline constexpr size_t line_bytes = 64;
inline constexpr size_t page_bytes = 4096;

// Section 1: the block.
inline constexpr size_t hello_offset = 0;
inline constexpr size_t heartbeat_offset = 256;
inline constexpr size_t scratch_offset = 2048;
inline constexpr size_t scratch_bytes = 2048;
inline constexpr size_t sleep_request_offset = 512;
inline constexpr size_t sleep_answer_offset = 1024;
inline constexpr size_t sleep_words_end = 1536;
inline constexpr size_t queue_area_offset = page_bytes;

// Section 2: valid ranges of a hello.
inline constexpr uint64_t block_bytes_min = uint64_t{1} << 20;
inline constexpr uint64_t block_bytes_max = uint64_t{1} << 30;
inline constexpr uint32_t qp_count_max = 64;
inline constexpr uint32_t ring_lines_min = 64;
inline constexpr uint32_t ring_lines_max = 65536;
inline constexpr uint32_t buffer_ring_lines_min = 2;
inline constexpr uint32_t buffer_ring_lines_max = 4096;
inline constexpr uint32_t buf_bytes_min = 64;
inline constexpr uint32_t buf_bytes_max = 65536;
inline constexpr uint32_t message_max = (uint32_t{1} << 24) - 1;

enum class HelloState : uint32_t { up = 1, closing = 2, refused = 3 };

struct Hello {
    uint64_t magic;
    uint16_t major;
    uint16_t minor;
    uint32_t bytes;
    uint32_t seq;
    HelloState state;
    uint32_t epoch;
    uint32_t ack;
    uint64_t features;
    uint64_t block_bytes;
    uint32_t qp_count;
    uint32_t ring_lines;
    uint32_t buffer_ring_lines;
    uint32_t buf_bytes;
    uint32_t buf_begin; ///< lines
    uint32_t buf_end;   ///< lines
    uint32_t max_message;
    uint32_t heartbeat_us;
    uint64_t seed;
    uint32_t channel_qps; ///< of qp_count, the last ones: they carry channels
    uint32_t crc;         ///< CRC-32C of everything before it
};
static_assert(sizeof(Hello) == 96 && offsetof(Hello, features) == 32 &&
                  offsetof(Hello, seed) == 80 && offsetof(Hello, crc) == 92,
              "doc/wire-protocol.md, section 2");

/// Bits of Hello::features.
inline constexpr uint64_t feature_sleep_answers = 1; ///< answers requests to be woken (section 9)
inline constexpr uint64_t feature_doorbells = 2;     ///< listens to its doorbells

// Section 4: word 0 of a message line.
enum class Kind : unsigned { continuation = 0, inline_message = 1, long_message = 2, pad = 3 };

inline constexpr size_t meta_offset = 8;
inline constexpr size_t head_payload_offset = 16;
inline constexpr size_t head_payload_bytes = line_bytes - head_payload_offset;
inline constexpr size_t cont_payload_offset = 8;
inline constexpr size_t cont_payload_bytes = line_bytes - cont_payload_offset;
inline constexpr uint32_t inline_bytes_max = 1024;

constexpr uint64_t flags_of_word(unsigned flags)
{
    return uint64_t{flags & 0x3f} << 58;
}
constexpr uint64_t head_word(uint32_t tag, uint32_t length, Kind kind, unsigned flags)
{
    return uint64_t{tag} | uint64_t{length} << 32 | uint64_t{static_cast<unsigned>(kind)} << 56 |
           flags_of_word(flags);
}
constexpr uint64_t continuation_word(uint32_t tag)
{
    return tag;
}
constexpr uint32_t word_tag(uint64_t word)
{
    return static_cast<uint32_t>(word);
}
constexpr uint32_t word_length(uint64_t word)
{
    return (word >> 32) & 0xffffff;
}
constexpr unsigned word_kind(uint64_t word)
{
    return (word >> 56) & 3;
}
constexpr unsigned word_flags(uint64_t word)
{
    return static_cast<unsigned>(word >> 58);
}

/// Ring lines that an inline message of @p length bytes takes.
constexpr uint32_t inline_lines(uint32_t length)
{
    if (length <= head_payload_bytes)
        return 1;
    if (length <= head_payload_bytes + cont_payload_bytes)
        return 2; // the usual case without the division
    return 1 + static_cast<uint32_t>((length - head_payload_bytes + cont_payload_bytes - 1) /
                                     cont_payload_bytes);
}

/// The last lines of a ring, where a message may not fit any more and pad lines may be.
inline constexpr uint32_t pad_lines_max = inline_lines(inline_bytes_max) - 1;
static_assert(pad_lines_max + inline_lines(inline_bytes_max) <= ring_lines_min,
              "the longest inline message fits behind its pad lines, wherever the ring stands");

constexpr uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9;
    x ^= x >> 27;
    x *= 0x94d049bb133111eb;
    return x ^ x >> 31;
}
/// Base of the tags of a queue pair's message ring; @p seed of the pair of hosts (4.1).
constexpr uint32_t ring_base(uint64_t seed, uint32_t qp)
{
    return static_cast<uint32_t>(mix(seed + 2 * uint64_t{qp}));
}
/// The same for its back channel: credits and receive-buffer ring.
constexpr uint32_t back_base(uint64_t seed, uint32_t qp)
{
    return static_cast<uint32_t>(mix(seed + 2 * uint64_t{qp} + 1));
}

// Section 6: a line of the receive-buffer ring.
inline constexpr uint32_t buffers_per_line = 14;
/// Of @p target receive buffers, those available to the peer at any time: used ones are replaced in
/// whole lines of the receive-buffer ring, so up to a line less one buffer may be missing.
constexpr uint32_t guaranteed_buffers(uint32_t target)
{
    return target - (buffers_per_line - 1);
}

// Section 9: a request to be woken and its answer, one word each.
constexpr uint64_t sleep_request(uint32_t base, uint32_t number)
{
    return uint64_t{base} | uint64_t{number} << 32;
}
constexpr uint64_t sleep_answer(uint32_t number, uint32_t published)
{
    return uint64_t{number} | uint64_t{published} << 32;
}
/// The 16 doorbells are shared by queue pairs of the same number modulo 16.
constexpr uint16_t doorbell_bit(uint32_t qp)
{
    return static_cast<uint16_t>(1u << qp % 16);
}

// Section 1: where things lie in a block.
constexpr size_t qp_stride(uint32_t ring_lines, uint32_t buffer_ring_lines)
{
    const size_t bytes = line_bytes * (size_t{1} + buffer_ring_lines + ring_lines);
    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}
constexpr size_t request_offset(uint32_t qp)
{
    return sleep_request_offset + 8 * size_t{qp};
}
constexpr size_t answer_offset(uint32_t qp)
{
    return sleep_answer_offset + 8 * size_t{qp};
}
static_assert(request_offset(qp_count_max) <= sleep_answer_offset &&
              answer_offset(qp_count_max) <= sleep_words_end);
constexpr size_t credit_offset(uint32_t qp, uint32_t ring_lines, uint32_t buffer_ring_lines)
{
    return queue_area_offset + qp * qp_stride(ring_lines, buffer_ring_lines);
}
constexpr size_t buffer_ring_offset(uint32_t qp, uint32_t ring_lines, uint32_t buffer_ring_lines)
{
    return credit_offset(qp, ring_lines, buffer_ring_lines) + line_bytes;
}
constexpr size_t ring_offset(uint32_t qp, uint32_t ring_lines, uint32_t buffer_ring_lines)
{
    return buffer_ring_offset(qp, ring_lines, buffer_ring_lines) + line_bytes * buffer_ring_lines;
}
constexpr size_t queue_area_end(uint32_t qps, uint32_t ring_lines, uint32_t buffer_ring_lines)
{
    return credit_offset(qps, ring_lines, buffer_ring_lines);
}

} // namespace plx::wire

#endif
