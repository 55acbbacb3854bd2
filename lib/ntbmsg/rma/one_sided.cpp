// SPDX-License-Identifier: BSD-3-Clause
#include "rma/one_sided.hpp"

#include <cerrno>

#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "rma/cq.hpp"
#include "rma/requester.hpp"
#include "rma/responder.hpp"
#include "transport/proxy.hpp"
#include "transport/sending.hpp"

namespace ntbmsg
{

bool one_sided_receive(Worker &w, Channel &c, uint32_t op, uint32_t argument, const rte_mbuf *m)
{
    if (state_of(c) == NTBMSG_CHANNEL_CONNECTING)
        return false;
    if (is_over(c))
        return true; // sent before its sender knew of the channel's end
    const bool is_answer = op == protocol::op_done || op == protocol::op_read_data;
    const bool sound = is_answer ? requester_receive(c, op, argument, m)
                                 : responder_receive(w, c, op, argument, m);
    if (sound)
        one_sided_continue(c);
    return sound;
}

bool one_sided_flush(Worker &w, Channel &c)
{
    // A completion callback may post and so call this again: what it posted is sent by the next
    // poll.
    if (c.one_sided.flushing)
        return false;
    if (is_over(c))
        return true;
    c.one_sided.flushing = true;
    const bool answered = responder_flush(w, c);
    const bool asked = requester_flush(w, c);
    c.one_sided.flushing = false;
    if (unlikely(c.close_waits))
        close_when_idle(c);
    return answered && asked;
}

void one_sided_continue(Channel &c)
{
    Worker &w = *c.worker;
    if (one_sided_flush(w, c))
        return;
    w.operating.push(c);
    w.chores |= chore_operations;
}

void one_sided_posted(Channel &c)
{
    if (c.proxy != nullptr)
        call(c, call_post);
    else
        one_sided_continue(c);
}

void one_sided_serve_post(Channel &c)
{
    if (is_over(c))
        requester_end(c, -ECONNRESET); // posted before the end was visible
    else
        one_sided_continue(c);
}

void one_sided_chores(Worker &w)
{
    w.reads_left = read_bytes_per_poll;
    // Each channel once: one that waits, such as for its completion queue, does not keep others
    // from continuing. The next time another channel is the first to use the bytes and the ring's
    // room.
    const Channel *first = nullptr;
    for (uint32_t turns = w.slots.used() + 1; turns > 0; --turns) {
        Channel *c = w.operating.pop();
        if (c == nullptr)
            break;
        const bool was_here = c == first;
        if (!was_here && one_sided_flush(w, *c))
            continue;
        w.operating.push(*c);
        if (was_here)
            break;
        if (first == nullptr)
            first = c;
    }
    if (w.operating.empty())
        w.chores &= ~chore_operations;
}

bool one_sided_idle(const Channel &c)
{
    const Responder *o = c.one_sided.responder;
    const Requester *r = c.one_sided.requester();
    return (o == nullptr || (o->answered == o->next_request && o->held.mbuf == nullptr)) &&
           (r == nullptr || (r->next_answer == r->next_request && r->held.mbuf == nullptr &&
                             r->posted.load(std::memory_order_acquire) ==
                                 r->retired.load(std::memory_order_relaxed)));
}

void one_sided_end(Channel &c, int status)
{
    c.worker->operating.remove(c);
    if (Responder *o = c.one_sided.responder; o != nullptr) {
        rte_pktmbuf_free(o->held.mbuf);
        o->held = {};
        o->answered = o->next_request;
    }
    if (Requester *r = c.one_sided.requester(); r != nullptr) {
        rte_pktmbuf_free(r->held.mbuf);
        r->held = {};
        r->next_answer = r->next_request; // no answer will come
    }
    requester_end(c, status);
}

void one_sided_free(Channel &c)
{
    rte_free(c.one_sided.responder);
    requester_free(c.one_sided.requester());
    c.one_sided.responder = nullptr;
    c.one_sided.made.store(nullptr, std::memory_order_relaxed);
}

void close_when_idle(Channel &c)
{
    c.close_waits = !one_sided_idle(c);
    if (!c.close_waits)
        owe(c, owe_close);
}

void leave_cq(Channel &channel)
{
    if (channel.cq == nullptr)
        return;
    requester_end(channel, -ECANCELED);
    channel.cq->users.fetch_sub(1, std::memory_order_release); // pairs with ntbmsg_cq_destroy()
    channel.cq = nullptr;
}

int post_error(const Channel &c)
{
    // The count first: a worker ends the channels of a lost connection before it sets its epoch.
    const bool ending = is_ending(*c.worker);
    const uint8_t state = state_of(c);
    if (unlikely(c.proxy != nullptr) && c.proxy->shut.load(std::memory_order_relaxed))
        return -ESHUTDOWN;
    if (likely(may_send(state)))
        return ending ? -ECONNRESET : 0; // a store must not reach the next peer
    return send_error(state);
}

} // namespace ntbmsg
