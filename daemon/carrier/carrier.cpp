// SPDX-License-Identifier: BSD-3-Clause
#include "carrier/carrier.hpp"

#include "carrier/byte_relay.hpp"
#include "carrier/line_relay.hpp"
#include "ring/polling.hpp"
#include "server/log.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <sys/eventfd.h>

namespace ntbd
{

namespace
{
// What is watched besides bells, whose numbers are those of connections.
constexpr uint64_t id_stop = UINT64_MAX;
constexpr uint64_t id_orders = UINT64_MAX - 1;
constexpr uint64_t id_bridge = UINT64_MAX - 2;

// Time-outs of the bridge that are no events are looked at this often.
constexpr int recheck_ms = 100;
// While some connections are polled, the bells of others are looked at once in so many turns.
constexpr unsigned turns_per_look = 32;
constexpr size_t unsent_max = 65536;
} // namespace

Carrier::Carrier(Bridge &bridge, Mailbox &mailbox)
    : bridge_(bridge), mailbox_(mailbox), poll_(epoll_create1(EPOLL_CLOEXEC)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
}

Carrier::~Carrier()
{
    for (const int fd : {poll_, stop_})
        if (fd >= 0)
            close(fd);
}

bool Carrier::watch(int fd, uint64_t id, uint32_t events)
{
    epoll_event event = {};
    event.events = events;
    event.data.u64 = id;
    return epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &event) == 0;
}

void Carrier::stop()
{
    stops_.store(true);
    eventfd_write(stop_, 1);
}

bool Carrier::run()
{
    if (poll_ < 0 || stop_ < 0 || !watch(stop_, id_stop, EPOLLIN) ||
        !watch(mailbox_.orders().fd(), id_orders, EPOLLIN) ||
        !watch(bridge_.event_fd(), id_bridge, EPOLLIN))
        return false;
    for (unsigned turns = 0; !stops_.load(std::memory_order_relaxed); turns++) {
        bool worked = bridge_.poll(*this);
        if (mailbox_.orders().any())
            take_orders();
        send_messages();
        worked = turn() || worked;
        if (!active_.empty() || worked) {
            if (turns % turns_per_look == 0) {
                look_at_bells(0);
                publish();
            }
            if (!worked)
                ntbc::pause_lap();
            continue;
        }
        publish();
        if (!bridge_.arm())
            continue;
        sleeps_++;
        look_at_bells(is_behind() ? 1 : recheck_ms);
        bridge_.disarm();
    }
    active_.clear();
    relays_.clear();
    return true;
}

// ---- orders of the server

void Carrier::take_orders()
{
    while (auto order = mailbox_.orders().take())
        take(std::move(*order));
}

void Carrier::take(RelayOrder &&order)
{
    const auto found = relays_.find(order.id);
    switch (order.kind) {
    case RelayOrder::Kind::expect:
    case RelayOrder::Kind::connect:
        create(std::move(order));
        return;
    case RelayOrder::Kind::let_go:
    case RelayOrder::Kind::abandon:
    case RelayOrder::Kind::fin:
    case RelayOrder::Kind::rest:
        if (found != relays_.end())
            pass_on(*found->second, order);
        return;
    case RelayOrder::Kind::send:
        unsent_.push_back(std::move(order));
        if (unsent_.size() > unsent_max)
            bridge_.drop_peer(unsent_.back().token);
        return;
    case RelayOrder::Kind::drop_peer:
        bridge_.drop_peer(order.token);
        return;
    }
}

void Carrier::pass_on(Relay &relay, const RelayOrder &order)
{
    switch (order.kind) {
    case RelayOrder::Kind::abandon:
        relay.abandon();
        break;
    case RelayOrder::Kind::fin:
        relay.fin_seen(order.generation);
        break;
    case RelayOrder::Kind::rest:
        relay.rest();
        break;
    default:
        relay.let_go();
        break;
    }
    activate(relay);
}

void Carrier::create(RelayOrder &&order)
{
    const bool connects = order.kind == RelayOrder::Kind::connect;
    Ticket ticket;
    ticket.id = order.peer_id;
    ticket.token = order.token;
    ticket.ring_bytes = order.memory->ring_bytes();
    const uint32_t peer_ring_bytes = order.peer_ring_bytes;
    const uint64_t id = order.id;
    std::unique_ptr<Relay> relay;
    if (order.is_claim)
        relay = std::make_unique<LineRelay>(std::move(order), traffic_, mailbox_);
    else
        relay = std::make_unique<ByteRelay>(std::move(order), traffic_);
    Relay &made = *relay;
    relays_[id] = std::move(relay);
    // Each byte of the bell is an edge, and so is its end.
    if (!watch(made.bell(), id, EPOLLIN | EPOLLET)) {
        made.end(-ENOMEM);
    } else if (connects) {
        std::unique_ptr<Pipe> pipe = bridge_.connect(ticket, &made);
        if (pipe == nullptr)
            made.end(-ECONNRESET);
        else
            made.join(std::move(pipe), false, peer_ring_bytes);
    }
    activate(made);
}

void Carrier::send_messages()
{
    while (!unsent_.empty()) {
        if (bridge_.send(unsent_.front().token, unsent_.front().message) == Bridge::Sent::later)
            return;
        unsent_.pop_front();
    }
}

// ---- the bridge

Relay *Carrier::admit(const void *data, size_t bytes)
{
    Ticket ticket;
    const Ticket known;
    if (bytes == sizeof(ticket))
        memcpy(&ticket, data, sizeof(ticket));
    const auto found = relays_.find(ticket.id);
    if (bytes == sizeof(ticket) && ticket.magic == known.magic && ticket.version == known.version &&
        ntbc::is_ring_size(ticket.ring_bytes) && found != relays_.end() &&
        found->second->expects(ticket))
        return found->second.get();
    refused_++;
    return nullptr;
}

void Carrier::join(Relay *relay, std::unique_ptr<Pipe> pipe, uint32_t peer_ring_bytes)
{
    relay->join(std::move(pipe), true, peer_ring_bytes);
    activate(*relay);
}

void Carrier::ready(Relay *relay, uint32_t events)
{
    relay->ready(events);
    activate(*relay);
}

void Carrier::lose()
{
    for (const auto &[_, relay] : relays_) {
        relay->lose();
        activate(*relay);
    }
}

// ---- turns

void Carrier::activate(Relay &relay)
{
    if (relay.is_active)
        return;
    relay.wake();
    relay.is_active = true;
    relay.is_idle = false;
    active_.push_back(&relay);
}

bool Carrier::turn()
{
    const int64_t now = active_.empty() ? 0 : ntbc::now_ns();
    bool worked = false;
    for (size_t i = 0; i < active_.size();) {
        Relay &relay = *active_[i];
        worked = turn_of(relay, now) || worked;
        if (relay.is_active && !relay.has_ended()) {
            i++;
            continue;
        }
        active_[i] = active_.back();
        active_.pop_back();
        if (relay.has_ended())
            remove(relay);
    }
    return worked;
}

bool Carrier::turn_of(Relay &relay, int64_t now)
{
    if (relay.turn()) {
        if (relay.is_idle)
            relay.window_ns = ntbc::longer_spin(relay.window_ns);
        relay.is_idle = false;
        return true;
    }
    if (!relay.is_idle) {
        relay.is_idle = true;
        relay.idle_since_ns = now;
        return false;
    }
    if (now - relay.idle_since_ns < relay.window_ns)
        return false;
    relay.window_ns = ntbc::shorter_spin(relay.window_ns);
    relay.is_active = !relay.sleep();
    relay.idle_since_ns = now;
    return false;
}

void Carrier::look_at_bells(int timeout_ms)
{
    epoll_event events[64];
    const int count = epoll_wait(poll_, events, 64, timeout_ms);
    for (int i = 0; i < count; i++) {
        const auto found = relays_.find(events[i].data.u64);
        if (found == relays_.end())
            continue;
        found->second->rung();
        activate(*found->second);
    }
}

// The memory is let go before the server learns of the end, and takes it back.
void Carrier::remove(Relay &relay)
{
    LinkNews news = {LinkNews::Kind::relay_ended};
    news.id = relay.id();
    news.status = relay.status();
    epoll_ctl(poll_, EPOLL_CTL_DEL, relay.bell(), nullptr);
    relays_.erase(relay.id());
    mailbox_.put(news);
}

// ---- figures

void Carrier::publish()
{
    const uint64_t now[] = {relays_.size(),
                            active_.size(),
                            traffic_.messages_out,
                            traffic_.bytes_out,
                            traffic_.messages_in,
                            traffic_.bytes_in,
                            traffic_.rings,
                            sleeps_,
                            refused_};
    static_assert(sizeof(now) == sizeof(Figures));
    for (size_t i = 0; i < std::size(shown_); i++)
        shown_[i].store(now[i], std::memory_order_relaxed);
}

Carrier::Figures Carrier::figures() const
{
    uint64_t now[std::size(shown_)];
    for (size_t i = 0; i < std::size(shown_); i++)
        now[i] = shown_[i].load(std::memory_order_relaxed);
    Figures figures;
    memcpy(&figures, now, sizeof(figures));
    return figures;
}

} // namespace ntbd
