// SPDX-License-Identifier: BSD-3-Clause
// What a channel owes the peer.
#ifndef NTBMSG_CHANNEL_OWED_HPP
#define NTBMSG_CHANNEL_OWED_HPP

#include "port/worker.hpp"

namespace ntbmsg
{

/// Sends what it owes as far as it goes. @return false: no room towards the peer
bool send_owed(Channel &c);

} // namespace ntbmsg

#endif
