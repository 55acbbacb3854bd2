// SPDX-License-Identifier: BSD-3-Clause
// The rawdev below a port, or its card, goes while the port is there.
#ifndef PLX_NTB_NET_REMOVAL_HPP
#define PLX_NTB_NET_REMOVAL_HPP

#include "port.hpp"

namespace plx::net
{

/// For rte_pmd_plx_ntb_hold(), with the rte_eth_dev: from now on the port has no rawdev. Its link
/// goes down, and RTE_ETH_EVENT_INTR_RMV is reported if the application asked for it.
void on_gone(void *dev);

/// From here on EAL's event that the rawdev's card is removed takes the rawdev away from the port.
/// (It comes if the application has called rte_dev_event_monitor_start().)
void watch_removal(rte_eth_dev *dev);
void unwatch_removal(const rte_eth_dev *dev);

} // namespace plx::net

#endif
