// SPDX-License-Identifier: BSD-3-Clause
// What control messages of the peer make of a channel. None takes the mbuf over.
#ifndef NTBMSG_CHANNEL_CONTROL_HPP
#define NTBMSG_CHANNEL_CONTROL_HPP

#include "port/worker.hpp"
#include "wire/protocol.hpp"

namespace ntbmsg
{

void on_accept(Channel &c, rte_mbuf *m);
void on_reject(Channel &c, uint32_t reason, rte_mbuf *m);
void on_credit(Channel &c, uint32_t argument, rte_mbuf *m);
void on_close(Channel &c, rte_mbuf *m);
void on_reset(Channel &c, uint32_t reason, rte_mbuf *m);
/// Takes note of the longest message that the peer takes on a channel.
void take_opening(Channel &c, const protocol::Opening &opening);

} // namespace ntbmsg

#endif
