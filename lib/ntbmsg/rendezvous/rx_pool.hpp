// SPDX-License-Identifier: BSD-3-Clause
// Pools of channels: parts of a worker's rendezvous memory that nobody else receives into.
#ifndef NTBMSG_RENDEZVOUS_RX_POOL_HPP
#define NTBMSG_RENDEZVOUS_RX_POOL_HPP

#include <atomic>
#include <cstdint>

#include "ntbmsg.h"

namespace ntbmsg
{

/// Pools of a worker.
inline constexpr unsigned rx_pools_max = 64;

struct RxPool {
    rte_mempool *pool;           ///< NULL: there is none
    uint32_t first;              ///< piece
    uint32_t count;              ///< of pieces
    std::atomic<uint32_t> users; ///< channels
};

/// The number of a pool of the worker, from 1 on. With its lock held. @return 0: it is none
uint8_t rx_pool_number(const ntbmsg_worker &worker, const rte_mempool *pool);
/// The channel receives into it from now on.
void rx_pool_join(ntbmsg_channel &channel, uint8_t number);
void rx_pool_leave(ntbmsg_channel &channel);
/// Where a channel's long messages go, its own pool or the shared one.
rte_mempool *rx_pool_of(const ntbmsg_channel &channel);
/// How many pieces that has.
uint32_t rx_pool_pieces(const ntbmsg_channel &channel);
/// mbufs of all pools that are still out.
unsigned rx_pools_held(const ntbmsg_worker &worker);
void rx_pools_free(ntbmsg_worker &worker);

} // namespace ntbmsg

#endif
