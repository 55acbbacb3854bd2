// SPDX-License-Identifier: BSD-3-Clause
// What a receiving half returns to the peer: credits for lines, and new receive buffers for used
// ones.
#ifndef PLX_QUEUE_RETURNS_HPP
#define PLX_QUEUE_RETURNS_HPP

#include <rte_mbuf.h>

#include "queue/mem_policy.hpp"
#include "queue/state.hpp"

namespace plx::queue::PLX_VARIANT
{

/// Stores a line of the receive-buffer ring with @p n buffers, and appends them to the FIFO.
template <MemPolicy Mem>
void put_buffer_line(Rx &q, rte_mbuf *const *mbufs, uint32_t n)
{
    alignas(64) uint32_t line[wire::line_bytes / 4] = {};
    const uint64_t word = uint64_t{q.buffer_ring.tag(q.buffer_ring_head)} | uint64_t{n} << 32;
    __builtin_memcpy(line, &word, sizeof(word));
    for (uint32_t i = 0; i < n; i++) {
        rte_pktmbuf_reset(mbufs[i]);
        line[2 + i] = static_cast<uint32_t>(
            static_cast<size_t>(rte_pktmbuf_mtod(mbufs[i], const std::byte *) - q.s.block) /
            wire::line_bytes);
        q.fifo[q.fifo_head++ & (Rx::fifo_size - 1)] = mbufs[i];
    }
    Mem::line(q.buffer_ring.line(q.buffer_ring_head), reinterpret_cast<const std::byte *>(line));
    q.line_count[q.buffer_ring_head & (wire::buffer_ring_lines_max - 1)] = static_cast<uint8_t>(n);
    if (q.buffer_ring_head == q.buffer_ring_tail)
        q.line_left = n;
    q.buffer_ring_head++;
}

/// Allocates the buffers of one line of the receive-buffer ring: a full line, or the last few of
/// the pool if the peer has nearly none left. A line that is not full is used only while the
/// remaining lines have room for the longest message: else buffers freed one by one could fill the
/// ring for ever.
[[gnu::noinline]] inline uint32_t fetch_buffers(Rx &q, rte_mbuf **mbufs)
{
    if (rte_mempool_get_bulk(q.s.window_pool, reinterpret_cast<void **>(mbufs),
                             wire::buffers_per_line) == 0)
        return wire::buffers_per_line;
    const auto lines_after =
        static_cast<uint32_t>(q.buffer_ring.mask - 1 - (q.buffer_ring_head - q.buffer_ring_tail));
    uint32_t n = 0;
    if (q.buffers_available() < q.low_water &&
        q.buffers_available() + lines_after * wire::buffers_per_line >=
            q.low_water + wire::buffers_per_line - 1)
        while (n < wire::buffers_per_line &&
               rte_mempool_get(q.s.window_pool, reinterpret_cast<void **>(mbufs + n)) == 0)
            n++;
    return n;
}

/// Keeps buffers_target buffers available to the peer. A line is never overwritten before all its
/// buffers were used.
template <MemPolicy Mem>
[[gnu::noinline]] void refill(Rx &q)
{
    while (q.lacks_buffers() && q.buffer_ring_head - q.buffer_ring_tail < q.buffer_ring.mask) {
        rte_mbuf *mbufs[wire::buffers_per_line];
        const uint32_t n = fetch_buffers(q, mbufs);
        if (n == 0) {
            count(q.stats.nombuf, q.buffers_available() < q.low_water);
            break;
        }
        put_buffer_line<Mem>(q, mbufs, n);
    }
    Mem::flush();
}

/// Called with returned credits, a few times per lap of the ring, instead of in each burst.
[[gnu::always_inline]] inline void consider_hint_trial(Rx &q)
{
    if (q.tail >= q.hint_trial.due()) [[unlikely]]
        q.hint = static_cast<CacheHint>(q.hint_trial.step(q.tail, messages_of(q), q.s.cycles()));
}

/// @return @p messages, so that a burst may end with it
template <MemPolicy Mem>
[[gnu::noinline]] int return_credits(Rx &q, unsigned messages)
{
    q.returned = static_cast<uint32_t>(q.tail);
    Mem::word(q.s.peer_credit, uint64_t{q.s.peer_back_base} | uint64_t{q.returned} << 32);
    Mem::word(q.s.peer_credit + 8, uint64_t{q.s.peer_back_base} | uint64_t{messages_of(q)} << 32);
    Mem::flush();
    consider_hint_trial(q);
    return static_cast<int>(messages);
}

/// The reader has caught up: it may leave the writer a lead.
[[gnu::noinline]] inline void consider_pause(Rx &q)
{
    const uint64_t now = q.s.cycles();
    if (!q.lead.caught_up(q.tail, messages_of(q), now, !q.hint_trial.resting()))
        return;
    q.pause_end = now + Lead::pause_cycles;
    make_unready(q);
    watch_always(q); // until the pause has ended
}

/// Nothing was received: returns all credits that are due, and buffers.
/// @return 0, the messages received
template <MemPolicy Mem>
[[gnu::noinline]] int return_all(Rx &q)
{
    if (static_cast<uint32_t>(q.tail) != q.returned)
        return_credits<Mem>(q, 0);
    if (q.lacks_buffers()) [[unlikely]]
        refill<Mem>(q);
    if (!q.lacks_buffers())
        watch_ring(q);
    if (messages_of(q) != q.lead.messages() && q.s.cycles != nullptr)
        consider_pause(q);
    return 0;
}

} // namespace plx::queue::PLX_VARIANT

#endif
