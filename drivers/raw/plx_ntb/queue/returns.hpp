// SPDX-License-Identifier: BSD-3-Clause
// What a receiving half returns to the peer: credits for lines, fresh receive buffers for used
// ones.
#ifndef PLX_QUEUE_RETURNS_HPP
#define PLX_QUEUE_RETURNS_HPP

#include <rte_mbuf.h>

#include "queue/mem_policy.hpp"
#include "queue/state.hpp"

namespace plx::queue::PLX_VARIANT
{

/// Stores one posted line of @p n buffers that are in the FIFO already.
template <MemPolicy Mem>
void put_posted_line(Rx &q, rte_mbuf *const *mbufs, uint32_t n)
{
    alignas(64) uint32_t line[wire::line_bytes / 4] = {};
    const uint64_t word = uint64_t{q.posted.tag(q.posted_head)} | uint64_t{n} << 32;
    __builtin_memcpy(line, &word, sizeof(word));
    for (uint32_t i = 0; i < n; i++) {
        rte_pktmbuf_reset(mbufs[i]);
        line[2 + i] = static_cast<uint32_t>(
            static_cast<size_t>(rte_pktmbuf_mtod(mbufs[i], const std::byte *) - q.s.block) /
            wire::line_bytes);
        q.fifo[q.fifo_head++ & (Rx::fifo_size - 1)] = mbufs[i];
    }
    Mem::line(q.posted.line(q.posted_head), reinterpret_cast<const std::byte *>(line));
    q.line_count[q.posted_head & (wire::posted_lines_max - 1)] = static_cast<uint8_t>(n);
    if (q.posted_head == q.posted_tail)
        q.line_left = n;
    q.posted_head++;
}

/// Buffers for one posted line: a full one, or the last few of the pool when the peer is about to
/// run dry. A line that is not full is spent only while the lines left after it still have room for
/// the longest message: else buffers that come home one by one could fill the ring for good.
[[gnu::noinline]] inline uint32_t fetch_buffers(Rx &q, rte_mbuf **mbufs)
{
    if (rte_mempool_get_bulk(q.s.window_pool, reinterpret_cast<void **>(mbufs),
                             wire::posted_per_line) == 0)
        return wire::posted_per_line;
    const auto lines_after =
        static_cast<uint32_t>(q.posted.mask - 1 - (q.posted_head - q.posted_tail));
    uint32_t n = 0;
    if (q.posted_now() < q.low_water && q.posted_now() + lines_after * wire::posted_per_line >=
                                            q.low_water + wire::posted_per_line - 1)
        while (n < wire::posted_per_line &&
               rte_mempool_get(q.s.window_pool, reinterpret_cast<void **>(mbufs + n)) == 0)
            n++;
    return n;
}

/// Keeps posted_target buffers with the peer. A line is never overwritten before it was used up.
template <MemPolicy Mem>
[[gnu::noinline]] void refill(Rx &q)
{
    while (q.posted_now() + wire::posted_per_line <= q.s.posted_target &&
           q.posted_head - q.posted_tail < q.posted.mask) {
        rte_mbuf *mbufs[wire::posted_per_line];
        const uint32_t n = fetch_buffers(q, mbufs);
        if (n == 0) {
            count(q.stats.nombuf, q.posted_now() < q.low_water);
            break;
        }
        put_posted_line<Mem>(q, mbufs, n);
    }
    Mem::flush();
}

/// Here and not in each burst: a lap of the ring returns credits a few times.
[[gnu::always_inline]] inline void consider_hint_trial(Rx &q)
{
    if (q.tail >= q.hint_trial.due()) [[unlikely]]
        q.hint = q.hint_trial.step(q.tail, q.s.cycles());
}

template <MemPolicy Mem>
[[gnu::noinline]] void return_credits(Rx &q)
{
    q.returned = static_cast<uint32_t>(q.tail);
    Mem::word(q.s.peer_credit, uint64_t{q.s.peer_back_base} | uint64_t{q.returned} << 32);
    Mem::word(q.s.peer_credit + 8, uint64_t{q.s.peer_back_base} | uint64_t{q.messages} << 32);
    Mem::flush();
    consider_hint_trial(q);
}

/// Credits and buffers back to the peer: in batches, and all that is due when nothing came.
template <MemPolicy Mem>
[[gnu::always_inline]] inline void return_to_peer(Rx &q, bool idle)
{
    const uint32_t due = static_cast<uint32_t>(q.tail) - q.returned;
    if (due >= q.batch || (idle && due > 0))
        return_credits<Mem>(q);
    if (q.posted_now() + wire::posted_per_line <= q.s.posted_target) [[unlikely]]
        refill<Mem>(q);
}

} // namespace plx::queue::PLX_VARIANT

#endif
