// SPDX-License-Identifier: BSD-3-Clause
// The receiver's half of long messages.
#include <algorithm>

#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "channel/dedicated.hpp"
#include "port/parked.hpp"
#include "port/payload.hpp"
#include "port/worker.hpp"
#include "rendezvous/rendezvous.hpp"

namespace ntbmsg
{

namespace
{

IncomingMessage &in_at(Rendezvous &r, uint32_t number)
{
    return r.in[number % rendezvous_depth];
}

/// A channel whose messages are not received holds so much of the memory on top of one message, and
/// no more. @param granted  pieces of messages that are not handed up yet
bool may_hold(const Channel &c, const Rendezvous &r, uint32_t granted)
{
    return c.rx_pool != 0 || r.unreceived + granted <= c.worker->rendezvous.shared_count / 4;
}

/// All pieces of a message, or none: half a message would hold what another one waits for.
rte_mbuf *make_chain(const Channel &c, const IncomingMessage &in)
{
    rte_mbuf *pieces[protocol::pieces_max];
    if (rte_pktmbuf_alloc_bulk(rx_pool_of(c), pieces, in.piece_count) != 0)
        return nullptr;
    uint32_t left = in.bytes;
    for (uint32_t i = 0; i < in.piece_count; ++i) {
        rte_mbuf *m = pieces[i];
        m->data_off = 0;
        m->data_len = static_cast<uint16_t>(std::min(left, protocol::piece_bytes));
        left -= m->data_len;
        m->next = i + 1 < in.piece_count ? pieces[i + 1] : nullptr;
    }
    pieces[0]->nb_segs = static_cast<uint16_t>(in.piece_count);
    pieces[0]->pkt_len = in.bytes;
    return pieces[0];
}

/// Tells the peer of the next pieces of a message.
bool tell_pieces(Worker &w, Channel &c, IncomingMessage &in)
{
    uint32_t numbers[protocol::pieces_a_grant];
    uint32_t n = 0;
    rte_mbuf *m = in.untold;
    for (; m != nullptr && n < protocol::pieces_a_grant; m = m->next) {
        const auto at = static_cast<std::byte *>(m->buf_addr) - w.rendezvous.base;
        numbers[n++] = static_cast<uint32_t>(static_cast<uint64_t>(at) / protocol::piece_bytes);
    }
    rte_mbuf *grant = payload_begin(w, numbers, n * 4);
    if (grant == nullptr)
        return false;
    if (send_op(w, c, protocol::op_cts, n, grant) != 0) {
        rte_pktmbuf_free(grant);
        return false;
    }
    in.untold = m;
    in.granted += n;
    return true;
}

void hand_up(Channel &c, Rendezvous &r, IncomingMessage &in)
{
    rte_mbuf *m = in.mbuf;
    in.mbuf = nullptr;
    ++r.in_tail;
    if (!c.handle) {
        drop(*c.worker, 1);
        rte_pktmbuf_free(m);
        return;
    }
    r.unreceived += in.piece_count;
    park(c.parked, &m, 1, [&](unsigned) { return in.imm; });
    arrived(c, 1);
}

} // namespace

bool rendezvous_take_announcement(Channel &c, Rendezvous &r, uint32_t imm, const rte_mbuf *m)
{
    uint64_t bytes = 0;
    if (m->pkt_len != sizeof(bytes) || !payload_read(m, &bytes, sizeof(bytes)) || bytes == 0 ||
        bytes > rendezvous_own_longest(c) || r.in_head - r.in_tail == rendezvous_depth ||
        !c.rx.use({1, 0}))
        return false;
    in_at(r, r.in_head++) = {.mbuf = nullptr,
                             .untold = nullptr,
                             .imm = imm,
                             .bytes = static_cast<uint32_t>(bytes),
                             .piece_count = static_cast<uint32_t>(
                                 (bytes - 1 + protocol::piece_bytes) / protocol::piece_bytes),
                             .granted = 0,
                             .filled = 0};
    return true;
}

bool rendezvous_grant(Channel &c, Rendezvous &r)
{
    Worker &w = *c.worker;
    uint32_t granted = 0;
    for (uint32_t i = r.in_tail; i != r.in_head; ++i) {
        IncomingMessage &in = in_at(r, i);
        if (in.mbuf == nullptr) {
            if (!may_hold(c, r, granted))
                return true; // the application brings us back
            in.mbuf = in.untold = make_chain(c, in);
            if (in.mbuf == nullptr)
                return false; // somebody frees pieces, on whatever thread
        }
        granted += in.piece_count;
        while (in.untold != nullptr) {
            if (!tell_pieces(w, c, in))
                return false;
        }
    }
    return true;
}

bool rendezvous_take_filled(Channel &c, Rendezvous &r, uint32_t pieces, const rte_mbuf *m)
{
    if (r.in_tail == r.in_head || m->pkt_len != 0 || pieces == 0)
        return false;
    IncomingMessage &in = in_at(r, r.in_tail);
    if (pieces > in.granted - in.filled)
        return false;
    in.filled += pieces;
    if (in.filled == in.piece_count)
        hand_up(c, r, in);
    return true;
}

void rendezvous_received(Channel &c, uint32_t pieces)
{
    Rendezvous *r = c.rendezvous;
    if (r == nullptr)
        return;
    r->unreceived -= std::min(pieces, r->unreceived);
    if (r->in_tail != r->in_head) {
        c.worker->moving.push(c);
        c.worker->chores |= chore_rendezvous;
    }
}

bool rendezvous_receive(Channel &c, uint32_t op, uint32_t argument, const rte_mbuf *m)
{
    Worker &w = *c.worker;
    if (has_ended(state_of(c)) && !c.close_waits)
        return true; // it was under way when the channel ended
    if (op == protocol::op_rts && !c.handle) {
        reset(c, static_cast<uint32_t>(NTBMSG_REASON_CLOSED));
        return true;
    }
    if (c.rendezvous == nullptr)
        c.rendezvous = static_cast<Rendezvous *>(
            rte_zmalloc("ntbmsg_rendezvous", sizeof(Rendezvous), RTE_CACHE_LINE_SIZE));
    Rendezvous *r = c.rendezvous;
    if (r == nullptr)
        return false;
    bool sound = false;
    if (op == protocol::op_cts)
        sound = rendezvous_take_grant(w, *r, argument, m);
    else if (w.rendezvous.pool != nullptr)
        sound = op == protocol::op_rts ? rendezvous_take_announcement(c, *r, argument, m)
                                       : rendezvous_take_filled(c, *r, argument, m);
    if (sound) {
        w.moving.push(c);
        w.chores |= chore_rendezvous;
    }
    return sound;
}

void rendezvous_end(Channel &c, bool stopped)
{
    Rendezvous *r = c.rendezvous;
    if (r == nullptr)
        return;
    Worker &w = *c.worker;
    w.moving.remove(c);
    engine_leave(w, c);
    r->copies_until = w.engine.given;
    for (; r->out_tail != r->out_head; ++r->out_tail)
        rte_pktmbuf_free(r->out[r->out_tail % rendezvous_depth].mbuf);
    for (; r->in_tail != r->in_head; ++r->in_tail) {
        IncomingMessage &in = in_at(*r, r->in_tail);
        if (in.mbuf == nullptr)
            continue;
        if (stopped || in.granted == 0)
            rte_pktmbuf_free(in.mbuf);
        else
            rendezvous_doubt(w, in.mbuf);
    }
}

bool rendezvous_copying(const Channel &c)
{
    return c.rendezvous != nullptr && !engine_passed(c.worker->engine, c.rendezvous->copies_until);
}

void rendezvous_free(Channel &c)
{
    rte_free(c.rendezvous);
    c.rendezvous = nullptr;
}

} // namespace ntbmsg
