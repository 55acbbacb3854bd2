// SPDX-License-Identifier: BSD-3-Clause
#include "channel/control.hpp"

#include <algorithm>
#include <cstring>

#include <rte_mbuf.h>

#include "channel/dedicated_worker.hpp"
#include "channel/ending.hpp"
#include "channel/flush.hpp"
#include "channel/lending.hpp"
#include "transport/poll_set.hpp"
#include "transport/sending.hpp"
#include "transport/trace.hpp"

namespace ntbmsg
{

void take_opening(Channel &c, const protocol::Opening &opening)
{
    const Worker &w = *c.worker;
    const uint64_t room = uint64_t{opening.buffers} * w.peer_buffers.bytes();
    const uint64_t longest =
        std::min<uint64_t>(std::max<uint64_t>(room, w.inline_max), w.peer_max_message);
    c.longest = static_cast<uint32_t>(std::min<uint64_t>(longest, opening.max_message));
    c.short_max = std::min(w.inline_max, c.longest);
}

void on_accept(Channel &c, rte_mbuf *m)
{
    protocol::OpeningMessage message{};
    if (state_of(c) != NTBMSG_CHANNEL_CONNECTING || (c.owed & owe_connect) != 0)
        return protocol_error(c);
    if (!copy_payload(m, &message, sizeof(message)) || !is_valid(message, m->pkt_len))
        return protocol_error(c);
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
    begin_lending(c);
    c.want_write = false;
    report(c, NTBMSG_ANSWERED | NTBMSG_WRITABLE);
}

void on_reject(Channel &c, uint32_t reason, rte_mbuf *m)
{
    if (state_of(c) != NTBMSG_CHANNEL_CONNECTING || (c.owed & owe_connect) != 0)
        return protocol_error(c);
    if (!copy_payload(m, c.peer_private, sizeof(c.peer_private)))
        return protocol_error(c);
    c.peer_private_bytes = static_cast<uint8_t>(m->pkt_len);
    end(c, NTBMSG_CHANNEL_REJECTED, reason);
}

void can_send_again(Channel &c)
{
    if (c.proxy != nullptr)
        return send_queued(c);
    if (c.want_write && may_send(state_of(c))) {
        c.want_write = false;
        report(c, NTBMSG_WRITABLE);
    }
}

void on_credit(Channel &c, uint32_t argument)
{
    const Credit credit = credit_in(argument);
    const uint8_t state = state_of(c);
    if (!c.tx.returned(credit, may_send(state)))
        return protocol_error(c);
    c.tx_confirmed.add(credit.messages);
    c.asked = false;
    can_send_again(c);
}

void on_close(Channel &c, rte_mbuf *m)
{
    if (m->pkt_len != 0 || !may_receive(state_of(c)))
        return protocol_error(c);
    c.close_seen = true;
    c.rx.left = {}; // DATA after it violates the protocol
    if (state_of(c) == NTBMSG_CHANNEL_OPEN) {
        c.state.store(NTBMSG_CHANNEL_PEER_CLOSED, std::memory_order_release);
        report(c, NTBMSG_PEER_SHUT | NTBMSG_READABLE);
        return;
    }
    report(c, NTBMSG_PEER_SHUT);
    end(c, NTBMSG_CHANNEL_CLOSED, NTBMSG_REASON_NONE);
}

void on_reset(Channel &c, uint32_t reason, rte_mbuf *m)
{
    if (m->pkt_len != 0)
        return protocol_error(c);
    c.final.store(true, std::memory_order_release); // also one that was closed at both ends
    end(c, NTBMSG_CHANNEL_RESET, reason);
}

void on_flush(Channel &c, rte_mbuf *m)
{
    if (m->pkt_len != 0 || c.tx_word == 0)
        return protocol_error(c);
    const uint8_t state = state_of(c);
    if (has_ended(state) && state != NTBMSG_CHANNEL_CLOSED)
        return;
    if (c.unread) { // what is not confirmed by now never is
        const auto closed = static_cast<uint32_t>(NTBMSG_REASON_CLOSED);
        return is_over(c) ? owe(c, owe_reset) : reset(c, closed);
    }
    if (c.proxy != nullptr)
        collect_received(c);
    owe(c, owe_credit);
}

} // namespace ntbmsg
