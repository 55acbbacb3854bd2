// SPDX-License-Identifier: BSD-3-Clause
#include "channel/dedicated_callers.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include <rte_mbuf.h>

#include "channel/receive.hpp"
#include "transport/parked.hpp"
#include "transport/poll_set.hpp"
#include "transport/proxy.hpp"

namespace ntbmsg
{

namespace
{

/// @return 0: the worker's thread can send it; else a negative errno
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

/// Requests a WRITABLE event. Pairs with send_part(): the worker's thread sees the request, or room
/// is seen here.
void request_writable(Channel &c)
{
    Proxy &p = *c.proxy;
    c.tx_full.add(1);
    p.want_write.store(true, std::memory_order_seq_cst);
    if (room_of(p) >= p.depth / 2 && p.want_write.exchange(false))
        report_shared(c, NTBMSG_WRITABLE);
}

/// Takes the published messages.
void take_inbox(Channel &c)
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
    if (r.buffers != 0 || c.rx_messages.get() - p.claimed >= p.claim_at) {
        p.claimed = c.rx_messages.get();
        call(c, call_credit);
    }
}

} // namespace

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
        request_writable(c);
    return static_cast<int>(taken);
}

int receive_shared(Channel &c, rte_mbuf **mbufs, uint32_t *imm, unsigned n)
{
    Proxy &p = *c.proxy;
    // Read before the inbox: messages delivered before the end are not missed.
    const int end = receive_end(c);
    const uint64_t delivered = p.delivered.get();
    if (p.mine.first == nullptr)
        take_inbox(c);
    const unsigned got = unpark(p.mine, mbufs, imm, n);
    if (got == 0)
        return delivered == c.rx_messages.get() ? end : 0;
    account(c, mbufs, got);
    if (!nothing_left(c))
        report_shared(c, NTBMSG_READABLE);
    return static_cast<int>(got);
}

} // namespace ntbmsg
