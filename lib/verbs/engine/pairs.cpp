// SPDX-License-Identifier: BSD-3-Clause
// The life of a queue pair: states, receives, completions, errors.
#include <cerrno>

#include "engine/engine.hpp"
#include "queue/states.hpp"

namespace ntb::verbs
{
namespace
{

// Of a connected queue pair.
Address peer_of(const ntbv_qp_attr &attr)
{
    return address_of(attr.dest_lid, attr.dest_qpn);
}

} // namespace

// Slots are taken in turn, so that a number does not come back at once.
int Engine::enter(Pair &pair)
{
    for (std::uint32_t tried = 0; tried < max_pairs; ++tried) {
        const std::uint32_t slot = next_slot_++ & (max_pairs - 1);
        // 0 and 1 are special queue pairs of the specification, in any node here.
        if (slot < 2 || pairs_[slot])
            continue;
        pair.number = std::uint32_t{node_of(own_)} << slot_bits | slot;
        pair.serial = next_serial_++;
        pairs_[slot] = &pair;
        return 0;
    }
    return -ENOSPC;
}

void Engine::leave(Pair &pair)
{
    if (answerer_)
        end_turn_now();
    abandon(pair);
    withdraw_word(pair);
    forget_direct(pair);
    pair.timer.unlink();
    pair.work.unlink();
    pair.hungry.unlink();
    pair.send_cq->queue.forget(pair.number);
    pair.recv_cq->queue.forget(pair.number);
    pairs_[pair.number & (max_pairs - 1)] = nullptr;
}

// A requester may wait for what is no longer going to be answered.
void Engine::abandon(Pair &pair)
{
    if (pair.type == NTBV_RC && pair.link && pair.link->state == Link::State::Up) {
        note(*pair.link, {.attempt = pair.receive.attempt,
                          .to = pair.number,
                          .from = pair.attr.dest_qpn,
                          .seq = pair.receive.expected});
        send_notes(*pair.link);
    }
}

int Engine::modify(Pair &pair, const ntbv_qp_attr &attr, unsigned mask)
{
    const ntbv_qp_state from = pair.attr.state;
    const ntbv_qp_state to = (mask & NTBV_QP_STATE) != 0 ? attr.state : from;
    if (((mask & NTBV_QP_CUR_STATE) != 0 && attr.cur_state != from) ||
        !allowed(pair.type, from, to, mask) || !valid(attr, mask))
        return -EINVAL;
    if (answerer_)
        end_turn_now();
    if (to == NTBV_RESET) {
        reset(pair);
        return 0;
    }
    if (to == NTBV_ERR) {
        to_error(pair);
        return 0;
    }
    merge(attr, mask, pair.attr);
    pair.attr.state = to;
    pair.receive.ack_word = word_of_ack(pair.attr.dest_qpn, pair.number, 0);
    if (to == NTBV_RTR && from == NTBV_INIT) {
        pair.receive.expected = pair.attr.rq_psn;
        if (pair.type != NTBV_UD)
            pair.link = find_or_seek(peer_of(pair.attr));
    } else if (to == NTBV_RTS && from == NTBV_RTR) {
        pair.send.next_seq = pair.attr.sq_psn;
    } else if (to == NTBV_SQD && from == NTBV_RTS) {
        if (pair.send.done == pair.send.high && pair.attr.sqd_notify)
            say(pair.cookie, NTBV_EVENT_SQ_DRAINED);
    } else if (to == NTBV_RTS && from == NTBV_SQD) {
        start_posted(pair);
    }
    if ((mask & NTBV_QP_AV) != 0 && from == NTBV_SQD)
        pair.link = find_or_seek(peer_of(pair.attr));
    return 0;
}

// Receives of a queue pair that has waited for one, or is in error.
void Engine::use_posted(Pair &pair)
{
    if (pair.attr.state == NTBV_ERR)
        flush_receive(pair);
    else if (pair.receive.queue.count() != 0)
        starved_is_ready(pair);
    hand_over();
}

int Engine::post_srq(ntbv_srq &srq, const ntbv_recv_wr *wr, const ntbv_recv_wr **bad)
{
    int error = 0;
    for (; wr; wr = wr->next) {
        error = srq.receives.post(*wr);
        if (error != 0)
            break;
        if (Pair *pair = srq.starved.first())
            starved_is_ready(*pair);
    }
    if (wr)
        *bad = wr;
    return error;
}

void Engine::starved_is_ready(Pair &pair)
{
    pair.hungry.unlink();
    pair.receive.starves = false;
    pair.receive.owes_ready = true;
    has_work(pair);
}

// ---- completions and errors

void Engine::overrun(Pair &pair, const ntbv_cq &cq, bool is_new)
{
    pair.overrun = true;
    if (is_new)
        say(cq.queue.cookie(), NTBV_EVENT_CQ_ERR);
}

void Engine::fail(Pair &pair, ntbv_event event)
{
    if (pair.attr.state == NTBV_ERR)
        return;
    to_error(pair);
    say(pair.cookie, event);
}

void Engine::to_error(Pair &pair)
{
    if (pair.attr.state == NTBV_ERR)
        return;
    pair.attr.state = NTBV_ERR;
    pair.timer.unlink();
    pair.hungry.unlink();
    pair.receive.starves = pair.receive.owes_ready = false;
    forget_direct(pair);
    flush_send(pair);
    flush_receive(pair);
    if (pair.srq)
        say(pair.cookie, NTBV_EVENT_LAST_WQE_REACHED);
}

void Engine::flush_send(Pair &pair)
{
    auto &send = pair.send;
    for (; send.done != send.head; ++send.done)
        push(pair, *pair.send_cq,
             {.id = send.queue[send.done].id, .status = NTBV_WR_FLUSH_ERR, .qpn = pair.number},
             false);
    send.next = send.high = send.done;
    send.offset = send.received = send.reads = 0;
    send.halted = false;
}

void Engine::flush_receive(Pair &pair)
{
    auto &receive = pair.receive;
    const auto flush = [&](const Receive &posted) {
        push(pair, *pair.recv_cq,
             {.id = posted.id, .status = NTBV_WR_FLUSH_ERR, .qpn = pair.number}, false);
    };
    if (receive.has_receive)
        flush(receive.receive);
    receive.has_receive = receive.active = false;
    while (!pair.srq && receive.queue.take(receive.receive))
        flush(receive.receive);
}

void Engine::reset(Pair &pair)
{
    if (pair.attr.state >= NTBV_RTR)
        abandon(pair);
    withdraw_word(pair);
    forget_direct(pair);
    pair.timer.unlink();
    pair.work.unlink();
    pair.hungry.unlink();
    pair.send_cq->queue.forget(pair.number);
    pair.recv_cq->queue.forget(pair.number);
    auto &send = pair.send;
    send.head = send.next = send.high = send.done = 0;
    send.offset = send.received = send.reads = 0;
    send.rnr_tries = send.tries = 0;
    send.halted = send.misses_peer = false;
    auto &receive = pair.receive;
    if (!pair.srq)
        receive.queue.clear();
    receive.active = receive.has_receive = receive.skips = false;
    receive.owes_nak = receive.owes_rnr = receive.owes_ready = receive.owes_ack = false;
    receive.answers_tail = receive.answers_head;
    receive.starves = receive.must_wait = false;
    receive.answered = 0;
    pair.link = nullptr;
    pair.overrun = false;
    pair.attr = {};
}

} // namespace ntb::verbs
