// SPDX-License-Identifier: BSD-3-Clause
// The sender's half of long messages.
#include <algorithm>
#include <bit>

#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "endpoint.hpp"
#include "payload.hpp"
#include "rendezvous.hpp"
#include "worker.hpp"

namespace ntbmsg
{

namespace
{

/// Pieces that one channel stores in one poll.
constexpr uint32_t pieces_a_poll = 16;

OutgoingMessage &out_at(Rendezvous &r, uint32_t number)
{
    return r.out[number % rendezvous_depth];
}

Rendezvous *rendezvous_of(Channel &c)
{
    if (c.rendezvous == nullptr)
        c.rendezvous = static_cast<Rendezvous *>(
            rte_zmalloc("ntbmsg_rendezvous", sizeof(Rendezvous), RTE_CACHE_LINE_SIZE));
    return c.rendezvous;
}

/// Stores one piece of the message.
void store_piece(Worker &w, OutgoingMessage &o)
{
    const RendezvousMemory &r = w.rendezvous;
    std::byte *to = r.peer_base + uint64_t{o.pieces[o.stored]} * r.peer_piece_bytes;
    for (uint32_t room = std::min(r.peer_piece_bytes, o.left); room > 0;) {
        const uint32_t n = std::min<uint32_t>(room, o.segment->data_len - o.segment_at);
        w.endpoint->store(to, rte_pktmbuf_mtod_offset(o.segment, const std::byte *, o.segment_at),
                          n);
        to += n;
        room -= n;
        o.left -= n;
        o.segment_at += n;
        if (o.segment_at == o.segment->data_len) {
            o.segment = o.segment->next;
            o.segment_at = 0;
        }
    }
    ++o.stored;
}

bool announce(Worker &w, Channel &c, OutgoingMessage &o)
{
    const uint64_t bytes = o.mbuf->pkt_len;
    rte_mbuf *m = make_payload(w, &bytes, sizeof(bytes));
    if (m == nullptr)
        return false;
    if (send_op(w, c, protocol::op_rts, o.imm, m) != 0) {
        rte_pktmbuf_free(m);
        return false;
    }
    o.announced = true;
    return true;
}

/// Stores what is granted of one message, and says so. @return false: more could be done
bool push_one(Worker &w, Channel &c, OutgoingMessage &o, uint32_t &budget)
{
    for (; o.stored < o.granted && budget > 0; --budget)
        store_piece(w, o);
    if (o.stored != o.told) {
        if (send_op(w, c, protocol::op_filled, o.stored - o.told, nullptr) != 0)
            return false;
        o.told = o.stored;
    }
    return o.stored == o.granted;
}

void finish(Worker &w, Channel &c, Rendezvous &r, OutgoingMessage &o)
{
    w.rendezvous.messages.add(1);
    w.rendezvous.stored_bytes.add(o.mbuf->pkt_len);
    rte_pktmbuf_free(o.mbuf);
    o.mbuf = nullptr;
    ++r.out_tail;
    if (c.proxy != nullptr) {
        c.worker->stalled.push(c); // what waits behind it in the ring
    } else if (c.want_write && may_send(state_of(c))) {
        c.want_write = false;
        tell(c, NTBMSG_WRITABLE);
    }
    if (c.close_waits)
        close_when_idle(c);
}

} // namespace

bool is_whole(const rte_mbuf *m)
{
    uint64_t bytes = 0;
    unsigned segments = 0;
    for (const rte_mbuf *s = m; s != nullptr && segments < m->nb_segs; s = s->next, ++segments)
        bytes += s->data_len;
    return bytes == m->pkt_len && segments == m->nb_segs;
}

bool rendezvous_take(Channel &c, rte_mbuf *m, uint32_t imm)
{
    Worker &w = *c.worker;
    if (m == nullptr || m->pkt_len <= c.eager || m->pkt_len > rendezvous_longest(w) ||
        c.tx.now.messages == 0)
        return false;
    Rendezvous *r = rendezvous_of(c);
    if (!w.rendezvous.ready || r == nullptr || r->out_head - r->out_tail == rendezvous_depth ||
        !is_whole(m)) {
        const bool to_be_told = !w.rendezvous.ready && c.set != nullptr; // when the way is found
        if (to_be_told || (c.proxy != nullptr && (!w.rendezvous.ready || r == nullptr)))
            w.stalled.push(c);
        return false;
    }
    OutgoingMessage &o = out_at(*r, r->out_head++);
    o.mbuf = o.segment = m;
    o.segment_at = 0;
    o.imm = imm;
    o.left = m->pkt_len;
    const uint32_t piece = w.rendezvous.peer_piece_bytes;
    o.piece_count = (m->pkt_len - 1 + piece) >> std::countr_zero(piece);
    o.granted = o.stored = o.told = 0;
    o.announced = false;
    c.tx.sent({1, 0});
    c.tx_messages.add(1);
    c.tx_bytes.add(m->pkt_len);
    w.moving.push(c);
    w.chores |= chore_rendezvous;
    return true;
}

bool rendezvous_push(Channel &c, Rendezvous &r)
{
    Worker &w = *c.worker;
    for (uint32_t i = r.out_tail; i != r.out_head; ++i) {
        OutgoingMessage &o = out_at(r, i);
        if (!o.announced && !announce(w, c, o))
            return false;
    }
    uint32_t budget = pieces_a_poll;
    while (r.out_tail != r.out_head) {
        OutgoingMessage &o = out_at(r, r.out_tail);
        if (!push_one(w, c, o, budget))
            return false;
        if (o.told != o.piece_count)
            return true; // a grant brings us back
        finish(w, c, r, o);
    }
    return true;
}

bool rendezvous_take_grant(const Worker &w, Rendezvous &r, uint32_t pieces, const rte_mbuf *m)
{
    uint32_t granted[protocol::pieces_a_grant];
    if (pieces == 0 || pieces > protocol::pieces_a_grant || m->pkt_len != pieces * 4 ||
        !payload_read(m, granted, pieces * 4))
        return false;
    uint32_t number = r.out_tail;
    while (number != r.out_head && out_at(r, number).granted == out_at(r, number).piece_count)
        ++number;
    if (number == r.out_head)
        return false;
    OutgoingMessage &o = out_at(r, number);
    if (!o.announced || pieces > o.piece_count - o.granted)
        return false;
    for (uint32_t i = 0; i < pieces; ++i) {
        if (granted[i] >= w.rendezvous.peer_pieces)
            return false;
        o.pieces[o.granted++] = granted[i];
    }
    return true;
}

} // namespace ntbmsg
