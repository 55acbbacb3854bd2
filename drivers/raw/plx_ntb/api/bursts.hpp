// SPDX-License-Identifier: BSD-3-Clause
// Public burst functions: the gate before the hot path.
#ifndef PLX_NTB_API_BURSTS_HPP
#define PLX_NTB_API_BURSTS_HPP

#include <cstdint>

#include "rte_pmd_plx_ntb.h"

namespace plx::pmd
{

/// @param queue a TxHalf. @return as rte_pmd_plx_ntb_tx_burst()
int gated_tx(void *queue, rte_mbuf **mbufs, const rte_pmd_plx_ntb_meta *meta, uint16_t n);
/// @param queue an RxHalf. @return as rte_pmd_plx_ntb_rx_burst()
int gated_rx(void *queue, rte_mbuf **mbufs, rte_pmd_plx_ntb_meta *meta, uint16_t n);

/// @param queue a TxHalf. @return as rte_pmd_plx_ntb_flow_calls::tx
int gated_tx_flow(void *queue, rte_mbuf **mbufs, rte_pmd_plx_ntb_tx_flow *flow, uint16_t n);
/// @param queue an RxHalf. @return as rte_pmd_plx_ntb_flow_calls::rx
int gated_rx_flow(void *queue, rte_mbuf **mbufs, rte_pmd_plx_ntb_rx_flow *flow, uint16_t n);
/// @param queue an RxHalf. @return as rte_pmd_plx_ntb_flow_calls::rx_next
int gated_rx_next_flow(void *queue, rte_mbuf **mbufs, rte_pmd_plx_ntb_rx_flow *flow, uint16_t n);

/// @param queue a TxHalf. @return as rte_pmd_plx_ntb_tx_reserve()
int gated_reserve(void *queue, rte_pmd_plx_ntb_room *rooms, uint16_t n);
/// @param queue a TxHalf. @return as rte_pmd_plx_ntb_tx_commit()
int gated_commit(void *queue, const uint32_t *lengths, const rte_pmd_plx_ntb_meta *meta,
                 uint16_t n);
/// @param queue a TxHalf.
void gated_abort(void *queue);

} // namespace plx::pmd

#endif
