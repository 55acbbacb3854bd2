// SPDX-License-Identifier: BSD-3-Clause
// Ports of the process, and the requests that wait for them.
#ifndef NTBMSG_CHANNEL_LISTENER_HPP
#define NTBMSG_CHANNEL_LISTENER_HPP

#include "port/worker.hpp"

namespace ntbmsg
{

// By the thread that drives the worker.

/// The peer asks for a channel. The mbuf stays the caller's.
void on_connect(Worker &w, uint32_t port, const rte_mbuf *m);
/// Forgets a request. @return false: it was answered meanwhile
bool withdraw(Channel &c);
/// Rejects requests whose listener was closed.
void reject_orphans(Worker &w);

// For who answers a request, with the worker's lock held.

/// The request that @p request was told of, still to be answered. @return NULL: there is none
Channel *find_request(const ntbmsg_request *request);
/// Accepted: the peer may send as soon as it knows.
void open(Channel &c);
/// It will be answered with REJECT.
void reject(Channel &c, uint32_t reason);
/// An answer was given: so that it is not lost in between.
void queue_answer(Channel &c);

/// Sends an answer: the slot is free after a REJECT. By the thread that drives the worker.
void send_answer(Channel &c, uint32_t owed);

} // namespace ntbmsg

#endif
