// SPDX-License-Identifier: BSD-3-Clause
#include "bursts.hpp"

#include <cerrno>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "port.hpp"

namespace plx::net
{

namespace
{

/// A frame that arrived in a window buffer, in mbufs of the application's pool.
/// @return NULL: the pool was empty, and the frame is lost
__rte_noinline rte_mbuf *copy_out(RxQueue &rx, rte_mbuf *frame)
{
    rte_mbuf *copy = rte_pktmbuf_copy(frame, rx.pool, 0, UINT32_MAX);
    rte_pktmbuf_free(frame);
    if (unlikely(copy == nullptr))
        rx.nombuf.add(1);
    return copy;
}

template <bool ZeroCopy>
inline uint16_t receive(void *queue, rte_mbuf **mbufs, uint16_t n)
{
    auto &rx = *static_cast<RxQueue *>(queue);
    const int got = rx.burst(rx.queue, mbufs, nullptr, n);
    const uint16_t port = rx.port;
    const rte_mempool *pool = rx.pool;
    uint16_t kept = 0;
    for (int i = 0; i < got; ++i) {
        rte_mbuf *m = mbufs[i];
        if (!ZeroCopy && m->pool != pool) {
            m = copy_out(rx, m);
            if (unlikely(m == nullptr))
                continue;
        }
        m->port = port;
        mbufs[kept++] = m;
    }
    return kept;
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
