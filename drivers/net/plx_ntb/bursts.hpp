// SPDX-License-Identifier: BSD-3-Clause
// The hot path: bursts of the queue pair, with what an ethdev promises on top.
#ifndef PLX_NTB_NET_BURSTS_HPP
#define PLX_NTB_NET_BURSTS_HPP

#include <cstdint>

struct rte_mbuf;

namespace plx::net
{

/// Frames of window buffers are copied into the application's pool.
uint16_t rx_burst(void *queue, rte_mbuf **mbufs, uint16_t n);
/// They are delivered where they lie.
uint16_t rx_burst_zero_copy(void *queue, rte_mbuf **mbufs, uint16_t n);
uint16_t tx_burst(void *queue, rte_mbuf **mbufs, uint16_t n);

} // namespace plx::net

#endif
