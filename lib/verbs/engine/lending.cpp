// SPDX-License-Identifier: BSD-3-Clause
// Long SENDs whose data the peer copies from where they lie, in one step: decision 072. A region is
// lent to the peer of a queue pair that sends from it; once the peer has it mapped, a SEND says
// where its data are, and has none.
#include <atomic>
#include <cstring>
#include <utility>

#include "engine/engine.hpp"

namespace ntb::verbs
{
namespace
{

// From here on one copy is less than two; below, a message costs as much as its data.
constexpr std::uint32_t least_bytes = 4096;
// The receiver copies all of it in one step, while its other queue pairs wait.
constexpr std::uint32_t most_bytes = 4 << 20;
// SENDs from regions that have no place, until a region that has one is looked at.
constexpr std::uint32_t misses_of_a_look = 4;

} // namespace

// ---- requester

// Of the request that is next, of which nothing of this try was sent.
// @retval Message  it goes as others do, which also finds what is wrong with it
Engine::Lending Engine::lend(Pair &pair, Request &request)
{
    auto &send = pair.send;
    request.flags &= static_cast<std::uint8_t>(~was_lent);
    if (pair.type != NTBV_RC || request.bytes < least_bytes || request.bytes > most_bytes ||
        !is_send(request.opcode) || request.is_inline() || request.n_sge != 1)
        return Lending::Message;
    const ntbv_sge &piece = request.pieces()[0];
    if (!keys_.find(piece.key, pair.pd->id, piece.address, piece.length, 0) ||
        !keys_.at(piece.key).shared)
        return Lending::Message;
    Lent *const lent = find_lent(pair, piece.key);
    if (!lent)
        return say_lent(pair, piece.key) ? Lending::Message : Lending::Full;
    if (lent->state != Lent::State::Mapped)
        return Lending::Message;
    lent->was_used = true;
    Link &link = *pair.link;
    std::byte *const message = link.port->reserve(sizeof(Header));
    if (!message)
        return Lending::Full;
    Header header =
        header_of(pair, request, Kind::Send, flag::last | flag::lent | request.wire_flags());
    header.value = request.imm;
    header.key = piece.key;
    header.address = piece.address;
    give_ride(pair, header.flags, header.ack);
    std::memcpy(message, &header, sizeof(header));
    commit(link, sizeof(header));
    if (send.next == send.high) {
        first_sent(pair);
        ++counts_[NTBV_COUNT_LENT];
    }
    request.flags |= was_lent;
    started(pair);
    return Lending::Sent;
}

Lent *Engine::find_lent(Pair &pair, std::uint32_t key)
{
    for (Lent &lent : pair.lent)
        if (lent.key == key)
            return &lent;
    return nullptr;
}

// One region is looked at now and then, and stays if it is new or something was sent from it since:
// of more regions than there are places some stay for long, and few SENDs say so of another one.
// @retval NULL  not this time
Lent *Engine::place_to_lend(Pair &pair)
{
    if (Lent *const free = find_lent(pair, 0))
        return free;
    if (++pair.lent_misses % misses_of_a_look != 0)
        return nullptr;
    Lent &next = pair.lent[pair.next_lent++ % max_lent];
    return std::exchange(next.was_used, false) ? nullptr : &next;
}

// A peer that has not accepted anything yet may not listen. What it misses is not said again.
// @retval false the port is full
bool Engine::say_lent(Pair &pair, std::uint32_t key)
{
    if (!pair.send.reaches_peer)
        return true;
    const Region &region = keys_.at(key);
    const std::uint64_t number = find_grant(*pair.link, *region.shared, false);
    Lent *const lent = number == 0 || number == Port::later ? nullptr : place_to_lend(pair);
    if (!lent)
        return true;
    const std::uint16_t serial = static_cast<std::uint16_t>(pair.lent_serial + 1);
    if (!send_grant(pair,
                    {.kind = Kind::Lend,
                     .attempt = serial,
                     .value = static_cast<std::uint32_t>(lent - pair.lent),
                     .key = key},
                    {number, region.iova, region.length, NTBV_REMOTE_READ, 0}))
        return false;
    *lent = {key, Lent::State::Said, true, pair.lent_serial = serial};
    return true;
}

void Engine::take_mapped(Pair &pair, const Header &header)
{
    if (header.value >= max_lent)
        return;
    Lent &lent = pair.lent[header.value];
    if (lent.key != 0 && lent.key == header.key && lent.serial == header.attempt &&
        lent.state == Lent::State::Said)
        lent.state = Lent::State::Mapped;
}

// The oldest request goes again, by a message this time. So a peer that says it of whatever it is
// sent ends the queue pair.
void Engine::take_lacks(Pair &pair, const Header &header)
{
    auto &send = pair.send;
    if (header.attempt != send.attempt || pair.timer.linked() || !accept_until(pair, header.seq) ||
        !is_of_oldest(pair, header.seq))
        return;
    const Request &request = send.queue[send.done];
    if ((request.flags & was_lent) == 0)
        return fail_oldest(pair, NTBV_BAD_RESP_ERR);
    // Its region may have another key by now, and the place another region.
    if (Lent *const lent = find_lent(pair, request.pieces()[0].key))
        lent->state = Lent::State::Lacked;
    go_back(pair);
    has_work(pair);
}

// Of a region that ends, or changes.
void Engine::end_lending(std::uint32_t key)
{
    for (std::uint32_t slot = 0; lends_ && slot < max_pairs; ++slot)
        if (Lent *const lent = pairs_[slot] ? find_lent(*pairs_[slot], key) : nullptr)
            *lent = {};
}

// ---- responder

// All of it is what the peer says, but for the size of the segment.
void Engine::take_lend(Link &link, const Header &header, const std::byte *payload)
{
    Pair *const pair = find(header.to);
    if (!pair || !pair->direct.data() || !receives(*pair) || !is_peer(*pair, link, header.from) ||
        header.key == 0 || header.value >= max_lent)
        return;
    Direct &direct = pair->direct[max_directs + header.value];
    // What is asked for is waited for, so that no more is than there are places.
    if (direct.state == Direct::State::Opening)
        return;
    forget(direct);
    pair->receive.mapped &= ~(1U << header.value);
    Grant grant;
    std::memcpy(&grant, payload, sizeof(grant));
    direct.key = header.key;
    direct.serial = header.attempt;
    if (!may_open_lent(link, grant.number) ||
        !begin_opening(link, *pair, direct, grant, NTBV_REMOTE_READ, true))
        forget(direct);
}

bool Engine::may_open_lent(const Link &link, std::uint64_t number) const
{
    std::uint32_t n = 0;
    for (const Opened &opened : opened_) {
        const bool is_used = opened.segment || opened.is_asked_for;
        if (is_used && opened.link == &link && opened.number == number)
            return true;
        n += is_used && opened.is_lent;
    }
    return n < max_opened_lent;
}

// @retval false the port is full
bool Engine::say_mapped(Pair &pair)
{
    auto &mapped = pair.receive.mapped;
    for (std::uint32_t place = 0; mapped != 0; ++place) {
        const std::uint32_t bit = 1U << place;
        const Direct &direct = pair.direct[max_directs + place];
        if ((mapped & bit) != 0 && direct.state == Direct::State::Open &&
            !send_plain(*pair.link, {.kind = Kind::Mapped,
                                     .attempt = direct.serial,
                                     .to = pair.attr.dest_qpn,
                                     .from = pair.number,
                                     .value = place,
                                     .key = direct.key}))
            return false;
        mapped &= ~bit;
    }
    return true;
}

// The expected request, of which nothing but this comes, unless it is sent again.
void Engine::take_lent(Pair &pair, const Header &header)
{
    auto &receive = pair.receive;
    if (pair.type != NTBV_RC || (receive.active && receive.header.kind != Kind::Send))
        return refuse(pair, NTBV_REM_INV_REQ_ERR, NTBV_EVENT_QP_REQ_ERR);
    receive.active = false;
    Direct *direct = nullptr;
    const std::byte *there = nullptr;
    for (std::uint32_t i = max_directs; pair.direct.data() && !there && i < max_known; ++i) {
        direct = &pair.direct[i];
        there = direct->find(header.key, header.address, header.total, NTBV_REMOTE_READ);
    }
    if (!there)
        return lack(pair, header);
    if (!begin(pair, header))
        return;
    receive.active = false;
    if (!scatter(pair, receive.receive.sge, receive.receive.n_sge, 0, header.total, there))
        return refuse_receive(pair, NTBV_LOC_PROT_ERR, NTBV_REM_OP_ERR);
    // Behind the copy, as in transfer(): one of a region that has gone is of no use.
    std::atomic_signal_fence(std::memory_order_acquire);
    if (registered_word(*direct->opened->segment).load(std::memory_order_acquire) == 0) {
        forget(*direct);
        return lack(pair, header);
    }
    end(pair, header);
}

// It keeps the receive that it has taken, and comes again by a message, as do those behind it.
void Engine::lack(Pair &pair, const Header &header)
{
    auto &receive = pair.receive;
    receive.owes_lack = receive.must_wait = true;
    receive.rnr_attempt = header.attempt;
    has_work(pair);
}

} // namespace ntb::verbs
