// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_API_ATTACH_HPP
#define NTB_VERBS_API_ATTACH_HPP

#include <cstdint>

#include "ntbv.h"
#include "port/port.hpp"
#include "wire/address.hpp"

namespace ntb::verbs
{

/// Gives an engine the way to a peer, or both ends of a way to itself. After a port was lost, a new
/// one to the same address takes its place: queue pairs that were not in error go on with it.
/// @param port  has to live as long as the engine
/// @param peer  its address
/// @return 0; -EINVAL the address, or a port whose messages are too short; -EEXIST there is a way
///         to that address; -ENOSPC there are NTBV_MAX_LINKS
int attach(ntbv_engine &engine, Port &port, Address peer);

/// From now on regions of whole pages are shared with peers that reach their segments, and those of
/// peers are used: doc/verbs.md, section 6. Before there are regions and queue pairs.
/// @param segments  has to live as long as the regions
/// @return 0; -EOPNOTSUPP the kernel cannot exchange pages for this user
int be_direct(ntbv_engine &engine, Segments &segments, ntbv_direct how = NTBV_DIRECT);

} // namespace ntb::verbs

#endif
