// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations of a channel: requester and responder together.
#ifndef NTBMSG_RMA_ONE_SIDED_HPP
#define NTBMSG_RMA_ONE_SIDED_HPP

#include "transport/worker.hpp"

namespace ntbmsg
{

/// Takes a message of the peer; the caller keeps the mbuf. @return false: it violates the protocol
bool one_sided_receive(ntbmsg_worker &worker, ntbmsg_channel &channel, uint32_t op,
                       uint32_t argument, const rte_mbuf *m);
/// Sends what can be sent. @return false: something is left for a later poll
bool one_sided_flush(ntbmsg_worker &worker, ntbmsg_channel &channel);
/// After the channel's end: completes outstanding operations with @p status, drops answers.
void one_sided_end(ntbmsg_channel &channel, int status);
/// Continues with the channels in the list `operating`.
void one_sided_chores(ntbmsg_worker &worker);
/// Does what can be done now, and leaves the rest to later polls.
void one_sided_continue(ntbmsg_channel &channel);
/// Operations were posted: sends them, or asks the worker's thread to. By the posting thread.
void one_sided_posted(ntbmsg_channel &channel);
/// Sends operations that another thread posted.
void one_sided_serve_post(ntbmsg_channel &channel);
/// Whether no operation is outstanding and none unanswered, so that CLOSE may be sent.
bool one_sided_idle(const ntbmsg_channel &channel);
/// Frees requester and responder. No operation is outstanding.
void one_sided_free(ntbmsg_channel &channel);

/// Sends CLOSE now, or once no operation is outstanding.
void close_when_idle(Channel &c);
/// After the handle's close: outstanding operations complete with -ECANCELED, later ones not at
/// all.
void leave_cq(Channel &c);
/// Why nothing can be posted. By the posting thread. @return 0: it can
int post_error(const Channel &c);

} // namespace ntbmsg

#endif
