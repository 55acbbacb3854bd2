// SPDX-License-Identifier: BSD-3-Clause
#include "channel/dedicated_worker.hpp"

#include <algorithm>
#include <cerrno>

#include <rte_mbuf.h>

#include "channel/ending.hpp"
#include "channel/flush.hpp"
#include "channel/lending.hpp"
#include "channel/send.hpp"
#include "channel/setup.hpp"
#include "rma/one_sided.hpp"
#include "transport/delivery.hpp"
#include "transport/sending.hpp"

namespace ntbmsg
{

namespace
{

/// Copies the oldest entries of the send ring to arrays. @return how many
unsigned peek_ring(const Proxy &p, uint32_t tail, rte_mbuf **mbufs, uint32_t *imm)
{
    const uint32_t head = p.head.load(std::memory_order_acquire); // pairs with send_shared()
    const unsigned n = std::min<uint32_t>(head - tail, burst_max);
    const SendItem *items = n != 0 ? p.items.load(std::memory_order_relaxed) : nullptr;
    for (unsigned i = 0; i < n; ++i) {
        const SendItem &item = items[(tail + i) & (p.depth - 1)];
        mbufs[i] = item.mbuf;
        imm[i] = item.imm;
    }
    return n;
}

/// Sends one burst from the ring. @return whether anything was sent
bool send_part(Channel &c)
{
    Proxy &p = *c.proxy;
    rte_mbuf *mbufs[burst_max];
    uint32_t imm[burst_max];
    const uint32_t tail = p.tail.load(std::memory_order_relaxed);
    const unsigned n = peek_ring(p, tail, mbufs, imm);
    if (n == 0)
        return false;
    SendResult result = send(c, mbufs, imm, n);
    if (result.sent == 0 && (result.error == -EINVAL || result.error == -EMSGSIZE)) {
        rte_pktmbuf_free(mbufs[0]); // the driver has counted it
        c.tx_messages.add(1);
        result.sent = 1;
    } else if (result.ring_full) {
        c.worker->stalled.push(c);
    } else if (result.sent < n) {
        ask_for_more(c);
    }
    p.tail.store(tail + result.sent, std::memory_order_seq_cst); // pairs with request_writable()
    return result.sent != 0;
}

/// Reports WRITABLE to a writer that found no room, once half of the ring is free.
void report_writable(Channel &c)
{
    Proxy &p = *c.proxy;
    const uint32_t used =
        p.head.load(std::memory_order_relaxed) - p.tail.load(std::memory_order_relaxed);
    if (used <= p.depth / 2 && p.want_write.load(std::memory_order_seq_cst) &&
        p.want_write.exchange(false))
        report(c, NTBMSG_WRITABLE);
}

void begin(Channel &c)
{
    c.begun = true;
    if (has_ended(state_of(c)))
        return; // the peer was lost in the meantime
    if (state_of(c) == NTBMSG_CHANNEL_CONNECTING) {
        set_deadline(c, c.timeout_ms);
        owe(c, owe_connect);
    } else {
        c.worker->timed.remove(c);
        owe(c, owe_accept);
    }
}

void begin_close(Channel &c)
{
    Proxy &p = *c.proxy;
    if (p.closing)
        return;
    p.closing = true;
    report_shared(c, event_gone); // its last event
    if (!has_ended(state_of(c)))
        set_deadline(c, c.timeout_ms); // so that a peer that never reads cannot keep the slot
}

void on_calls(Channel &c, uint32_t bits)
{
    if ((bits & call_reject) != 0) {
        c.worker->timed.remove(c);
        return c.begun ? owe(c, owe_reject) : maybe_free(c);
    }
    if ((bits & call_begin) != 0)
        begin(c);
    if ((bits & call_credit) != 0)
        collect_received(c);
    if ((bits & call_post) != 0)
        one_sided_serve_post(c);
    if ((bits & call_more) != 0)
        publish(c);
    if ((bits & call_left) != 0)
        c.set = nullptr;
    if ((bits & call_reset) != 0)
        reset(c, c.proxy->reason.load(std::memory_order_relaxed));
    if ((bits & call_shut) != 0)
        c.proxy->shutting = true;
    if ((bits & call_flush) != 0)
        ask_to_confirm(c);
    if ((bits & call_close) != 0)
        begin_close(c);
    if ((bits & (call_send | call_shut | call_close)) != 0)
        send_queued(c);
    maybe_free(c);
}

/// Takes the channels with calls, in the order of the calls.
Channel *take_calls(Worker &w)
{
    if (w.calls.load(std::memory_order_relaxed) == nullptr)
        return nullptr;
    Channel *list = w.calls.exchange(nullptr, std::memory_order_acquire);
    Channel *in_order = nullptr;
    while (list != nullptr) {
        Channel *next = list->next_call;
        list->next_call = in_order;
        in_order = list;
        list = next;
    }
    return in_order;
}

} // namespace

void send_queued(Channel &c)
{
    Proxy &p = *c.proxy;
    if (has_ended(state_of(c)))
        discard(c);
    else
        while (send_part(c)) {
        }
    report_writable(c);
    if (p.head.load(std::memory_order_acquire) != p.tail.load(std::memory_order_relaxed))
        return;
    if (p.closing && c.handle.load(std::memory_order_relaxed))
        close_handle(c);
    else if (p.shutting)
        shut(c);
}

void serve(Worker &w)
{
    for (Channel *c = take_calls(w); c != nullptr;) {
        Channel *next = c->next_call;
        on_calls(*c, c->calls.exchange(0, std::memory_order_acq_rel));
        c = next;
    }
    // Up to the present last one: those that find the ring full again are appended after it.
    const Channel *last = w.stalled.last();
    for (Channel *c = nullptr; c != last && (c = w.stalled.pop()) != nullptr;)
        send_queued(*c);
}

} // namespace ntbmsg
