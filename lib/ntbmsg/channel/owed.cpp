// SPDX-License-Identifier: BSD-3-Clause
#include "channel/owed.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "channel/ending.hpp"
#include "channel/lending.hpp"
#include "transport/poll_set.hpp"
#include "transport/sending.hpp"
#include "wire/protocol.hpp"

namespace ntbmsg
{

namespace
{

int send_opening(Channel &c, uint8_t op, uint32_t word, uint32_t argument)
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

int send_accept(Channel &c)
{
    const int rc = send_opening(c, protocol::op_accept, c.tx_word, 0);
    if (rc == 0) {
        // Only now: messages must follow the ACCEPT.
        c.tx.grant(c.peer_credit);
        if (!may_send(state_of(c)))
            c.tx.now.messages = 0;
        report(c, c.want_write ? NTBMSG_WRITABLE : 0);
        if (c.proxy != nullptr)
            c.worker->stalled.push(c); // messages sent in the meantime
        c.want_write = false;
        begin_lending(c);
    }
    return rc;
}

uint32_t owed_credit(const Channel &c)
{
    return protocol::credit_argument(c.rx.owed.messages, c.rx.owed.buffers);
}

void credit_sent(Channel &c)
{
    c.worker->last_returned = &c;
    c.rx.returned();
    if (!may_receive(state_of(c)))
        c.rx.left = {}; // it only confirms; the peer may not send any more
    credit_returned(c);
}

int send_credit(Channel &c)
{
    const int rc = send_op(*c.worker, c, protocol::op_credit, owed_credit(c), nullptr);
    if (rc == 0)
        credit_sent(c);
    return rc;
}

/// Channels that owe credit and nothing else.
class CreditBundle
{
public:
    bool full() const { return count_ == protocol::credits_max; }
    void add(Channel &c) { channels_[count_++] = &c; }
    /// Leaves it empty. @return false: the ring is full, and those that could not be sent still owe
    /// it
    bool send()
    {
        const unsigned count = std::exchange(count_, 0);
        if (count == 0)
            return true;
        if (count == 1)
            return send_owed(*channels_[0]);
        protocol::ChannelCredit credits[protocol::credits_max];
        for (unsigned i = 0; i < count; ++i)
            credits[i] = {channels_[i]->tx_word, owed_credit(*channels_[i])};
        Worker &w = *channels_[0]->worker;
        if (send_copy(w, 0, protocol::op_credits, count, credits, count * sizeof(*credits)) != 0)
            return false;
        bool sent = true;
        for (unsigned i = 0; i < count; ++i) {
            Channel &c = *channels_[i];
            credit_sent(c);
            c.owed &= ~owe_credit;
            sent &= send_owed(c); // what that has led to
        }
        return sent;
    }

private:
    Channel *channels_[protocol::credits_max];
    unsigned count_ = 0;
};

/// Sends one control message; the bits are in sending order.
int send_one(Channel &c, uint32_t bit)
{
    Worker &w = *c.worker;
    switch (bit) {
    case owe_connect:
        return send_opening(c, protocol::op_connect, 0, c.port);
    case owe_accept:
        return send_accept(c);
    case owe_reject:
        return send_copy(w, c.tx_word, protocol::op_reject, c.reason, c.own_private,
                         c.own_private_bytes);
    case owe_credit:
        return send_credit(c);
    case owe_grant:
        return send_grant(c);
    case owe_recall:
        return send_recall(c);
    case owe_surplus:
        return send_given(c);
    case owe_more:
        return send_more(c);
    case owe_close:
        return send_op(w, c, protocol::op_close, 0, nullptr);
    case owe_reset:
        return send_op(w, c, protocol::op_reset, c.reason, nullptr);
    case owe_flush:
        return send_op(w, c, protocol::op_flush, c.rx_word.load(std::memory_order_relaxed),
                       nullptr);
    }
    return 0;
}

} // namespace

bool send_owed(Channel &c)
{
    while (c.owed != 0) {
        const uint32_t bit = c.owed & -c.owed;
        if (send_one(c, bit) != 0)
            return false;
        c.owed &= ~bit;
    }
    c.worker->owing.remove(c);
    maybe_free(c);
    return true;
}

void send_all_owed(Worker &w)
{
    CreditBundle bundle;
    for (Channel *c = w.owing.first(); c != nullptr;) {
        Channel *after = OwingList::after(*c);
        if (w.bundles && c->owed == owe_credit) {
            bundle.add(*c);
            if (bundle.full() && !bundle.send())
                return;
        } else if (!send_owed(*c)) {
            return;
        }
        c = after;
    }
    if (bundle.send() && w.owing.empty())
        w.chores &= ~chore_owing;
}

bool owes_little(const Worker &w)
{
    const Channel *first = w.owing.first();
    if (first == w.last_returned && first == w.owing.last())
        return false;
    unsigned count = 0;
    for (const Channel *c = w.owing.first(); c != nullptr; c = OwingList::after(*c)) {
        if (c->owed != owe_credit || ++count == protocol::credits_max)
            return false;
    }
    return w.bundles;
}

} // namespace ntbmsg
