// SPDX-License-Identifier: BSD-3-Clause
#include "transport/delivery.hpp"

#include <cstdlib>

#include <rte_mbuf.h>

#include "transport/parked.hpp"
#include "transport/sending.hpp"

namespace ntbmsg
{

namespace
{

/// Frees the messages of a list and counts them. @return how many
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

} // namespace

void publish(Channel &c)
{
    Proxy &p = *c.proxy;
    if (c.parked.first == nullptr)
        return;
    if (p.inbox.load(std::memory_order_acquire) != nullptr) {
        // Pairs with take_inbox(): it sees the flag after it has emptied the inbox, or the inbox
        // is seen empty here.
        p.backlog.store(true, std::memory_order_seq_cst);
        if (p.inbox.load(std::memory_order_seq_cst) != nullptr)
            return;
    }
    p.backlog.store(false, std::memory_order_relaxed);
    // Pairs with the exchange in take_inbox(): the list and its messages are visible.
    p.inbox.store(c.parked.first, std::memory_order_release);
    c.parked = {};
    report(c, NTBMSG_READABLE);
}

void drop_parked(Channel &c)
{
    link_held_of(*c.worker, c.parked);
    const uint64_t dropped = drop_list(*c.worker, c.parked);
    if (c.proxy != nullptr)
        c.proxy->delivered.add(-dropped);
}

void drop_inbox(Channel &c)
{
    Proxy &p = *c.proxy;
    Parked inbox = {p.inbox.exchange(nullptr, std::memory_order_acquire), nullptr};
    drop_list(*c.worker, p.mine);
    drop_list(*c.worker, inbox);
}

void discard(Channel &c)
{
    Proxy &p = *c.proxy;
    const uint32_t head = p.head.load(std::memory_order_acquire);
    const SendItem *items = p.items.load(std::memory_order_acquire);
    uint32_t tail = p.tail.load(std::memory_order_relaxed);
    for (; tail != head; ++tail) {
        rte_pktmbuf_free(items[tail & (p.depth - 1)].mbuf);
        c.tx_messages.add(1); // counted as sent, never confirmed
    }
    p.tail.store(tail, std::memory_order_release);
}

void free_proxy(Channel &c)
{
    Proxy *p = c.proxy;
    if (p == nullptr)
        return;
    discard(c);
    drop_inbox(c);
    std::free(p->items.load(std::memory_order_relaxed));
    std::free(p);
    c.proxy = nullptr;
}

} // namespace ntbmsg
