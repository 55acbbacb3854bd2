// SPDX-License-Identifier: BSD-3-Clause
// Sending of the control messages that a channel owes its peer.
#ifndef NTBMSG_CHANNEL_OWED_HPP
#define NTBMSG_CHANNEL_OWED_HPP

#include "transport/worker.hpp"

namespace ntbmsg
{

/// Sends owed control messages as far as there is room. @return false: the ring is full
bool send_owed(Channel &c);

/// Sends what all channels of a worker owe, as far as there is room; credit of several in one
/// message where the peer knows that.
void send_all_owed(Worker &w);

/// Whether nothing is owed but the credit of so few channels that it may wait for that of others.
/// That of a channel that returned credit last time does not: it may be the only one in use.
bool owes_little(const Worker &w);

} // namespace ntbmsg

#endif
