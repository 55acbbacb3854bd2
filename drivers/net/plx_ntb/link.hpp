// SPDX-License-Identifier: BSD-3-Clause
// The link of a port: whether the rawdev is connected with its peer.
#ifndef PLX_NTB_NET_LINK_HPP
#define PLX_NTB_NET_LINK_HPP

#include "port.hpp"

namespace plx::net
{

/// Follows the events of the rawdev: keeps the link status and reports its changes.
/// @return 0 or a negative errno
int watch_link(rte_eth_dev *dev);
void unwatch_link(const Port &port);

int link_update(rte_eth_dev *dev, int wait_to_complete);
/// Stores link down, and reports it if it was up.
void link_is_down(rte_eth_dev *dev);

/// What a PCIe link carries, in Mbit/s: the next speed of Ethernet below it.
uint32_t link_speed(uint32_t generation, uint32_t lanes);

} // namespace plx::net

#endif
