// SPDX-License-Identifier: BSD-3-Clause
// What a queue pair asks of its peer, and what the peer answers.
#include <algorithm>
#include <cstring>

#include "engine/engine.hpp"

namespace ntb::verbs
{
namespace
{

// The specification's RNR timer codes, in microseconds.
constexpr std::uint32_t rnr_microseconds[32] = {
    655360, 10,    20,    30,    40,    60,     80,     120,    160,    240,   320,
    480,    640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240, 15360,
    20480,  30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520};

// Between tries where the program asked for none: as adapters do by default (code 14).
constexpr std::uint64_t default_timeout = std::uint64_t{4096} << 14;
// What a program is made to wait at most for the error that its peer is gone.
constexpr std::uint64_t longest_silence = 1000000000;

std::uint64_t timeout_of(const Pair &pair)
{
    return pair.attr.timeout == 0 ? default_timeout : std::uint64_t{4096} << pair.attr.timeout;
}

Kind kind_of(const Request &request)
{
    switch (request.opcode) {
    case NTBV_READ:
        return Kind::Read;
    case NTBV_CMP_SWP:
        return Kind::CmpSwap;
    case NTBV_FETCH_ADD:
        return Kind::FetchAdd;
    default:
        return request.is_write() ? Kind::Write : Kind::Send;
    }
}

Header datagram_header(const Pair &pair, const Request &request)
{
    return {.kind = Kind::Send,
            .flags = static_cast<std::uint8_t>(flag::last | request.wire_flags()),
            .to = request.qpn & qpn_mask,
            .from = pair.number,
            .bytes = request.bytes,
            .total = request.bytes,
            .value = request.imm,
            .key = (request.qkey >> 31) != 0 ? pair.attr.qkey : request.qkey};
}

} // namespace

// ---- sending

Engine::Turn Engine::send_requests(Pair &pair, std::uint32_t &budget)
{
    auto &send = pair.send;
    while (send.next != send.head) {
        if (send.halted || pair.timer.linked())
            return Turn::Done;
        if (send.queue[send.next].is_local()) {
            if (!execute_local(pair))
                return Turn::Done;
            continue;
        }
        // SQD finishes what it has begun.
        if (pair.attr.state != NTBV_RTS && !(pair.attr.state == NTBV_SQD && send.next != send.high))
            return Turn::Done;
        if (budget == 0)
            return Turn::More;
        Request &request = send.queue[send.next];
        if (pair.type == NTBV_UD) {
            if (send_datagram(pair, request) == Turn::Full)
                return Turn::Full;
            --budget;
            continue;
        }
        Link *link = pair.link;
        if (!link || link->state == Link::State::Down) {
            if (pair.type == NTBV_UC) {
                started(pair);
                retire(pair);
            } else {
                miss(pair);
            }
            continue;
        }
        if (link->state != Link::State::Up)
            return Turn::Full;
        if (send.next == send.high && send.offset == 0 && pair.direct.data()) {
            const Way way = go_directly(pair, request);
            if (way == Way::Waits)
                return Turn::Done;
            if (way == Way::Direct)
                continue;
        }
        if (send.offset == 0 && !may_start(pair, request))
            return Turn::Done;
        if (lends_ && send.offset == 0) {
            const Lending way = lend(pair, request);
            if (way == Lending::Full)
                return Turn::Full;
            if (way == Lending::Sent) {
                --budget;
                continue;
            }
        }
        if ((request.is_read() ? send_read(pair, request) : send_piece(pair, request)) ==
            Turn::Full)
            return Turn::Full;
        --budget;
    }
    return Turn::Done;
}

// The request that is next. One that was executed is not when what is before it is sent again.
// @retval false it has to wait, or has failed
bool Engine::execute_local(Pair &pair)
{
    auto &send = pair.send;
    Request &request = send.queue[send.next];
    if (send.next == send.high) {
        if (pair.attr.state != NTBV_RTS || is_fenced(pair, request))
            return false;
        const bool is_done = request.opcode == NTBV_BIND_MW
                                 ? keys_.bind(request.binding(), pair.asker())
                                 : keys_.invalidate(request.imm, pair.asker());
        if (!is_done) {
            halt(pair, request, NTBV_MW_BIND_ERR);
            return false;
        }
    }
    const bool is_oldest = send.done == send.next;
    if (send.next == send.high)
        request.seq = send.next_seq;
    started(pair);
    if (is_oldest)
        retire(pair);
    return true;
}

bool Engine::is_fenced(const Pair &pair, const Request &request)
{
    return (request.flags & NTBV_FENCE) != 0 && pair.send.reads != 0;
}

bool Engine::may_start(Pair &pair, Request &request)
{
    if (is_fenced(pair, request))
        return false;
    if (request.is_read() && pair.send.next == pair.send.high) {
        if (pair.attr.max_rd_atomic == 0) {
            halt(pair, request, NTBV_LOC_QP_OP_ERR);
            return false;
        }
        if (pair.send.reads >= pair.attr.max_rd_atomic)
            return false;
    }
    // What goes in one message is looked up as it goes.
    const std::uint32_t in_one = std::min(pair.link->payload, Port::undivided);
    if ((!request.is_read() && request.bytes <= in_one) || readable(pair, request))
        return true;
    halt(pair, request, NTBV_LOC_PROT_ERR);
    return false;
}

// Whether the local pieces are there, with the right to write where the answer goes to.
bool Engine::readable(const Pair &pair, Request &request) const
{
    return request.is_inline() ||
           each_part(keys_, pair.pd->id, request.pieces(), request.n_sge, 0, request.bytes,
                     request.is_read() ? NTBV_LOCAL_WRITE : 0, [](std::byte *, std::uint32_t) {});
}

bool Engine::gather(const Pair &pair, Request &request, std::uint32_t offset, std::uint32_t bytes,
                    Places &places) const
{
    if (request.is_inline()) {
        places.add(request.data() + offset, bytes);
        return true;
    }
    return each_part(
        keys_, pair.pd->id, request.pieces(), request.n_sge, offset, bytes, 0,
        [&](const std::byte *part, std::uint32_t length) { places.add(part, length); });
}

Engine::Turn Engine::send_piece(Pair &pair, Request &request)
{
    auto &send = pair.send;
    Link &link = *pair.link;
    const std::uint32_t offset = send.offset;
    const std::uint32_t bytes = bytes_of_piece(link, request.bytes - offset);
    const bool last = offset + bytes == request.bytes;
    std::byte *message = link.port->reserve(static_cast<std::uint32_t>(sizeof(Header)) + bytes);
    if (!message)
        return Turn::Full;
    Header header = header_of(pair, request, kind_of(request),
                              (last ? flag::last : 0) | request.wire_flags() |
                                  (last && asks(pair, request) ? flag::ask : 0));
    header.bytes = bytes;
    header.offset = offset;
    header.value = request.imm;
    Places places;
    if (!gather(pair, request, offset, bytes, places)) {
        halt(pair, request, NTBV_LOC_PROT_ERR);
        return Turn::Done;
    }
    give_ride(pair, header.flags, header.ack);
    std::memcpy(message, &header, sizeof(header));
    commit(link, sizeof(header), places);
    if (send.next == send.high)
        first_sent(pair);
    send.offset += bytes;
    if (last) {
        started(pair);
        if (pair.type == NTBV_UC)
            retire(pair);
    }
    return Turn::Done;
}

Engine::Turn Engine::send_datagram(Pair &pair, Request &request)
{
    Link *link = find_or_seek(request.peer());
    if (link && link->state != Link::State::Down) {
        if (!readable(pair, request)) {
            halt(pair, request, NTBV_LOC_PROT_ERR);
            return Turn::Done;
        }
        const bool goes = link->state == Link::State::Up ? transmit_datagram(pair, request, *link)
                                                         : keep_datagram(pair, request, *link);
        if (!goes) {
            add_work(*link, pair);
            return Turn::Full;
        }
    }
    started(pair);
    retire(pair);
    return Turn::Done;
}

// @retval false the port is full, or has to take others before it
bool Engine::transmit_datagram(Pair &pair, Request &request, Link &link)
{
    if (!send_early(link))
        return false;
    // What does not fit into a message of this port goes nowhere.
    if (request.bytes > link.payload)
        return true;
    const auto bytes = static_cast<std::uint32_t>(sizeof(Header)) + request.bytes;
    std::byte *message = link.port->reserve(bytes);
    if (!message)
        return false;
    const Header header = datagram_header(pair, request);
    std::memcpy(message, &header, sizeof(header));
    Places places;
    gather(pair, request, 0, request.bytes, places);
    commit(link, sizeof(header), places);
    return true;
}

// @retval false there is no room
bool Engine::keep_datagram(Pair &pair, Request &request, Link &link)
{
    std::uint32_t free = 0;
    while (free < max_early && early_[free].link)
        ++free;
    if (free == max_early)
        return false;
    Early &kept = early_[free];
    kept.link = &link;
    kept.turn = early_turn_++;
    kept.header = datagram_header(pair, request);
    Places places;
    gather(pair, request, 0, request.bytes, places);
    std::byte *to = kept.data;
    for (int i = 0; i < places.n; ++i) {
        std::memcpy(to, places.at[i].iov_base, places.at[i].iov_len);
        to += places.at[i].iov_len;
    }
    ++link.early;
    return true;
}

Engine::Turn Engine::send_read(Pair &pair, Request &request)
{
    auto &send = pair.send;
    const bool atomic = request.opcode != NTBV_READ;
    const std::uint64_t operands[2] = {request.compare_add, request.swap};
    const std::uint32_t bytes = atomic ? sizeof(operands) : 0;
    std::byte *message =
        pair.link->port->reserve(static_cast<std::uint32_t>(sizeof(Header)) + bytes);
    if (!message)
        return Turn::Full;
    Header header = header_of(pair, request, kind_of(request),
                              flag::last | (asks(pair, request) ? flag::ask : 0));
    header.bytes = bytes;
    give_ride(pair, header.flags, header.ack);
    std::memcpy(message, &header, sizeof(header));
    std::memcpy(message + sizeof(header), operands, bytes);
    commit(*pair.link, static_cast<std::uint32_t>(sizeof(Header)) + bytes);
    if (send.next == send.high) {
        first_sent(pair);
        ++send.reads;
    }
    started(pair);
    return Turn::Done;
}

// It completes with this error once all before it are complete.
void Engine::halt(Pair &pair, Request &request, ntbv_status status)
{
    request.status = static_cast<std::uint8_t>(status);
    pair.send.halted = true;
    if (pair.send.done == pair.send.next)
        fail_oldest(pair, status);
}

// ---- completing

// The oldest request, and the local ones behind it that have been executed already.
void Engine::retire(Pair &pair)
{
    auto &send = pair.send;
    do
        retire_one(pair);
    while (send.done != send.high && send.queue[send.done].is_local());
    if (send.halted && send.done == send.next)
        fail_oldest(pair, static_cast<ntbv_status>(send.queue[send.next].status));
    else if (pair.attr.state == NTBV_SQD && send.done == send.high && pair.attr.sqd_notify)
        say(pair.cookie, NTBV_EVENT_SQ_DRAINED);
}

void Engine::fail_oldest(Pair &pair, ntbv_status status)
{
    auto &send = pair.send;
    Request &request = send.queue[send.done];
    push(pair, *pair.send_cq, {.id = request.id, .status = status, .qpn = pair.number}, false);
    if (request.is_read() && send.done != send.high)
        --send.reads;
    ++send.done;
    if (pair.type == NTBV_RC) {
        to_error(pair);
    } else {
        pair.attr.state = NTBV_SQE;
        flush_send(pair);
    }
}

// All requests before `seq` are accepted.
// @retval false that cannot be: the queue pair is in error
bool Engine::accept_until(Pair &pair, std::uint32_t seq)
{
    auto &send = pair.send;
    if (static_cast<std::int32_t>(seq - send.seq(send.done)) <= 0)
        return true;
    if (static_cast<std::int32_t>(seq - send.seq(send.high)) <= 0) {
        while (!send.queue[send.done].is_read()) {
            retire(pair);
            if (pair.attr.state == NTBV_ERR)
                return false;
            if (send.seq(send.done) == seq) {
                // What has waited for this goes directly.
                if (send.done == send.high && send.next != send.head)
                    has_work(pair);
                return true;
            }
        }
    }
    if (send.done != send.head)
        fail_oldest(pair, NTBV_BAD_RESP_ERR);
    else
        to_error(pair);
    return false;
}

// Whether an answer is for the oldest request, and that one was sent.
bool Engine::is_of_oldest(Pair &pair, std::uint32_t seq)
{
    return pair.send.done != pair.send.high && pair.send.seq(pair.send.done) == seq;
}

void Engine::take_ack(Pair &pair, std::uint32_t seq)
{
    if (!ends_all(pair, seq))
        return take_ack_of_some(pair, seq);
    pair.send.reaches_peer = true;
    retire_one(pair);
}

[[gnu::flatten, gnu::noinline]] void Engine::take_ack_of_some(Pair &pair, std::uint32_t seq)
{
    if (static_cast<std::int32_t>(seq + 1 - pair.send.seq(pair.send.done)) > 0)
        pair.send.reaches_peer = true;
    accept_until(pair, seq + 1);
}

void Engine::take_nak(Pair &pair, const Header &header)
{
    if (!accept_until(pair, header.seq))
        return;
    if (!is_of_oldest(pair, header.seq))
        return; // of a request that is complete
    fail_oldest(pair, is_nak_code(header.value) ? static_cast<ntbv_status>(header.value)
                                                : NTBV_BAD_RESP_ERR);
}

void Engine::take_data(Pair &pair, const Header &header, const std::byte *payload)
{
    if (!accept_until(pair, header.seq))
        return;
    auto &send = pair.send;
    if (header.seq != send.seq(send.done))
        return;
    Request &request = send.queue[send.done];
    if (send.done == send.high || !request.is_read() || header.total != request.bytes ||
        header.offset != send.received) {
        if (send.done != send.head)
            fail_oldest(pair, NTBV_BAD_RESP_ERR);
        return;
    }
    if (!scatter(pair, request.pieces(), request.n_sge, header.offset, header.bytes, payload))
        return fail_oldest(pair, NTBV_LOC_PROT_ERR);
    send.received += header.bytes;
    send.reaches_peer = true;
    if ((header.flags & flag::last) != 0) {
        retire(pair);
        has_work(pair); // what waited for a fence or for its turn to read
    }
}

// ---- trying again

// Sends all again that is not complete.
void Engine::go_back(Pair &pair)
{
    auto &send = pair.send;
    send.next = send.done;
    send.offset = 0;
    ++send.attempt;
    send.halted = false; // found again when it is its turn
}

void Engine::take_rnr(Pair &pair, const Header &header)
{
    if (header.attempt != pair.send.attempt || pair.timer.linked() ||
        !accept_until(pair, header.seq))
        return;
    auto &send = pair.send;
    if (!is_of_oldest(pair, header.seq))
        return;
    if (pair.attr.rnr_retry != 7) {
        if (send.rnr_tries == pair.attr.rnr_retry)
            return fail_oldest(pair, NTBV_RNR_RETRY_EXC_ERR);
        ++send.rnr_tries;
    }
    go_back(pair);
    wait(pair, std::uint64_t{rnr_microseconds[header.value & 31]} * 1000, true);
}

// A try that ended early is none.
void Engine::take_ready(Pair &pair)
{
    if (!pair.timer.linked() || !pair.send.waits_for_receive)
        return;
    if (pair.send.rnr_tries != 0)
        --pair.send.rnr_tries;
    wake(pair);
}

void Engine::take_not_ready(Pair &pair, const Header &header)
{
    auto &send = pair.send;
    // Whatever it was said about: the next request asks.
    send.reaches_peer = false;
    if (header.attempt != send.attempt || pair.timer.linked() || send.done == send.high)
        return;
    if (pair.attr.timeout != 0) {
        if (send.tries == pair.attr.retry_cnt)
            return fail_oldest(pair, NTBV_RETRY_EXC_ERR);
        ++send.tries;
    }
    go_back(pair);
    wait(pair, timeout_of(pair), false);
}

void Engine::take_again(Link &link)
{
    for (std::uint32_t slot = 0; slot < max_pairs; ++slot) {
        Pair *pair = pairs_[slot];
        if (!pair || pair->type != NTBV_RC || !pair->link || pair->link->address != link.address ||
            (pair->attr.state != NTBV_RTS && pair->attr.state != NTBV_SQD) ||
            pair->timer.linked() || pair->send.done == pair->send.high)
            continue;
        go_back(*pair);
        wait(*pair, timeout_of(*pair), false);
    }
}

// The peer is gone. Programs end while requests of the other end are under way that it no longer
// cares for, and leaves behind itself: as on a cable, the error is due once all tries would have
// been in vain. Time that would not change the answer is not spent.
void Engine::miss(Pair &pair)
{
    pair.timer.unlink();
    pair.send.misses_peer = true;
    wait(pair, std::min((pair.attr.retry_cnt + 1u) * timeout_of(pair), longest_silence), false);
}

} // namespace ntb::verbs
