// SPDX-License-Identifier: BSD-3-Clause
// What becomes of a channel: by the peer's messages, by time, by the end of the connection; and
// what it owes.
#include "port/channel.hpp"

#include <cerrno>
#include <cstring>

#include <rte_mbuf.h>

#include "base/lock.hpp"
#include "channel/dedicated.hpp"
#include "channel/listener.hpp"
#include "channel/poll_set.hpp"
#include "port/parked.hpp"
#include "port/trace.hpp"
#include "port/worker.hpp"

namespace ntbmsg
{

namespace
{

int pay_opening(Channel &c, uint8_t op, uint32_t word, uint32_t argument)
{
    Worker &w = *c.worker;
    protocol::OpeningMessage message{};
    message.opening = {.slot = w.slots.slot_of(c),
                       .generation = c.generation,
                       .messages = c.rx.granted.messages,
                       .buffers = c.rx.granted.buffers,
                       .max_message = w.own_max_message,
                       .timeout_ms = op == protocol::op_connect ? c.timeout_ms : 0,
                       .private_bytes = c.own_private_bytes};
    std::memcpy(message.private_data, c.own_private, c.own_private_bytes);
    return send_copy(w, word, op, argument, &message,
                     static_cast<uint32_t>(sizeof(message.opening)) + c.own_private_bytes);
}

int pay_accept(Channel &c)
{
    const int rc = pay_opening(c, protocol::op_accept, c.tx_word, 0);
    if (rc == 0) {
        // Not before: messages must come behind the ACCEPT.
        c.tx.grant(c.peer_grant);
        if (!may_send(state_of(c)))
            c.tx.now.messages = 0;
        tell(c, c.want_write ? NTBMSG_WRITABLE : 0);
        if (c.proxy != nullptr)
            c.worker->stalled.push(c); // what was sent meanwhile
        c.want_write = false;
    }
    return rc;
}

int pay_credit(Channel &c)
{
    const uint32_t argument = protocol::credit_argument(c.rx.owed.messages, c.rx.owed.buffers);
    const int rc = send_op(*c.worker, c, protocol::op_credit, argument, nullptr);
    if (rc == 0) {
        c.rx.given_back();
        if (!may_receive(state_of(c)))
            c.rx.left = {}; // it tells what was received; nothing may come any more
    }
    return rc;
}

/// One of the things owed, in the order in which they have to go.
int pay_one(Channel &c, uint32_t bit)
{
    Worker &w = *c.worker;
    switch (bit) {
    case owe_connect:
        return pay_opening(c, protocol::op_connect, 0, c.port);
    case owe_accept:
        return pay_accept(c);
    case owe_reject:
        return send_copy(w, c.tx_word, protocol::op_reject, c.reason, c.own_private,
                         c.own_private_bytes);
    case owe_credit:
        return pay_credit(c);
    case owe_close:
        return send_op(w, c, protocol::op_close, 0, nullptr);
    case owe_reset:
        return send_op(w, c, protocol::op_reset, c.reason, nullptr);
    }
    return 0;
}

} // namespace

void take_opening(Channel &c, const protocol::Opening &opening)
{
    const Worker &w = *c.worker;
    const uint64_t room = uint64_t{opening.buffers} * w.peer_buffers.bytes();
    const uint64_t longest =
        std::min<uint64_t>(std::max<uint64_t>(room, w.inline_max), w.peer_max_message);
    c.longest = static_cast<uint32_t>(std::min<uint64_t>(longest, opening.max_message));
}

void tell(Channel &c, uint32_t events)
{
    if (c.set == nullptr || events == 0)
        return;
    if (c.proxy != nullptr) {
        if (!c.proxy->closing)
            tell_shared(c, events);
        return;
    }
    c.events |= events;
    c.set->ready.push(c);
}

void owe(Channel &c, uint32_t bits)
{
    c.owed |= bits;
    c.worker->owing.push(c);
    c.worker->chores |= chore_owing;
}

bool pay(Channel &c)
{
    while (c.owed != 0) {
        const uint32_t bit = c.owed & -c.owed;
        if (pay_one(c, bit) != 0)
            return false;
        c.owed &= ~bit;
    }
    c.worker->owing.remove(c);
    maybe_free(c);
    return true;
}

uint64_t drop_list(Worker &w, Parked &list)
{
    uint64_t dropped = 0;
    rte_mbuf *mbufs[burst_max];
    while (const unsigned n = unpark(list, mbufs, nullptr, burst_max)) {
        free_unread(w, mbufs, n);
        dropped += n;
    }
    return dropped;
}

void drop_parked(Channel &c)
{
    const uint64_t dropped = drop_list(*c.worker, c.parked);
    if (c.proxy != nullptr)
        c.proxy->delivered.add(-dropped);
}

void end(Channel &c, uint8_t state, uint32_t reason)
{
    if (is_over(c))
        return;
    trace_end(c, state, reason);
    Worker &w = *c.worker;
    const bool answered = state_of(c) == NTBMSG_CHANNEL_CONNECTING;
    c.reason = reason;
    c.tx.now.messages = 0;
    c.rx.left = {};
    if (state != NTBMSG_CHANNEL_CLOSED)
        c.owed &= owe_reset;
    if (state != NTBMSG_CHANNEL_CLOSED || !c.close_waits)
        w.timed.remove(c); // else a peer that never answers does not keep the slot
    w.stalled.remove(c);
    if (state == NTBMSG_CHANNEL_RESET && !c.close_seen)
        drop_parked(c);
    c.state.store(state, std::memory_order_release);
    if (state != NTBMSG_CHANNEL_CLOSED) { // else what is under way is done before CLOSE goes
        c.close_waits = false;
        one_sided_end(c, -ECONNRESET);
    }
    const bool refused = state == NTBMSG_CHANNEL_REJECTED || state == NTBMSG_CHANNEL_TIMED_OUT;
    tell(c, (refused ? 0 : NTBMSG_ENDED) | (answered ? NTBMSG_ANSWERED : NTBMSG_READABLE));
    if (c.proxy != nullptr)
        w.stalled.push(c); // what it did not send is freed
    maybe_free(c);
}

void close_when_idle(Channel &c)
{
    c.close_waits = !one_sided_idle(c);
    if (!c.close_waits)
        owe(c, owe_close);
}

void reset(Channel &c, uint32_t reason)
{
    if (is_over(c))
        return;
    if (c.tx_word != 0) // else the peer has not told its slot: a late answer finds none here
        owe(c, owe_reset);
    end(c, NTBMSG_CHANNEL_RESET, reason);
}

void protest(Channel &c)
{
    if (is_over(c))
        return; // the peer could not know when it said that
    c.worker->bad_peer.add(1);
    reset(c, static_cast<uint32_t>(NTBMSG_REASON_PROTOCOL));
}

void maybe_free(Channel &c)
{
    Worker &w = *c.worker;
    if (c.handle.load(std::memory_order_relaxed) || c.owed != 0 || !is_over(c))
        return;
    // The poll set may still have it in a list.
    if (c.set != nullptr)
        return;
    drop_parked(c);
    w.owing.remove(c);
    w.timed.remove(c);
    w.stalled.remove(c);
    const Locked held(w.lock);
    if (c.calls.load(std::memory_order_acquire) != 0)
        return; // another thread has just called on it
    free_proxy(c);
    w.budget.release(c.rx.granted);
    w.slots.give_back(c);
}

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
    default: // its handle was given back, and the peer does not close
        reset(c, static_cast<uint32_t>(NTBMSG_REASON_CLOSED));
    }
}

void on_accept(Channel &c, rte_mbuf *m)
{
    protocol::OpeningMessage message{};
    if (state_of(c) != NTBMSG_CHANNEL_CONNECTING || (c.owed & owe_connect) != 0)
        return protest(c);
    if (!copy_payload(m, &message, sizeof(message)) || !is_sound(message, m->pkt_len))
        return protest(c);
    const protocol::Opening &o = message.opening;
    c.tx_word = protocol::slot_word(o.slot, o.generation);
    take_opening(c, o);
    c.rx.open();
    c.tx.grant({o.messages, o.buffers});
    c.peer_private_bytes = static_cast<uint8_t>(o.private_bytes);
    std::memcpy(c.peer_private, message.private_data, o.private_bytes);
    c.worker->timed.remove(c);
    c.state.store(NTBMSG_CHANNEL_OPEN, std::memory_order_release);
    trace_open(c);
    c.want_write = false;
    tell(c, NTBMSG_ANSWERED | NTBMSG_WRITABLE);
}

void on_reject(Channel &c, uint32_t reason, rte_mbuf *m)
{
    if (state_of(c) != NTBMSG_CHANNEL_CONNECTING || (c.owed & owe_connect) != 0)
        return protest(c);
    if (!copy_payload(m, c.peer_private, sizeof(c.peer_private)))
        return protest(c);
    c.peer_private_bytes = static_cast<uint8_t>(m->pkt_len);
    end(c, NTBMSG_CHANNEL_REJECTED, reason);
}

void on_credit(Channel &c, uint32_t argument, rte_mbuf *m)
{
    const Credit back = {argument & 0xffff, argument >> 16};
    const uint8_t state = state_of(c);
    if (m->pkt_len != 0 || !c.tx.give_back(back, may_send(state)))
        return protest(c);
    c.tx_confirmed.add(back.messages);
    if (c.proxy != nullptr)
        return send_on(c);
    if (c.want_write && may_send(state)) {
        c.want_write = false;
        tell(c, NTBMSG_WRITABLE);
    }
}

void on_close(Channel &c, rte_mbuf *m)
{
    if (m->pkt_len != 0 || !may_receive(state_of(c)))
        return protest(c);
    c.close_seen = true;
    c.rx.left = {}; // DATA behind it breaks the rules
    if (state_of(c) == NTBMSG_CHANNEL_OPEN) {
        c.state.store(NTBMSG_CHANNEL_PEER_CLOSED, std::memory_order_release);
        tell(c, NTBMSG_PEER_SHUT | NTBMSG_READABLE);
        return;
    }
    tell(c, NTBMSG_PEER_SHUT);
    end(c, NTBMSG_CHANNEL_CLOSED, NTBMSG_REASON_NONE);
}

void on_reset(Channel &c, uint32_t reason, rte_mbuf *m)
{
    if (m->pkt_len != 0)
        return protest(c);
    end(c, NTBMSG_CHANNEL_RESET, reason);
}

} // namespace ntbmsg
