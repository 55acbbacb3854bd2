// SPDX-License-Identifier: BSD-3-Clause
#include "pair/pair.hpp"

namespace ntb::socket
{

using ntbc::store;

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

} // namespace ntb::socket
