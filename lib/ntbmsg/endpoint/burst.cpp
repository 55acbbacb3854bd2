// SPDX-License-Identifier: BSD-3-Clause
// Bare queues. A burst is a bounds check and an indirect call of the driver.
#include <cerrno>
#include <type_traits>

#include <rte_branch_prediction.h>

#include "base/clock.hpp"
#include "endpoint/endpoint.hpp"

// The library's metadata is passed to the driver unchanged.
static_assert(std::is_standard_layout_v<ntbmsg_meta> &&
              sizeof(ntbmsg_meta) == sizeof(rte_pmd_plx_ntb_meta) &&
              offsetof(ntbmsg_meta, data) == offsetof(rte_pmd_plx_ntb_meta, data) &&
              offsetof(ntbmsg_meta, flags) == offsetof(rte_pmd_plx_ntb_meta, flags) &&
              offsetof(ntbmsg_meta, reserved) == offsetof(rte_pmd_plx_ntb_meta, reserved));
static_assert(sizeof(ntbmsg_room) == sizeof(rte_pmd_plx_ntb_room) &&
              offsetof(ntbmsg_room, address) == offsetof(rte_pmd_plx_ntb_room, address) &&
              offsetof(ntbmsg_room, bytes) == offsetof(rte_pmd_plx_ntb_room, bytes));

int ntbmsg_queue_send_burst(ntbmsg_endpoint *endpoint, uint16_t queue, rte_mbuf **mbufs,
                            const ntbmsg_meta *meta, uint16_t n)
{
    if (unlikely(!ntbmsg::is_live(endpoint, __func__) || queue >= endpoint->queues ||
                 mbufs == nullptr))
        return -EINVAL;
    const rte_pmd_plx_ntb_burst &burst = endpoint->burst[queue];
    return burst.tx(burst.tx_queue, mbufs, reinterpret_cast<const rte_pmd_plx_ntb_meta *>(meta), n);
}

int ntbmsg_queue_recv_burst(ntbmsg_endpoint *endpoint, uint16_t queue, rte_mbuf **mbufs,
                            ntbmsg_meta *meta, uint16_t n)
{
    if (unlikely(!ntbmsg::is_live(endpoint, __func__) || queue >= endpoint->queues ||
                 mbufs == nullptr))
        return -EINVAL;
    const rte_pmd_plx_ntb_burst &burst = endpoint->burst[queue];
    return burst.rx(burst.rx_queue, mbufs, reinterpret_cast<rte_pmd_plx_ntb_meta *>(meta), n);
}

int ntbmsg_queue_burst_get(const ntbmsg_endpoint *endpoint, uint16_t queue,
                           ntbmsg_queue_burst *burst)
{
    if (!ntbmsg::is_live(endpoint, __func__) || queue >= endpoint->queues || burst == nullptr)
        return -EINVAL;
    const rte_pmd_plx_ntb_burst &calls = endpoint->burst[queue];
    *burst = {.send = calls.tx,
              .recv = calls.rx,
              .send_queue = calls.tx_queue,
              .recv_queue = calls.rx_queue,
              .reserved = {}};
    return 0;
}

int ntbmsg_queue_reserve(ntbmsg_endpoint *endpoint, uint16_t queue, ntbmsg_room *rooms, uint16_t n)
{
    if (unlikely(!ntbmsg::is_live(endpoint, __func__) || queue >= endpoint->queues ||
                 rooms == nullptr))
        return -EINVAL;
    const rte_pmd_plx_ntb_burst &burst = endpoint->burst[queue];
    return endpoint->room_calls.reserve(burst.tx_queue,
                                        reinterpret_cast<rte_pmd_plx_ntb_room *>(rooms), n);
}

int ntbmsg_queue_commit(ntbmsg_endpoint *endpoint, uint16_t queue, const uint32_t *lengths,
                        const ntbmsg_meta *meta, uint16_t n)
{
    if (unlikely(!ntbmsg::is_live(endpoint, __func__) || queue >= endpoint->queues ||
                 lengths == nullptr))
        return -EINVAL;
    const rte_pmd_plx_ntb_burst &burst = endpoint->burst[queue];
    return endpoint->room_calls.commit(burst.tx_queue, lengths,
                                       reinterpret_cast<const rte_pmd_plx_ntb_meta *>(meta), n);
}

int ntbmsg_queue_abort(ntbmsg_endpoint *endpoint, uint16_t queue)
{
    if (!ntbmsg::is_live(endpoint, __func__) || queue >= endpoint->queues)
        return -EINVAL;
    endpoint->room_calls.abort(endpoint->burst[queue].tx_queue);
    return 0;
}

int ntbmsg_queue_unconfirmed(const ntbmsg_endpoint *endpoint, uint16_t queue, uint32_t *count)
{
    if (!ntbmsg::is_live(endpoint, __func__) || queue >= endpoint->queues || count == nullptr)
        return -EINVAL;
    return rte_pmd_plx_ntb_tx_unconfirmed(endpoint->dev_id, queue, count);
}

int ntbmsg_queue_flush(ntbmsg_endpoint *endpoint, uint16_t queue, uint32_t timeout_ms)
{
    if (!ntbmsg::is_live(endpoint, __func__) || queue >= endpoint->queues)
        return -EINVAL;
    const uint32_t losses = endpoint->losses.load(std::memory_order_acquire);
    const uint64_t start = ntbmsg::clock_us();
    const rte_pmd_plx_ntb_burst &burst = endpoint->burst[queue];
    for (;;) {
        burst.tx(burst.tx_queue, nullptr, nullptr, 0); // frees what a DMA engine has copied
        uint32_t count = 0;
        const int rc = rte_pmd_plx_ntb_tx_unconfirmed(endpoint->dev_id, queue, &count);
        // What is counted now may belong to the next connection.
        if (rc != 0 || endpoint->losses.load(std::memory_order_acquire) != losses)
            return -ENOTCONN;
        if (count == 0)
            return 0;
        if (ntbmsg::clock_us() - start >= uint64_t{timeout_ms} * 1000)
            return -ETIMEDOUT;
        if (!ntbmsg::nap())
            return -EINTR;
    }
}
