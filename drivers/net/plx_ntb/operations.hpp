// SPDX-License-Identifier: BSD-3-Clause
#ifndef PLX_NTB_NET_OPERATIONS_HPP
#define PLX_NTB_NET_OPERATIONS_HPP

struct rte_eth_dev;

namespace plx::net
{

/// Sets the operations and bursts of a port.
void set_operations(rte_eth_dev *dev);

} // namespace plx::net

#endif
