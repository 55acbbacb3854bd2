// SPDX-License-Identifier: BSD-3-Clause
#include "transport/sending.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <rte_mbuf.h>

#include "base/clock.hpp"

namespace ntbmsg
{

namespace
{

/// An mbuf with a copy of @p bytes, at most 128. @return NULL: the pool is empty
rte_mbuf *make_payload(Worker &w, const void *from, uint32_t bytes)
{
    rte_mbuf *m = rte_pktmbuf_alloc(w.control_pool);
    if (m != nullptr)
        std::memcpy(rte_pktmbuf_append(m, static_cast<uint16_t>(bytes)), from, bytes);
    return m;
}

} // namespace

int send_message(Worker &w, uint32_t word, uint8_t op, uint32_t argument, rte_mbuf *payload)
{
    rte_mbuf *m = payload;
    if (m == nullptr) {
        m = w.empty;
        rte_mbuf_refcnt_update(m, 1); // the reference that the driver frees
    }
    const Meta meta = {protocol::header(word, argument), op, 0};
    if (w.burst.tx(w.burst.tx_queue, &m, &meta, 1) == 1)
        return 0;
    if (payload == nullptr)
        rte_mbuf_refcnt_update(w.empty, -1);
    return -EAGAIN;
}

int send_copy(Worker &w, uint32_t word, uint8_t op, uint32_t argument, const void *from,
              uint32_t bytes)
{
    rte_mbuf *m = make_payload(w, from, bytes);
    if (m == nullptr)
        return -EAGAIN;
    const int rc = send_message(w, word, op, argument, m);
    if (rc != 0)
        rte_pktmbuf_free(m);
    return rc;
}

bool copy_payload(const rte_mbuf *m, void *to, uint32_t room)
{
    if (m->pkt_len > room)
        return false;
    const void *at = rte_pktmbuf_read(m, 0, m->pkt_len, to);
    if (at != nullptr && at != to)
        std::memcpy(to, at, m->pkt_len);
    return at != nullptr;
}

void owe(Channel &c, uint32_t bits)
{
    c.owed |= bits;
    c.worker->owing.push(c);
    c.worker->chores |= chore_owing;
}

void add_reply(Worker &w, uint8_t op, uint32_t word, uint32_t reason)
{
    if (w.reply_count == replies_max)
        return; // cannot happen: take_burst() keeps room
    w.replies[w.reply_count++] = {word, reason, op};
    w.chores |= chore_replies;
}

void set_deadline(Channel &c, uint64_t from_now_ms)
{
    Worker &w = *c.worker;
    c.deadline_us = clock_us() + from_now_ms * 1000;
    w.next_deadline_us =
        w.timed.empty() ? c.deadline_us : std::min(w.next_deadline_us, c.deadline_us);
    w.timed.push(c);
    w.chores |= chore_timed;
}

void check_deadlines_soon(Worker &w)
{
    w.polls |= polls_per_check - 1;
}

void free_unread(Worker &w, rte_mbuf **mbufs, unsigned n)
{
    drop(w, n);
    rte_pktmbuf_free_bulk(mbufs, n);
}

Credit credit_of(const Worker &w, rte_mbuf *const *mbufs, unsigned n)
{
    uint32_t buffers = 0;
    for (unsigned i = 0; i < n; ++i)
        buffers += buffers_counted(w, mbufs[i]);
    return {n, buffers};
}

} // namespace ntbmsg
