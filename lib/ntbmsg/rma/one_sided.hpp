// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations of a channel: both halves.
#ifndef NTBMSG_RMA_ONE_SIDED_HPP
#define NTBMSG_RMA_ONE_SIDED_HPP

#include "port/worker.hpp"

namespace ntbmsg
{

/// Takes a message of the peer; the mbuf stays the caller's. @return false: it broke the rules
bool one_sided_receive(ntbmsg_worker &worker, ntbmsg_channel &channel, uint32_t op,
                       uint32_t argument, const rte_mbuf *m);
/// Sends what can be sent. @return false: something is left that no message of the peer brings back
bool one_sided_flush(ntbmsg_worker &worker, ntbmsg_channel &channel);
/// The channel has ended: all that is under way completes with @p status, nothing is owed any more.
void one_sided_end(ntbmsg_channel &channel, int status);
/// Goes on with the channels that could not before.
void one_sided_chores(ntbmsg_worker &worker);
/// Does what can be done now; the rest is left to the next polls.
void one_sided_continue(ntbmsg_channel &channel);
/// Something was posted: it goes at once, or with the next polls. By who posts.
void one_sided_posted(ntbmsg_channel &channel);
/// Another thread has posted.
void one_sided_serve_post(ntbmsg_channel &channel);
/// Nothing is under way and nothing owed: CLOSE may go.
bool one_sided_idle(const ntbmsg_channel &channel);
/// Frees what was made. Nothing is under way.
void one_sided_free(ntbmsg_channel &channel);

/// CLOSE goes now, or when no operation is under way any more.
void close_when_idle(Channel &c);
/// The handle is closed: what is under way completes with -ECANCELED, and nothing after it.
void leave_cq(Channel &c);
/// Why nothing can be posted. By who posts. @return 0: it can
int post_error(const Channel &c);

} // namespace ntbmsg

#endif
