// SPDX-License-Identifier: BSD-3-Clause
// Sending of the control messages that a channel owes its peer.
#ifndef NTBMSG_CHANNEL_OWED_HPP
#define NTBMSG_CHANNEL_OWED_HPP

#include "transport/worker.hpp"

namespace ntbmsg
{

/// Sends owed control messages as far as there is room. @return false: the ring is full
bool send_owed(Channel &c);

} // namespace ntbmsg

#endif
