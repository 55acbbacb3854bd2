// SPDX-License-Identifier: BSD-3-Clause
#ifndef PLX_NTB_NET_MAC_HPP
#define PLX_NTB_NET_MAC_HPP

#include <rte_ether.h>

namespace plx::net
{

/// A locally administered unicast address from what distinguishes this port: the machine, the DPDK
/// process (its runtime folder) and the port's name. The same at each start of the same program.
rte_ether_addr make_mac(const char *name);
/// The address for an identity in words.
rte_ether_addr mac_of(const char *identity);

} // namespace plx::net

#endif
