// SPDX-License-Identifier: BSD-3-Clause
#include "cm/network.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <sys/eventfd.h>
#include <unistd.h>

#include "locked.hpp"
#include "port/client.hpp"
#include "quiet_thread.hpp"

namespace ntb::verbs::cm
{
namespace
{

// Between two tries to connect to what does not listen.
constexpr std::uint64_t pause = second / 100;
// Of somebody who has not said what for.
constexpr std::ptrdiff_t max_unknown = 256;

struct Name {
    char text[NTBCLIENT_MAX_NAME];
    explicit Name(Port port)
    {
        snprintf(text, sizeof(text), "rdmacm/%u/%u", port.space, port.number);
    }
};

} // namespace

Network::~Network()
{
    stop();
    if (bell_ >= 0)
        ::close(bell_);
}

int Network::open(const char *socket)
{
    bell_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return bell_ < 0 ? -errno : ntbclient_attach(socket, &client_);
}

int Network::start(Audience &audience)
{
    audience_ = &audience;
    const int error = start_quiet_thread<&Network::run>(thread_, "ntb-rdma-cm", *this);
    runs_ = error == 0;
    return error;
}

void Network::stop()
{
    if (runs_) {
        stop_ = true;
        wake();
        pthread_join(thread_, nullptr);
        runs_ = false;
    }
    for (auto &[link, way] : ways_)
        ntbclient_close(way.conn);
    ways_.clear();
    for (Claim &claim : claims_)
        for (ntbclient_listener *listener : claim.listeners)
            ntbclient_listener_close(listener);
    claims_.clear();
    ntbclient_detach(client_);
    client_ = nullptr;
}

// ---- what a manager asks for

int Network::claim(Port port)
{
    Claim made = {port, {nullptr, nullptr}};
    int error = 0;
    for (int local = 0; local < 2 && error == 0; ++local) {
        const ntbclient_options options = options_of(local != 0);
        error = ntbclient_listen(client_, Name(port).text, &options, &made.listeners[local]);
    }
    if (error == 0)
        claims_.push_back(made);
    else
        ntbclient_listener_close(made.listeners[0]);
    wake();
    return error;
}

void Network::release(Port port)
{
    const auto claim = std::find_if(claims_.begin(), claims_.end(),
                                    [=](const Claim &one) { return one.port == port; });
    if (claim == claims_.end())
        return;
    for (ntbclient_listener *listener : claim->listeners)
        ntbclient_listener_close(listener);
    claims_.erase(claim);
    wake();
}

Link Network::number()
{
    do
        ++last_;
    while (last_ == 0 || ways_.contains(last_));
    return last_;
}

Link Network::connect(Port port, bool here_first, const Message &request)
{
    const Link link = number();
    Way &way = ways_[link];
    way.here_first = way.local = here_first;
    way.port = port;
    way.deadline = monotonic() + patience_;
    way.request = request;
    begin(way);
    wake();
    return link;
}

Link Network::locate(Port port, bool here_first, std::uint32_t timeout_ms)
{
    const Link link = number();
    Way &way = ways_[link];
    way.stage = Stage::Locating;
    way.local = here_first;
    way.port = port;
    way.until = monotonic() + std::uint64_t{timeout_ms} * (second / 1000);
    if (here_first)
        begin(way);
    wake();
    return link;
}

void Network::begin(Way &way)
{
    const ntbclient_options options = options_of(way.local);
    way.error = ntbclient_connect(client_, Name(way.port).text, &options, &way.conn);
    if (way.error == 0)
        return;
    way.conn = nullptr;
    wake(); // to say so in the next turn
}

bool Network::send(Link link, const Message &message)
{
    const auto at = ways_.find(link);
    if (at == ways_.end())
        return false;
    // The ring has room for all messages that a connection has in its life.
    if (ntbclient_send(at->second.conn, &message, sizeof(message), 0) ==
        static_cast<ssize_t>(sizeof(message)))
        return true;
    close(link);
    return false;
}

void Network::close(Link link)
{
    const auto at = ways_.find(link);
    if (at == ways_.end())
        return;
    ntbclient_close(at->second.conn);
    ways_.erase(at);
    wake();
}

void Network::wake()
{
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(bell_, &one, sizeof(one));
}

bool Network::has_peer(const Way &way)
{
    return way.stage == Stage::Open || way.stage == Stage::Unknown;
}

// ---- the thread

void Network::run()
{
    const Locked locked(mutex_);
    while (!stop_) {
        turn();
        sleep();
    }
}

void Network::turn()
{
    if (!is_lost_ && ntbclient_process(client_) != 0)
        is_lost_ = true;
    accept();
    std::vector<Link> links;
    for (const auto &[link, way] : ways_)
        links.push_back(link);
    for (const Link link : links)
        advance(link);
    audience_->notify();
}

void Network::accept()
{
    for (const Claim &claim : claims_) {
        for (ntbclient_listener *listener : claim.listeners) {
            ntbclient_conn *conn = nullptr;
            while (ntbclient_accept(listener, &conn) == 0) {
                make_room();
                Way &way = ways_[number()];
                way.stage = Stage::Unknown;
                way.port = claim.port;
                way.conn = conn;
            }
        }
    }
}

// Who has connected and says nothing may be without a CPU: it has time until others need its place.
// The oldest has the lowest number.
void Network::make_room()
{
    const auto is_unknown = [](const auto &one) { return one.second.stage == Stage::Unknown; };
    if (std::count_if(ways_.begin(), ways_.end(), is_unknown) >= max_unknown)
        close(std::find_if(ways_.begin(), ways_.end(), is_unknown)->first);
}

void Network::advance(Link link)
{
    auto at = ways_.find(link);
    if (at == ways_.end())
        return;
    if (at->second.stage == Stage::Locating)
        return advance_locating(link, at->second);
    if (at->second.stage == Stage::Pausing && monotonic() >= at->second.until) {
        at->second.stage = Stage::Connecting;
        at->second.local = at->second.here_first;
        begin(at->second);
    }
    if (at->second.stage == Stage::Connecting)
        advance_connecting(link, at->second);
    at = ways_.find(link);
    if (at == ways_.end() || !has_peer(at->second))
        return;
    receive(link);
}

// Who has claimed the port at this host lets everybody connect to it; nothing is said there.
void Network::advance_locating(Link link, Way &way)
{
    std::uint16_t lid = 0;
    if (way.local) {
        const ntbclient_info info = way.conn ? info_of(way.conn) : ntbclient_info{};
        const int error = way.conn ? info.error : way.error;
        if (error != 0 && error != -ECONNREFUSED)
            return lose(link, error);
        way.local = error == 0;
        lid = way.conn && info.state == NTBCLIENT_OPEN ? ntbclient_host(client_) : 0;
    }
    if (!way.local)
        lid = ntbclient_peer_host(client_);
    if (lid != 0) {
        close(link);
        audience_->located(link, lid);
    } else if (is_lost_ || monotonic() >= way.until) {
        lose(link, -EHOSTUNREACH);
    }
}

void Network::advance_connecting(Link link, Way &way)
{
    const ntbclient_info info = way.conn ? info_of(way.conn) : ntbclient_info{};
    if (way.conn && info.state == NTBCLIENT_CONNECTING)
        return;
    if (way.conn && info.state == NTBCLIENT_OPEN) {
        way.stage = Stage::Open;
        if (!send(link, way.request))
            audience_->lost(link, -ECONNRESET);
        return;
    }
    const int error = way.conn ? info.error : way.error;
    if (error != -ECONNREFUSED || (!way.local && !is_retried(way)))
        return lose(link, error);
    if (way.stage == Stage::Pausing)
        return;
    // No process of this host.
    ntbclient_close(way.conn);
    way.local = false;
    begin(way);
}

bool Network::is_retried(Way &way)
{
    const std::uint64_t time = monotonic();
    if (time >= way.deadline)
        return false;
    ntbclient_close(way.conn);
    way.conn = nullptr;
    way.stage = Stage::Pausing;
    way.until = time + pause;
    return true;
}

// All messages that are here.
void Network::receive(Link link)
{
    for (auto at = ways_.find(link); at != ways_.end(); at = ways_.find(link)) {
        Message message;
        ntbclient_conn *const conn = at->second.conn;
        const ssize_t got = ntbclient_recv(conn, &message, sizeof(message), NTBCLIENT_PEEK);
        if (got == -EAGAIN || (got > 0 && got < static_cast<ssize_t>(sizeof(message))))
            return;
        if (got <= 0 || !is_sound(message))
            return lose(link, got < 0 ? static_cast<int>(got) : got == 0 ? -ECONNRESET : -EPROTO);
        ntbclient_recv(conn, nullptr, sizeof(message), 0);
        // Its port is claimed, and does not listen yet.
        if (message.kind == Kind::Rej && message.reason == reason::invalid_service &&
            is_retried(at->second))
            return;
        if (at->second.stage == Stage::Unknown) {
            at->second.stage = Stage::Open;
            audience_->request(link, at->second.port, message);
        } else {
            audience_->message(link, message);
        }
    }
}

void Network::lose(Link link, int error)
{
    tell_refusal(error);
    close(link);
    audience_->lost(link, error);
}

void Network::sleep()
{
    fds_.clear();
    fds_.push_back({bell_, POLLIN, 0});
    if (!is_lost_)
        fds_.push_back({ntbclient_fd(client_), POLLIN, 0});
    const std::uint64_t time = monotonic();
    std::uint64_t longest = UINT64_MAX;
    bool is_ready = false;
    for (const auto &[link, way] : ways_) {
        if (way.stage == Stage::Pausing || way.stage == Stage::Locating)
            longest = std::min(longest, way.until - std::min(time, way.until));
        if (!has_peer(way))
            continue;
        is_ready = ntbclient_arm(way.conn, NTBCLIENT_READABLE) != 0 || is_ready;
        fds_.push_back({ntbclient_conn_fd(way.conn), POLLIN, 0});
    }
    if (!is_ready) {
        const timespec timeout = {static_cast<time_t>(longest / second),
                                  static_cast<long>(longest % second)};
        // A descriptor that somebody closes meanwhile wakes once too often, or the bell does.
        pthread_mutex_unlock(&mutex_);
        ppoll(fds_.data(), fds_.size(), longest == UINT64_MAX ? nullptr : &timeout, nullptr);
        pthread_mutex_lock(&mutex_);
    }
    for (const auto &[link, way] : ways_)
        if (has_peer(way))
            ntbclient_disarm(way.conn, NTBCLIENT_READABLE);
    std::uint64_t count;
    [[maybe_unused]] const ssize_t taken = read(bell_, &count, sizeof(count));
}

} // namespace ntb::verbs::cm
