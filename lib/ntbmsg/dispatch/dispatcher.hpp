// SPDX-License-Identifier: BSD-3-Clause
// The dispatcher drives a worker: sends owed control messages, passes received messages to their
// channels, and notices the loss of the peer. Called by the thread that drives the worker.
#ifndef NTBMSG_DISPATCH_DISPATCHER_HPP
#define NTBMSG_DISPATCH_DISPATCHER_HPP

#include <rte_branch_prediction.h>

#include "channel/dedicated_worker.hpp"
#include "transport/worker.hpp"

namespace ntbmsg
{

/// Passes what came over the lost connection to its channels, then ends them.
/// @return messages of the burst that may belong to a new connection, moved to its front
unsigned change_connection(Worker &w, rte_mbuf **mbufs, Meta *meta, unsigned n);
/// Sends owed control messages and checks deadlines; nothing if the connection has changed.
void do_chores(Worker &w);
/// Passes a burst to its channels.
void sort(Worker &w, rte_mbuf **mbufs, const Meta *meta, unsigned n);

/// Ends the channels if their connection was lost.
inline void notice_loss(Worker &w)
{
    if (connection_changed(w))
        change_connection(w, nullptr, nullptr, 0);
}

/// Receives a burst of the present connection. @return messages
inline unsigned take_burst(Worker &w, rte_mbuf **mbufs, Meta *meta, unsigned n)
{
    if (unlikely(w.chores != 0)) {
        do_chores(w);
        if (unlikely(w.reply_count > replies_max - burst_max) && !connection_changed(w))
            return 0;
    }
    const int got = w.burst.rx(w.burst.rx_queue, mbufs, meta, static_cast<uint16_t>(n));
    if (connection_changed(w))
        return change_connection(w, mbufs, meta, got > 0 ? static_cast<unsigned>(got) : 0);
    return got > 0 ? static_cast<unsigned>(got) : 0;
}

/// One poll of a worker. Most find nothing. @return messages received
[[gnu::always_inline]] inline unsigned poll(Worker &w)
{
    rte_mbuf *mbufs[burst_max];
    Meta meta[burst_max];
    const unsigned n = take_burst(w, mbufs, meta, burst_max);
    if (n != 0)
        sort(w, mbufs, meta, n);
    if (unlikely(w.dedicated))
        serve(w);
    return n;
}

} // namespace ntbmsg

#endif
