// SPDX-License-Identifier: BSD-3-Clause
// The memory of a matched connection: the lines of both directions and their
// rings (doc/socket-protocol.md, section 4). Both ends and their daemons map it; what the other end
// wrote is input.
#ifndef NTB_SOCKET_PAIR_PAIR_HPP
#define NTB_SOCKET_PAIR_PAIR_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "direction/words.hpp"
#include "ring/layout.hpp"

namespace ntb::socket
{

/// Stored for each burst. The receiver clears it before a grant; else it is the sender's.
struct alignas(ntbc::line_bytes) SenderLine {
    std::uint32_t generation;
    std::uint32_t started;
    std::uint32_t mark;
    std::uint32_t narrow; ///< bytes of the ring that are used at first; 0: all
    std::uint64_t start;
    std::uint64_t head;
    std::uint64_t mark_offset;
    std::uint64_t stamp; ///< when head or mark was stored, by moment()
    std::uint64_t wide;  ///< from this offset on bytes lie behind those; 0: not yet
};

/// Of the sender, seldom stored.
struct alignas(ntbc::line_bytes) SenderAsks {
    std::uint32_t want; ///< a ring of this generation
    std::uint32_t
        wants_room; ///< not 0: somebody sleeps until there is room; another number each time
    std::uint32_t dozes_for_room; ///< the same, of those that sleep on a word: woken_for_room
    std::uint32_t
        woken_for_data; ///< what the receiver sleeps on: another number once a doze is ended
};

/// Stored for each quarter of the ring, and before a sleep.
struct alignas(ntbc::line_bytes) ReceiverLine {
    std::uint64_t taken;
};

/// Of the receiver, seldom stored.
struct alignas(ntbc::line_bytes) ReceiverAsks {
    std::uint32_t generation; ///< granted
    std::uint32_t ring_bytes; ///< of that ring
    std::uint32_t seen;
    std::uint32_t ask;
    std::uint32_t gone; ///< no receiver any more, and taken stays
    std::uint32_t wants_data;
    std::uint32_t narrow_bytes;   ///< of the ring, to be used at first
    std::uint32_t dozes_for_data; ///< as the sender's
    std::uint32_t woken_for_room;
};

/// Lines that the CPU may fetch in pairs have one writer.
struct Lines {
    SenderLine sender;
    SenderAsks sender_asks;
    ReceiverLine receiver;
    ReceiverAsks receiver_asks;
};
static_assert(sizeof(Lines) == 4 * ntbc::line_bytes);

/// The first page. End 0 connected, end 1 accepted; end e sends by direction[e].
struct Page {
    Lines direction[2];
    alignas(ntbc::line_bytes) std::uint32_t gone; ///< as in any connection's memory
};
static_assert(offsetof(Page, gone) == offsetof(ntbc::Page, gone));

/// Grows, and is one for all of a machine: of what one thread has stored for two connections, the
/// later has the larger one.
inline std::uint64_t moment()
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    std::uint64_t now;
    asm volatile("mrs %0, cntvct_el0" : "=r"(now));
    return now;
#else
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 +
           static_cast<std::uint64_t>(now.tv_nsec);
#endif
}

/// Copies the words in the order that words.hpp demands.
inline SenderWords load_words(const SenderLine &line)
{
    using ntbc::load;
    SenderWords words;
    words.mark = static_cast<Mark>(load(line.mark));
    words.mark_offset = load(line.mark_offset);
    words.started = load(line.started) != 0;
    words.head = load(line.head);
    words.wide = load(line.wide);
    words.narrow = load(line.narrow);
    words.start = load(line.start);
    words.generation = load(line.generation);
    return words;
}
/// The words but `taken`, which lies in another line.
inline ReceiverWords load_words(const ReceiverAsks &asks)
{
    using ntbc::load;
    ReceiverWords words;
    words.generation = load(asks.generation);
    words.seen = load(asks.seen) != 0;
    words.ask = load(asks.ask) != 0;
    return words;
}

/// Stores all words, also again after a death. They are of the generation that the receiver has
/// cleared the line for.
void store_words(SenderLine &line, const SenderWords &words);
/// Publishes bytes: the head alone, with a full fence behind it.
inline void publish_head(SenderLine &line, std::uint64_t head)
{
    ntbc::store(line.stamp, moment());
    std::atomic_ref(line.head).exchange(head, std::memory_order_seq_cst);
}

/// What a ring begins with: an eighth, and a page at least. What fits goes round in so few bytes,
/// and takes no more memory.
constexpr std::uint32_t narrow_bytes(std::uint32_t ring_bytes)
{
    return ring_bytes / 8 > ntbc::ring_bytes_min ? ring_bytes / 8 : ntbc::ring_bytes_min;
}

/// Grants: clears the lines, then stores the generation.
void store_grant(Lines &lines, const ReceiverWords &words, std::uint32_t ring_bytes);
/// seen and ask.
void store_words(ReceiverAsks &asks, const ReceiverWords &words);

/// The bytes of one ring.
struct Ring {
    std::uint8_t *data;
    std::uint32_t bytes; ///< a power of two

    void copy_in(std::uint64_t position, const void *from, std::size_t n) const
    {
        const std::uint64_t at = position & (bytes - 1);
        const std::size_t first = std::min<std::size_t>(n, bytes - at);
        std::memcpy(data + at, from, first);
        if (n > first) [[unlikely]]
            std::memcpy(data, static_cast<const std::uint8_t *>(from) + first, n - first);
    }
    void copy_out(void *to, std::uint64_t position, std::size_t n) const
    {
        const std::uint64_t at = position & (bytes - 1);
        const std::size_t first = std::min<std::size_t>(n, bytes - at);
        std::memcpy(to, data + at, first);
        if (n > first) [[unlikely]]
            std::memcpy(static_cast<std::uint8_t *>(to) + first, data, n - first);
    }
};

/// @param memory  all of the connection, as mapped
/// @param used    the bytes of it that are in use, at its beginning; 0: all
inline Ring ring_of(void *memory, std::uint32_t ring_bytes, unsigned direction,
                    std::uint64_t used = 0)
{
    auto *at = static_cast<std::uint8_t *>(memory) + ntbc::page_bytes;
    return {at + direction * std::size_t{ring_bytes},
            used == 0 ? ring_bytes : static_cast<std::uint32_t>(used)};
}

} // namespace ntb::socket

#endif
