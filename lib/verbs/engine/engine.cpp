// SPDX-License-Identifier: BSD-3-Clause
// Links, time, and whose turn it is.
#include "engine/engine.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <time.h>

namespace ntb::verbs
{
namespace
{

std::uint64_t monotonic(void *)
{
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1000000000 +
           static_cast<std::uint64_t>(time.tv_nsec);
}

// What one drive does at most for each link.
constexpr int messages_of_a_drive = 64;
constexpr std::uint32_t pairs_of_a_drive = 64;
// Nanoseconds between two looks at a program that polls, and polls that make it one.
constexpr std::uint64_t nap = 1000000;
constexpr std::uint64_t polls_of_a_nap = 64;
// Who looks for what peers write to its memory polls as well, for its own requests, but not all the
// time.
constexpr std::uint32_t pardons_when_away = 16;
// A port has to carry a few cache lines at least.
constexpr std::uint32_t least_payload = 128;

bool is_answer(Kind kind)
{
    return kind == Kind::Ack || kind == Kind::Nak || kind == Kind::Rnr || kind == Kind::Ready ||
           kind == Kind::Data || kind == Kind::NotReady || kind == Kind::Grant ||
           kind == Kind::Mapped || kind == Kind::Lacks;
}

} // namespace

int Engine::create(Address own, ntbv_clock clock, void *context)
{
    if (!is_address(own))
        return -EINVAL;
    own_ = own;
    clock_ = clock ? clock : monotonic;
    context_ = context;
    lock_.prepare();
    if (!keys_.create() || !pairs_.create(max_pairs) || !early_.create(max_early))
        return -ENOMEM;
    return events_.create();
}

Engine::~Engine()
{
    if (is_direct())
        end_direct();
}

int Engine::attach(Port &port, Address peer)
{
    if (!is_address(peer) || port.longest() < sizeof(Header) + least_payload)
        return -EINVAL;
    // To itself an engine has two ports of one address: messages leave by the first.
    const Link *known = link_to(peer);
    if (peer != own_ && known && known->state != Link::State::Sought &&
        known->state != Link::State::Down)
        return -EEXIST;
    Link *link_of_peer = free_link(peer);
    if (!link_of_peer)
        return -ENOSPC;
    Link &link = *link_of_peer;
    stir();
    link.state = Link::State::Silent;
    link.heard = false;
    link.port = &port;
    link.payload =
        (port.longest() - static_cast<std::uint32_t>(sizeof(Header))) & ~std::uint32_t{63};
    return 0;
}

// One that waits for its port, or was lost and whose peer has come back, or a new one. If there are
// none left, one that was lost is given to another peer: who had it finds no link.
Link *Engine::free_link(Address peer)
{
    Link *lost = nullptr;
    for (std::uint32_t i = 0; i < n_links_; ++i) {
        Link &link = links_[i];
        const bool is_lost = link.state == Link::State::Down;
        if (link.address == peer && (is_lost || link.state == Link::State::Sought))
            return &link;
        if (is_lost)
            lost = &link;
    }
    if (n_links_ < NTBV_MAX_LINKS)
        lost = &links_[n_links_++];
    if (!lost)
        return nullptr;
    for (std::uint32_t slot = 0; slot < max_pairs; ++slot)
        if (pairs_[slot] && pairs_[slot]->link == lost)
            pairs_[slot]->link = nullptr;
    lost->address = peer;
    lost->bit = std::uint64_t{1} << (lost - links_);
    return lost;
}

void Engine::leave_ports()
{
    stir();
    for (std::uint32_t i = 0; i < n_links_; ++i) {
        forget_direct(links_[i]);
        fresh_ &= ~links_[i].bit;
        links_[i].state = Link::State::Down;
        links_[i].has_words = false;
        links_[i].worded = nullptr;
        links_[i].port = nullptr;
    }
}

bool Engine::seeks(Address peer)
{
    const Link *link = link_to(peer);
    return link && link->state == Link::State::Sought;
}

Link *Engine::find_or_seek(Address peer)
{
    Link *link = link_to(peer);
    if ((link && link->state != Link::State::Down) || !service_ || losing_ || !is_address(peer))
        return link;
    link = free_link(peer);
    if (!link)
        return nullptr;
    link->state = Link::State::Sought;
    link->port = nullptr;
    service_->seek(peer);
    return link;
}

void Engine::unreachable(Address peer)
{
    Link *link = link_to(peer);
    if (link && link->state == Link::State::Sought)
        lose(*link);
}

Link *Engine::link_to(Address peer)
{
    for (std::uint32_t i = 0; i < n_links_; ++i)
        if (links_[i].address == peer)
            return &links_[i];
    return nullptr;
}

void Engine::say(std::uint64_t cookie, ntbv_event event)
{
    const struct {
        std::uint64_t cookie;
        std::uint32_t type, zero;
    } record = {cookie, static_cast<std::uint32_t>(event), 0};
    events_.write(&record, sizeof(record));
}

int Engine::drive()
{
    stir();
    if (answerer_)
        end_turn();
    if (!waiting_.empty())
        run_timers();
    int done = 0;
    for (std::uint32_t i = 0; i < n_links_; ++i)
        done += drive(links_[i]);
    for (ntbv_cq *cq = owing_.first(); cq;) {
        ntbv_cq *next = cq->owing.next();
        if (cq->queue.notify())
            cq->owing.unlink();
        cq = next;
    }
    publish();
    return done;
}

[[gnu::flatten]] int Engine::drive_for_poll(Link *link)
{
    is_poll_ = true;
    const int done = link ? drive(*link) : drive();
    is_poll_ = false;
    hand_over();
    return done;
}

// Of a poll of an engine that was calm.
int Engine::take_for_poll(Link &link, const Port::Incoming &message)
{
    is_poll_ = true;
    const bool good = take(link, message);
    is_poll_ = false;
    link.port->release();
    if (good)
        return 1 + go_on(link, message.more);
    lose(link);
    hand_over();
    return 1;
}

// The same once it has taken one. @param more  there are others
int Engine::go_on(Link &link, bool more)
{
    is_poll_ = true;
    const int done = more ? drive(link) : send_work(link);
    is_poll_ = false;
    hand_over();
    return done;
}

// Whether nothing is to be done until a word of a port changes: these are known then. What comes by
// a link to itself the engine has sent itself, which is no longer calm then.
bool Engine::settle()
{
    if (!waiting_.empty() || !owing_.empty())
        return false;
    n_watched_ = 0;
    for (std::uint32_t i = 0; i < n_links_; ++i) {
        Link &link = links_[i];
        if (!has_port(link))
            continue;
        const Port::Watch &watch = link.port->watch();
        if (link.state != Link::State::Up || sends(link) || !watch.word)
            return false;
        if (link.address != own_)
            watched_[n_watched_++] = {&watch, &link};
        else if (!watch.is_quiet())
            return false;
    }
    return is_calm_ = true;
}

int Engine::drive(Link &link)
{
    if (!has_port(link))
        return 0;
    Port &port = *link.port;
    const bool has_greeted = link.state != Link::State::Silent || greet(link);
    int done = 0;
    Port::Incoming message;
    while (has_greeted && done < messages_of_a_drive && port.receive(message)) {
        ++done;
        const bool good = take(link, message);
        port.release();
        if (!good) {
            lose(link);
            return done;
        }
        if (is_poll_ && done == 1 && !message.more)
            break; // a lone one: to look for others costs more than the next poll
    }
    // Who was not greeted has sent nothing that would be received first.
    if (done == 0 && !(has_greeted ? port.alive() : port.reaches())) {
        lose(link);
        return 1;
    }
    return done + send_work(link);
}

// What has come. @retval false no engine sends this
bool Engine::take(Link &link, const Port::Incoming &message)
{
    Header header;
    const std::byte *payload = message.data + sizeof(Header);
    if (!read_header(message.data, message.bytes, header))
        return false;
    if (link.heard) {
        if (header.kind == Kind::Hello)
            return false;
        handle(link, header, payload);
        return true;
    }
    Address peer = 0;
    link.heard = header.kind == Kind::Hello &&
                 read_hello(payload, header.bytes, link.port->longest(), peer) &&
                 peer == link.address;
    link.has_words = link.port->left() != 0;
    link.state = Link::State::Up;
    return link.heard;
}

int Engine::send_work(Link &link)
{
    int done = 0;
    if (link.state != Link::State::Up || !sends(link) || !send_notes(link) || !send_early(link))
        return done;
    for (std::uint32_t i = 0; i < pairs_of_a_drive && !link.work.empty(); ++i) {
        Pair &pair = *link.work.first();
        pair.work.unlink();
        const Turn turn = serve(pair);
        if (turn == Turn::Full) {
            link.work.prepend(pair.work);
            break; // there is nothing to do until the peer has made room
        }
        ++done;
        if (turn == Turn::More)
            link.work.append(pair.work);
    }
    return done;
}

// ---- sleeping

bool Engine::arm()
{
    for (std::uint32_t i = 0; i < n_links_; ++i) {
        Link &link = links_[i];
        link.armed_for_room = has_port(link) && sends(link);
        if (has_port(link) && !(link.port->alive() && link.port->arm(link.armed_for_room))) {
            disarm();
            return false;
        }
    }
    return true;
}

void Engine::disarm()
{
    for (std::uint32_t i = 0; i < n_links_; ++i)
        if (has_port(links_[i]))
            links_[i].port->disarm();
}

std::uint64_t Engine::deadline() const
{
    // A channel without room for an event has no bell.
    std::uint64_t first = owing_.empty() ? UINT64_MAX : now() + nap;
    for (const Pair *pair = waiting_.first(); pair; pair = pair->timer.next())
        first = std::min(first, pair->send.deadline);
    return first;
}

bool Engine::is_unattended() const
{
    for (std::uint32_t i = 0; i < n_links_; ++i)
        if (has_port(links_[i]) && sends(links_[i]) && !links_[i].armed_for_room)
            return true;
    return deadline() < armed_until_;
}

bool Engine::is_polled()
{
    const bool is =
        polls_ - polls_at_look_ > polls_of_a_nap && polls_ - polls_at_arm_ > polls_of_a_nap;
    if (!is || pardons_ == 0)
        return is;
    --pardons_;
    polls_at_look_ = polls_;
    return false;
}

bool Engine::begin_look()
{
    if (is_polled())
        return false;
    polls_at_look_ = polls_;
    return true;
}

// Who polls needs no bell, and its peers need not ring.
Engine::Rest Engine::rest(std::uint64_t &nanoseconds)
{
    const bool naps = is_polled();
    polls_at_look_ = polls_;
    if (!naps && holds_ack())
        return rest_ = Rest::None; // no answer comes from a program that does not poll
    armed_until_ = deadline();
    const std::uint64_t time = armed_until_ == UINT64_MAX ? 0 : now();
    nanoseconds =
        armed_until_ == UINT64_MAX ? UINT64_MAX : armed_until_ - std::min(armed_until_, time);
    watchful_rests_ -= watchful_rests_ != 0;
    if (naps) {
        nanoseconds = std::min(nanoseconds, nap);
        rest_ = Rest::Nap;
    } else {
        rest_ = arm() ? Rest::Asleep : Rest::None;
    }
    return rest_;
}

void Engine::rise()
{
    if (rest_ == Rest::Asleep)
        disarm();
    rest_ = Rest::None;
}

bool Engine::may_be_away(std::uint64_t &calls)
{
    if (!is_content_ || watchful_rests_ == 0)
        return false;
    if (std::exchange(calls, calls_) == calls_)
        pardons_ = pardons_when_away;
    return true;
}

void Engine::expect_event()
{
    polls_at_arm_ = polls_;
    if (rest_ == Rest::Nap)
        rouse();
}

void Engine::rouse()
{
    rise();
    service_->wake();
}

// At the end of a call, of an engine that is not known to be calm. Once it is, no call looks again
// until something is to be done: a program whose requests go directly posts many, and polls seldom.
[[gnu::noinline]] void Engine::rouse_if_needed()
{
    if (!settle() && is_unattended())
        rouse();
}

// ---- serving

bool Engine::greet(Link &link)
{
    std::byte *message = link.port->reserve(sizeof(Header) + sizeof(Hello));
    if (!message)
        return false;
    link.port->leave(leaves_words); // before the Hello, with which the peer looks
    const Header header = {.kind = Kind::Hello, .bytes = sizeof(Hello), .total = sizeof(Hello)};
    const Hello hello = {hello_magic, wire_version, link.port->longest(), own_, 0};
    std::memcpy(message, &header, sizeof(header));
    std::memcpy(message + sizeof(header), &hello, sizeof(hello));
    commit(link, sizeof(Header) + sizeof(Hello));
    link.state = Link::State::Greeted;
    return true;
}

bool Engine::send_plain(Link &link, const Header &header)
{
    std::byte *message = link.port->reserve(sizeof(Header));
    if (!message)
        return false;
    std::memcpy(message, &header, sizeof(header));
    commit(link, sizeof(Header));
    return true;
}

void Engine::note(Link &link, const Header &header)
{
    stir();
    if (link.notes_head - link.notes_tail == Link::max_notes) {
        link.owes_again = true;
        return;
    }
    link.notes[link.notes_head++ % Link::max_notes] = {header.from, header.to, header.seq,
                                                       header.attempt};
}

bool Engine::send_notes(Link &link)
{
    for (; link.notes_tail != link.notes_head; ++link.notes_tail) {
        const Link::Note &note = link.notes[link.notes_tail % Link::max_notes];
        if (!send_plain(link, {.kind = Kind::NotReady,
                               .attempt = note.attempt,
                               .to = note.to,
                               .from = note.from,
                               .seq = note.seq}))
            return false;
    }
    if (link.owes_again) {
        if (!send_plain(link, {.kind = Kind::Again}))
            return false;
        link.owes_again = false;
    }
    return true;
}

// In the order in which they were kept. What does not fit into a message of this port goes nowhere.
bool Engine::send_early(Link &link)
{
    while (link.early != 0) {
        Early *first = nullptr;
        for (std::uint32_t i = 0; i < max_early; ++i)
            if (early_[i].link == &link && (!first || early_[i].turn < first->turn))
                first = &early_[i];
        const auto bytes = static_cast<std::uint32_t>(sizeof(Header)) + first->header.bytes;
        if (first->header.bytes <= link.payload) {
            std::byte *message = link.port->reserve(bytes);
            if (!message)
                return false;
            std::memcpy(message, &first->header, sizeof(Header));
            std::memcpy(message + sizeof(Header), first->data, first->header.bytes);
            commit(link, bytes);
        }
        first->link = nullptr;
        --link.early;
    }
    return true;
}

void Engine::drop_early(Link &link)
{
    for (std::uint32_t i = 0; link.early != 0; ++i) {
        if (early_[i].link == &link) {
            early_[i].link = nullptr;
            --link.early;
        }
    }
}

void Engine::handle(Link &link, const Header &header, const std::byte *payload)
{
    if (header.kind == Kind::Again)
        return take_again(link);
    if (header.kind == Kind::Lend)
        return take_lend(link, header, payload);
    if (!is_answer(header.kind))
        return take_request(link, header, payload);
    Pair *pair = find(header.to);
    // An answer to a queue pair that is not connected to its sender (any more) is no one's.
    if (!pair || pair->type != NTBV_RC || !is_peer(*pair, link, header.from) ||
        pair->send.misses_peer || (pair->attr.state != NTBV_RTS && pair->attr.state != NTBV_SQD))
        return;
    switch (header.kind) {
    case Kind::Ack:
        take_ack(*pair, header.seq);
        break;
    case Kind::Nak:
        take_nak(*pair, header);
        break;
    case Kind::Rnr:
        take_rnr(*pair, header);
        break;
    case Kind::Ready:
        take_ready(*pair);
        break;
    case Kind::Data:
        take_data(*pair, header, payload);
        break;
    case Kind::Grant:
        take_grant(link, *pair, header, payload);
        break;
    case Kind::Mapped:
        take_mapped(*pair, header);
        break;
    case Kind::Lacks:
        take_lacks(*pair, header);
        break;
    default:
        take_not_ready(*pair, header);
        break;
    }
    if (pair->overrun && pair->attr.state != NTBV_ERR)
        to_error(*pair);
}

// An engine that has ended owes no acknowledgement.
void Engine::take_word(Link &link)
{
    Header header;
    if (link.has_words && read_word(link.port->left(), own_, link.address, header))
        handle(link, header, nullptr);
}

void Engine::lose(Link &link)
{
    stir();
    if (link.state == Link::State::Up)
        take_word(link);
    fresh_ &= ~link.bit;
    if (link.port)
        link.port->close();
    link.state = Link::State::Down;
    link.has_words = false;
    link.worded = nullptr;
    forget_direct(link);
    link.notes_tail = link.notes_head;
    link.owes_again = false;
    drop_early(link);
    // Datagrams and UC complete what no one will get.
    losing_ = true;
    while (Pair *pair = link.work.first()) {
        pair->work.unlink();
        while (pair->type != NTBV_RC && serve(*pair) == Turn::More) {
        }
    }
    losing_ = false;
    for (std::uint32_t slot = 0; slot < max_pairs; ++slot) {
        Pair *pair = pairs_[slot];
        if (pair && pair->link == &link && pair->type == NTBV_RC &&
            (pair->attr.state == NTBV_RTS || pair->attr.state == NTBV_SQD) &&
            pair->send.done != pair->send.head)
            miss(*pair);
    }
}

void Engine::run_timers()
{
    const std::uint64_t time = now();
    for (Pair *pair = waiting_.first(); pair;) {
        Pair *next = pair->timer.next();
        if (time >= pair->send.deadline && pair->send.misses_peer) {
            pair->timer.unlink();
            fail_oldest(*pair, NTBV_RETRY_EXC_ERR);
        } else if (time >= pair->send.deadline) {
            wake(*pair);
        }
        pair = next;
    }
}

void Engine::wait(Pair &pair, std::uint64_t nanoseconds, bool for_receive)
{
    stir();
    pair.send.deadline = now() + nanoseconds;
    pair.send.waits_for_receive = for_receive;
    waiting_.append(pair.timer);
}

void Engine::wake(Pair &pair)
{
    pair.timer.unlink();
    has_work(pair);
}

} // namespace ntb::verbs
