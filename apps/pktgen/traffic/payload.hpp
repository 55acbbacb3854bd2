// SPDX-License-Identifier: BSD-3-Clause
// HOT. What a program that knows its messages does to them: every word written at one end, every
// line read at the other.
#ifndef PKTGEN_TRAFFIC_PAYLOAD_HPP
#define PKTGEN_TRAFFIC_PAYLOAD_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <emmintrin.h>

#include <rte_mbuf.h>

#include "crc32c.hpp"

namespace pktgen
{

inline constexpr size_t line_bytes = 64;

inline void store_word(std::byte *at, uint64_t word, size_t bytes = sizeof(uint64_t))
{
    std::memcpy(at, &word, bytes);
}

/// @param bytes  at most 8: the rest of the word is 0
inline uint64_t load_word(const std::byte *at, size_t bytes = sizeof(uint64_t))
{
    uint64_t word = 0;
    std::memcpy(&word, at, bytes);
    return word;
}

/// Every word becomes @p value.
inline void fill_words(std::byte *at, size_t bytes, uint64_t value)
{
    size_t i = 0;
    const __m128i pair = _mm_set1_epi64x(static_cast<int64_t>(value));
    for (; i + sizeof(pair) <= bytes; i += sizeof(pair))
        _mm_storeu_si128(reinterpret_cast<__m128i *>(at + i), pair);
    if (i + sizeof(value) <= bytes) {
        store_word(at + i, value);
        i += sizeof(value);
    }
    if (i != bytes)
        store_word(at + i, value, bytes - i);
}

/// The sum over the first word of every line.
inline uint64_t sum_lines(const std::byte *at, size_t bytes)
{
    uint64_t sum = 0;
    size_t i = 0;
    for (; i + sizeof(uint64_t) <= bytes; i += line_bytes)
        sum += load_word(at + i);
    return i < bytes ? sum + load_word(at + i, bytes - i) : sum;
}

/// What sum_lines() finds in a message that fill_words() wrote. Segments are whole lines, so how
/// it was cut does not matter.
inline uint64_t expected_sum(size_t bytes, uint64_t value)
{
    const size_t rest = bytes % line_bytes;
    const uint64_t full = (bytes / line_bytes + (rest >= sizeof(uint64_t) ? 1 : 0)) * value;
    if (rest == 0 || rest >= sizeof(uint64_t))
        return full;
    return full + (value & ((uint64_t{1} << (8 * rest)) - 1));
}

inline uint64_t read_message(const rte_mbuf *message)
{
    uint64_t sum = 0;
    for (const rte_mbuf *segment = message; segment != nullptr; segment = segment->next)
        sum += sum_lines(rte_pktmbuf_mtod(segment, const std::byte *), segment->data_len);
    return sum;
}

/// Reads every line and writes to it, as a server that answers in place does. The bytes stay what
/// they were.
inline uint64_t touch_message(rte_mbuf *message)
{
    uint64_t sum = 0;
    for (rte_mbuf *segment = message; segment != nullptr; segment = segment->next) {
        auto *at = rte_pktmbuf_mtod(segment, std::byte *);
        const size_t bytes = segment->data_len;
        sum += sum_lines(at, bytes);
        for (size_t i = 0; i < bytes; i += line_bytes) {
            // volatile: the compiler must not find out that nothing changes.
            auto *byte = reinterpret_cast<volatile unsigned char *>(at + i);
            *byte = *byte;
        }
    }
    return sum;
}

inline uint32_t crc_of(const rte_mbuf *message)
{
    uint32_t crc = 0;
    for (const rte_mbuf *segment = message; segment != nullptr; segment = segment->next)
        crc = app::crc32c(rte_pktmbuf_mtod(segment, const void *), segment->data_len, crc);
    return crc;
}

/// What travels in the metadata of a verified message: CRC above, the low half of its number below.
constexpr uint64_t stamp_of(uint32_t crc, uint64_t number)
{
    return uint64_t{crc} << 32 | (number & UINT32_MAX);
}

} // namespace pktgen

#endif
