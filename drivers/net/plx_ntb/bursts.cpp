// SPDX-License-Identifier: BSD-3-Clause
#include "bursts.hpp"

#include <cerrno>
#include <cstring>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "port.hpp"

namespace plx::net
{

namespace
{

/// Window buffers that are freed together.
constexpr uint16_t copies_max = 32;

/// How many frames ahead lines are asked for (doc/decisions/031-port-copies.md).
constexpr uint16_t ask_ahead = 2;

/// Asks for the lines of a frame in a window buffer that is copied soon: they come from the cache
/// of the peer's core, while those of the frames before it are copied. Into the second cache, which
/// can wait for more lines than the first.
inline void ask_for(const RxQueue &rx, const rte_mbuf *frame)
{
    if (frame->pool == rx.pool)
        return;
    const auto *data = rte_pktmbuf_mtod(frame, const char *);
    for (uint16_t at = 0; at < frame->data_len; at += RTE_CACHE_LINE_SIZE)
        rte_prefetch1(data + at);
}

/// A frame of one window buffer, in one mbuf of the application's pool.
/// @return NULL: the pool is empty
inline rte_mbuf *copy_simple(const RxQueue &rx, const rte_mbuf *frame)
{
    rte_mbuf *copy = rte_pktmbuf_alloc(rx.pool);
    if (unlikely(copy == nullptr))
        return nullptr;
    copy->pkt_len = copy->data_len = frame->data_len;
    // Not rte_memcpy(): built for every CPU, that copies 16 bytes at a time.
    std::memcpy(rte_pktmbuf_mtod(copy, void *), rte_pktmbuf_mtod(frame, const void *),
                frame->data_len);
    return copy;
}

/// Frees window buffers as the queue delivers them, of one segment each: one put, for no one else
/// holds a reference.
inline void free_simple(rte_mbuf **frames, unsigned n)
{
    if (n > 0)
        rte_mempool_put_bulk(frames[0]->pool, reinterpret_cast<void **>(frames), n);
}

/// Replaces frames that arrived in window buffers by copies in mbufs of the application's pool. A
/// frame for which the pool has none is lost.
/// @return frames left
__rte_noinline uint16_t copy_out(RxQueue &rx, rte_mbuf **mbufs, uint16_t n)
{
    rte_mbuf *copied[copies_max];
    uint16_t freed = 0;
    uint16_t kept = 0;
    for (uint16_t i = 1; i < ask_ahead && i < n; ++i)
        ask_for(rx, mbufs[i]);
    for (uint16_t i = 0; i < n; ++i) {
        rte_mbuf *frame = mbufs[i];
        if (frame->pool == rx.pool) {
            mbufs[kept++] = frame;
            continue;
        }
        if (i + ask_ahead < n)
            ask_for(rx, mbufs[i + ask_ahead]);
        rte_mbuf *copy;
        if (likely(frame->nb_segs == 1 && frame->data_len <= rx.room)) {
            copy = copy_simple(rx, frame);
            copied[freed++] = frame;
        } else {
            copy = rte_pktmbuf_copy(frame, rx.pool, 0, UINT32_MAX);
            rte_pktmbuf_free(frame);
        }
        if (freed == copies_max) {
            free_simple(copied, freed);
            freed = 0;
        }
        if (likely(copy != nullptr)) {
            copy->port = rx.port;
            mbufs[kept++] = copy;
        }
    }
    free_simple(copied, freed);
    if (unlikely(kept < n))
        rx.nombuf.add(n - kept);
    return kept;
}

/// @tparam ZeroCopy  frames of window buffers are delivered where they lie
template <bool ZeroCopy>
inline uint16_t receive(void *queue, rte_mbuf **mbufs, uint16_t n)
{
    auto &rx = *static_cast<RxQueue *>(queue);
    const int got = rx.burst(rx.queue, mbufs, nullptr, n);
    const uint16_t port = rx.port;
    const rte_mempool *pool = rx.pool;
    bool long_frames = false;
    for (int i = 0; i < got; ++i) {
        mbufs[i]->port = port;
        long_frames |= mbufs[i]->pool != pool;
    }
    if (got <= 0)
        return 0;
    const auto count = static_cast<uint16_t>(got);
    return !ZeroCopy && long_frames ? copy_out(rx, mbufs, count) : count;
}

} // namespace

uint16_t rx_burst(void *queue, rte_mbuf **mbufs, uint16_t n)
{
    return receive<false>(queue, mbufs, n);
}

uint16_t rx_burst_zero_copy(void *queue, rte_mbuf **mbufs, uint16_t n)
{
    return receive<true>(queue, mbufs, n);
}

uint16_t tx_burst(void *queue, rte_mbuf **mbufs, uint16_t n)
{
    auto &tx = *static_cast<TxQueue *>(queue);
    uint16_t done = 0;
    do {
        const int sent = tx.burst(tx.queue, mbufs + done, nullptr, static_cast<uint16_t>(n - done));
        if (likely(sent >= 0))
            return static_cast<uint16_t>(done + sent);
        if (sent != -EMSGSIZE && sent != -EINVAL) {
            tx.no_link.add(1);
            return done; // as with a full ring, the rest stays the application's
        }
        // It would be refused again and again, and whatever is behind it would wait for ever.
        rte_pktmbuf_free(mbufs[done]);
        tx.dropped.add(1);
        ++done;
    } while (done < n);
    return done;
}

} // namespace plx::net
