// SPDX-License-Identifier: BSD-3-Clause
#include "channel/flush.hpp"

#include <cerrno>

#include "transport/proxy.hpp"
#include "transport/sending.hpp"

namespace ntbmsg
{

uint64_t unconfirmed(const Channel &c)
{
    // Read first: it never exceeds what was sent.
    const uint64_t confirmed = c.tx_confirmed.get();
    const Proxy *p = c.proxy;
    if (p == nullptr)
        return c.tx_messages.get() - confirmed;
    // The tail first: what is sent meanwhile counts twice rather than not at all.
    const uint32_t tail = p->tail.load(std::memory_order_acquire);
    return c.tx_messages.get() - confirmed + (p->head.load(std::memory_order_acquire) - tail);
}

int confirm_error(const Channel &c)
{
    const uint8_t state = state_of(c);
    if (state == NTBMSG_CHANNEL_CONNECTING)
        return -ENOTCONN;
    const bool closed = state == NTBMSG_CHANNEL_CLOSED;
    const bool gone = c.final.load(std::memory_order_acquire) ||
                      c.worker->peer_leaves.load(std::memory_order_acquire);
    return (has_ended(state) && !closed) || gone ? -ECONNRESET : 0;
}

void ask_to_confirm(Channel &c)
{
    // Behind the messages: the ACCEPT and the send ring go first.
    const bool open = c.tx_word != 0 && (c.owed & (owe_accept | owe_reset)) == 0;
    if (open && !c.asked && confirm_error(c) == 0) {
        c.asked = true;
        owe(c, owe_flush);
    }
}

void collect_received(Channel &c)
{
    Proxy &p = *c.proxy;
    const uint64_t messages = c.rx_messages.get(), buffers = p.rx_buffers.get();
    c.rx.received({static_cast<uint32_t>(messages - p.credited),
                   static_cast<uint32_t>(buffers - p.credited_buffers)});
    p.credited = messages;
    p.credited_buffers = buffers;
    if (c.rx.due() && may_receive(state_of(c)))
        owe(c, owe_credit);
}

} // namespace ntbmsg
