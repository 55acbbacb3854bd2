// SPDX-License-Identifier: BSD-3-Clause
// What the peer asks of a queue pair, and what it is answered.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "engine/lone.hpp"
#include "engine/place.hpp"

namespace ntb::verbs
{
// ---- answers

Engine::Turn Engine::send_answers(Pair &pair, std::uint32_t &budget)
{
    auto &receive = pair.receive;
    if (pair.type != NTBV_RC || !pair.link || pair.link->state != Link::State::Up)
        return Turn::Done;
    Link &link = *pair.link;
    // Before the answer to what has asked, so that the next request can go by it.
    if (receive.asks_for != 0 && !answer_question(pair))
        return Turn::Full;
    if (receive.mapped != 0 && !say_mapped(pair))
        return Turn::Full;
    while (receive.answers_tail != receive.answers_head) {
        if (budget == 0)
            return Turn::More;
        if (send_answer(pair, receive.answers[receive.answers_tail % NTBV_MAX_READS]) == Turn::Full)
            return Turn::Full;
        --budget;
    }
    if (receive.owes_nak || receive.owes_rnr) {
        // Both accept all requests before theirs.
        const bool is_nak = receive.owes_nak;
        if (!send_plain(link, {.kind = is_nak ? Kind::Nak : Kind::Rnr,
                               .attempt = is_nak ? receive.attempt : receive.rnr_attempt,
                               .to = pair.attr.dest_qpn,
                               .from = pair.number,
                               .seq = receive.expected,
                               .value = is_nak ? receive.nak_code : pair.attr.min_rnr_timer}))
            return Turn::Full;
        receive.owes_nak = receive.owes_rnr = receive.owes_ack = false;
    }
    receive.owes_lack &= receive.must_wait; // a later try makes it void
    if (receive.owes_lack) {
        if (!send_plain(link, {.kind = Kind::Lacks,
                               .attempt = receive.rnr_attempt,
                               .to = pair.attr.dest_qpn,
                               .from = pair.number,
                               .seq = receive.expected}))
            return Turn::Full;
        receive.owes_lack = receive.owes_ack = false; // it accepts all before it, too
    }
    if (receive.owes_ready) {
        if (!send_plain(link, {.kind = Kind::Ready,
                               .attempt = receive.attempt,
                               .to = pair.attr.dest_qpn,
                               .from = pair.number}))
            return Turn::Full;
        receive.owes_ready = false;
    }
    return Turn::Done;
}

// Once all else has gone.
Engine::Turn Engine::send_ack(Pair &pair)
{
    if (pair.type != NTBV_RC || !pair.link || pair.link->state != Link::State::Up)
        return Turn::Done;
    if (!send_plain(*pair.link, {.kind = Kind::Ack,
                                 .attempt = pair.receive.attempt,
                                 .to = pair.attr.dest_qpn,
                                 .from = pair.number,
                                 .seq = pair.receive.expected - 1}))
        return Turn::Full;
    pair.receive.owes_ack = false;
    return Turn::Done;
}

// Of what a receive was complete with, but for what acknowledge_alone() is for.
inline void Engine::acknowledge(Pair &pair)
{
    if (is_poll_ && !answerer_)
        return acknowledge_alone(pair);
    pair.receive.owes_ack = true;
    if (answerer_)
        end_turn();
    has_work(pair);
}

// The program did not answer.
void Engine::end_turn()
{
    Pair &pair = *std::exchange(answerer_, nullptr);
    pair.receive.answered = 0;
    if (pair.receive.owes_ack)
        has_work(pair);
}

// The same where no drive follows.
void Engine::end_turn_now()
{
    Pair &pair = *answerer_;
    end_turn();
    if (pair.work.linked()) {
        pair.work.unlink();
        if (serve(pair) != Turn::Done)
            has_work(pair);
    }
}

// Of a queue pair that ends. What the word says was sent, unless the port is full.
void Engine::withdraw_word(const Pair &pair)
{
    publish();
    if (pair.link && pair.link->worded == &pair)
        take_back_word(*pair.link);
}

Engine::Turn Engine::send_answer(Pair &pair, Answer &answer)
{
    auto &receive = pair.receive;
    Link &link = *pair.link;
    const std::uint32_t bytes = bytes_of_piece(link, answer.total - answer.offset);
    const bool last = answer.offset + bytes == answer.total;
    const std::byte *from = nullptr;
    if (!answer.atomic && answer.total != 0) {
        from = keys_.find_for_peer(answer.key, pair.asker(), answer.address + answer.offset, bytes,
                                   NTBV_REMOTE_READ);
        if (!from) { // the region or window has gone meanwhile
            const std::uint32_t seq = answer.seq;
            receive.answers_tail = receive.answers_head;
            refuse(pair, NTBV_REM_ACCESS_ERR, NTBV_EVENT_QP_ACCESS_ERR);
            receive.expected = seq;
            return Turn::Done;
        }
    }
    std::byte *message = link.port->reserve(static_cast<std::uint32_t>(sizeof(Header)) + bytes);
    if (!message)
        return Turn::Full;
    const Header header = {.kind = Kind::Data,
                           .flags = last ? flag::last : std::uint8_t{0},
                           .attempt = receive.attempt,
                           .to = pair.attr.dest_qpn,
                           .from = pair.number,
                           .seq = answer.seq,
                           .bytes = bytes,
                           .offset = answer.offset,
                           .total = answer.total};
    std::memcpy(message, &header, sizeof(header));
    Places places;
    if (answer.atomic)
        places.add(reinterpret_cast<const std::byte *>(&answer.address), bytes);
    else if (bytes != 0)
        places.add(from, bytes);
    commit(link, sizeof(header), places);
    answer.offset += bytes;
    if (last)
        ++receive.answers_tail;
    return Turn::Done;
}

// ---- requests

[[gnu::flatten]] void Engine::take_request(Link &link, const Header &header,
                                           const std::byte *payload)
{
    Pair *pair = find(header.to);
    const bool has_receiver = pair && receives(*pair);
    if (has_receiver && pair->type == NTBV_UD) {
        take_datagram(*pair, link, header, payload);
    } else if (has_receiver && is_peer(*pair, link, header.from)) {
        take_connected(*pair, header, payload);
    } else {
        // Who sends UC or UD takes this for an answer to no request. A queue pair in error still
        // owes its requester why.
        if (!(pair && pair->receive.owes_nak && pair->attr.dest_qpn == header.from))
            note(link, header);
        return;
    }
    if (pair->overrun && pair->attr.state != NTBV_ERR)
        to_error(*pair);
}

inline void Engine::take_connected(Pair &pair, const Header &header, const std::byte *payload)
{
    auto &receive = pair.receive;
    if (pair.type == NTBV_RC) {
        // Whatever becomes of the request: the acknowledgement that rides on it comes once. Who
        // comes back has none for what was asked before.
        if ((header.flags & flag::ack) != 0 && !pair.send.misses_peer &&
            (pair.attr.state == NTBV_RTS || pair.attr.state == NTBV_SQD)) {
            take_ack(pair, header.ack);
            if (pair.attr.state == NTBV_ERR)
                return;
        }
        // Behind one that was to wait, of the same try: it comes again.
        if (receive.must_wait && header.attempt == receive.rnr_attempt)
            return;
        receive.must_wait = false;
        const auto ahead = static_cast<std::int32_t>(header.seq - receive.expected);
        const std::uint32_t executed = receive.expected - pair.attr.rq_psn;
        if (ahead < 0 && receive.expected - header.seq <= executed) {
            receive.owes_ack = true; // sent again: the answer is owed, or has gone
            has_work(pair);
            return;
        }
        // What was before it came when there was no receiver, and the requester goes back; or the
        // two programs do not agree where numbers begin, and it goes back in vain.
        if (ahead != 0 || (!receive.active && header.offset != 0)) {
            note(*pair.link, header);
            return;
        }
        receive.attempt = header.attempt;
    }
    switch (header.kind) {
    case Kind::Send:
    case Kind::Write:
        if ((header.flags & flag::lent) != 0) [[unlikely]]
            take_lent(pair, header);
        else
            take_piece(pair, header, payload);
        break;
    default:
        if (pair.type == NTBV_RC)
            take_read(pair, header, payload);
        break;
    }
}

bool Engine::next_receive(Pair &pair, Receive &receive)
{
    if (!pair.srq)
        return pair.receive.queue.take(receive);
    ntbv_srq &srq = *pair.srq;
    if (!srq.receives.take(receive))
        return false;
    if (srq.receives.count() < srq.limit) {
        srq.limit = 0; // disarmed until it is set again
        say(srq.cookie, NTBV_EVENT_SRQ_LIMIT_REACHED);
    }
    return true;
}

// The first message of a request.
// @retval false it was refused, or is to come again
bool Engine::begin(Pair &pair, const Header &header)
{
    auto &receive = pair.receive;
    const bool send = header.kind == Kind::Send;
    if (!send && header.total != 0) {
        const bool may = (pair.attr.access & NTBV_REMOTE_WRITE) != 0 &&
                         keys_.find_for_peer(header.key, pair.asker(), header.address, header.total,
                                             NTBV_REMOTE_WRITE);
        if (!may) {
            refuse(pair, NTBV_REM_ACCESS_ERR, NTBV_EVENT_QP_ACCESS_ERR);
            return false;
        }
    }
    if (send || (header.flags & flag::immediate) != 0) {
        if (!receive.has_receive && !next_receive(pair, receive.receive)) {
            if (pair.type != NTBV_RC)
                return false;
            receive.owes_rnr = receive.starves = receive.must_wait = true;
            receive.rnr_attempt = header.attempt;
            if (pair.srq)
                pair.srq->starved.append(pair.hungry);
            has_work(pair);
            return false;
        }
        receive.has_receive = true;
        if (receive.starves) {
            receive.starves = false;
            pair.hungry.unlink();
        }
        if (send && header.total > receive.receive.bytes) {
            refuse_receive(pair, NTBV_LOC_LEN_ERR, NTBV_REM_INV_REQ_ERR);
            return false;
        }
    }
    receive.active = true;
    receive.header = header;
    receive.offset = 0;
    return true;
}

inline void Engine::take_piece(Pair &pair, const Header &header, const std::byte *payload)
{
    auto &receive = pair.receive;
    // UC: a request without an end is followed by the next one, which uses its receive.
    if (pair.type == NTBV_UC && header.offset == 0)
        receive.active = receive.skips = false;
    if (receive.skips || (!receive.active && take_whole(pair, header, payload)))
        return;
    if (!receive.active) {
        if (header.offset != 0 || !begin(pair, header)) {
            receive.skips = pair.type == NTBV_UC;
            return;
        }
    } else if (header.offset == 0) {
        receive.offset = 0; // sent again, and perhaps divided at other places
    }
    const Header &first = receive.header;
    if (header.offset != receive.offset || header.kind != first.kind ||
        header.total != first.total || header.key != first.key || header.address != first.address ||
        ((header.flags ^ first.flags) & (flag::immediate | flag::invalidate)) != 0)
        return refuse(pair, NTBV_REM_INV_REQ_ERR, NTBV_EVENT_QP_REQ_ERR);
    if (header.kind == Kind::Send) {
        if (!scatter(pair, receive.receive.sge, receive.receive.n_sge, header.offset, header.bytes,
                     payload))
            return refuse_receive(pair, NTBV_LOC_PROT_ERR, NTBV_REM_OP_ERR);
    } else if (header.bytes != 0) {
        std::byte *to =
            keys_.find_for_peer(header.key, pair.asker(), header.address + header.offset,
                                header.bytes, NTBV_REMOTE_WRITE);
        if (!to)
            return refuse(pair, NTBV_REM_ACCESS_ERR, NTBV_EVENT_QP_ACCESS_ERR);
        place(to, payload, header.bytes);
    }
    receive.offset += header.bytes;
    if ((header.flags & flag::last) != 0) {
        note_question(pair, header);
        end(pair, header);
    }
}

// A SEND in one message for a receive of one piece. Nothing of both has to be kept for messages
// that follow, so nothing is copied but the data.
// @retval false it is another one, or something is wrong with it
inline bool Engine::take_whole(Pair &pair, const Header &header, const std::byte *payload)
{
    auto &receive = pair.receive;
    const Receive *const posted = receive.queue.next();
    if (header.kind != Kind::Send || header.bytes != header.total || header.bytes == 0 ||
        (header.flags & flag::invalidate) != 0 || receive.has_receive || receive.starves ||
        pair.srq)
        return false;
    std::byte *const to = place_of(pair, posted, header.bytes);
    if (!to)
        return false;
    std::memcpy(to, payload, header.bytes);
    receive.queue.drop();
    deliver(pair, header, posted->id);
    return true;
}

// The last message of a request was taken, which a receive is complete with.
inline void Engine::deliver(Pair &pair, const Header &header, std::uint64_t id)
{
    const unsigned unknown = pair.type == NTBV_RC ? 0u : flag::invalidate;
    push_received(pair, id, header.kind == Kind::Send ? NTBV_WC_RECV : NTBV_WC_RECV_WRITE_IMM,
                  header.total, header.flags & ~unknown, header.value);
    if (pair.type == NTBV_RC) {
        ++pair.receive.expected;
        acknowledge(pair);
    }
}

// The last message of a request was taken.
void Engine::end(Pair &pair, const Header &header)
{
    auto &receive = pair.receive;
    receive.active = false;
    const bool with_imm = (header.flags & flag::immediate) != 0;
    const bool ends_key = pair.type == NTBV_RC && (header.flags & flag::invalidate) != 0;
    if (ends_key && !keys_.invalidate(header.value, pair.asker()))
        return refuse_receive(pair, NTBV_MW_BIND_ERR, NTBV_REM_ACCESS_ERR);
    if (header.kind == Kind::Send || with_imm) {
        receive.has_receive = false;
        return deliver(pair, header, receive.receive.id);
    }
    watchful_rests_ = watchful_rests;
    if (pair.type == NTBV_RC) {
        ++receive.expected;
        receive.owes_ack = true;
        has_work(pair);
    }
}

void Engine::take_read(Pair &pair, const Header &header, const std::byte *payload)
{
    auto &receive = pair.receive;
    const bool atomic = header.kind != Kind::Read;
    const std::uint32_t right = atomic ? NTBV_REMOTE_ATOMIC : NTBV_REMOTE_READ;
    const std::uint32_t bytes = atomic ? 8 : header.total;
    if (receive.active ||
        receive.answers_head - receive.answers_tail >= pair.attr.max_dest_rd_atomic ||
        (atomic && header.address % 8 != 0))
        return refuse(pair, NTBV_REM_INV_REQ_ERR, NTBV_EVENT_QP_REQ_ERR);
    std::byte *memory = nullptr;
    if (bytes != 0) {
        memory = keys_.find_for_peer(header.key, pair.asker(), header.address, bytes, right);
        if (!memory || (pair.attr.access & right) == 0)
            return refuse(pair, NTBV_REM_ACCESS_ERR, NTBV_EVENT_QP_ACCESS_ERR);
    }
    Answer answer = {header.seq, bytes, 0, header.key, header.address, atomic};
    if (atomic) {
        // The program calls the memory by another address than where it is.
        if (reinterpret_cast<std::uintptr_t>(memory) % 8 != 0)
            return refuse(pair, NTBV_REM_INV_REQ_ERR, NTBV_EVENT_QP_REQ_ERR);
        std::uint64_t operands[2];
        std::memcpy(operands, payload, sizeof(operands));
        std::atomic_ref word(*reinterpret_cast<std::uint64_t *>(memory));
        if (header.kind == Kind::FetchAdd) {
            answer.address = word.fetch_add(operands[0]);
        } else {
            answer.address = operands[0];
            word.compare_exchange_strong(answer.address, operands[1]);
        }
    }
    note_question(pair, header);
    receive.answers[receive.answers_head++ % NTBV_MAX_READS] = answer;
    ++receive.expected;
    has_work(pair);
}

void Engine::take_datagram(Pair &pair, Link &link, const Header &header, const std::byte *payload)
{
    // Who answers goes by the number: a node must not speak for another one.
    if (header.from >> slot_bits != node_of(link.address))
        return;
    if (header.kind != Kind::Send || header.key != pair.attr.qkey || header.bytes != header.total ||
        header.total > NTBV_UD_MTU)
        return;
    Receives &posted = pair.srq ? pair.srq->receives : pair.receive.queue;
    if (posted.count() == 0 || posted.next_bytes() < NTBV_GRH_BYTES + header.total)
        return;
    Receive receive;
    next_receive(pair, receive);
    if (!scatter(pair, receive.sge, receive.n_sge, NTBV_GRH_BYTES, header.bytes, payload)) {
        push(pair, *pair.recv_cq,
             {.id = receive.id, .status = NTBV_LOC_PROT_ERR, .qpn = pair.number}, false);
        return fail(pair, NTBV_EVENT_QP_FATAL);
    }
    const bool with_imm = (header.flags & flag::immediate) != 0;
    push(pair, *pair.recv_cq,
         {.id = receive.id,
          .status = NTBV_SUCCESS,
          .opcode = NTBV_WC_RECV,
          .bytes = NTBV_GRH_BYTES + header.total,
          .imm = with_imm ? header.value : 0,
          .qpn = pair.number,
          .source_qpn = header.from,
          .flags = static_cast<std::uint32_t>(with_imm ? NTBV_WC_WITH_IMM : 0),
          .source_lid = lid_of(link.address)},
         (header.flags & flag::solicited) != 0);
}

// ---- refusing

// The expected request fails. UC drops it; a receive that it had is for the next one.
void Engine::refuse(Pair &pair, std::uint32_t code, ntbv_event event)
{
    auto &receive = pair.receive;
    if (pair.type == NTBV_UC) {
        receive.skips = true;
        receive.active = false;
        return;
    }
    receive.owes_nak = true;
    receive.nak_code = code;
    has_work(pair);
    fail(pair, event);
}

// So does the receive that it took.
void Engine::refuse_receive(Pair &pair, ntbv_status status, std::uint32_t code)
{
    auto &receive = pair.receive;
    receive.has_receive = receive.active = false;
    push(pair, *pair.recv_cq, {.id = receive.receive.id, .status = status, .qpn = pair.number},
         false);
    if (pair.type == NTBV_RC) {
        receive.owes_nak = true;
        receive.nak_code = code;
        has_work(pair);
    }
    to_error(pair);
}

bool Engine::scatter(const Pair &pair, const ntbv_sge *sge, std::uint32_t n_sge,
                     std::uint32_t offset, std::uint32_t bytes, const std::byte *from) const
{
    return each_part(keys_, pair.pd->id, sge, n_sge, offset, bytes, NTBV_LOCAL_WRITE,
                     [&from](std::byte *part, std::uint32_t length) {
                         std::memcpy(part, from, length);
                         from += length;
                     });
}

} // namespace ntb::verbs
