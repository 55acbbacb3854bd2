// SPDX-License-Identifier: BSD-3-Clause
// The sender's half of long messages.
#include <algorithm>
#include <bit>

#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "endpoint/endpoint.hpp"
#include "port/payload.hpp"
#include "port/worker.hpp"
#include "rendezvous/rendezvous.hpp"

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

void advance(const RendezvousMemory &r, OutgoingMessage &o, uint32_t bytes)
{
    o.left -= bytes;
    o.piece_at += bytes;
    o.segment_at += bytes;
    if (o.piece_at == r.peer_piece_bytes || o.left == 0) {
        ++o.stored;
        o.piece_at = 0;
    }
    if (o.segment_at == o.segment->data_len) {
        o.segment = o.segment->next;
        o.segment_at = 0;
    }
}

/// Gives the copy engine what lies in one segment and one piece. @return false: it takes no more
bool give_part(Worker &w, Channel &c, OutgoingMessage &o, uint32_t number, uint32_t bytes)
{
    const RendezvousMemory &r = w.rendezvous;
    const uint64_t at = uint64_t{o.pieces[o.stored]} * r.peer_piece_bytes + o.piece_at;
    const bool given =
        engine_copy(w, {.channel = &c,
                        .last_of = nullptr,
                        .from = rte_pktmbuf_mtod_offset(o.segment, const std::byte *, o.segment_at),
                        .to = r.peer_base + at,
                        .from_iova = rte_pktmbuf_iova_offset(o.segment, o.segment_at),
                        .to_bus = r.peer_bus + at,
                        .bytes = bytes,
                        .message = number,
                        .ends_piece = o.piece_at + bytes == r.peer_piece_bytes || bytes == o.left});
    o.under_way += given ? 1 : 0;
    return given;
}

void store_part(Worker &w, OutgoingMessage &o, uint32_t bytes)
{
    const RendezvousMemory &r = w.rendezvous;
    w.endpoint->store(r.peer_base + uint64_t{o.pieces[o.stored]} * r.peer_piece_bytes + o.piece_at,
                      rte_pktmbuf_mtod_offset(o.segment, const std::byte *, o.segment_at), bytes);
    o.landed += o.piece_at + bytes == r.peer_piece_bytes || bytes == o.left ? 1 : 0;
}

/// Moves one piece of the message, or the rest of one. @return false: the engine takes no more now
bool move_piece(Worker &w, Channel &c, OutgoingMessage &o, uint32_t number)
{
    const uint32_t piece_bytes = w.rendezvous.peer_piece_bytes;
    for (const uint32_t before = o.stored; o.stored == before;) {
        const uint32_t bytes = std::min(
            {piece_bytes - o.piece_at, o.left, uint32_t{o.segment->data_len} - o.segment_at});
        if (o.by_engine && bytes != 0 && !give_part(w, c, o, number, bytes)) {
            // One that has failed is done with what it was given, before the CPU goes on.
            if (!w.engine.failed || o.under_way != 0)
                return false;
            o.by_engine = false;
        }
        if (!o.by_engine)
            store_part(w, o, bytes);
        advance(w.rendezvous, o, bytes);
    }
    return true;
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

/// Moves what is granted of one message. @return false: more could be done
bool move(Worker &w, Channel &c, OutgoingMessage &o, uint32_t number, uint32_t &budget)
{
    for (; o.stored < o.granted && budget > 0; --budget) {
        if (!move_piece(w, c, o, number))
            return false;
    }
    return o.stored == o.granted;
}

/// Says what has landed. @return false: no room
bool tell_landed(Worker &w, Channel &c, OutgoingMessage &o)
{
    if (o.landed != o.told && send_op(w, c, protocol::op_filled, o.landed - o.told, nullptr) != 0)
        return false;
    o.told = o.landed;
    return true;
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
    if (m == nullptr || m->pkt_len <= c.eager ||
        m->pkt_len > std::min(rendezvous_longest(w), c.peer_takes) || c.tx.now.messages == 0)
        return false;
    Rendezvous *r = rendezvous_of(c);
    if (!w.rendezvous.ready || r == nullptr || r->out_head - r->out_tail == rendezvous_depth ||
        !is_whole(m)) {
        if (c.proxy == nullptr)
            c.wants_way = !w.rendezvous.ready; // told when it is found
        else if (!w.rendezvous.ready || r == nullptr)
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
    o.granted = o.stored = o.piece_at = o.landed = o.told = o.under_way = 0;
    o.by_engine = engine_wants(w, m);
    if (o.by_engine)
        w.engine.messages.add(1);
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
    for (uint32_t i = r.out_tail; i != r.out_head; ++i) {
        OutgoingMessage &o = out_at(r, i);
        const bool moved = move(w, c, o, i, budget);
        // What one behind the first one has landed is told when it is its turn.
        if (i == r.out_tail && !tell_landed(w, c, o))
            return false;
        if (!moved || o.stored != o.piece_count)
            return moved; // a grant brings us back
        if (i == r.out_tail && o.told == o.piece_count)
            finish(w, c, r, o);
    }
    return true; // and so does the engine
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
