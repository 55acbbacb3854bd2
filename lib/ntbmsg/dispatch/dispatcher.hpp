// SPDX-License-Identifier: BSD-3-Clause
// The dispatcher: drives a worker. What is owed goes out, what came goes to its channel, the loss
// of the peer is noticed. By the thread that drives the worker.
#ifndef NTBMSG_DISPATCH_DISPATCHER_HPP
#define NTBMSG_DISPATCH_DISPATCHER_HPP

#include <rte_branch_prediction.h>

#include "port/worker.hpp"

namespace ntbmsg
{

/// One turn of the engine. @return messages handled
unsigned poll(Worker &w);
/// The connection has changed while a burst was taken: ends the channels.
/// @return messages of the burst that may be of the new one, moved to its front
unsigned change_connection(Worker &w, rte_mbuf **mbufs, Meta *meta, unsigned n);
/// Sends what is owed, looks after time; nothing where the connection has changed.
void do_chores(Worker &w);
/// Passes a burst to its channels.
void sort(Worker &w, rte_mbuf **mbufs, const Meta *meta, unsigned n);

/// Ends the channels if their connection is gone.
inline void notice_loss(Worker &w)
{
    if (connection_changed(w))
        change_connection(w, nullptr, nullptr, 0);
}

/// Takes a burst, only of the present connection. @return messages
inline unsigned take_burst(Worker &w, rte_mbuf **mbufs, Meta *meta, unsigned n)
{
    if (unlikely(w.chores != 0)) {
        do_chores(w);
        if (unlikely(w.reply_count > replies_max - burst_max) && !connection_changed(w))
            return 0;
    }
    const int got = w.burst.rx(w.burst.rx_queue, mbufs, meta, static_cast<uint16_t>(n));
    const unsigned taken = got > 0 ? static_cast<unsigned>(got) : 0;
    return connection_changed(w) ? change_connection(w, mbufs, meta, taken) : taken;
}

} // namespace ntbmsg

#endif
