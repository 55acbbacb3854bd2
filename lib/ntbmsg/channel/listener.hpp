// SPDX-License-Identifier: BSD-3-Clause
// Ports of the process, and the requests that wait for them.
#ifndef NTBMSG_CHANNEL_LISTENER_HPP
#define NTBMSG_CHANNEL_LISTENER_HPP

#include "port/channel.hpp"

namespace ntbmsg
{

/// The peer asks for a channel. The mbuf stays the caller's.
void on_connect(Worker &w, uint32_t port, const rte_mbuf *m);
/// Forgets a request. @return false: it was answered meanwhile
bool withdraw(Channel &c);
/// Rejects requests whose listener was closed.
void reject_orphans(Worker &w);

} // namespace ntbmsg

#endif
