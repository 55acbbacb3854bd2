// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/dispatcher.hpp"

#include <algorithm>
#include <cstring>

#include <rte_mbuf.h>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "channel/control.hpp"
#include "channel/dedicated_worker.hpp"
#include "channel/ending.hpp"
#include "channel/lending.hpp"
#include "channel/listener.hpp"
#include "channel/owed.hpp"
#include "rma/one_sided.hpp"
#include "transport/delivery.hpp"
#include "transport/parked.hpp"
#include "transport/sending.hpp"
#include "wire/one_sided.hpp"

namespace ntbmsg
{

namespace
{

void send_hello(Worker &w)
{
    protocol::Hello hello{};
    hello.magic = protocol::hello_magic;
    hello.major = protocol::major;
    hello.minor = protocol::minor;
    hello.bytes = sizeof(hello);
    hello.channels = w.slots.count();
    hello.buf_bytes = w.own_buf_bytes;
    hello.inline_max = w.inline_max;
    hello.operations = protocol::requests_max;
    hello.features = protocol::feature_lending | protocol::feature_credits;
    if (send_copy(w, 0, protocol::op_hello, 0, &hello, sizeof(hello)) == 0)
        w.chores &= ~chore_hello;
}

void send_replies(Worker &w)
{
    unsigned sent = 0;
    for (; sent < w.reply_count; ++sent) {
        const Reply &n = w.replies[sent];
        if (send_message(w, n.word, n.op, n.reason, nullptr) != 0)
            break;
    }
    std::copy(w.replies + sent, w.replies + w.reply_count, w.replies);
    w.reply_count -= sent;
    if (w.reply_count == 0)
        w.chores &= ~chore_replies;
}

/// Acts on a deadline that has passed.
void time_out(Channel &c)
{
    Worker &w = *c.worker;
    w.timed.remove(c);
    switch (state_of(c)) {
    case state_requested:
        withdraw(c);
        break;
    case NTBMSG_CHANNEL_CONNECTING:
        end(c, NTBMSG_CHANNEL_TIMED_OUT, NTBMSG_REASON_NONE);
        break;
    default: // the handle is closed, and the peer does not close
        reset(c, static_cast<uint32_t>(NTBMSG_REASON_CLOSED));
    }
}

void check_deadlines(Worker &w)
{
    if (w.timed.empty()) {
        w.chores &= ~chore_timed;
        return;
    }
    if (++w.polls % polls_per_check != 0)
        return;
    const uint64_t now = clock_us();
    if (now < w.next_deadline_us)
        return;
    uint64_t next = UINT64_MAX;
    for (Channel *c = w.timed.first(); c != nullptr;) {
        Channel *after = TimedList::after(*c);
        if (c->deadline_us <= now)
            time_out(*c);
        else
            next = std::min(next, c->deadline_us);
        c = after;
    }
    w.next_deadline_us = next;
}

/// Ends a channel whose connection was lost.
void lose(Channel &c)
{
    if (state_of(c) == state_free)
        return;
    c.owed = 0;
    if (state_of(c) == state_requested && withdraw(c))
        return;
    const uint8_t state = state_of(c);
    if (state == NTBMSG_CHANNEL_CONNECTING && !c.begun)
        return; // another thread has just created it, for the next connection
    if (state == NTBMSG_CHANNEL_REJECTED)
        c.begun = false; // its REJECT is not sent
    if (is_over(c))
        maybe_free(c);
    else
        end(c, NTBMSG_CHANNEL_LOST, NTBMSG_REASON_NONE);
}

void lose_all(Worker &w)
{
    for (uint32_t i = 0; i < w.slots.count(); ++i)
        lose(w.slots[i]);
    w.reply_count = 0;
    w.hello_seen = false;
    w.lends = false;
    w.bundles = false;
    w.peer_leaves.store(false, std::memory_order_relaxed);
    w.refused.store(nullptr, std::memory_order_relaxed);
}

void on_hello(Worker &w, const rte_mbuf *m)
{
    protocol::Hello hello{};
    if (!copy_payload(m, &hello, sizeof(hello)) || m->pkt_len < sizeof(hello.magic)) {
        w.bad_peer.add(1);
        return;
    }
    if (w.hello_seen) {
        if (!w.hello_doubtful) {
            w.bad_peer.add(1);
            return;
        }
        lose_all(w); // the first HELLO was of the lost connection
        w.hello_doubtful = false;
    }
    const char *why = protocol::refusal(hello);
    rte_pmd_plx_ntb_link link{};
    rte_pmd_plx_ntb_link_get(w.dev_id, &link);
    const uint32_t longest = link.peer_max_message; // 0: lost again meanwhile
    if (why == nullptr && longest != 0 && longest < protocol::min_message)
        why = "the peer accepts no messages of 256 bytes, which workers need";
    const bool known = w.refused.exchange(why, std::memory_order_relaxed) != nullptr;
    if (why != nullptr) {
        if (!known) // logged once a peer
            NTBMSG_LOG(ERR, "device %u, worker %u: %s", w.dev_id, w.index, why);
        return;
    }
    w.peer_buffers.set(hello.buf_bytes);
    w.peer_inline_max.store(std::min(hello.inline_max, protocol::inline_limit),
                            std::memory_order_relaxed);
    w.rx_flow.longest = w.held.flow.longest = w.peer_inline_max.load(std::memory_order_relaxed);
    w.lends = (hello.features & protocol::feature_lending) != 0;
    w.bundles = (hello.features & protocol::feature_credits) != 0;
    w.peer_operations = std::clamp(hello.operations, 1U, protocol::requests_max);
    w.peer_max_message = std::max(longest, protocol::min_message);
    w.hello_seen = true;
}

/// Answers an ACCEPT for a channel that has ended with RESET.
void reset_late_accept(Worker &w, const rte_mbuf *m)
{
    protocol::OpeningMessage message{};
    if (!copy_payload(m, &message, sizeof(message)) || !is_valid(message, m->pkt_len)) {
        w.bad_peer.add(1);
        return;
    }
    const protocol::Opening &o = message.opening;
    add_reply(w, protocol::op_reset, protocol::slot_word(o.slot, o.generation),
              static_cast<uint32_t>(NTBMSG_REASON_CLOSED));
}

/// Whether a correct peer may have sent it before it knew of its channel's end.
bool may_be_late(uint32_t op, uint32_t word)
{
    const bool one_sided = op >= protocol::one_sided_first && op <= protocol::one_sided_last;
    return word != 0 && (op <= protocol::op_flush || is_lending(op) || one_sided);
}

/// Credit of several channels. Those that have ended may be among them.
void on_credits(Worker &w, uint32_t count, const rte_mbuf *m)
{
    protocol::ChannelCredit credits[protocol::credits_max];
    if (!w.bundles || count > protocol::credits_max || m->pkt_len != count * sizeof(*credits) ||
        !copy_payload(m, credits, sizeof(credits))) {
        w.bad_peer.add(1);
        return;
    }
    for (unsigned i = 0; i < count; ++i) {
        if (Channel *c = find_channel(w, credits[i].word); c != nullptr)
            on_credit(*c, credits[i].argument);
    }
}

/// Handles a message other than DATA; the caller keeps the mbuf.
void on_control(Worker &w, uint64_t header, uint32_t op, rte_mbuf *m)
{
    const uint32_t word = protocol::header_word(header);
    const uint32_t argument = protocol::header_argument(header);
    if (op == protocol::op_hello)
        return on_hello(w, m);
    if (op == protocol::op_connect)
        return on_connect(w, argument, m);
    if (op == protocol::op_leave && word == 0 && m->pkt_len == 0)
        return w.peer_leaves.store(true, std::memory_order_release);
    if (op == protocol::op_credits && word == 0)
        return on_credits(w, argument, m);
    Channel *c = find_channel(w, word);
    if (c == nullptr) {
        if (op == protocol::op_accept)
            reset_late_accept(w, m);
        else if (!may_be_late(op, word))
            w.bad_peer.add(1);
        else if (op == protocol::op_flush) // the channel was closed, and confirms nothing more
            add_reply(w, protocol::op_reset, argument, static_cast<uint32_t>(NTBMSG_REASON_CLOSED));
        return;
    }
    switch (op) {
    case protocol::op_accept:
        if (c->tx_word == 0 && has_ended(state_of(*c)))
            return reset_late_accept(w, m);
        return on_accept(*c, m);
    case protocol::op_reject:
        return on_reject(*c, argument, m);
    case protocol::op_credit:
        return m->pkt_len == 0 ? on_credit(*c, argument) : protocol_error(*c);
    case protocol::op_close:
        return on_close(*c, m);
    case protocol::op_reset:
        return on_reset(*c, argument, m);
    case protocol::op_flush:
        return on_flush(*c, m);
    default:
        if (is_lending(op) && w.lends) {
            if (on_lending(*c, op, argument, m))
                can_send_again(*c);
            return;
        }
        if (op < protocol::one_sided_first || op > protocol::one_sided_last ||
            !one_sided_receive(w, *c, op, argument, m))
            return protocol_error(*c);
    }
}

/// Copies a short message that came in a receive buffer, as the driver copies inline ones: no one
/// counts that buffer, so it must not wait for the application. @return the copy; @p m if there is
/// no mbuf for it
rte_mbuf *out_of_buffer(const Worker &w, rte_mbuf *m)
{
    rte_mbuf *copy = rte_pktmbuf_copy(m, w.rx_pool, 0, UINT32_MAX);
    if (copy == nullptr)
        return m;
    rte_pktmbuf_free(m);
    return copy;
}

/// Delivers consecutive DATA messages for one channel.
void deliver(Worker &w, rte_mbuf **mbufs, const Meta *meta, unsigned n)
{
    // What arrives before the HELLO belongs to a lost connection.
    Channel *c = w.hello_seen ? find_channel(w, protocol::header_word(meta[0].data)) : nullptr;
    bool taken = false;
    if (c != nullptr && c->handle.load(std::memory_order_relaxed)) {
        taken = c->rx.use(credit_of(w, mbufs, n));
        if (!taken)
            protocol_error(*c);
    } else if (c != nullptr) {
        reset(*c, static_cast<uint32_t>(NTBMSG_REASON_CLOSED));
    }
    if (unlikely(!taken)) {
        free_unread(w, mbufs, n);
        return;
    }
    for (unsigned i = 0; i < n; ++i) {
        if (unlikely(mbufs[i]->pool != w.rx_pool) &&
            mbufs[i]->pkt_len <= w.peer_inline_max.load(std::memory_order_relaxed))
            mbufs[i] = out_of_buffer(w, mbufs[i]);
    }
    link_held_of(w, c->parked);
    park(c->parked, mbufs, n, [=](unsigned i) { return protocol::header_argument(meta[i].data); });
    arrived(*c, n);
}

/// Delivers a run that cannot be held.
__rte_noinline void sort_run(Worker &w, unsigned n)
{
    HeldRun &h = w.held;
    Meta meta[burst_max];
    for (unsigned i = 0; i < n; ++i)
        meta[i] = {protocol::header(h.flow.low, h.words[i]), h.flow.flags, 0};
    deliver(w, h.mbufs, meta, n);
}

/// @return how many messages at the front of a burst are DATA for the same channel
unsigned run_of(const Meta *meta, unsigned n)
{
    unsigned run = 0;
    const uint32_t word = protocol::header_word(meta[0].data);
    while (run < n && meta[run].flags == protocol::op_data &&
           protocol::header_word(meta[run].data) == word)
        ++run;
    return run;
}

} // namespace

unsigned change_connection(Worker &w, rte_mbuf **mbufs, Meta *meta, unsigned n)
{
    const uint32_t epoch = w.losses->load(std::memory_order_acquire);
    const Meta *hello = std::find_if(
        meta, meta + n, [](const Meta &one) { return one.flags == protocol::op_hello; });
    const auto old = static_cast<unsigned>(hello - meta);
    // They came over the connection that has ended since: one of the next begins with HELLO.
    sort(w, mbufs, meta, old);
    lose_all(w);
    w.epoch.store(epoch, std::memory_order_release); // pairs with post_error()
    w.chores |= chore_hello;
    std::copy(mbufs + old, mbufs + n, mbufs);
    std::copy(meta + old, meta + n, meta);
    // The next HELLO may still be of the lost connection, if that had only just begun.
    w.hello_doubtful = true;
    return n - old;
}

void do_chores(Worker &w)
{
    if (connection_changed(w)) // the next poll ends the channels first
        return;
    if ((w.chores & chore_hello) != 0)
        send_hello(w);
    if ((w.chores & chore_hello) == 0) {
        if ((w.chores & chore_replies) != 0)
            send_replies(w);
        if ((w.chores & chore_owing) != 0) {
            w.credit_polls = 0;
            send_all_owed(w);
        }
    }
    if ((w.chores & chore_operations) != 0)
        one_sided_chores(w);
    if ((w.chores & chore_requests) != 0)
        reject_orphans(w);
    if ((w.chores & chore_timed) != 0)
        check_deadlines(w);
}

AfterChores do_chores_before(Worker &w)
{
    // While messages keep coming their senders are not waiting for the credit of these few.
    const bool waits = (w.chores & ~(chore_timed | chore_held)) == chore_owing &&
                       w.credit_polls < credit_polls_max && owes_little(w);
    if (!waits)
        do_chores(w);
    if (unlikely(w.reply_count > replies_max - burst_max) && !connection_changed(w))
        return AfterChores::nothing;
    return waits ? AfterChores::receive_while_credit_waits : AfterChores::receive;
}

void sort(Worker &w, rte_mbuf **mbufs, const Meta *meta, unsigned n)
{
    for (unsigned i = 0; i < n;) {
        const unsigned run = run_of(meta + i, n - i);
        if (unlikely(run == 0)) {
            if (w.hello_seen || meta[i].flags == protocol::op_hello)
                on_control(w, meta[i].data, meta[i].flags, mbufs[i]);
            else
                drop(w, 1);
            rte_pktmbuf_free(mbufs[i]);
            ++i;
            continue;
        }
        deliver(w, mbufs + i, meta + i, run);
        i += run;
    }
}

void deliver_run(Worker &w, unsigned n)
{
    Channel *c = can_hold(w, n);
    if (unlikely(c == nullptr))
        return sort_run(w, n);
    hold(w, *c, n);
    report(*c, NTBMSG_READABLE);
}

unsigned take_in(Worker &w, Found &found, int got)
{
    unsigned n = got > 0 ? static_cast<unsigned>(got) : 0;
    if (connection_changed(w))
        n = change_connection(w, found.mbufs, found.meta, n);
    if (n != 0)
        sort(w, found.mbufs, found.meta, n);
    return n;
}

} // namespace ntbmsg
