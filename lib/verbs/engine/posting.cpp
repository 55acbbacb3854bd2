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

// Without a guess of the compiler's, which knows that they are few, and has one instruction that
// takes some 30 cycles for any number.
void copy(std::byte *to, const std::byte *from, std::size_t bytes)
{
    asm("" : "+r"(bytes));
    std::memcpy(to, from, bytes);
}

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

// Whether what is posted next goes at once, without others before it. Of a queue pair without link
// nothing does.
inline bool Engine::is_alone(const Pair &pair) const
{
    const auto &send = pair.send;
    const auto &receive = pair.receive;
    const Link *const link = pair.link;
    return link && link->state == Link::State::Up && link->work.empty() &&
           pair.attr.state == NTBV_RTS && send.head == send.next && send.next == send.high &&
           send.head - send.done != send.queue.size() && !pair.timer.linked() &&
           !receive.owes_more() && receive.answers_head == receive.answers_tail;
}

// A short SEND from one place, of a queue pair that has nothing else to send, to a port that has
// room: it is checked, put together in the port at once, and shown; and once the peer has it, it is
// kept, as no answer is taken before this call returns. Whatever else is posted, or is not there,
// or wrong, goes the other way.
// @retval false nothing was done
bool Engine::post_lone(Pair &pair, const ntbv_send_wr &wr)
{
    static_assert(NTBV_SEND_IMM == NTBV_SEND + 1);
    constexpr unsigned usual = NTBV_SIGNALED | NTBV_SOLICITED | NTBV_INLINE;
    if (wr.opcode - NTBV_SEND > 1u || (wr.flags & ~usual) != 0 || wr.n_sge != 1 || !is_alone(pair))
        return false;
    auto &send = pair.send;
    Link &link = *pair.link;
    const ntbv_sge &piece = *wr.sge;
    const std::uint32_t bytes = piece.length;
    if (bytes - 1 >= std::min(most_of_a_lone_send, link.payload))
        return false;
    const std::byte *data = nullptr;
    if ((wr.flags & NTBV_INLINE) == 0)
        data = keys_.find(piece.key, pair.pd->id, piece.address, bytes, 0);
    else if (bytes <= send.queue.max_inline())
        data = reinterpret_cast<const std::byte *>(piece.address);
    if (!data)
        return false;
    const auto whole = static_cast<std::uint32_t>(sizeof(Header)) + bytes;
    std::byte *const message = link.port->place(whole);
    if (!message)
        return false;
    auto flags = static_cast<std::uint8_t>(
        flag::last | ((wr.flags & NTBV_SOLICITED) != 0 ? flag::solicited : 0) |
        (wr.opcode == NTBV_SEND_IMM ? flag::immediate : 0));
    std::uint32_t ack = 0;
    give_ride(pair, flags, ack);
    // Where the peer may see it: what is known of it is not read back.
    new (message) Header{.kind = Kind::Send,
                         .flags = flags,
                         .attempt = send.attempt,
                         .to = pair.attr.dest_qpn,
                         .from = pair.number,
                         .seq = send.next_seq,
                         .bytes = bytes,
                         .offset = 0,
                         .total = bytes,
                         .value = wr.imm,
                         .key = 0,
                         .ack = ack,
                         .address = 0};
    copy(message + sizeof(Header), data, bytes);
    link.port->placed(whole);
    send.queue.put_lone(send.head, wr).seq = send.next_seq;
    shown(link);
    send.detours = 0;
    ++send.next_seq;
    send.head = send.next = send.high = send.head + 1;
    if (pair.type == NTBV_UC) {
        retire(pair);
        if (pair.overrun)
            to_error(pair);
    }
    if (answerer_)
        end_turn_now(); // that was no answer
    return true;
}

// Answers first: they are bounded, and the peer waits for them.
Engine::Turn Engine::serve(Pair &pair)
{
    std::uint32_t budget = packets_of_a_turn;
    Turn turn = send_answers(pair, budget);
    if (turn == Turn::Done)
        turn = send_requests(pair, budget);
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

int Engine::post_others(Pair &pair, const ntbv_send_wr *wr, const ntbv_send_wr **bad)
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
    if (wr && !wr->next && post_lone(pair, *wr))
        return 0;
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
