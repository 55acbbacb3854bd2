// SPDX-License-Identifier: BSD-3-Clause
// The statistics of a port: counters of its rawdev under the names of ethdev, and its own.
#ifndef PLX_NTB_NET_STATISTICS_HPP
#define PLX_NTB_NET_STATISTICS_HPP

#include "port.hpp"

namespace plx::net
{

int stats_get(rte_eth_dev *dev, rte_eth_stats *stats);
int stats_reset(rte_eth_dev *dev);
int xstats_get(rte_eth_dev *dev, rte_eth_xstat *xstats, unsigned n);
int xstats_get_names(rte_eth_dev *dev, rte_eth_xstat_name *names, unsigned n);

} // namespace plx::net

#endif
