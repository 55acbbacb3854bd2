// SPDX-License-Identifier: BSD-3-Clause
// From a post to the port: requests are checked and kept, and sent at once if it is their turn. A
// lone SEND goes by lone.hpp.
#include <algorithm>
#include <cerrno>

#include "engine/lone.hpp"

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

// Whether a drive serves who sends its next request.
bool Engine::has_way(Pair &pair)
{
    const Link *link = pair.link ? pair.link : link_to(pair.send.queue[pair.send.next].peer());
    return link && has_port(*link);
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
    bool is_queued = false;
    for (; wr; wr = wr->next) {
        if (pair.direct.data() && !is_send(wr->opcode) && post_directly(pair, *wr))
            continue;
        error = enqueue(pair, *wr);
        if (error != 0) {
            *bad = wr;
            break;
        }
        is_queued = true;
    }
    if (is_queued)
        start_posted(pair);
    else if (answerer_)
        end_turn_now();
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
            Turn turn = serve(pair);
            // There is no one to go on with those whose peer has no way.
            while (turn == Turn::More && !has_way(pair))
                turn = serve(pair);
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
