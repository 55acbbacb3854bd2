// SPDX-License-Identifier: BSD-3-Clause
#include "channel/owed.hpp"

#include <algorithm>
#include <cstring>

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

int send_credit(Channel &c)
{
    const uint32_t argument = protocol::credit_argument(c.rx.owed.messages, c.rx.owed.buffers);
    const int rc = send_op(*c.worker, c, protocol::op_credit, argument, nullptr);
    if (rc == 0) {
        c.rx.returned();
        if (!may_receive(state_of(c)))
            c.rx.left = {}; // it only confirms; the peer may not send any more
        credit_returned(c);
    }
    return rc;
}

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
    case owe_give_back:
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

} // namespace ntbmsg
