// SPDX-License-Identifier: BSD-3-Clause
// How writes reach a region of the peer.
#ifndef NTBMSG_RMA_REMOTE_HPP
#define NTBMSG_RMA_REMOTE_HPP

#include "rma/requester.hpp"

namespace ntbmsg
{

/// Posts a PROBE of the address in the memory window, if there is room for one.
void remote_probe(ntbmsg_remote &remote);
/// @return 1: writes are stored directly; 0: by requests; -EAGAIN: not before earlier requests are
/// answered
int remote_path(ntbmsg_remote &remote, const Requester &r);

} // namespace ntbmsg

#endif
