// SPDX-License-Identifier: BSD-3-Clause
// Public calls: bursts of a channel. Run to completion, a burst of the channel is a burst of one
// flow of the queue pair, for which the driver compares.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include <rte_mbuf.h>

#include "base/trace_points.h"
#include "channel/dedicated_callers.hpp"
#include "channel/in_place.hpp"
#include "channel/lending.hpp"
#include "channel/receive.hpp"
#include "channel/send.hpp"
#include "dispatch/dispatcher.hpp"
#include "transport/parked.hpp"
#include "transport/poll_set.hpp"
#include "transport/sending.hpp"
#include "wire/protocol.hpp"

using namespace ntbmsg;

namespace
{

/// Why nothing more can be sent. @return 0: back-pressure
int why_not(Channel &c, const rte_mbuf *m)
{
    Worker &w = *c.worker;
    notice_loss(w);
    if (const int rc = send_error(state_of(c)); rc != 0)
        return rc;
    if (m == nullptr)
        return -EINVAL;
    return m->pkt_len > c.longest && c.tx.granted.messages != 0 ? -EMSGSIZE : 0;
}

/// Handles a burst that was cut short. @return the result of the call
__rte_noinline int stop_short(Channel &c, rte_mbuf *const *mbufs, const SendResult &result)
{
    if (result.sent == 0) {
        if (result.error == -EINVAL || result.error == -EMSGSIZE)
            return result.error;
        if (const int rc = why_not(c, mbufs[0]); rc != 0)
            return rc;
    }
    c.tx_full.add(1);
    c.want_write = true;
    if (!result.ring_full)
        ask_for_more(c);
    else if (c.set != nullptr)
        c.worker->stalled.push(c);
    return static_cast<int>(result.sent);
}

/// Sorts a burst that is not entirely for @p c. @return messages for it, at the front of @p mbufs
unsigned sort_for(Channel &c, rte_mbuf **mbufs, Meta *meta, unsigned n)
{
    Worker &w = *c.worker;
    unsigned own = 0;
    for (unsigned i = 0; i < n;) {
        const bool mine = protocol::header_word(meta[i].data) == c.rx_word &&
                          meta[i].flags == protocol::op_data && c.parked.first == nullptr;
        if (mine && c.rx.use(credit_of(w, mbufs + i, 1))) {
            mbufs[own] = mbufs[i];
            meta[own++] = meta[i++];
            continue;
        }
        const unsigned first = i++;
        while (i < n && protocol::header_word(meta[i].data) != c.rx_word)
            ++i;
        sort(w, mbufs + first, meta + first, i - first);
    }
    return own;
}

/// What is the channel's of such a burst.
__rte_noinline Received take_sorted(Channel &c, rte_mbuf **mbufs, Meta *meta, uint32_t *imm,
                                    unsigned n)
{
    const unsigned own = sort_for(c, mbufs, meta, n);
    for (unsigned i = 0; i < own && imm != nullptr; ++i)
        imm[i] = protocol::header_argument(meta[i].data);
    return received_of(*c.worker, mbufs, own);
}

/// Takes what is the channel's of a burst from the queue pair. One pass over it if all of it is
/// messages of this channel, within its credit.
[[gnu::always_inline]] inline Received take_own(Channel &c, rte_mbuf **mbufs, Meta *meta,
                                                uint32_t *imm, unsigned n)
{
    const uint32_t word = c.rx_word;
    const uint32_t inline_max = c.worker->peer_inline_max.load(std::memory_order_relaxed);
    uint64_t bytes = 0;
    uint32_t other = 0, buffers = 0;
    for (unsigned i = 0; i < n; ++i) {
        other |= (protocol::header_word(meta[i].data) ^ word) | meta[i].flags;
        buffers += buffers_counted(inline_max, mbufs[i]);
        bytes += mbufs[i]->pkt_len;
        if (imm != nullptr)
            imm[i] = protocol::header_argument(meta[i].data);
    }
    if (unlikely(other != 0 || !c.rx.use({n, buffers})))
        return take_sorted(c, mbufs, meta, imm, n);
    return {n, buffers, bytes};
}

/// @return @p messages
__rte_noinline int owe_credit_for(Channel &c, int messages)
{
    if (may_receive(state_of(c)))
        owe(c, owe_credit);
    return messages;
}

/// Counts delivered messages and returns credit when it is due. @return how many they are
[[gnu::always_inline]] inline int account(Channel &c, const Received &r)
{
    c.rx_messages.add(r.messages);
    c.rx_bytes.add(r.bytes);
    c.rx.received({r.messages, r.buffers});
    const auto messages = static_cast<int>(r.messages);
    return c.rx.due() ? owe_credit_for(c, messages) : messages;
}

[[gnu::always_inline]] inline int traced_receive(Channel &c, uint16_t asked, const Received &r)
{
    ntbmsg_trace_channel_receive(&c, asked, static_cast<int>(r.messages));
    if (unlikely(r.messages == 0))
        return asked != 0 ? receive_end(c) : 0;
    return account(c, r);
}

/// Accounts short messages, of which none has a receive buffer: one that is owed is known to be.
/// They have used their credit.
[[gnu::always_inline]] inline int traced_short(Channel &c, uint16_t asked, int messages,
                                               uint64_t bytes)
{
    const auto n = static_cast<unsigned>(messages);
    ntbmsg_trace_channel_receive(&c, asked, messages);
    c.rx_messages.add(n);
    c.rx_bytes.add(bytes);
    c.rx.owed.messages += n;
    return unlikely(c.rx.owed.messages >= c.rx.due_at) ? owe_credit_for(c, messages) : messages;
}
/// The same, as they use it.
[[gnu::always_inline]] inline int traced_run(Channel &c, uint16_t asked, int messages,
                                             uint64_t bytes)
{
    c.rx.left.messages -= static_cast<unsigned>(messages);
    return traced_short(c, asked, messages, bytes);
}

/// A part of a run that a poll set has received.
__rte_noinline int receive_part(Channel &c, rte_mbuf **mbufs, uint32_t *imm, uint16_t n)
{
    Worker &w = *c.worker;
    HeldRun &h = w.held;
    std::memcpy(mbufs, h.mbufs + h.next, n * sizeof(*mbufs));
    if (imm != nullptr)
        std::memcpy(imm, h.words + h.next, n * sizeof(*imm));
    const Received r = received_of(w, mbufs, n);
    h.next += n;
    h.flow.bytes -= r.bytes;
    c.parked.first = h.mbufs[h.next];
    report(c, NTBMSG_READABLE);
    return traced_receive(c, n, r);
}

/// Messages of a run that a poll set has received: usually all.
[[gnu::always_inline]] inline int receive_held(Channel &c, rte_mbuf **mbufs, uint32_t *imm,
                                               uint16_t n)
{
    Worker &w = *c.worker;
    HeldRun &h = w.held;
    const unsigned got = h.end - h.next;
    if (unlikely(n < got))
        return receive_part(c, mbufs, imm, n);
    h.of = nullptr;
    c.parked.first = nullptr;
    w.chores &= ~chore_held;
    std::memcpy(mbufs, h.mbufs + h.next, got * sizeof(*mbufs));
    if (imm != nullptr)
        std::memcpy(imm, h.words + h.next, got * sizeof(*imm));
    return traced_short(c, n, static_cast<int>(got), h.flow.bytes);
}

/// Messages that another call took from the queue pair.
__rte_noinline int receive_parked(Channel &c, rte_mbuf **mbufs, uint32_t *imm, uint16_t n)
{
    if (likely(c.worker->held.of == &c.parked))
        return receive_held(c, mbufs, imm, n);
    const Received got = received_of(*c.worker, mbufs, unpark(c.parked, mbufs, imm, n));
    if (c.parked.first != nullptr)
        report(c, NTBMSG_READABLE);
    return traced_receive(c, n, got);
}

// A lone message costs the time of the instructions: it has a way without loops. The result stays
// in registers: a struct returned from here is put together in memory and loaded at once as one
// word, which waits until every store to the window before it has been done.
/// @param done  of the burst, sent already
__rte_noinline int send_others(Channel &c, rte_mbuf **mbufs, const uint32_t *imm, unsigned n,
                               unsigned done)
{
    SendResult result = send(c, mbufs + done, imm, n - done);
    result.sent += done;
    return likely(result.sent == n) ? static_cast<int>(n) : stop_short(c, mbufs, result);
}
/// Whether a message can go without looking for receive buffers.
[[gnu::always_inline]] inline bool is_short(const Channel &c, const rte_mbuf *m)
{
    return c.tx.now.messages != 0 && m != nullptr && m->pkt_len <= c.short_max;
}
/// Outside of send_many(), which then keeps in registers only what it needs.
__rte_noinline int send_run(Channel &c, rte_mbuf **mbufs, unsigned n)
{
    const unsigned done = send_alike(c, mbufs, n);
    return likely(done == n) ? static_cast<int>(n) : send_others(c, mbufs, nullptr, n, done);
}
[[gnu::always_inline]] inline int send_many(Channel &c, rte_mbuf **mbufs, const uint32_t *imm,
                                            unsigned n)
{
    const bool alike = imm == nullptr && n != 0 && is_short(c, mbufs[0]);
    return likely(alike) ? send_run(c, mbufs, n) : send_others(c, mbufs, imm, n, 0);
}
/// Sends one for which there is credit. @param buffers  of the peer that it uses
[[gnu::always_inline]] inline int send_one(Channel &c, rte_mbuf **mbufs, const uint32_t *imm,
                                           uint32_t buffers)
{
    const Worker &w = *c.worker;
    const uint32_t length = mbufs[0]->pkt_len; // freed by the driver
    const Meta meta = {protocol::header(c.tx_word, imm != nullptr ? *imm : 0), 0, 0};
    const int taken = w.burst.tx(w.burst.tx_queue, mbufs, &meta, 1);
    if (unlikely(taken < 1))
        return stop_short(c, mbufs, {0, true, taken});
    c.tx.sent({1, buffers});
    c.tx_messages.add(1);
    c.tx_bytes.add(length);
    return 1;
}
/// A message that is sent alone and uses receive buffers, in one step if credit allows. Its
/// receiver waits for it.
__rte_noinline int send_long(Channel &c, rte_mbuf **mbufs, const uint32_t *imm)
{
    const rte_mbuf *m = mbufs[0];
    if (unlikely(m == nullptr || c.tx.now.messages == 0 || m->pkt_len > c.longest))
        return send_others(c, mbufs, imm, 1, 0);
    const uint32_t need = c.worker->peer_buffers.of(m->pkt_len);
    if (unlikely(need > c.tx.now.buffers))
        return send_others(c, mbufs, imm, 1, 0);
    return send_one(c, mbufs, imm, need);
}
int received_nothing(Channel &c, rte_mbuf **mbufs, uint32_t *imm, uint16_t asked)
{
    const int end = traced_receive(c, asked, {});
    // The end of the connection may have brought the last messages along.
    return unlikely(end != 0) && c.parked.first != nullptr ? receive_parked(c, mbufs, imm, asked)
                                                           : end;
}

/// What the channel gets where messages of others, or others than short ones, may lie in between.
__rte_noinline int receive_mixed(Channel &c, rte_mbuf **mbufs, uint32_t *imm, uint16_t n,
                                 Chores chores)
{
    Meta meta[burst_max];
    const unsigned got =
        take_burst(*c.worker, mbufs, meta, std::min<unsigned>(n, burst_max), chores);
    if (got == 0)
        return received_nothing(c, mbufs, imm, n);
    return traced_receive(
        c, n, got == 1 ? take_own(c, mbufs, meta, imm, 1) : take_own(c, mbufs, meta, imm, got));
}

/// Where receive_some() has found none.
__rte_noinline int receive_no_run(Channel &c, rte_mbuf **mbufs, uint16_t n)
{
    Worker &w = *c.worker;
    uint32_t *imm = w.rx_flow.high;
    return w.rx_flow.other != 0 || connection_changed(w)
               ? receive_mixed(c, mbufs, imm, n, Chores::done)
               : received_nothing(c, mbufs, imm, n);
}

/// Asks the driver for a run. @param most  at least 1
[[gnu::always_inline]] inline int find_run_of(Channel &c, rte_mbuf **mbufs, uint32_t *imm,
                                              unsigned most)
{
    Worker &w = *c.worker;
    w.rx_flow.low = c.rx_word;
    w.rx_flow.high = imm;
    static_assert(sizeof(*imm) == sizeof(*w.rx_flow.high)); // the high half is the argument
    return w.flow_calls->rx(w.burst.rx_queue, mbufs, &w.rx_flow, static_cast<uint16_t>(most));
}

/// receive_some() where chores come first, or credit is short.
__rte_noinline int receive_some_after(Channel &c, rte_mbuf **mbufs, uint32_t *imm, uint16_t n)
{
    Worker &w = *c.worker;
    const uint32_t most = std::min<uint32_t>(n, c.rx.left.messages);
    if (unlikely(most == 0))
        return receive_mixed(c, mbufs, imm, n, Chores::before);
    const auto rx = [&] { return find_run_of(c, mbufs, imm, most); };
    const auto found = [&](int got) { return got > 0 || w.rx_flow.other != 0; };
    w.rx_flow.high = imm; // receive_no_run() reads it, also where nothing was asked for
    w.rx_flow.other = 0;
    const int got = w.chores == 0 ? rx() : receive_after_chores(w, rx, found);
    return likely(got > 0) ? traced_run(c, n, got, w.rx_flow.bytes) : receive_no_run(c, mbufs, n);
}

/// Short messages of the channel, up to the first that is another: the driver looks at them, so
/// that none is looked at here. They are of the connection that the channel belongs to, even if
/// that has been lost meanwhile: of a queue that was opened again a flow takes nothing, as its gate
/// has a new word, and what is received then is another burst, which looks for that.
[[gnu::always_inline]] inline int receive_some(Channel &c, rte_mbuf **mbufs, uint32_t *imm,
                                               uint16_t n)
{
    if (unlikely(c.worker->chores != 0 || c.rx.left.messages < n || n == 0))
        return receive_some_after(c, mbufs, imm, n);
    const int got = find_run_of(c, mbufs, imm, n);
    return likely(got > 0) ? traced_run(c, n, got, c.worker->rx_flow.bytes)
                           : receive_no_run(c, mbufs, n);
}

/// What a call that asks for one message is given and gets. In memory, so that such a call keeps no
/// registers for what only those that follow need.
struct Lone {
    Meta meta;
    rte_mbuf **mbufs;
    uint32_t *imm;
};

__rte_noinline int receive_other(Channel &c, Lone &lone)
{
    return traced_receive(c, 1, take_own(c, lone.mbufs, &lone.meta, lone.imm, 1));
}

/// @param got  what the driver returned for one message, over a connection that has changed
__rte_noinline int receive_across(Channel &c, Lone &lone, int got)
{
    const unsigned left = change_connection(*c.worker, lone.mbufs, &lone.meta, got > 0 ? 1 : 0);
    return left == 0 ? received_nothing(c, lone.mbufs, lone.imm, 1) : receive_other(c, lone);
}

/// As received_nothing() where the connection has ended.
__rte_noinline int receive_last(Channel &c, Lone &lone, int end)
{
    return c.parked.first != nullptr ? receive_parked(c, lone.mbufs, lone.imm, 1) : end;
}

/// A call that asks for one message costs the time of the instructions here: one that is the
/// channel's, within its credit, and took no receive buffer, is taken without a loop, and what else
/// may have to be done is left to others.
[[gnu::always_inline]] inline int receive_one(Channel &c, rte_mbuf **mbufs, uint32_t *imm)
{
    Worker &w = *c.worker;
    if (unlikely(w.chores != 0))
        return receive_mixed(c, mbufs, imm, 1, Chores::before);
    Lone lone;
    lone.mbufs = mbufs;
    lone.imm = imm;
    const int got = w.burst.rx(w.burst.rx_queue, mbufs, &lone.meta, 1);
    if (unlikely(connection_changed(w)))
        return receive_across(c, lone, got);
    if (got < 1) {
        const int end = traced_receive(c, 1, {});
        return likely(end == 0) ? 0 : receive_last(c, lone, end);
    }
    const uint32_t other = (protocol::header_word(lone.meta.data) ^ c.rx_word) | lone.meta.flags;
    const uint32_t bytes = lone.mbufs[0]->pkt_len;
    if (unlikely(other != 0 || c.rx.left.messages == 0 ||
                 bytes > w.peer_inline_max.load(std::memory_order_relaxed)))
        return receive_other(c, lone);
    if (lone.imm != nullptr)
        *lone.imm = protocol::header_argument(lone.meta.data);
    return traced_run(c, 1, 1, bytes);
}

/// A reservation that found nothing. @return as the call does
int reserved_nothing(Channel &c)
{
    Worker &w = *c.worker;
    notice_loss(w);
    if (const int rc = send_error(state_of(c)); rc != 0)
        return rc;
    c.tx_full.add(1);
    c.want_write = true;
    if (c.tx.now.messages == 0 || c.tx.now.buffers == 0)
        ask_for_more(c);
    else if (c.set != nullptr)
        w.stalled.push(c); // the peer has no room
    return 0;
}

[[gnu::always_inline]] inline int traced_send(const Channel &c, uint16_t asked, int result)
{
    ntbmsg_trace_channel_send(&c, asked, result);
    return result;
}

/// ntbmsg_channel_send_burst() of one message, or of any other number. Each is a function of its
/// own: it saves the registers that it needs, not those of the other.
template <bool One>
[[gnu::always_inline]] inline int send_burst(ntbmsg_channel *channel, rte_mbuf **mbufs,
                                             const uint32_t *imm, uint16_t n)
{
    Channel *found = channel_of(channel, "ntbmsg_channel_send_burst");
    if (unlikely(found == nullptr || mbufs == nullptr))
        return -EINVAL;
    Channel &c = *found;
    const Using use(watch_of_user(c), "channel", "ntbmsg_channel_send_burst");
    if (unlikely(c.proxy != nullptr))
        return traced_send(c, n, send_shared(c, mbufs, imm, n));
    if constexpr (!One)
        return traced_send(c, n, send_many(c, mbufs, imm, n));
    return traced_send(c, 1,
                       likely(is_short(c, mbufs[0])) ? send_one(c, mbufs, imm, 0)
                                                     : send_long(c, mbufs, imm));
}
__rte_noinline int send_burst_of_one(ntbmsg_channel *channel, rte_mbuf **mbufs, const uint32_t *imm)
{
    return send_burst<true>(channel, mbufs, imm, 1);
}
__rte_noinline int send_burst_of_many(ntbmsg_channel *channel, rte_mbuf **mbufs,
                                      const uint32_t *imm, uint16_t n)
{
    return send_burst<false>(channel, mbufs, imm, n);
}

/// As send_burst(), of ntbmsg_channel_recv_burst().
template <bool One>
[[gnu::always_inline]] inline int receive_burst(ntbmsg_channel *channel, rte_mbuf **mbufs,
                                                uint32_t *imm, uint16_t n)
{
    Channel *found = channel_of(channel, "ntbmsg_channel_recv_burst");
    if (unlikely(found == nullptr || mbufs == nullptr))
        return -EINVAL;
    Channel &c = *found;
    const Using use(watch_of_user(c), "channel", "ntbmsg_channel_recv_burst");
    if (unlikely(c.proxy != nullptr))
        return receive_shared(c, mbufs, imm, n);
    if (unlikely(c.parked.first != nullptr))
        return receive_parked(c, mbufs, imm, n);
    return One ? receive_one(c, mbufs, imm) : receive_some(c, mbufs, imm, n);
}
__rte_noinline int receive_burst_of_one(ntbmsg_channel *channel, rte_mbuf **mbufs, uint32_t *imm)
{
    return receive_burst<true>(channel, mbufs, imm, 1);
}
__rte_noinline int receive_burst_of_many(ntbmsg_channel *channel, rte_mbuf **mbufs, uint32_t *imm,
                                         uint16_t n)
{
    return receive_burst<false>(channel, mbufs, imm, n);
}

} // namespace

int ntbmsg_channel_send_burst(ntbmsg_channel *channel, rte_mbuf **mbufs, const uint32_t *imm,
                              uint16_t n)
{
    return n == 1 ? send_burst_of_one(channel, mbufs, imm)
                  : send_burst_of_many(channel, mbufs, imm, n);
}

int ntbmsg_channel_recv_burst(ntbmsg_channel *channel, rte_mbuf **mbufs, uint32_t *imm, uint16_t n)
{
    return n == 1 ? receive_burst_of_one(channel, mbufs, imm)
                  : receive_burst_of_many(channel, mbufs, imm, n);
}

int ntbmsg_channel_reserve(ntbmsg_channel *channel, ntbmsg_room *rooms, uint16_t n)
{
    Channel *found = channel_of(channel, __func__);
    if (unlikely(found == nullptr || rooms == nullptr))
        return -EINVAL;
    Channel &c = *found;
    const Using use(watch_of_user(c), "channel", __func__);
    if (unlikely(c.proxy != nullptr))
        return -ENOTSUP;
    notice_loss(*c.worker); // rooms of the next connection are not this channel's
    const int got = reserve_rooms(c, rooms, n);
    return likely(got > 0) || got == -EBUSY || n == 0 ? got : reserved_nothing(c);
}

int ntbmsg_channel_commit(ntbmsg_channel *channel, const uint32_t *lengths, const uint32_t *imm,
                          uint16_t n)
{
    Channel *found = channel_of(channel, __func__);
    if (unlikely(found == nullptr || lengths == nullptr))
        return -EINVAL;
    Channel &c = *found;
    const Using use(watch_of_user(c), "channel", __func__);
    if (unlikely(c.proxy != nullptr))
        return -ENOTSUP;
    notice_loss(*c.worker);
    if (const int rc = send_error(state_of(c)); unlikely(rc != 0)) {
        abort_rooms(c);
        return rc;
    }
    return traced_send(c, n, commit_rooms(c, lengths, imm, n));
}

int ntbmsg_channel_abort(ntbmsg_channel *channel)
{
    Channel *found = channel_of(channel, __func__);
    if (unlikely(found == nullptr))
        return -EINVAL;
    const Using use(watch_of_user(*found), "channel", __func__);
    if (found->proxy == nullptr)
        abort_rooms(*found);
    return 0;
}
