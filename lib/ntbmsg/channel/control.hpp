// SPDX-License-Identifier: BSD-3-Clause
// Handling of the peer's control messages to a channel. The caller keeps the mbuf.
#ifndef NTBMSG_CHANNEL_CONTROL_HPP
#define NTBMSG_CHANNEL_CONTROL_HPP

#include "transport/worker.hpp"
#include "wire/protocol.hpp"

namespace ntbmsg
{

void on_accept(Channel &c, rte_mbuf *m);
void on_reject(Channel &c, uint32_t reason, rte_mbuf *m);
/// It has got credit: sends what waits, or reports WRITABLE.
void can_send_again(Channel &c);
void on_credit(Channel &c, uint32_t argument);
void on_close(Channel &c, rte_mbuf *m);
void on_reset(Channel &c, uint32_t reason, rte_mbuf *m);
/// The peer asks what of its messages was received.
void on_flush(Channel &c, rte_mbuf *m);
/// Computes the longest message that the peer accepts on a channel.
void take_opening(Channel &c, const protocol::Opening &opening);

} // namespace ntbmsg

#endif
