// SPDX-License-Identifier: BSD-3-Clause
// Services of a worker for channels and one-sided operations: sending to the peer, owed control
// messages, deadlines. Called by the thread that drives the worker.
#ifndef NTBMSG_TRANSPORT_SENDING_HPP
#define NTBMSG_TRANSPORT_SENDING_HPP

#include "transport/worker.hpp"

namespace ntbmsg
{

/// Sends one control message or operation. @param payload  NULL: none; owned by the driver if 0 is
/// returned
/// @return 0; -EAGAIN: no room in the ring, or no mbuf
int send_message(Worker &w, uint32_t word, uint8_t op, uint32_t argument, rte_mbuf *payload);
inline int send_op(Worker &w, Channel &c, uint8_t op, uint32_t argument, rte_mbuf *payload)
{
    return send_message(w, c.tx_word, op, argument, payload);
}
/// Sends a copy of @p bytes, at most 128. @return as send_message()
int send_copy(Worker &w, uint32_t word, uint8_t op, uint32_t argument, const void *from,
              uint32_t bytes);
/// Copies a payload that the peer wrote, once. @return false: it is longer than @p room
bool copy_payload(const rte_mbuf *m, void *to, uint32_t room);

/// Adds control messages (Owed) that the channel has to send.
void owe(Channel &c, uint32_t bits);
/// Queues a reply to a slot of the peer that has no channel here.
void add_reply(Worker &w, uint8_t op, uint32_t word, uint32_t reason);
/// Sets the deadline of a channel.
void set_deadline(Channel &c, uint64_t from_now_ms);
/// Makes the next poll read the clock.
void check_deadlines_soon(Worker &w);

/// Counts messages that were freed unread.
inline void drop(Worker &w, uint64_t messages)
{
    w.rx_dropped.add(messages);
}
/// Frees messages unread.
void free_unread(Worker &w, rte_mbuf **mbufs, unsigned n);
/// The credit that received messages use.
Credit credit_of(const Worker &w, rte_mbuf *const *mbufs, unsigned n);

} // namespace ntbmsg

#endif
