// SPDX-License-Identifier: BSD-3-Clause
// The application's half of channels of a dedicated worker.
#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include <rte_mbuf.h>

#include "channel/dedicated.hpp"
#include "channel/poll_set.hpp"
#include "channel/transfer.hpp"
#include "port/parked.hpp"
#include "port/worker.hpp"

namespace ntbmsg
{

namespace
{

/// Whether the engine could send it.
int check_message(const Channel &c, const rte_mbuf *m)
{
    if (m == nullptr || (m->nb_segs == 1 && m->data_len != m->pkt_len))
        return -EINVAL;
    return m->pkt_len > c.longest ? -EMSGSIZE : 0;
}

SendItem *items_of(Channel &c)
{
    Proxy &p = *c.proxy;
    SendItem *items = p.items.load(std::memory_order_relaxed);
    if (items == nullptr) {
        items = static_cast<SendItem *>(std::malloc(p.depth * sizeof(SendItem)));
        p.items.store(items, std::memory_order_release);
    }
    return items;
}

uint32_t room_of(const Proxy &p)
{
    return p.depth -
           (p.head.load(std::memory_order_relaxed) - p.tail.load(std::memory_order_seq_cst));
}

/// Asks to be told when there is room. The engine sees the wish, or there is room already.
void want_more(Channel &c)
{
    Proxy &p = *c.proxy;
    c.tx_full.add(1);
    p.want_write.store(true, std::memory_order_seq_cst);
    if (room_of(p) >= p.depth / 2 && p.want_write.exchange(false))
        tell_shared(c, NTBMSG_WRITABLE);
}

/// Takes over what the engine has handed up.
void refill(Channel &c)
{
    Proxy &p = *c.proxy;
    if (p.inbox.load(std::memory_order_relaxed) == nullptr)
        return;
    p.mine = {p.inbox.exchange(nullptr, std::memory_order_seq_cst), nullptr};
    if (p.backlog.load(std::memory_order_seq_cst)) // pairs with publish()
        call(c, call_more);
}

void account(Channel &c, rte_mbuf *const *mbufs, unsigned n)
{
    Proxy &p = *c.proxy;
    const Received r = received_of(*c.worker, mbufs, n);
    p.rx_buffers.add(r.buffers);
    c.rx_bytes.add(r.bytes);
    c.rx_messages.add(n);
    if (r.buffers != 0 || c.rx_messages.get() - p.claimed >= c.rx.due_at) {
        p.claimed = c.rx_messages.get();
        call(c, call_credit);
    }
}

/// Moves what was told to the set's own list, in order.
void take_told(PollSet &set)
{
    if (set.told.load(std::memory_order_relaxed) == nullptr)
        return;
    Channel *list = set.told.exchange(nullptr, std::memory_order_acquire);
    Channel *last = list, *in_order = nullptr;
    while (list != nullptr) {
        Channel *next = list->proxy->next_told;
        list->proxy->next_told = in_order;
        in_order = list;
        list = next;
    }
    if (set.first == nullptr)
        set.first = in_order;
    else
        set.last->proxy->next_told = in_order;
    set.last = last;
}

Channel *pop_told(PollSet &set)
{
    Channel *c = set.first;
    if (c != nullptr)
        set.first = c->proxy->next_told;
    return c;
}

/// The set is done with a channel that was closed.
void leave_shared(PollSet &set, Channel &c)
{
    set.channels.fetch_sub(1, std::memory_order_relaxed);
    call(c, call_left);
}

bool nothing_left(const Channel &c)
{
    const Proxy &p = *c.proxy;
    return p.mine.first == nullptr && p.inbox.load(std::memory_order_acquire) == nullptr;
}

} // namespace

void call(Channel &c, uint32_t bits)
{
    Worker &w = *c.worker;
    if (c.calls.fetch_or(bits, std::memory_order_acq_rel) != 0)
        return; // it hangs there already, or whoever asked first is about to hang it in
    Channel *top = w.calls.load(std::memory_order_relaxed);
    do
        c.next_call = top;
    while (!w.calls.compare_exchange_weak(top, &c, std::memory_order_seq_cst,
                                          std::memory_order_relaxed));
    if (unlikely(w.armed.load(std::memory_order_seq_cst))) // pairs with arm_for_calls()
        wake_thread(w);
}

void tell_shared(Channel &c, uint32_t events)
{
    PollSet *set = c.set;
    if (set == nullptr || events == 0 ||
        c.proxy->told.fetch_or(events, std::memory_order_acq_rel) != 0)
        return;
    Channel *top = set->told.load(std::memory_order_relaxed);
    do
        c.proxy->next_told = top;
    while (!set->told.compare_exchange_weak(top, &c, std::memory_order_release,
                                            std::memory_order_relaxed));
}

int send_shared(Channel &c, rte_mbuf **mbufs, const uint32_t *imm, unsigned n)
{
    Proxy &p = *c.proxy;
    if (p.shut.load(std::memory_order_relaxed))
        return -ESHUTDOWN;
    if (const int rc = send_error(state_of(c)); rc != 0)
        return rc;
    SendItem *items = items_of(c);
    const uint32_t room = items != nullptr ? room_of(p) : 0;
    const uint32_t head = p.head.load(std::memory_order_relaxed);
    unsigned taken = 0;
    int rc = 0;
    for (; taken < std::min<uint32_t>(n, room); ++taken) {
        if (rc = check_message(c, mbufs[taken]); rc != 0)
            break;
        items[(head + taken) & (p.depth - 1)] = {mbufs[taken], imm != nullptr ? imm[taken] : 0};
    }
    if (taken != 0) {
        p.head.store(head + taken, std::memory_order_release);
        call(c, call_send);
    } else if (rc != 0) {
        return rc;
    }
    if (taken < n)
        want_more(c);
    return static_cast<int>(taken);
}

int receive_shared(Channel &c, rte_mbuf **mbufs, uint32_t *imm, unsigned n)
{
    Proxy &p = *c.proxy;
    // Before the look into the inbox: what was delivered before an end is not missed.
    const int end = receive_end(c);
    const uint64_t delivered = p.delivered.get();
    if (p.mine.first == nullptr)
        refill(c);
    const unsigned got = unpark(p.mine, mbufs, imm, n);
    if (got == 0)
        return delivered == c.rx_messages.get() ? end : 0;
    account(c, mbufs, got);
    if (!nothing_left(c))
        tell_shared(c, NTBMSG_READABLE);
    return static_cast<int>(got);
}

int poll_shared(PollSet &set, ntbmsg_ready *ready, unsigned n)
{
    take_told(set);
    unsigned told = 0;
    while (told < n) {
        Channel *c = pop_told(set);
        if (c == nullptr)
            break;
        uint32_t events = c->proxy->told.exchange(0, std::memory_order_acq_rel);
        if ((events & event_gone) != 0) {
            leave_shared(set, *c);
            continue;
        }
        if (nothing_left(*c) && may_receive(state_of(*c)))
            events &= ~NTBMSG_READABLE;
        if (events != 0)
            ready[told++] = {
                .channel = handle_of(*c), .user = c->user, .events = events, .reserved = 0};
    }
    return static_cast<int>(told);
}

void bury(PollSet &set)
{
    take_told(set);
    Channel *kept = nullptr, *last = nullptr;
    while (Channel *c = pop_told(set)) {
        Proxy &p = *c->proxy;
        if ((p.told.load(std::memory_order_acquire) & event_gone) != 0) {
            leave_shared(set, *c);
            continue;
        }
        p.next_told = nullptr;
        if (last != nullptr)
            last->proxy->next_told = c;
        else
            kept = c;
        last = c;
    }
    set.first = kept;
    set.last = last;
}

void forget(PollSet &set, Channel &gone)
{
    if (gone.proxy->told.fetch_or(event_gone, std::memory_order_acq_rel) != 0)
        bury(set);
    else
        set.channels.fetch_sub(1, std::memory_order_relaxed);
    gone.set = nullptr;
}

} // namespace ntbmsg
