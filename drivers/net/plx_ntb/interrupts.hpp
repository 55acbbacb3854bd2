// SPDX-License-Identifier: BSD-3-Clause
// Interrupts of the receiving queues, for rte_eth_dev_rx_intr_enable() and rte_epoll_wait(): the
// event descriptors of the queue pairs.
#ifndef PLX_NTB_NET_INTERRUPTS_HPP
#define PLX_NTB_NET_INTERRUPTS_HPP

#include "port.hpp"

namespace plx::net
{

/// Between a start of the rawdev and its stop. @return 0, -ENOMEM or -ENODEV
int make_interrupts(rte_eth_dev *dev);
void drop_interrupts(rte_eth_dev *dev);

int rx_interrupt_enable(rte_eth_dev *dev, uint16_t queue);
int rx_interrupt_disable(rte_eth_dev *dev, uint16_t queue);

} // namespace plx::net

#endif
