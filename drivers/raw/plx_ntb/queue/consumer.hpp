// SPDX-License-Identifier: BSD-3-Clause
// The receiving half of a queue pair: copies inline messages into mbufs of a private pool, delivers
// receive buffers as they are, and returns credits and new buffers to the peer.
#ifndef PLX_QUEUE_CONSUMER_HPP
#define PLX_QUEUE_CONSUMER_HPP

#include <cerrno>

#include <rte_mbuf.h>

#include "queue/cache_hint.hpp"
#include "queue/returns.hpp"
#include "queue/run.hpp"

namespace plx::queue::PLX_VARIANT
{

/// Bytes that are prefetched of a long message that arrives alone.
inline constexpr uint32_t ask_for_bytes = 2048;

[[gnu::always_inline]] inline void set_meta(Meta *meta, uint64_t word, const std::byte *line)
{
    if (meta != nullptr) {
        __builtin_memcpy(&meta->data, line + 8, sizeof(meta->data));
        meta->flags = wire::word_flags(word);
        meta->reserved = 0;
    }
}

/// Sets the mbuf fields of an inline message: 32 bytes of the first cache line, as two vectors.
/// (Assembled in memory, loads would wait for the small stores.)
class Rearm
{
    __m128i fixed_;

public:
    explicit Rearm(uint16_t port)
        : fixed_(_mm_set_epi64x(0, RTE_PKTMBUF_HEADROOM | 1ll << 16 | 1ll << 32 |
                                       static_cast<long long>(uint64_t{port} << 48)))
    {
        static_assert(offsetof(rte_mbuf, refcnt) == offsetof(rte_mbuf, data_off) + 2 &&
                      offsetof(rte_mbuf, nb_segs) == offsetof(rte_mbuf, data_off) + 4 &&
                      offsetof(rte_mbuf, port) == offsetof(rte_mbuf, data_off) + 6 &&
                      offsetof(rte_mbuf, ol_flags) == offsetof(rte_mbuf, data_off) + 8 &&
                      offsetof(rte_mbuf, packet_type) == offsetof(rte_mbuf, data_off) + 16 &&
                      offsetof(rte_mbuf, pkt_len) == offsetof(rte_mbuf, data_off) + 20 &&
                      offsetof(rte_mbuf, data_len) == offsetof(rte_mbuf, data_off) + 24);
    }
    [[gnu::always_inline]] void operator()(rte_mbuf *m, uint32_t length) const
    {
        auto *to = reinterpret_cast<__m128i *>(&m->rearm_data);
        const long long n = length;
        _mm_storeu_si128(to, fixed_);
        _mm_storeu_si128(to + 1, _mm_set_epi64x(n, n << 32));
    }
};

/// mbufs for inline messages. @return how many there are.
[[gnu::always_inline]] inline unsigned fetch_mbufs(Rx &q, rte_mbuf **mbufs, unsigned n)
{
    if (rte_mempool_get_bulk(q.inline_pool, reinterpret_cast<void **>(mbufs), n) == 0) [[likely]]
        return n;
    unsigned got = 0;
    while (got < n && rte_mempool_get(q.inline_pool, reinterpret_cast<void **>(mbufs + got)) == 0)
        got++;
    return got;
}

/// Takes the header line of an inline message. @return where its bytes begin
[[gnu::always_inline]] inline std::byte *take_head(rte_mbuf *m, const Rearm &rearm, uint64_t word,
                                                   const std::byte *line, Meta *meta)
{
    std::byte *data = static_cast<std::byte *>(m->buf_addr) + RTE_PKTMBUF_HEADROOM;
    copy_fixed<wire::head_payload_bytes>(data, line + wire::head_payload_offset);
    rearm(m, wire::word_length(word));
    set_meta(meta, word, line);
    return data;
}

/// Copies a run of inline messages out of the ring. If more has arrived than the burst takes, the
/// lines of the next run are prefetched, as many as of this one; otherwise none: a prefetch would
/// take lines that are not written yet away from the sender. (A line that has arrived was published
/// with its whole chunk.)
/// @return lines copied
template <Lines L>
[[gnu::always_inline]] inline uint64_t take_lines(const Rx &q, const Run &run, rte_mbuf **mbufs,
                                                  unsigned n, Meta *meta, uint64_t &bytes)
{
    const Rearm rearm(q.port);
    const std::byte *const first = q.ring.line(q.tail), *line = first;
    const size_t ahead = run.lines * wire::line_bytes;
    const uint32_t whole_line_until =
        q.inline_room - static_cast<uint32_t>(wire::cont_payload_bytes);
    uint64_t sum = 0;
    for (unsigned i = 0; i < n; i++) {
        const uint64_t word = run.words[i];
        const uint32_t length = wire::word_length(word);
        if (L == Lines::many && run.more)
            __builtin_prefetch(line + ahead, 0, 3);
        std::byte *data =
            take_head(mbufs[i], rearm, word, line, meta != nullptr ? meta + i : nullptr);
        line += wire::line_bytes;
        for (uint32_t done = wire::head_payload_bytes; done < length;
             done += static_cast<uint32_t>(wire::cont_payload_bytes)) {
            if (L == Lines::many && run.more)
                __builtin_prefetch(line + ahead, 0, 3);
            const std::byte *from = line + wire::cont_payload_offset;
            line += wire::line_bytes;
            if (L == Lines::few || done <= whole_line_until) [[likely]]
                copy_fixed<wire::cont_payload_bytes>(data + done, from);
            else
                copy_bytes(data + done, from, length - done);
            if constexpr (L == Lines::few)
                break;
        }
        sum += length;
    }
    bytes += sum;
    return static_cast<uint64_t>(line - first) / wire::line_bytes;
}

/// Takes a run of inline messages. @return messages taken; fewer when the pool is empty.
[[gnu::always_inline]] inline unsigned take_in_ring(Rx &q, const Run &run, rte_mbuf **mbufs,
                                                    Meta *meta, uint64_t &bytes)
{
    const unsigned n = fetch_mbufs(q, mbufs, run.messages);
    const uint64_t lines = run.kind == RunKind::few_lines
                               ? take_lines<Lines::few>(q, run, mbufs, n, meta, bytes)
                               : take_lines<Lines::many>(q, run, mbufs, n, meta, bytes);
    hint_lines(q.hint, q.ring, q.tail, q.tail + lines);
    q.tail += lines;
    return n;
}

/// The oldest receive buffer, which the peer has filled.
[[gnu::always_inline]] inline rte_mbuf *pop_buffer(Rx &q)
{
    rte_mbuf *m = q.fifo[q.fifo_tail++ & (Rx::fifo_size - 1)];
    if (--q.line_left == 0) {
        q.buffer_ring_tail++;
        q.line_left = q.line_count[q.buffer_ring_tail & (wire::buffer_ring_lines_max - 1)];
    }
    return m;
}

/// Chains the buffers of one message. Their number was checked by find_run().
[[gnu::always_inline]] inline rte_mbuf *take_chain(Rx &q, uint32_t length)
{
    rte_mbuf *first = pop_buffer(q);
    rte_mbuf *last = first;
    uint32_t left = length;
    uint16_t segments = 1;
    while (left > q.s.buf_bytes) {
        last->data_len = static_cast<uint16_t>(q.s.buf_bytes);
        left -= q.s.buf_bytes;
        last->next = pop_buffer(q);
        last = last->next;
        segments++;
    }
    last->data_len = static_cast<uint16_t>(left);
    first->pkt_len = length;
    first->nb_segs = segments;
    first->port = q.port;
    return first;
}

/// Prefetches the lines of a message that arrives alone: the application reads them only after the
/// rest of this burst call.
[[gnu::always_inline]] inline void ask_for(const rte_mbuf *m)
{
    const auto *data = rte_pktmbuf_mtod(m, const std::byte *);
    for (uint32_t at = 0; at < m->data_len && at < ask_for_bytes; at += wire::line_bytes)
        __builtin_prefetch(data + at, 0, 3);
}

[[gnu::noinline]] inline unsigned take_long_run(Rx &q, const Run &run, rte_mbuf **mbufs, Meta *meta,
                                                uint64_t &bytes)
{
    for (unsigned i = 0; i < run.messages; i++) {
        const uint32_t length = wire::word_length(run.words[i]);
        mbufs[i] = take_chain(q, length);
        set_meta(meta != nullptr ? meta + i : nullptr, run.words[i], q.ring.line(q.tail + i));
        bytes += length;
    }
    if (run.messages == 1)
        ask_for(mbufs[0]);
    hint_lines(q.hint, q.ring, q.tail, q.tail + run.messages);
    q.tail += run.messages;
    return run.messages;
}

[[gnu::noinline]] inline void stop_at_bad_line(Rx &q)
{
    q.broken = true;
    count(q.stats.bad_peer, 1);
}

/// Prefetches for writing the first lines of an answer as soon as a message has arrived: until the
/// sending burst it is some hundred instructions, about as long as the lines take to arrive. Any
/// earlier, the polling peer would have taken them away again. Only if the last messages were
/// followed by a send, so that one-way traffic takes no lines away.
template <MemPolicy Mem>
[[gnu::always_inline]] inline void expect_answer(Rx &q)
{
    const Tx *tx = std::atomic_ref<const Tx *>(q.answers).load(std::memory_order_relaxed);
    if (Mem::order != Order::release || tx == nullptr)
        return;
    const uint64_t head =
        std::atomic_ref<uint64_t>(const_cast<uint64_t &>(tx->head)).load(std::memory_order_relaxed);
    if (head == q.answers_at)
        return;
    q.answers_at = head;
    Mem::own(tx->ring.line(head));
    Mem::own(tx->ring.line(head + 1));
}

template <MemPolicy Mem>
int rx_burst(Rx *q, rte_mbuf **mbufs, Meta *meta, unsigned n)
{
    if (!q->open || q->broken) [[unlikely]]
        return q->broken ? -EPROTO : 0;
    // The line after the polled one: else a message of two lines waits for two misses in sequence.
    __builtin_prefetch(q->ring.line(q->tail + 1), 0, 3);
    unsigned got = 0;
    uint64_t bytes = 0, long_messages = 0;
    // Most polls find nothing, and should be cheap.
    PollResult result = is_here<Mem>(q->ring, q->tail) ? PollResult::valid : PollResult::not_yet;
    while (got < n && result == PollResult::valid) {
        Run run;
        result = find_run<Mem>(*q, n - got < run_max ? n - got : run_max, run);
        if (run.messages == 0)
            continue;
        expect_answer<Mem>(*q);
        Meta *run_meta = meta != nullptr ? meta + got : nullptr;
        unsigned taken;
        if (run.kind != RunKind::long_messages) [[likely]] {
            taken = take_in_ring(*q, run, mbufs + got, run_meta, bytes);
        } else {
            taken = take_long_run(*q, run, mbufs + got, run_meta, bytes);
            long_messages += taken;
        }
        got += taken;
        if (taken < run.messages) [[unlikely]] {
            count(q->stats.nombuf, 1);
            result = PollResult::not_yet;
        }
    }
    if (result == PollResult::bad) [[unlikely]] {
        stop_at_bad_line(*q);
        if (got == 0)
            return -EPROTO;
    }
    if (got > 0) {
        q->messages += got;
        count(q->stats.messages, got);
        count(q->stats.bytes, bytes);
        count(q->stats.long_messages, long_messages);
    }
    return_to_peer<Mem>(*q, got == 0);
    return static_cast<int>(got);
}

} // namespace plx::queue::PLX_VARIANT

#endif
