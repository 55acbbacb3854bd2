// SPDX-License-Identifier: BSD-3-Clause
// How writes go to a region of the peer.
#ifndef NTBMSG_RMA_REMOTE_HPP
#define NTBMSG_RMA_REMOTE_HPP

#include "rma/requester.hpp"

namespace ntbmsg
{

/// Tries the way through the window, where there is room for a PROBE.
void remote_probe(ntbmsg_remote &remote);
/// Whether a write goes by a store. @return -EAGAIN: not before earlier requests are answered
int remote_path(ntbmsg_remote &remote, const Requester &r);

} // namespace ntbmsg

#endif
