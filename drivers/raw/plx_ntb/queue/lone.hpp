// SPDX-License-Identifier: BSD-3-Clause
// Messages that are sent alone, and the burst call, which finds out whether one is.
#ifndef PLX_QUEUE_LONE_HPP
#define PLX_QUEUE_LONE_HPP

#include <algorithm>

#include <rte_mbuf.h>

#include "queue/producer.hpp"

namespace plx::queue::PLX_VARIANT
{

/// @return 1: a burst of one message may end with it
[[gnu::noinline]] inline int free_past_cache(rte_mbuf *m)
{
    free_sent(&m, 1, true);
    return 1;
}

/// Frees the usual mbuf of a message that was sent alone: into this lcore's cache of the pool, as
/// DPDK's drivers do it, without the general way's loop and stack frame. @return 1
[[gnu::always_inline]] inline int free_alone(rte_mbuf *m)
{
    rte_mempool_cache *cache = rte_mempool_default_cache(m->pool, rte_lcore_id());
    if (cache == nullptr || cache->len >= cache->flushthresh) [[unlikely]]
        return free_past_cache(m);
    cache->objs[cache->len++] = m;
    return 1;
}

/// Stores a message that is sent alone, in one piece. Its reader waits for it, so it is stored
/// where the reader finds it soonest, and it says nothing of what lines cost under traffic: the
/// trial does not see it (doc/decisions/019-stores-of-long-messages.md).
template <MemPolicy Mem>
[[gnu::always_inline]] inline void store_alone(Tx &q, Chunk<Mem> &out, std::byte *to,
                                               const std::byte *from, uint32_t n)
{
    if (q.stores_alone == Stores::non_temporal) [[unlikely]]
        store_past<Mem>(out, to, from, n);
    else
        Mem::stream(to, from, n, next_target(q, to));
    count(q.stats.cpu_bytes, n);
    q.stores_begin += n;
    q.stores_end += n;
    q.stores_due += n;
}

/// A message that is sent alone, too long for the ring: of one segment into one receive buffer. All
/// others are left to send_any().
template <MemPolicy Mem>
[[gnu::noinline]] int send_long_alone(Tx *q, rte_mbuf **mbufs, const Meta *meta)
{
    const rte_mbuf *m = mbufs[0];
    const uint32_t length = m->pkt_len;
    Chunk<Mem> out(q->ring, q->head);
    if (m->nb_segs != 1 || m->data_len != length || length > q->s.peer_buf_bytes ||
        length > q->max_message || room_of(*q) == 0 || reserve_buffers<Mem>(*q, 1) != Put::taken)
        return send_any<Mem>(q, mbufs, meta, 1);
    store_alone<Mem>(*q, out, take_buffer(*q), rte_pktmbuf_mtod(m, const std::byte *), length);
    put_long_head(out, 0, length, meta != nullptr ? *meta : no_meta);
    out.publish(1);
    own_next_buffer<Mem>(*q, length);
    count_sent(*q, {1, 1, length});
    count(q->stats.cpu_messages, 1);
    free_sent(mbufs, 1, frees_simply(m, Rearmed(m), m->pool));
    return 1;
}

/// Looks how far messages that are sent alone may go. @return false: not even one
[[gnu::always_inline]] inline bool renew_lone(Tx &q)
{
    const uint32_t lines = std::min(room_of(q), q.ring.left(q.head));
    q.lone_until = lines < 2 ? 0 : q.head + lines - 1;
    q.lone_tag = q.ring.tag(q.head);
    return lines >= 2;
}

template <MemPolicy Mem>
int send_alone(Tx *q, rte_mbuf **mbufs, const Meta *meta);

/// A message that is sent alone, where send_alone() cannot do it, or not yet.
template <MemPolicy Mem>
[[gnu::noinline]] int send_alone_otherwise(Tx *q, rte_mbuf **mbufs, const Meta *meta)
{
    if (!q->open || q->broken)
        return q->broken ? -EPROTO : 0;
    const rte_mbuf *m = mbufs[0];
    if (m != nullptr && m->pkt_len > q->inline_alone)
        return send_long_alone<Mem>(q, mbufs, meta);
    if (q->head >= q->lone_until && renew_lone(*q))
        return send_alone<Mem>(q, mbufs, meta);
    return send_any<Mem>(q, mbufs, meta, 1);
}

/// Stores a message of Lines lines in front of lone_until, and frees it. The first line is stored
/// last, as in Chunk<Order::release>.
template <MemPolicy Mem, uint32_t Lines>
[[gnu::always_inline]] inline int put_alone(Tx &q, rte_mbuf *m, const std::byte *data,
                                            uint32_t length, const Meta *meta)
{
    constexpr auto head = static_cast<uint32_t>(wire::head_payload_bytes);
    std::byte *const line = q.ring.line(q.head);
    for (uint32_t i = 0; i < std::max(Lines, 2u); i++)
        Mem::own(line + i * wire::line_bytes);
    const uint32_t tag = q.lone_tag;
    for (uint32_t i = 1; i < Lines; i++)
        Mem::rest(line + i * wire::line_bytes, data + longest_of(i),
                  i + 1 < Lines ? wire::cont_payload_bytes : length - longest_of(i),
                  wire::continuation_word(tag));
    const Meta &with = meta != nullptr ? *meta : no_meta;
    Mem::body(line, Body(with.data, data, Lines > 1 ? head : length));
    Mem::word(line, wire::head_word(tag, length, wire::Kind::inline_message, with.flags));
    Mem::flush();
    count_sent(q, {1, Lines, length});
    // Behind the stores, which then need fewer registers.
    Mem::own(q.ring.line(q.head + (own_ahead - Lines)));
    return free_alone(m);
}

/// Outside of send_alone(), which then needs no stack frame.
template <MemPolicy Mem>
[[gnu::noinline]] int put_two_lines_alone(Tx *q, rte_mbuf *m, const std::byte *data,
                                          uint32_t length, const Meta *meta)
{
    if (length > two_lines_max)
        __builtin_unreachable(); // the copy needs no loop
    return put_alone<Mem, 2>(*q, m, data, length, meta);
}

/// A message of three lines and more: its last but one lies in front of lone_until, as of two.
template <MemPolicy Mem>
[[gnu::noinline]] int put_lines_alone(Tx *q, rte_mbuf **mbufs, const std::byte *data,
                                      const Meta *meta)
{
    rte_mbuf *const m = mbufs[0];
    const uint32_t length = m->pkt_len, lines = wire::inline_lines(length);
    if (q->head + (lines - 2) >= q->lone_until) [[unlikely]]
        return send_any<Mem>(q, mbufs, meta, 1);
    return with_lines<3, alike_lines_max>(lines, [=]<uint32_t Lines>() {
        if (length <= longest_of(Lines - 1) || length > longest_of(Lines))
            __builtin_unreachable(); // the copy needs no loop
        return put_alone<Mem, Lines>(*q, m, data, length, meta);
    });
}

/// A message that is sent alone costs the time of the instructions here, so the usual one of a few
/// lines goes straight into the ring: no chunk, no loop.
template <MemPolicy Mem>
int send_alone(Tx *q, rte_mbuf **mbufs, const Meta *meta)
{
    rte_mbuf *m = mbufs[0];
    if (m == nullptr || q->head >= q->lone_until) [[unlikely]]
        return send_alone_otherwise<Mem>(q, mbufs, meta);
    const Rearmed r(m);
    const uint32_t length = m->pkt_len;
    if (length > q->lone_max || m->data_len != length || !frees_simply(m, r, m->pool) ||
        !readable(m, r.data_off(), length)) [[unlikely]]
        return send_alone_otherwise<Mem>(q, mbufs, meta);
    const auto *data = static_cast<const std::byte *>(m->buf_addr) + r.data_off();
    if (length <= wire::head_payload_bytes)
        return put_alone<Mem, 1>(*q, m, data, length, meta);
    if (length <= two_lines_max)
        return put_two_lines_alone<Mem>(q, m, data, length, meta);
    return put_lines_alone<Mem>(q, mbufs, data, meta);
}

template <MemPolicy Mem>
int tx_burst(Tx *q, rte_mbuf **mbufs, const Meta *meta, unsigned n)
{
    if constexpr (Mem::order == Order::release)
        if (n == 1)
            return send_alone<Mem>(q, mbufs, meta);
    if (!q->open || q->broken) [[unlikely]]
        return q->broken ? -EPROTO : 0;
    return send_any<Mem>(q, mbufs, meta, n);
}

} // namespace plx::queue::PLX_VARIANT

#endif
