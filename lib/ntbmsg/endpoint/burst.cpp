// SPDX-License-Identifier: BSD-3-Clause
// Bursts of bare queues: a bounds check and an indirect call of the driver.
#include <cerrno>
#include <type_traits>

#include <rte_branch_prediction.h>

#include "endpoint/endpoint.hpp"

// The library's metadata is passed to the driver unchanged.
static_assert(std::is_standard_layout_v<ntbmsg_meta> &&
              sizeof(ntbmsg_meta) == sizeof(rte_pmd_plx_ntb_meta) &&
              offsetof(ntbmsg_meta, data) == offsetof(rte_pmd_plx_ntb_meta, data) &&
              offsetof(ntbmsg_meta, flags) == offsetof(rte_pmd_plx_ntb_meta, flags) &&
              offsetof(ntbmsg_meta, reserved) == offsetof(rte_pmd_plx_ntb_meta, reserved));

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
