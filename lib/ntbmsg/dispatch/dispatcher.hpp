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
/// What comes after chores.
enum class AfterChores { receive, receive_while_credit_waits, nothing };
/// The same before a burst is received; credit of few channels may wait for that of others.
/// @return nothing: there is no room for more replies
AfterChores do_chores_before(Worker &w);
/// Receives a burst after that. @param rx  asks the driver for it. @param found  whether there was
/// anything, by what that returned. @return that, or 0
template <class Rx, class Found>
int receive_after_chores(Worker &w, Rx rx, Found found)
{
    const AfterChores after = do_chores_before(w);
    if (unlikely(after == AfterChores::nothing))
        return 0;
    const int got = rx();
    if (after == AfterChores::receive_while_credit_waits)
        w.credit_polls = found(got) ? w.credit_polls + 1 : credit_polls_max;
    return got;
}
template <class Rx>
int receive_after_chores(Worker &w, Rx rx)
{
    return receive_after_chores(w, rx, [](int got) { return got > 0; });
}
/// Passes a burst to its channels.
void sort(Worker &w, rte_mbuf **mbufs, const Meta *meta, unsigned n);

/// Ends the channels if their connection was lost.
inline void notice_loss(Worker &w)
{
    if (connection_changed(w))
        change_connection(w, nullptr, nullptr, 0);
}

/// Whether chores come before a burst is received.
enum class Chores { before, done };
/// Receives a burst of the present connection. @return messages
inline unsigned take_burst(Worker &w, rte_mbuf **mbufs, Meta *meta, unsigned n, Chores chores)
{
    const auto rx = [&] {
        return w.burst.rx(w.burst.rx_queue, mbufs, meta, static_cast<uint16_t>(n));
    };
    const int got =
        likely(w.chores == 0) || chores == Chores::done ? rx() : receive_after_chores(w, rx);
    if (unlikely(connection_changed(w)))
        return change_connection(w, mbufs, meta, got > 0 ? static_cast<unsigned>(got) : 0);
    return likely(got > 0) ? static_cast<unsigned>(got) : 0;
}

/// What a poll receives.
struct Found {
    rte_mbuf *mbufs[burst_max];
    Meta meta[burst_max];
};
/// Passes what was found to its channels, and ends them if their connection has. @param got  what
/// the driver returned. @return messages of the present connection
unsigned take_in(Worker &w, Found &found, int got);

/// Asks the driver for a burst; the worker has no chores. @return what it returned
[[gnu::always_inline]] inline int find(Worker &w, Found &found)
{
    return w.burst.rx(w.burst.rx_queue, found.mbufs, found.meta, burst_max);
}
/// Whether take_in() has nothing to do. Most polls find nothing.
inline bool found_nothing(const Worker &w, int got)
{
    return likely(got <= 0) && !connection_changed(w);
}

/// Asks the driver for short messages of whichever channel the next one is for. No run is held.
/// @return how many; -EAGAIN: find() has to ask
[[gnu::always_inline]] inline int find_run(Worker &w)
{
    return w.flow_calls->rx_next(w.burst.rx_queue, w.held.mbufs, &w.held.flow, burst_max);
}
/// The channel that a header word of the peer names. @return NULL: none, or not known to the peer
inline Channel *find_channel(const Worker &w, uint32_t word)
{
    Channel *c = w.slots.find(word);
    return c != nullptr && c->begun && state_of(*c) != state_requested ? c : nullptr;
}
/// The channel of what find_run() has found, if that can be held for it. @return NULL: it cannot
[[gnu::always_inline]] inline Channel *can_hold(const Worker &w, unsigned n)
{
    Channel *c = w.hello_seen ? find_channel(w, w.held.flow.low) : nullptr;
    const bool can = c != nullptr && c->handle.load(std::memory_order_relaxed) &&
                     c->parked.first == nullptr && n <= c->rx.left.messages;
    return likely(can) ? c : nullptr;
}
/// Holds what find_run() has found until its channel, for which it can_hold(), receives it, or the
/// next poll.
[[gnu::always_inline]] inline void hold(Worker &w, Channel &c, unsigned n)
{
    HeldRun &h = w.held;
    c.rx.left.messages -= n;
    c.parked = {h.mbufs[0], nullptr};
    h.of = &c.parked;
    h.next = 0;
    h.end = n;
    w.chores |= chore_held;
}
/// Delivers what find_run() has found, held or not.
void deliver_run(Worker &w, unsigned n);

/// Receives for the channels of a worker. @return messages received
[[gnu::always_inline]] inline unsigned receive(Worker &w)
{
    Found found;
    const auto rx = [&] { return find(w, found); };
    const int got = likely(w.chores == 0) ? rx() : receive_after_chores(w, rx);
    return found_nothing(w, got) ? 0 : take_in(w, found, got);
}

/// One poll of a worker. @return messages received
[[gnu::always_inline]] inline unsigned poll(Worker &w)
{
    const unsigned n = receive(w);
    if (unlikely(w.dedicated))
        serve(w);
    return n;
}

} // namespace ntbmsg

#endif
