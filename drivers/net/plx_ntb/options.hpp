// SPDX-License-Identifier: BSD-3-Clause
// The devargs of a port: its own, and those of its rawdev.
#ifndef PLX_NTB_NET_OPTIONS_HPP
#define PLX_NTB_NET_OPTIONS_HPP

#include <rte_ether.h>

namespace plx::net
{

/// The port's own devargs, as dpdk-pmdinfo.py shows them.
#define PLX_NET_PARAMS "dev=<rawdev> mac=<address> zero_copy=0|1 <devargs of raw_plx_ntb>"

struct Options {
    char dev[64] = "";           ///< a rawdev that exists; empty: the port probes one of its own
    rte_ether_addr mac{};        ///< zero: the port makes one
    bool zero_copy = false;      ///< frames in window buffers are delivered where they lie
    char rawdev_args[1024] = ""; ///< devargs of the rawdev that the port probes
};

/// Reads the devargs of port @p name; what is wrong is logged with what was expected.
/// @param args may be NULL
/// @return 0 or -EINVAL with *options untouched
int parse_options(const char *name, const char *args, Options *options);

} // namespace plx::net

#endif
