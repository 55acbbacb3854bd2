// SPDX-License-Identifier: BSD-3-Clause
// The rawdev of a port: found or probed, and used by one port only.
#ifndef PLX_NTB_NET_RAWDEV_HPP
#define PLX_NTB_NET_RAWDEV_HPP

#include "options.hpp"
#include "port.hpp"

namespace plx::net
{

/// Probes the rawdev of port @p name, or takes the one that `dev=` names. Fills in what @p port has
/// of its rawdev, and @p info.
/// @return 0, -ENODEV, -EBUSY (started, or of another port), or what its probe returned; logged
int acquire_rawdev(Port &port, const char *name, const Options &options,
                   rte_pmd_plx_ntb_info *info);
/// Gives the rawdev back: one that the port probed is removed, or while the bus removes the port
/// closed, and removed by the bus later or before the next is probed. Another stays, stopped.
void release_rawdev(Port &port);

/// @return 0 or a negative errno, logged
int rawdev_info(const Port &port, rte_pmd_plx_ntb_info *info);

/// Configures the rawdev for the queues of the port, and starts it.
/// @return 0 or a negative errno, logged
int start_rawdev(Port &port);

/// The longest frame that the port can receive, in bytes: what the receive buffers of the device
/// hold, and without scattered receiving one mbuf of each queue.
uint32_t longest_frame(const Port &port);

} // namespace plx::net

#endif
