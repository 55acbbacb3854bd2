// SPDX-License-Identifier: BSD-3-Clause
// The two kinds of cable.
#ifndef PLX_TWIN_CABLE_OPS_HPP
#define PLX_TWIN_CABLE_OPS_HPP

namespace plx::twin
{

struct CableOps;

extern const CableOps socket_cable; ///< between processes
extern const CableOps mem_cable;    ///< between hosts of one process

} // namespace plx::twin

#endif
