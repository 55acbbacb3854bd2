// SPDX-License-Identifier: BSD-3-Clause
// From a post to the port: requests are checked and kept, and sent at once if it is their turn.
// Most often that is a lone SEND.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "engine/engine.hpp"

namespace ntb::verbs
{
namespace
{

// Messages of a queue pair, until it is the next one's turn.
constexpr std::uint32_t packets_of_a_turn = 16;

bool fits(ntbv_qp_type type, const ntbv_send_wr &wr)
{
    if (type == NTBV_RC)
        return true;
    if (type == NTBV_UC)
        return wr.opcode < NTBV_READ || wr.opcode == NTBV_LOCAL_INV || wr.opcode == NTBV_BIND_MW;
    return wr.opcode == NTBV_SEND || wr.opcode == NTBV_SEND_IMM;
}

} // namespace

// ---- sending

// Whether the request that is next is a SEND that goes in one message, nothing waits before it, and
// no answer is owed but an acknowledgement. Of a queue pair of which something was posted.
inline bool Engine::is_lone_send(Pair &pair)
{
    const auto &send = pair.send;
    const auto &receive = pair.receive;
    const Link *const link = pair.link;
    if (pair.attr.state != NTBV_RTS || pair.type == NTBV_UD || send.head - send.next != 1 ||
        send.next != send.high || send.halted || pair.timer.linked() || !link ||
        link->state != Link::State::Up || receive.owes_more() ||
        receive.answers_head != receive.answers_tail)
        return false;
    const Request &request = pair.send.queue[send.next];
    return (request.opcode == NTBV_SEND || request.opcode == NTBV_SEND_IMM) &&
           (request.flags & NTBV_FENCE) == 0 && request.bytes <= link->payload;
}

// From one place, and short, it is put together where the port has room for it; else, and if its
// memory is not there, it goes as any other.
inline bool Engine::send_lone(Pair &pair, Turn &turn)
{
    if (!is_lone_send(pair))
        return false;
    auto &send = pair.send;
    Request &request = send.queue[send.next];
    send.detours = 0;
    turn = Turn::Done;
    const std::byte *data = nullptr;
    if (request.bytes != 0 && request.bytes <= most_of_a_lone_send) {
        const ntbv_sge &piece = *request.pieces();
        if (request.is_inline())
            data = request.data();
        else if (request.n_sge == 1)
            data = keys_.find(piece.key, pair.pd->id, piece.address, request.bytes, 0);
    }
    if (!data) {
        turn = send_piece(pair, request);
        return true;
    }
    const auto whole = static_cast<std::uint32_t>(sizeof(Header)) + request.bytes;
    std::byte *const message = pair.link->port->reserve(whole, true);
    if (!message) {
        turn = Turn::Full;
        return true;
    }
    request.seq = send.next_seq;
    auto flags = static_cast<std::uint8_t>(flag::last | request.wire_flags());
    std::uint32_t ack = 0;
    give_ride(pair, flags, ack);
    // Where the peer may see it: what is known of it is not read back.
    new (message) Header{.kind = Kind::Send,
                         .flags = flags,
                         .attempt = send.attempt,
                         .to = pair.attr.dest_qpn,
                         .from = pair.number,
                         .seq = request.seq,
                         .bytes = request.bytes,
                         .offset = 0,
                         .total = request.bytes,
                         .value = request.imm,
                         .key = 0,
                         .ack = ack,
                         .address = 0};
    std::memcpy(message + sizeof(Header), data, request.bytes);
    commit(*pair.link, whole);
    first_sent(pair);
    started(pair);
    if (pair.type == NTBV_UC)
        retire(pair);
    return true;
}

// Answers first: they are bounded, and the peer waits for them.
Engine::Turn Engine::serve(Pair &pair)
{
    Turn turn;
    if (!send_lone(pair, turn)) {
        std::uint32_t budget = packets_of_a_turn;
        turn = send_answers(pair, budget);
        if (turn == Turn::Done)
            turn = send_requests(pair, budget);
    }
    if (turn == Turn::Done && pair.receive.owes_ack) // none went that it could ride on
        turn = send_ack(pair);
    if (pair.overrun && pair.attr.state != NTBV_ERR)
        to_error(pair);
    return turn;
}

// ---- posting

// What is wrong by itself. What depends on regions and states is found when it is its turn.
int Engine::make_binding(ntbv_bind *bind, Binding &binding)
{
    // The right to write locally is said by programs, and no one uses a window locally.
    constexpr unsigned known = NTBV_LOCAL_WRITE | NTBV_REMOTE_WRITE | NTBV_REMOTE_READ |
                               NTBV_REMOTE_ATOMIC | NTBV_ZERO_BASED;
    if (!bind || !bind->mw || bind->mw->pd->engine != this || (bind->access & ~known) != 0)
        return -EINVAL;
    const ntbv_mw &window = *bind->mw;
    if (window.type == NTBV_MW_2 && !keys_.may_have(window.window, bind->key))
        return -EINVAL;
    if (window.type == NTBV_MW_1) {
        const std::uint32_t key = keys_.renew(window.window);
        if (key == 0)
            return -ENOMEM;
        bind->key = key;
    }
    binding = {window.window, bind->key,    bind->region_key,
               bind->address, bind->length, bind->access};
    return 0;
}

inline int Engine::enqueue(Pair &pair, const ntbv_send_wr &wr)
{
    constexpr unsigned flags = NTBV_FENCE | NTBV_SIGNALED | NTBV_SOLICITED | NTBV_INLINE;
    auto &send = pair.send;
    if (pair.attr.state < NTBV_RTS || !fits(pair.type, wr) || (wr.flags & ~flags) != 0)
        return -EINVAL;
    if (wr.opcode > NTBV_SEND_INV)
        return -EOPNOTSUPP;
    if (send.head - send.done == send.queue.size())
        return -ENOMEM;
    const bool is_plain = is_send(wr.opcode) && pair.type != NTBV_UD;
    const int error = send.queue.put(send.head, wr, is_plain);
    if (error != 0)
        return error;
    if (is_plain) {
        ++send.head;
        return 0;
    }
    const Request &request = send.queue[send.head];
    const bool is_atomic = wr.opcode == NTBV_CMP_SWP || wr.opcode == NTBV_FETCH_ADD;
    if ((is_atomic && request.bytes != 8) || (pair.type == NTBV_UD && request.bytes > NTBV_UD_MTU))
        return -EINVAL;
    if (wr.opcode == NTBV_BIND_MW) {
        Binding binding;
        const int no_binding = make_binding(wr.bind, binding);
        if (no_binding != 0)
            return no_binding;
        send.queue.put_binding(send.head, binding);
    }
    ++send.head;
    return 0;
}

[[gnu::flatten]] int Engine::post_send(Pair &pair, const ntbv_send_wr *wr, const ntbv_send_wr **bad)
{
    int error = 0;
    for (; wr; wr = wr->next) {
        if (pair.direct.data() && !is_send(wr->opcode) && post_directly(pair, *wr))
            continue;
        error = enqueue(pair, *wr);
        if (error != 0) {
            *bad = wr;
            break;
        }
    }
    start_posted(pair);
    return error;
}

int Engine::post_send_all(Pair &pair, const ntbv_send_wr *wr)
{
    const std::uint32_t head = pair.send.head;
    for (; wr; wr = wr->next) {
        const int error = enqueue(pair, *wr);
        if (error != 0) {
            pair.send.head = head;
            return error;
        }
    }
    start_posted(pair);
    return 0;
}

void Engine::start_posted(Pair &pair)
{
    auto &send = pair.send;
    if (pair.attr.state == NTBV_ERR || pair.attr.state == NTBV_SQE) {
        flush_send(pair);
    } else if (!pair.work.linked() && send.next != send.head) {
        // Behind those that wait for room, unless it needs none.
        if (pair.link && !pair.link->work.empty() && !send.queue[send.next].is_local()) {
            has_work(pair);
        } else {
            const Turn turn = serve(pair);
            if (turn != Turn::Done && !pair.work.linked()) {
                if (pair.link)
                    has_work(pair);
                else if (Link *link = link_to(send.queue[send.next].peer()))
                    add_work(*link, pair);
            }
        }
    }
    if (answerer_)
        end_turn_now(); // that was no answer
}

} // namespace ntb::verbs
