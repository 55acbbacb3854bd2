// SPDX-License-Identifier: BSD-3-Clause
// The short way of a lone SEND: from the post to the port, and from the port to the completion. It
// is inline, so that each of both is one function with the call of the program. Each looks at all
// there is first, and if anything is not as it most often is, it has done nothing.
#ifndef NTB_VERBS_ENGINE_LONE_HPP
#define NTB_VERBS_ENGINE_LONE_HPP

#include <algorithm>
#include <cstring>
#include <new>

#include "engine/engine.hpp"

namespace ntb::verbs
{

// Without a guess of the compiler's, which knows that they are few, and has one instruction that
// takes some 30 cycles for any number.
inline void copy(std::byte *to, const std::byte *from, std::size_t bytes)
{
    if (bytes - 8 <= 8) { // two words, which may be the same
        std::uint64_t first, last;
        std::memcpy(&first, from, 8);
        std::memcpy(&last, from + bytes - 8, 8);
        std::memcpy(to, &first, 8);
        std::memcpy(to + bytes - 8, &last, 8);
        return;
    }
    asm("" : "+r"(bytes));
    std::memcpy(to, from, bytes);
}

// ---- posted

// Whether what is posted next to a link that is up goes at once, without others before it.
inline bool Engine::is_alone(const Pair &pair, const Link &link)
{
    const auto &send = pair.send;
    const auto &receive = pair.receive;
    return link.work.empty() && pair.attr.state == NTBV_RTS && send.head == send.next &&
           send.next == send.high && send.head - send.done != send.queue.size() &&
           !pair.timer.linked() && !receive.owes_more() &&
           receive.answers_head == receive.answers_tail;
}

// A short SEND from one place, of a queue pair that has nothing else to send, to a port that has
// room: it is checked, put together in the port at once, and shown; and once the peer has it, it is
// kept, as no answer is taken before this call returns. Whatever else is posted, or is not there,
// or wrong, goes the other way.
// @retval false nothing was done
inline bool Engine::post_lone(Pair &pair, const ntbv_send_wr &wr)
{
    static_assert(NTBV_SEND_IMM == NTBV_SEND + 1);
    constexpr unsigned usual = NTBV_SIGNALED | NTBV_SOLICITED | NTBV_INLINE;
    if (wr.opcode - NTBV_SEND > 1u || (wr.flags & ~usual) != 0 || wr.n_sge != 1) [[unlikely]]
        return false;
    Link *const up = pair.link;
    if (!up || up->state != Link::State::Up) [[unlikely]]
        return false;
    Link &link = *up;
    link.port->expect_lone();
    if (!is_alone(pair, link)) [[unlikely]]
        return false;
    auto &send = pair.send;
    const ntbv_sge &piece = *wr.sge;
    const std::uint32_t bytes = piece.length;
    if (bytes - 1 >= std::min(most_of_a_lone_send, link.payload)) [[unlikely]]
        return false;
    const std::byte *data = nullptr;
    if ((wr.flags & NTBV_INLINE) == 0)
        data = keys_.find(piece.key, pair.pd->id, piece.address, bytes, 0);
    else if (bytes <= send.queue.max_inline())
        data = reinterpret_cast<const std::byte *>(piece.address);
    if (!data) [[unlikely]]
        return false;
    const auto whole = static_cast<std::uint32_t>(sizeof(Header)) + bytes;
    std::byte *const message = link.port->place(whole);
    if (!message) [[unlikely]]
        return false;
    auto flags = static_cast<std::uint8_t>(
        flag::last | ((wr.flags & NTBV_SOLICITED) != 0 ? flag::solicited : 0) |
        (wr.opcode == NTBV_SEND_IMM ? flag::immediate : 0));
    std::uint32_t ack = 0;
    note_answer(pair);
    if (pair.receive.owes_ack) [[likely]] // and nothing else, as it is alone
        take_along(pair, flags, ack);
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
    if (pair.type == NTBV_UC) [[unlikely]] {
        retire(pair);
        if (pair.overrun)
            to_error(pair);
    }
    if (answerer_) [[unlikely]]
        end_turn_now(); // that was no answer
    return true;
}

// ---- received

// Whether an acknowledgement may be kept back: none of another queue pair is, the peer may have it
// before all else that is owed, and if no answer comes the service is back within a millisecond.
inline bool Engine::may_hold(const Pair &pair) const
{
    const auto &receive = pair.receive;
    const Link &link = *pair.link;
    const bool is_back_soon = rest_ == Rest::Nap || (rest_ == Rest::None && !service_);
    return receive.answered == answers_of_a_habit && is_back_soon && link.has_words &&
           (!link.worded || link.worded == &pair) && receive.answers_head == receive.answers_tail &&
           !receive.owes_refusal();
}

// Of what a receive was complete with, if that was the first thing that a poll of an engine has
// taken to which the program may answer. The acknowledgement of a program that answers each request
// by one of its own rides on that: until then it is a word that the peer finds if this process
// ends, and the program's next post of a request or poll of an empty queue sends it if that is no
// answer, else the service does.
inline void Engine::acknowledge_alone(Pair &pair)
{
    pair.receive.owes_ack = true;
    answerer_ = &pair;
    if (!may_hold(pair)) [[unlikely]]
        return has_work(pair);
    pair.link->port->expect_lone(); // the answer
    pair.link->port->leave(pair.receive.ack_word | (pair.receive.expected - 1));
    pair.link->worded = &pair;
}

// @param flags  of the message, which may be of this kind and of that queue pair
inline void Engine::push_received(Pair &pair, std::uint64_t id, ntbv_wc_opcode opcode,
                                  std::uint32_t bytes, unsigned flags, std::uint32_t value)
{
    const unsigned what = flags & (flag::immediate | flag::invalidate);
    std::uint32_t imm = 0, has = 0;
    if (what != 0) [[unlikely]] {
        imm = value;
        has = what == flag::immediate    ? NTBV_WC_WITH_IMM
              : what == flag::invalidate ? NTBV_WC_WITH_INV
                                         : 0;
    }
    push(pair, *pair.recv_cq,
         {.id = id,
          .status = NTBV_SUCCESS,
          .opcode = static_cast<std::uint32_t>(opcode),
          .bytes = bytes,
          .imm = imm,
          .qpn = pair.number,
          .flags = has},
         (flags & flag::solicited) != 0);
}

// Where data that come in one message go.
// @param posted  NULL: no receive
// @retval NULL it is not of one piece with room for them, or has no right to it
inline std::byte *Engine::place_of(const Pair &pair, const Receive *posted, std::uint32_t bytes)
{
    if (!posted || posted->n_sge != 1 || bytes > posted->bytes) [[unlikely]]
        return nullptr;
    const ntbv_sge &piece = posted->sge[0];
    return keys_.find(piece.key, pair.pd->id, piece.address, bytes, NTBV_LOCAL_WRITE);
}

// A SEND that came alone for a receive of one piece, and with it perhaps the acknowledgement of the
// only request that is posted here: all of it is looked at first, and then done at once. Whatever
// else comes, or is wrong, goes the way of all messages.
// @retval false nothing was done
inline bool Engine::take_lone(Link &link, const Port::Incoming &message, const Pair *&of)
{
    LoneSend lone;
    if (!read_lone(message.data, message.bytes, lone)) [[unlikely]]
        return false;
    Pair *const found = find(lone.to);
    if (!found || found->link != &link) [[unlikely]]
        return false;
    Pair &pair = *found;
    auto &receive = pair.receive;
    const Receive *const posted = receive.queue.next(); // NULL as well: it has a shared queue
    const bool brings_ack = (lone.flags & flag::ack) != 0;
    if (pair.type != NTBV_RC || pair.attr.state != NTBV_RTS || pair.attr.dest_qpn != lone.from ||
        lone.seq != receive.expected || !receive.is_settled() ||
        (brings_ack && (pair.send.misses_peer || !ends_all(pair, lone.ack)))) [[unlikely]]
        return false;
    std::byte *const to = place_of(pair, posted, lone.bytes);
    if (!to) [[unlikely]]
        return false;
    if (brings_ack) [[likely]] {
        pair.send.reaches_peer = true;
        retire_first(pair);
    }
    receive.queue.drop();
    receive.attempt = lone.attempt;
    push_received(pair, posted->id, NTBV_WC_RECV, lone.bytes, lone.flags, lone.value);
    ++receive.expected;
    // As late as it can be: the last line of the data was asked for with the first, and has come by
    // then. Who looks for the completion has to wait for the lock; the acknowledgement is behind
    // it.
    copy(to, message.data + sizeof(Header), lone.bytes);
    acknowledge_alone(pair);
    if (pair.overrun) [[unlikely]]
        to_error(pair);
    of = &pair;
    return true;
}

// What follows once a message was received, of an engine that is calm: most often nothing.
inline Engine::Polled Engine::take_one(Link &link, const Port::Incoming &message)
{
    const Pair *of = nullptr;
    if (!take_lone(link, message, of)) [[unlikely]]
        return {take_for_poll(link, Port::Incoming(message)), nullptr};
    if (message.held) [[unlikely]]
        link.port->release();
    if (!message.more && is_calm_) [[likely]] // nothing was sent, and nothing is left behind
        return {1, of};
    return {1 + go_on(link, message.more), nullptr};
}

// What has a mark is not in memory then.
inline Engine::Polled Engine::poll_marked(Link &link)
{
    Port::Incoming message;
    if (!link.port->receive_marked(message)) [[unlikely]]
        return {drive_for_poll(&link), nullptr};
    return take_one(link, message);
}

inline Engine::Polled Engine::poll_counted(Link &link)
{
    Port::Incoming message;
    if (!link.port->receive(message)) [[unlikely]]
        return {drive_for_poll(&link), nullptr};
    return take_one(link, message);
}

} // namespace ntb::verbs

#endif
