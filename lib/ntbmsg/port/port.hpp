// SPDX-License-Identifier: BSD-3-Clause
// The lower port: what channels and one-sided operations stand on. Sends to the peer, payloads,
// what is owed, deadlines. By the thread that drives the worker.
#ifndef NTBMSG_PORT_PORT_HPP
#define NTBMSG_PORT_PORT_HPP

#include "port/worker.hpp"

namespace ntbmsg
{

/// Sends one message of the library. @param payload  taken over when 0 is returned; NULL: no bytes
/// @return 0; -EAGAIN no room or no mbuf: nothing was taken
int send_message(Worker &w, uint32_t word, uint8_t op, uint32_t argument, rte_mbuf *payload);
inline int send_op(Worker &w, Channel &c, uint8_t op, uint32_t argument, rte_mbuf *payload)
{
    return send_message(w, c.tx_word, op, argument, payload);
}
/// Sends a copy of @p bytes, at most 128. @return as send_message()
int send_copy(Worker &w, uint32_t word, uint8_t op, uint32_t argument, const void *from,
              uint32_t bytes);
/// Copies what the peer sent, once. @return false: it is longer than @p room
bool copy_payload(const rte_mbuf *m, void *to, uint32_t room);

/// Adds to what the channel owes the peer.
void owe(Channel &c, uint32_t bits);
/// Notes an answer for a slot of the peer that has no channel here.
void add_reply(Worker &w, uint8_t op, uint32_t word, uint32_t reason);
/// Sets the deadline of a channel.
void set_deadline(Channel &c, uint64_t from_now_ms);
/// The next chores look at the clock.
void check_deadlines_soon(Worker &w);

/// Counts messages that were freed unread.
inline void drop(Worker &w, uint64_t messages)
{
    w.rx_dropped.add(messages);
}
/// Frees messages unread.
void free_unread(Worker &w, rte_mbuf **mbufs, unsigned n);
/// What messages that came use of a channel's credit.
Credit credit_of(const Worker &w, rte_mbuf *const *mbufs, unsigned n);

} // namespace ntbmsg

#endif
