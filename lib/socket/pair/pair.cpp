// SPDX-License-Identifier: BSD-3-Clause
#include "pair/pair.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>

namespace ntb::socket
{

using ntbc::load;
using ntbc::store;

std::uint64_t moment()
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

SenderWords load_words(const SenderLine &line)
{
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

ReceiverWords load_words(const ReceiverAsks &asks)
{
    ReceiverWords words;
    words.generation = load(asks.generation);
    words.seen = load(asks.seen) != 0;
    words.ask = load(asks.ask) != 0;
    return words;
}

void store_words(SenderLine &line, const SenderWords &words)
{
    store(line.generation, words.generation);
    store(line.start, words.start);
    store(line.narrow, words.narrow);
    store(line.wide, words.wide);
    store(line.head, words.head);
    store(line.started, std::uint32_t{words.started});
    store(line.mark_offset, words.mark_offset);
    store(line.stamp, moment());
    std::atomic_ref(line.mark).exchange(static_cast<std::uint32_t>(words.mark),
                                        std::memory_order_seq_cst);
}

void publish_head(SenderLine &line, std::uint64_t head)
{
    store(line.stamp, moment());
    std::atomic_ref(line.head).exchange(head, std::memory_order_seq_cst);
}

void store_grant(Lines &lines, const ReceiverWords &words, std::uint32_t ring_bytes)
{
    SenderLine &line = lines.sender;
    store(line.mark, std::uint32_t{0});
    store(line.started, std::uint32_t{0});
    store(line.mark_offset, std::uint64_t{0});
    store(line.head, std::uint64_t{0});
    store(line.start, std::uint64_t{0});
    store(line.narrow, std::uint32_t{0});
    store(line.wide, std::uint64_t{0});
    store(line.generation, std::uint32_t{0});
    store(lines.receiver.taken, words.taken);
    ReceiverAsks &asks = lines.receiver_asks;
    store_words(asks, words);
    store(asks.ring_bytes, ring_bytes);
    store(asks.narrow_bytes, narrow_bytes(ring_bytes));
    std::atomic_ref(asks.generation).exchange(words.generation, std::memory_order_seq_cst);
}

void store_words(ReceiverAsks &asks, const ReceiverWords &words)
{
    store(asks.seen, std::uint32_t{words.seen});
    std::atomic_ref(asks.ask).exchange(words.ask, std::memory_order_seq_cst);
}

void Ring::copy_in(std::uint64_t position, const void *from, std::size_t n) const
{
    const std::uint64_t at = position & (bytes - 1);
    const std::size_t first = std::min<std::size_t>(n, bytes - at);
    std::memcpy(data + at, from, first);
    if (n > first)
        std::memcpy(data, static_cast<const std::uint8_t *>(from) + first, n - first);
}

void Ring::copy_out(void *to, std::uint64_t position, std::size_t n) const
{
    const std::uint64_t at = position & (bytes - 1);
    const std::size_t first = std::min<std::size_t>(n, bytes - at);
    std::memcpy(to, data + at, first);
    if (n > first)
        std::memcpy(static_cast<std::uint8_t *>(to) + first, data, n - first);
}

Ring ring_of(void *memory, std::uint32_t ring_bytes, unsigned direction, std::uint64_t used)
{
    auto *at = static_cast<std::uint8_t *>(memory) + ntbc::page_bytes;
    return {at + direction * std::size_t{ring_bytes},
            used == 0 ? ring_bytes : static_cast<std::uint32_t>(used)};
}

} // namespace ntb::socket
