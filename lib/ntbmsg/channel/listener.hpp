// SPDX-License-Identifier: BSD-3-Clause
// Listeners of the process, and the connection requests that wait for them.
#ifndef NTBMSG_CHANNEL_LISTENER_HPP
#define NTBMSG_CHANNEL_LISTENER_HPP

#include "transport/worker.hpp"

namespace ntbmsg
{

// By the thread that drives the worker.

/// Handles a CONNECT; the caller keeps the mbuf.
void on_connect(Worker &w, uint32_t port, const rte_mbuf *m);
/// Drops a request. @return false: it was answered in the meantime
bool withdraw(Channel &c);
/// Rejects requests whose listener was closed.
void reject_orphans(Worker &w);

// By the thread that answers a request, with the worker's lock held.

/// The channel of @p request, if it is not answered yet. @return NULL: none
Channel *find_request(const ntbmsg_request *request);
/// Opens an accepted channel.
void open(Channel &c);
/// Rejects a request; REJECT is still to be sent.
void reject(Channel &c, uint32_t reason);
/// If the worker is dedicated, has its thread send the answer. Under the lock, so that the request
/// cannot expire between decision and answer.
void queue_answer(Channel &c);

/// Sends an answer; a REJECT releases the slot. By the thread that drives the worker.
void send_answer(Channel &c, uint32_t owed);

} // namespace ntbmsg

#endif
