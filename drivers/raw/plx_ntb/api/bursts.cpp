// SPDX-License-Identifier: BSD-3-Clause
#include "api/bursts.hpp"

#include <cerrno>
#include <cstddef>

#include <rte_branch_prediction.h>
#include <rte_lcore.h>

#include "api/devices.hpp"
#include "sync/sleep.hpp"

namespace plx::pmd
{

namespace
{

static_assert(sizeof(queue::Meta) == sizeof(rte_pmd_plx_ntb_meta) &&
                  offsetof(queue::Meta, flags) == offsetof(rte_pmd_plx_ntb_meta, flags),
              "the queue's struct of metadata is the public one");

/// Records the thread of a half and its NUMA node, once per connection; the control thread warns.
template <class H>
void note_lcore(H *half)
{
    half->lcore_node.store(static_cast<int>(rte_socket_id()), std::memory_order_relaxed);
    half->thread.store(pthread_self(), std::memory_order_relaxed);
}

/// A thread that uses both halves may answer what it receives, so lines of the answer are
/// prefetched. If a half moves to another thread later, a prefetch is wasted, nothing else.
void pair_up(TxHalf &tx, RxHalf &rx)
{
    const bool one_thread =
        tx.thread.load(std::memory_order_relaxed) == rx.thread.load(std::memory_order_relaxed);
    queue::rx_answered_by(rx.state, one_thread ? tx.state : nullptr);
}

/// A burst that finds a new word at its gate.
__rte_noinline int first_burst(TxHalf *half, uint32_t word, rte_mbuf **mbufs,
                               const queue::Meta *meta, uint16_t n)
{
    note_lcore(half);
    pair_up(*half, *half->rx);
    return first_burst_at<CpuMemory>(
        word, &half->seen, [=] { return half->burst(half->state, mbufs, meta, n); },
        [half] {
            half->doorbell.ring();
            half->rings->fetch_add(1, std::memory_order_relaxed);
        });
}
__rte_noinline int first_burst(RxHalf *half, uint32_t word, rte_mbuf **mbufs, queue::Meta *meta,
                               uint16_t n)
{
    note_lcore(half);
    pair_up(*half->tx, *half);
    half->seen = word;
    return half->burst(half->state, mbufs, meta, n);
}

/// @return the result of a burst of the queue for the caller; @p closed if the queue has failed
template <class H>
inline int result_of(H *half, int rc, int closed)
{
    if (likely(rc != -EPROTO))
        return rc;
    half->broken.store(true, std::memory_order_relaxed);
    return closed;
}

/// One burst behind the gate; @p closed is the result while there is no connection.
template <class Meta, class H>
inline int gated(H *half, rte_mbuf **mbufs, Meta *meta, uint16_t n, int closed)
{
    const int rc = pass(
        half->gate, &half->seen, closed, [=] { return half->burst(half->state, mbufs, meta, n); },
        [=](uint32_t word) { return first_burst(half, word, mbufs, meta, n); });
    return result_of(half, rc, closed);
}

/// Outside of gated_rx(), which then needs no stack frame.
__rte_noinline int any_rx(RxHalf *half, rte_mbuf **mbufs, queue::Meta *meta, uint16_t n)
{
    return gated(half, mbufs, meta, n, 0);
}

/// A burst that is behind the gate already, and has something to do.
__rte_noinline int busy_rx(RxHalf *half, rte_mbuf **mbufs, queue::Meta *meta, uint16_t n)
{
    const int rc = half->burst(half->state, mbufs, meta, n);
    half->gate.leave();
    return result_of(half, rc, 0);
}

} // namespace

int gated_tx(void *queue, rte_mbuf **mbufs, const rte_pmd_plx_ntb_meta *meta, uint16_t n)
{
    return gated(static_cast<TxHalf *>(queue), mbufs, reinterpret_cast<const queue::Meta *>(meta),
                 n, -ENOTCONN);
}

/// Most polls find nothing. Even that is found behind the gate: the ring is not there for ever.
int gated_rx(void *queue, rte_mbuf **mbufs, rte_pmd_plx_ntb_meta *meta, uint16_t n)
{
    auto *half = static_cast<RxHalf *>(queue);
    auto *queue_meta = reinterpret_cast<queue::Meta *>(meta);
    if (unlikely(half->gate.enter() != half->seen))
        return any_rx(half, mbufs, queue_meta, n);
    if (!queue::rx_idle(*half->watch))
        return busy_rx(half, mbufs, queue_meta, n);
    half->gate.leave();
    return 0;
}

} // namespace plx::pmd

using plx::pmd::Device;
using plx::pmd::QueuePair;

namespace
{
QueuePair *queue_of(uint16_t dev_id, uint16_t queue)
{
    Device *device = plx::pmd::device_of(dev_id);
    return device == nullptr ? nullptr : device->queue(queue);
}
} // namespace

int rte_pmd_plx_ntb_tx_burst(uint16_t dev_id, uint16_t queue, rte_mbuf **mbufs,
                             const rte_pmd_plx_ntb_meta *meta, uint16_t n)
{
    QueuePair *qp = queue_of(dev_id, queue);
    return unlikely(qp == nullptr) ? -ENODEV : plx::pmd::gated_tx(&qp->tx, mbufs, meta, n);
}

int rte_pmd_plx_ntb_rx_burst(uint16_t dev_id, uint16_t queue, rte_mbuf **mbufs,
                             rte_pmd_plx_ntb_meta *meta, uint16_t n)
{
    QueuePair *qp = queue_of(dev_id, queue);
    return unlikely(qp == nullptr) ? -ENODEV : plx::pmd::gated_rx(&qp->rx, mbufs, meta, n);
}

int rte_pmd_plx_ntb_burst_get(uint16_t dev_id, uint16_t queue, rte_pmd_plx_ntb_burst *out)
{
    QueuePair *qp = queue_of(dev_id, queue);
    if (qp == nullptr)
        return -ENODEV;
    if (out == nullptr)
        return -EINVAL;
    *out = {.tx = plx::pmd::gated_tx,
            .rx = plx::pmd::gated_rx,
            .tx_queue = &qp->tx,
            .rx_queue = &qp->rx};
    return 0;
}
