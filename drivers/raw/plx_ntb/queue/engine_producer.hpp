// SPDX-License-Identifier: BSD-3-Clause
// The sending half of a queue pair with a copy engine: the engine copies long messages out of their
// mbufs; all others are sent as without one (producer.hpp).
#ifndef PLX_QUEUE_ENGINE_PRODUCER_HPP
#define PLX_QUEUE_ENGINE_PRODUCER_HPP

#include <algorithm>

#include <rte_mbuf.h>
#include <rte_memory.h>
#include <rte_mempool.h>

#include "queue/lone.hpp"

namespace plx::queue::PLX_VARIANT
{

/// Most mbufs freed in one call.
inline constexpr unsigned free_batch = 64;

[[gnu::always_inline]] inline Held &held_at(ByEngine &e, uint64_t position)
{
    return e.held[position & (held_max - 1)];
}

/// Frees what the engine has read. @return false: the engine has failed
[[gnu::noinline]] inline bool free_read(Tx &q)
{
    const Engine &engine = q.s.by_engine.engine;
    ByEngine &e = q.by_engine;
    const uint64_t completed = engine.completed(engine.ctx);
    const auto is_read = [&](uint64_t at) {
        return at != e.head && held_at(e, at).copies <= completed;
    };
    while (is_read(e.tail)) {
        rte_mbuf *mbufs[free_batch];
        unsigned n = 0;
        for (; n < free_batch && is_read(e.tail + n); n++)
            mbufs[n] = held_at(e, e.tail + n).mbuf;
        rte_pktmbuf_free_bulk(mbufs, n);
        count(e.tail, n);
    }
    return !engine.failed(engine.ctx);
}

/// Valid IOVAs of a buffer: memory without one has an IOVA a little above RTE_BAD_IOVA, which is
/// near 0; and the chip's engines address 48 bits.
inline constexpr uint64_t iova_first = uint64_t{1} << 20;
inline constexpr uint64_t iova_count = (uint64_t{1} << 48) - iova_first;

/// Whether a pool lies in memory that EAL allocated, all of which is mapped for the engines.
[[gnu::noinline]] inline bool is_eal_memory(rte_mempool *pool)
{
    bool all = true;
    rte_mempool_mem_iter(
        pool,
        [](rte_mempool *, void *arg, rte_mempool_memhdr *chunk, unsigned) {
            const rte_memseg_list *list = rte_mem_virt2memseg_list(chunk->addr);
            if (list == nullptr || list->external != 0)
                *static_cast<bool *>(arg) = false;
        },
        &all);
    return all;
}

/// The pool that a segment's data lie in; NULL for external buffers of the application.
inline rte_mempool *data_pool(const rte_mbuf *s)
{
    if (RTE_MBUF_CLONED(s))
        return rte_mbuf_from_indirect(const_cast<rte_mbuf *>(s))->pool;
    return RTE_MBUF_HAS_EXTBUF(s) && !RTE_MBUF_HAS_PINNED_EXTBUF(s) ? nullptr : s->pool;
}

/// A failed read would not stop the header line after it, so an engine copies only from memory that
/// is mapped for it: EAL's memory, and receive buffers that are forwarded.
inline bool engine_reaches(Tx &q, const rte_mbuf *m)
{
    ByEngine &e = q.by_engine;
    for (const rte_mbuf *s = m; s != nullptr; s = s->next) {
        rte_mempool *pool = data_pool(s);
        if (pool == nullptr || rte_mbuf_iova_get(s) - iova_first >= iova_count)
            return false;
        if (pool == e.known_pool || pool == q.s.by_engine.window_pool)
            continue;
        if (RTE_MBUF_HAS_EXTBUF(s) || !is_eal_memory(pool))
            return false;
        e.known_pool = pool;
    }
    return true;
}

/// Most copies for a message: a piece ends with a segment or with a buffer, and the header takes
/// two.
inline uint32_t copies_of(const Tx &q, const rte_mbuf *m)
{
    return q.per_buffer.ceil(m->pkt_len) + m->nb_segs + 1;
}

[[gnu::noinline]] inline bool engine_can(Tx &q, const rte_mbuf *m)
{
    return m->pkt_len <= q.max_message && copies_of(q, m) <= q.s.by_engine.engine.capacity &&
           chain_is_whole(m) && engine_reaches(q, m);
}

/// Messages that do not go by the engine go by the CPU, where invalid ones are reported.
[[gnu::always_inline]] inline bool goes_by_engine(Tx &q, const rte_mbuf *m)
{
    return m != nullptr && m->pkt_len >= q.s.by_engine.min_bytes && engine_can(q, m);
}

[[gnu::always_inline]] inline void give_copy(Tx &q, uint64_t from, const std::byte *to, uint32_t n)
{
    const EngineSetup &s = q.s.by_engine;
    s.engine.copy(s.engine.ctx, from, s.peer_block + static_cast<uint64_t>(to - q.s.peer_block), n);
    q.by_engine.given++;
    q.by_engine.room--;
}

/// The header line, behind the data on the same engine. Its word 0 is a copy of its own, and the
/// last: within one copy the word might be seen before the rest.
inline void give_head(Tx &q, uint32_t length, const Meta &meta)
{
    const EngineSetup &s = q.s.by_engine;
    const size_t slot = (q.by_engine.head & (held_max - 1)) * staged_bytes;
    const uint64_t words[2] = {
        wire::head_word(q.ring.tag(q.head), length, wire::Kind::long_message, meta.flags),
        meta.data};
    static_assert(sizeof(words) == staged_bytes);
    __builtin_memcpy(s.staging + slot, words, sizeof(words));
    const std::byte *line = q.ring.line(q.head);
    give_copy(q, s.staging_iova + slot + 8, line + 8, 8);
    give_copy(q, s.staging_iova + slot, line, 8);
}

/// Reserves room for a message: an entry to hold it, a line, receive buffers, copies.
template <MemPolicy Mem>
Put reserve_by_engine(Tx &q, const rte_mbuf *m)
{
    ByEngine &e = q.by_engine;
    if (e.head - e.tail == held_max)
        return Put::full;
    Put put = reserve_lines<Mem>(q, 1);
    if (put == Put::taken)
        put = reserve_buffers<Mem>(q, q.per_buffer.ceil(m->pkt_len));
    const uint32_t copies = copies_of(q, m);
    if (put == Put::taken && e.room < copies) {
        const Engine &engine = q.s.by_engine.engine;
        e.room = engine.room(engine.ctx);
        put = e.room < copies ? Put::full : Put::taken;
    }
    return put;
}

/// Gives one message to the engine, which is not started yet. taken: the mbuf is held.
template <MemPolicy Mem>
[[gnu::noinline]] Put put_by_engine(Tx &q, rte_mbuf *m, const Meta &meta)
{
    const Put put = reserve_by_engine<Mem>(q, m);
    if (put != Put::taken)
        return put;
    const uint32_t length = m->pkt_len;
    const auto copy = [&q](const std::byte *to, const rte_mbuf *s, uint32_t from, uint32_t n,
                           const std::byte *) {
        give_copy(q, rte_pktmbuf_iova_offset(s, from), to, n);
    };
    spread(q, m, copy);
    give_head(q, length, meta);
    count(q.head, 1);
    ByEngine &e = q.by_engine;
    held_at(e, e.head) = {m, e.given};
    count(e.head, 1);
    count(q.stats.messages, 1);
    count(q.stats.bytes, length);
    count(q.stats.dma_messages, 1);
    count(q.stats.dma_bytes, length);
    return Put::taken;
}

[[gnu::noinline]] inline int engine_failed(Tx &q)
{
    count(q.stats.dma_errors, 1);
    break_off(q);
    return -EPROTO;
}

/// Messages from the first on that the CPU copies.
[[gnu::always_inline]] inline unsigned by_cpu(Tx &q, rte_mbuf *const *mbufs, unsigned n)
{
    unsigned run = 0;
    while (run < n && !goes_by_engine(q, mbufs[run]))
        run++;
    return run;
}

/// Lines that the CPU stores may arrive before those of the engine that lie in front of them: the
/// reader takes them in the order of the ring.
template <MemPolicy Mem>
int tx_burst_engine(Tx *q, rte_mbuf **mbufs, const Meta *meta, unsigned n)
{
    if (!q->open || q->broken) [[unlikely]]
        return q->broken ? -EPROTO : 0;
    ByEngine &e = q->by_engine;
    if (e.head != e.tail && !free_read(*q)) [[unlikely]]
        return engine_failed(*q);
    const uint64_t given = e.given;
    unsigned done = 0;
    int rc = 0;
    while (done < n && !q->broken) {
        const unsigned run = by_cpu(*q, mbufs + done, n - done);
        if (run > 0) {
            rc = tx_burst<Mem>(q, mbufs + done, meta != nullptr ? meta + done : nullptr, run);
            done += rc > 0 ? static_cast<unsigned>(rc) : 0;
            if (rc != static_cast<int>(run))
                break;
            continue;
        }
        const Put put = put_by_engine<Mem>(*q, mbufs[done], meta != nullptr ? meta[done] : no_meta);
        if (put != Put::taken) {
            rc = burst_ended(*q, put);
            break;
        }
        done++;
    }
    if (e.given != given)
        q->s.by_engine.engine.start(q->s.by_engine.engine.ctx);
    return done > 0 ? static_cast<int>(done) : rc;
}

/// What the engine would copy is not taken: tx_burst_engine() goes on with it.
template <MemPolicy Mem>
int tx_flow_engine(Tx *q, rte_mbuf **mbufs, TxFlow &flow, unsigned n)
{
    flow.bytes = 0;
    if (!q->open || q->broken) [[unlikely]]
        return q->broken ? -EPROTO : 0;
    if (q->by_engine.head != q->by_engine.tail && !free_read(*q)) [[unlikely]]
        return engine_failed(*q);
    const uint32_t longest = flow.longest;
    // Never 0: the engine has none of the lengths that always travel in the ring.
    flow.longest = std::min(longest, q->s.by_engine.min_bytes - 1);
    const int rc = tx_flow<Mem>(q, mbufs, flow, n);
    flow.longest = longest;
    return rc;
}

} // namespace plx::queue::PLX_VARIANT

#endif
