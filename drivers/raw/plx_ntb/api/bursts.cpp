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
static_assert(sizeof(queue::Room) == sizeof(rte_pmd_plx_ntb_room) &&
                  offsetof(queue::Room, bytes) == offsetof(rte_pmd_plx_ntb_room, bytes),
              "and so is that of rooms");
static_assert(sizeof(queue::TxFlow) == sizeof(rte_pmd_plx_ntb_tx_flow) &&
                  offsetof(queue::TxFlow, longest) == offsetof(rte_pmd_plx_ntb_tx_flow, longest) &&
                  offsetof(queue::TxFlow, bytes) == offsetof(rte_pmd_plx_ntb_tx_flow, bytes) &&
                  sizeof(queue::RxFlow) == sizeof(rte_pmd_plx_ntb_rx_flow) &&
                  offsetof(queue::RxFlow, high) == offsetof(rte_pmd_plx_ntb_rx_flow, high) &&
                  offsetof(queue::RxFlow, other) == offsetof(rte_pmd_plx_ntb_rx_flow, other) &&
                  offsetof(queue::RxFlow, bytes) == offsetof(rte_pmd_plx_ntb_rx_flow, bytes),
              "and those of flows");

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

/// What publishes messages and finds a new word at its gate.
template <class Publish>
int first_publish(TxHalf *half, uint32_t word, const Publish &publish)
{
    note_lcore(half);
    pair_up(*half, *half->rx);
    return first_burst_at<CpuMemory>(word, &half->seen, publish, [half] {
        half->doorbell.ring();
        half->rings->fetch_add(1, std::memory_order_relaxed);
    });
}
__rte_noinline int first_burst(TxHalf *half, uint32_t word, rte_mbuf **mbufs,
                               const queue::Meta *meta, uint16_t n)
{
    return first_publish(half, word, [=] { return half->burst(half->state, mbufs, meta, n); });
}
__rte_noinline int first_burst(RxHalf *half, uint32_t word, rte_mbuf **mbufs, queue::Meta *meta,
                               uint16_t n)
{
    note_lcore(half);
    pair_up(*half->tx, *half);
    half->seen = word;
    return half->burst(half->state, mbufs, meta, n);
}

__rte_noinline int first_flow(TxHalf *half, uint32_t word, rte_mbuf **mbufs, queue::TxFlow *flow,
                              uint16_t n)
{
    return first_publish(half, word, [=] { return half->flow(half->state, mbufs, *flow, n); });
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
__rte_noinline int any_rx(RxHalf *half, rte_mbuf **mbufs, queue::Meta *meta, unsigned n)
{
    return gated(half, mbufs, meta, static_cast<uint16_t>(n), 0);
}

/// A burst that is behind the gate already, and has something to do.
__rte_noinline int busy_rx(RxHalf *half, rte_mbuf **mbufs, queue::Meta *meta, unsigned n)
{
    const int rc = half->burst(half->state, mbufs, meta, n);
    half->gate.leave();
    return result_of(half, rc, 0);
}

/// A poll that is behind the gate already. @tparam busy  receives, and leaves the gate, where
/// something has arrived
template <auto busy, class Out>
inline int poll_rx(RxHalf *half, rte_mbuf **mbufs, Out *out, uint16_t n)
{
    if (!queue::rx_idle(*half->watch))
        return busy(half, mbufs, out, n);
    half->gate.leave();
    return 0;
}

/// Outside of what polls, as any_rx(). Asks before it looks for the first line: that may be on its
/// way, and so are those behind it.
template <auto busy, class Out>
__rte_noinline int poll_rx_for_more(RxHalf *half, rte_mbuf **mbufs, Out *out, uint16_t n)
{
    queue::rx_ask_for_more(*half->watch);
    return poll_rx<busy>(half, mbufs, out, n);
}

/// The same, whichever the last message was like.
template <auto busy, class Out>
inline int poll_known(RxHalf *half, rte_mbuf **mbufs, Out *out, uint16_t n)
{
    if (unlikely(half->watch->more > 0))
        return poll_rx_for_more<busy>(half, mbufs, out, n);
    return poll_rx<busy>(half, mbufs, out, n);
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
    return poll_known<busy_rx>(half, mbufs, queue_meta, n);
}

int gated_tx_flow(void *queue, rte_mbuf **mbufs, rte_pmd_plx_ntb_tx_flow *flow, uint16_t n)
{
    auto *half = static_cast<TxHalf *>(queue);
    auto *queue_flow = reinterpret_cast<queue::TxFlow *>(flow);
    flow->bytes = 0;
    const int rc = pass(
        half->gate, &half->seen, -ENOTCONN,
        [=] { return half->flow(half->state, mbufs, *queue_flow, n); },
        [=](uint32_t word) { return first_flow(half, word, mbufs, queue_flow, n); });
    return result_of(half, rc, -ENOTCONN);
}

namespace
{

/// Bursts of a flow that are behind the gate already, and have something to do.
__rte_noinline int busy_rx_flow(RxHalf *half, rte_mbuf **mbufs, queue::RxFlow *flow, unsigned n)
{
    const int rc = half->flow(half->state, mbufs, *flow, n);
    half->gate.leave();
    return result_of(half, rc, 0);
}
__rte_noinline int busy_rx_next_flow(RxHalf *half, rte_mbuf **mbufs, queue::RxFlow *flow,
                                     unsigned n)
{
    const int rc = half->next_flow(half->state, mbufs, *flow, n);
    half->gate.leave();
    return rc == 0 && flow->other != 0 ? -EAGAIN : result_of(half, rc, 0);
}

} // namespace

/// A new word at the gate is left to gated_rx(), as all that is not of the flow.
int gated_rx_flow(void *queue, rte_mbuf **mbufs, rte_pmd_plx_ntb_rx_flow *flow, uint16_t n)
{
    auto *half = static_cast<RxHalf *>(queue);
    flow->bytes = 0;
    flow->other = 0;
    if (likely(half->gate.enter() == half->seen))
        return poll_known<busy_rx_flow>(half, mbufs, reinterpret_cast<queue::RxFlow *>(flow), n);
    half->gate.leave();
    flow->other = 1;
    return 0;
}

/// As that.
int gated_rx_next_flow(void *queue, rte_mbuf **mbufs, rte_pmd_plx_ntb_rx_flow *flow, uint16_t n)
{
    auto *half = static_cast<RxHalf *>(queue);
    if (likely(half->gate.enter() == half->seen))
        return poll_known<busy_rx_next_flow>(half, mbufs, reinterpret_cast<queue::RxFlow *>(flow),
                                             n);
    half->gate.leave();
    return -EAGAIN;
}

/// Publishes nothing: a new word at the gate is left to the call that does.
int gated_reserve(void *queue, rte_pmd_plx_ntb_room *rooms, uint16_t n)
{
    auto *half = static_cast<TxHalf *>(queue);
    if (unlikely(half->held_rooms.load(std::memory_order_relaxed) != 0))
        return -EBUSY;
    const auto reserve = [=] {
        const int rc = half->reserve(half->state, reinterpret_cast<queue::Room *>(rooms), n);
        // Inside the gate: the control side that closes it knows of them.
        half->held_rooms.store(rc > 0 ? static_cast<uint32_t>(rc) : 0, std::memory_order_relaxed);
        return rc;
    };
    const int rc =
        pass(half->gate, &half->seen, -ENOTCONN, reserve, [=](uint32_t) { return reserve(); });
    return result_of(half, rc, -ENOTCONN);
}

int gated_commit(void *queue, const uint32_t *lengths, const rte_pmd_plx_ntb_meta *meta, uint16_t n)
{
    auto *half = static_cast<TxHalf *>(queue);
    if (unlikely(half->held_rooms.load(std::memory_order_relaxed) == 0))
        return n == 0 ? 0 : -EINVAL;
    const auto commit = [=] {
        if (unlikely(queue::tx_aside(half->state) == 0))
            return -ECONNRESET; // they are of an earlier connection
        const int rc =
            half->commit(half->state, lengths, reinterpret_cast<const queue::Meta *>(meta), n);
        half->held_rooms.store(queue::tx_aside(half->state), std::memory_order_relaxed);
        return rc;
    };
    int rc = pass(half->gate, &half->seen, -ECONNRESET, commit,
                  [=](uint32_t word) { return first_publish(half, word, commit); });
    rc = result_of(half, rc, -ECONNRESET);
    if (unlikely(rc == -ECONNRESET || (rc == 0 && n > 0))) {
        half->held_rooms.store(0, std::memory_order_relaxed);
        return -ECONNRESET;
    }
    return rc;
}

void gated_abort(void *queue)
{
    auto *half = static_cast<TxHalf *>(queue);
    const auto abort = [=] {
        queue::tx_abort(half->state);
        return 0;
    };
    (void)pass(half->gate, &half->seen, 0, abort, [=](uint32_t) { return abort(); });
    half->held_rooms.store(0, std::memory_order_relaxed);
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

int rte_pmd_plx_ntb_flow_calls_get(uint16_t dev_id, rte_pmd_plx_ntb_flow_calls *out)
{
    if (plx::pmd::device_of(dev_id) == nullptr)
        return -ENODEV;
    if (out == nullptr)
        return -EINVAL;
    *out = {.tx = plx::pmd::gated_tx_flow,
            .rx = plx::pmd::gated_rx_flow,
            .rx_next = plx::pmd::gated_rx_next_flow,
            .reserved = 0};
    return 0;
}

int rte_pmd_plx_ntb_room_calls_get(uint16_t dev_id, rte_pmd_plx_ntb_room_calls *out)
{
    if (plx::pmd::device_of(dev_id) == nullptr)
        return -ENODEV;
    if (out == nullptr)
        return -EINVAL;
    *out = {.reserve = plx::pmd::gated_reserve,
            .commit = plx::pmd::gated_commit,
            .abort = plx::pmd::gated_abort};
    return 0;
}

int rte_pmd_plx_ntb_tx_reserve(uint16_t dev_id, uint16_t queue, rte_pmd_plx_ntb_room *rooms,
                               uint16_t n)
{
    QueuePair *qp = queue_of(dev_id, queue);
    return unlikely(qp == nullptr) ? -ENODEV : plx::pmd::gated_reserve(&qp->tx, rooms, n);
}

int rte_pmd_plx_ntb_tx_commit(uint16_t dev_id, uint16_t queue, const uint32_t *lengths,
                              const rte_pmd_plx_ntb_meta *meta, uint16_t n)
{
    QueuePair *qp = queue_of(dev_id, queue);
    return unlikely(qp == nullptr) ? -ENODEV : plx::pmd::gated_commit(&qp->tx, lengths, meta, n);
}

int rte_pmd_plx_ntb_tx_abort(uint16_t dev_id, uint16_t queue)
{
    QueuePair *qp = queue_of(dev_id, queue);
    if (unlikely(qp == nullptr))
        return -ENODEV;
    plx::pmd::gated_abort(&qp->tx);
    return 0;
}
