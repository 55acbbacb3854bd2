// SPDX-License-Identifier: BSD-3-Clause
#include "server/server.hpp"

#include "server/log.hpp"
#include "server/session.hpp"
#include "server/shown.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <utility>

namespace ntbd
{

using ntbc::Message;
using ntbc::Parcel;
using ntbc::Received;
using ntbc::Type;

namespace
{
// What is watched besides sessions; their numbers come after these.
constexpr uint64_t id_listener = 1;
constexpr uint64_t id_signals = 2;
constexpr uint64_t id_mailbox = 3;
constexpr uint64_t id_closer = 4;
constexpr uint64_t id_first_session = 16;

constexpr int64_t greeting_ms = 5000;
constexpr int64_t starved_ms = 100;
constexpr uint32_t strangers_min = 16; // so that one beyond the quota learns why
constexpr size_t unsent_client = 2048; // messages that a client has not read: it is dropped
constexpr size_t unsent_peer = 65536;  // of the peer's daemon
constexpr int messages_per_turn = 64;  // of one session, before others have theirs
constexpr uid_t no_user = static_cast<uid_t>(-1);

int64_t clock_ms()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

bool user_of(int fd, User *out)
{
    ucred user;
    socklen_t bytes = sizeof(user);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &bytes) != 0)
        return false;
    *out = {user.uid, user.gid, user.pid};
    return true;
}
} // namespace

Server::Server(int listener, const Config &config, Mailbox &mailbox, std::function<void()> reload)
    : config_(config), closer_(std::make_shared<Closer>(geteuid())), reload_(std::move(reload)),
      broker_(config, *this, geteuid()), mailbox_(mailbox), listener_(listener),
      namespace_(own_namespace()), host_(host_number(config.socket)), last_id_(id_first_session)
{
}

Server::~Server()
{
    for (const auto &[_, session] : sessions_)
        let_go(*session);
    // Those who were not accepted, too: closing the listener would close their sockets.
    shutdown(listener_, SHUT_RDWR);
    for (int fd; (fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
        User user = {no_user, 0, 0};
        user_of(fd, &user);
        closer_->close_socket(user.uid, fd);
    }
    for (const int fd : {poll_, signals_})
        if (fd >= 0)
            close(fd);
}

bool Server::watch(int fd, uint64_t id, uint32_t events)
{
    epoll_event event = {};
    event.events = events;
    event.data.u64 = id;
    return epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &event) == 0;
}

bool Server::run()
{
    sigset_t signals;
    sigemptyset(&signals);
    for (const int one : {SIGTERM, SIGINT, SIGHUP})
        sigaddset(&signals, one);
    poll_ = epoll_create1(EPOLL_CLOEXEC);
    signals_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (poll_ < 0 || signals_ < 0 || !watch(signals_, id_signals, EPOLLIN) ||
        !watch(mailbox_.fd(), id_mailbox, EPOLLIN) || !watch(closer_->fd(), id_closer, EPOLLIN) ||
        !watch(listener_, id_listener, EPOLLIN))
        return false;
    while (!stops_) {
        publish_snapshot();
        epoll_event events[32];
        const int count = epoll_wait(poll_, events, 32, timeout_ms());
        now_ms_ = clock_ms();
        broker_.set_now(now_ms_);
        for (int i = 0; i < count; i++)
            handle(events[i].data.u64, events[i].events);
        check_time();
        end_doomed();
    }
    return true;
}

void Server::handle(uint64_t id, uint32_t events)
{
    if (id == id_listener) {
        accept_all();
    } else if (id == id_signals) {
        take_signal();
    } else if (id == id_mailbox) {
        take_news();
    } else if (id == id_closer) {
        take_closed();
    } else if (const auto found = sessions_.find(id); found != sessions_.end()) {
        if ((events & EPOLLOUT) != 0)
            flush(*found->second);
        if ((events & ~uint32_t{EPOLLOUT}) != 0)
            read_session(id);
    }
}

// ---- sessions

void Server::accept_all()
{
    for (;;) {
        const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            // Without descriptors the listener stays readable: it is looked at again later.
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
                log("cannot accept a client: %s", strerror(errno));
                epoll_ctl(poll_, EPOLL_CTL_DEL, listener_, nullptr);
                listen_again_ms_ = now_ms_ + starved_ms;
            }
            return;
        }
        User user = {no_user, 0, 0};
        size_t strangers = 0;
        const bool known = user_of(fd, &user);
        for (const auto &[_, session] : sessions_)
            strangers += session->stage == Stage::greeting && session->user.uid == user.uid;
        // Those who have not greeted count by themselves, and are no more than clients may be.
        const size_t most = std::max(config_.quota_of(user.uid).clients, strangers_min);
        if (known && strangers < most)
            add(fd, user, Stage::greeting);
        else
            closer_->close_socket(user.uid, fd);
    }
}

void Server::add(int fd, const User &user, Stage stage)
{
    const uint64_t id = ++last_id_;
    auto session = std::make_unique<Session>(id, fd, user, stage, now_ms_ + greeting_ms);
    if (watch(fd, id, EPOLLIN))
        sessions_[id] = std::move(session);
    else
        closer_->close_socket(user.uid, fd);
}

void Server::read_session(uint64_t id)
{
    Session &session = *sessions_.at(id);
    Parcel parcel;
    for (int i = 0; i < messages_per_turn && !session.doomed; i++) {
        if (is_to_wait(session)) {
            hold(session);
            return;
        }
        const Received received = message_receive(session.fd, &parcel);
        if (received == Received::nothing)
            return;
        if (received == Received::foreign && session.stage == Stage::greeting) {
            Message m;
            m.type = Type::answer;
            m.request = parcel.message.request;
            m.status = -EPROTO;
            send(session, m, nullptr, 0);
        }
        // A claim whose socket did not get here is refused by itself.
        const bool starved = received == Received::starved && parcel.message.type == Type::claim;
        if ((received != Received::message && !starved) || !take(session, &parcel))
            doom(session);
        give_away(session, &parcel);
    }
}

/// Until something of its user is closed.
bool Server::is_to_wait(const Session &session) const
{
    return session.claiming != nullptr || closer_->is_behind(session.user.uid);
}

// Not watched at all: the end of the other side is reported whatever one asks for.
void Server::hold(Session &session)
{
    if (session.held)
        return;
    epoll_ctl(poll_, EPOLL_CTL_DEL, session.fd, nullptr);
    session.held = true;
    held_.push_back(session.id);
}

void Server::take_closed()
{
    for (const uint64_t id : closer_->take_closed()) {
        const auto found = sessions_.find(id);
        if (found == sessions_.end() || found->second->doomed || found->second->claiming == nullptr)
            continue;
        const auto claiming = std::move(found->second->claiming);
        if (!broker_.take_claim(id, claiming->message, claiming->shown))
            doom(*found->second);
    }
    for (const uint64_t id : std::exchange(held_, {})) {
        const auto found = sessions_.find(id);
        if (found == sessions_.end())
            continue;
        if (is_to_wait(*found->second))
            held_.push_back(id);
        else
            watch_again(*found->second);
    }
}

/// It may greet from now on, if it waited with that.
void Server::watch_again(Session &session)
{
    session.held = false;
    session.until_ms = now_ms_ + greeting_ms;
    if (!watch(session.fd, session.id, session.unsent.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT))
        doom(session);
}

// It may stay open for long, and is not to be reported until then.
void Server::let_go(const Session &session)
{
    const uid_t uid = session.user.uid;
    for (const Session::Unsent &one : session.unsent)
        for (int i = 0; i < one.count; i++)
            closer_->close(one.message.uid, one.fds[i]);
    epoll_ctl(poll_, EPOLL_CTL_DEL, session.fd, nullptr);
    closer_->close_socket(uid, session.fd);
}

// Into a bell of the peer's daemon only the user that the message names puts something.
void Server::give_away(const Session &session, Parcel *parcel)
{
    const bool is_peer = session.stage == Stage::peer;
    const uid_t uid = is_peer ? parcel->message.uid : session.user.uid;
    for (int i = 0; i < parcel->count; i++)
        if (const int fd = parcel->take_fd(i); fd >= 0)
            closer_->close(uid, fd);
}

/// @return false: it does not keep to the protocol, or has been refused
bool Server::take(Session &session, Parcel *parcel)
{
    const Message &m = parcel->message;
    switch (session.stage) {
    case Stage::greeting:
        if (parcel->count != 0)
            return false;
        return m.type == Type::introduce ? take_introduction(session, m) : greet(session, m);
    case Stage::client:
        show(Observer::Way::from_client, session.id, m);
        if (m.type == Type::claim)
            return take_claim(session, parcel);
        return parcel->count == 0 && broker_.take(session.id, m);
    case Stage::introducing:
        return take_introduced(session, m);
    case Stage::waiting_peer:
        return false;
    case Stage::peer:
        show(Observer::Way::from_peer, 0, m);
        return broker_.take_from_peer(parcel);
    }
    return false;
}

// Closed before the answer: the kernel ends a connection with its last holder.
bool Server::take_claim(Session &session, Parcel *parcel)
{
    if (parcel->count > 1)
        return false;
    const Message &m = parcel->message;
    const uid_t uid = session.user.uid;
    const int fd = parcel->take_fd(0);
    if (fd >= 0 && !closer_->trusts(uid)) {
        const auto claiming = std::make_shared<Session::Claiming>(Session::Claiming{m, {}});
        session.claiming = claiming;
        closer_->close(uid, fd, session.id, [claiming, own = namespace_](int shown) {
            claiming->shown = inspect(shown, own);
        });
        return true;
    }
    const Shown shown = inspect(fd, namespace_);
    if (fd >= 0)
        closer_->close(uid, fd);
    return broker_.take_claim(session.id, m, shown);
}

bool Server::greet(Session &session, const Message &hello)
{
    if (hello.type != Type::hello)
        return false;
    Message m;
    m.type = Type::answer;
    m.request = hello.request;
    if (!config_.allows(session.user.uid))
        m.status = -EACCES;
    else if (!broker_.attach(session.id, session.user))
        m.status = -EDQUOT;
    if (m.status == 0) {
        m.id = host_;
        m.other = peer_host_;
        session.stage = Stage::client;
        if (observer_ != nullptr)
            observer_->attached(session.id, session.user);
    }
    send(session, m, nullptr, 0);
    return m.status == 0;
}

void Server::to_client(ClientId client, const Message &m, const int *fds, int count)
{
    show(Observer::Way::to_client, client, m);
    if (const auto found = sessions_.find(client); found != sessions_.end())
        send(*found->second, m, fds, count);
}

void Server::to_carrier(RelayOrder &&order)
{
    mailbox_.orders().put(std::move(order));
}

CloseCall Server::closer_of(uid_t uid)
{
    if (closer_->trusts(uid))
        return {};
    return [closer = closer_, uid](int fd) { closer->close(uid, fd); };
}

void Server::to_peer(const Message &m, const int *fds, int count)
{
    show(Observer::Way::to_peer, 0, m);
    if (carries_) {
        RelayOrder order;
        order.kind = RelayOrder::Kind::send;
        order.token = own_->token;
        order.message = m;
        to_carrier(std::move(order));
        return;
    }
    if (const auto found = sessions_.find(peer_session_); found != sessions_.end())
        send(*found->second, m, fds, count);
}

// A receiver that reads slowly is waited for, within a bound; no other one waits for it.
void Server::send(Session &session, const Message &m, const int *fds, int count)
{
    if (session.doomed)
        return;
    int status = session.unsent.empty() ? message_send(session.fd, m, fds, count) : -EAGAIN;
    if (status == -EAGAIN || status == -ETOOMANYREFS) {
        const size_t most = session.stage == Stage::peer ? unsent_peer : unsent_client;
        Session::Unsent later = {m, {-1, -1, -1}, count};
        status = session.unsent.size() < most ? 0 : -ENOBUFS;
        for (int i = 0; i < count && status == 0; i++) {
            later.fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
            if (later.fds[i] < 0) {
                later.count = i;
                status = -errno;
            }
        }
        session.unsent.push_back(later); // also keeps what was duplicated, until it is closed
        epoll_event event = {};
        event.events = EPOLLIN | EPOLLOUT;
        event.data.u64 = session.id;
        epoll_ctl(poll_, EPOLL_CTL_MOD, session.fd, &event);
    }
    if (status != 0)
        doom(session);
}

void Server::flush(Session &session)
{
    while (!session.unsent.empty() && !session.doomed) {
        const Session::Unsent &first = session.unsent.front();
        const int status = message_send(session.fd, first.message, first.fds, first.count);
        if (status == -EAGAIN || status == -ETOOMANYREFS)
            return;
        if (status != 0) {
            doom(session);
            return;
        }
        for (int i = 0; i < first.count; i++)
            closer_->close(first.message.uid, first.fds[i]);
        session.unsent.pop_front();
    }
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = session.id;
    epoll_ctl(poll_, EPOLL_CTL_MOD, session.fd, &event);
}

// Ended at the end of the turn: whoever sends to it is in the middle of something.
void Server::doom(Session &session)
{
    if (!session.doomed)
        doomed_.push_back(session.id);
    session.doomed = true;
}

void Server::end_doomed()
{
    while (!doomed_.empty()) {
        const uint64_t id = doomed_.back();
        doomed_.pop_back();
        const auto found = sessions_.find(id);
        if (found == sessions_.end())
            continue;
        const Stage stage = found->second->stage;
        let_go(*found->second);
        sessions_.erase(found);
        if (stage == Stage::client) {
            broker_.detach(id);
            if (observer_ != nullptr)
                observer_->detached(id);
        }
        if (id == waiting_session_)
            waiting_session_ = 0;
        if (stage == Stage::introducing)
            retry_ms_ = now_ms_ + starved_ms;
        if (id == peer_session_) {
            log("the daemon of the peer host is gone");
            peer_session_ = 0;
            set_peer_host(0);
            broker_.peer_down();
            retry_ms_ = known_ ? now_ms_ + starved_ms : INT64_MAX;
        }
    }
}

// ---- time and signals

int Server::timeout_ms() const
{
    int64_t next = std::min({broker_.next_deadline(), retry_ms_, listen_again_ms_});
    for (const auto &[_, session] : sessions_)
        if ((session->stage == Stage::greeting || session->stage == Stage::introducing) &&
            !session->held)
            next = std::min(next, session->until_ms);
    if (next == INT64_MAX)
        return -1;
    return static_cast<int>(std::clamp<int64_t>(next - clock_ms(), 0, 3600000));
}

void Server::check_time()
{
    if (now_ms_ >= broker_.next_deadline())
        broker_.expire(now_ms_);
    for (const auto &[_, session] : sessions_)
        if ((session->stage == Stage::greeting || session->stage == Stage::introducing) &&
            !session->held && now_ms_ >= session->until_ms)
            doom(*session);
    if (now_ms_ >= listen_again_ms_) {
        listen_again_ms_ = INT64_MAX;
        watch(listener_, id_listener, EPOLLIN);
    }
    if (now_ms_ >= retry_ms_) {
        retry_ms_ = INT64_MAX;
        meet_peer();
    }
}

void Server::take_signal()
{
    signalfd_siginfo signal;
    while (read(signals_, &signal, sizeof(signal)) == sizeof(signal)) {
        if (signal.ssi_signo == SIGHUP)
            reload_();
        else
            stops_ = true;
    }
}

void Server::publish_snapshot()
{
    const std::lock_guard held(snapshot_lock_);
    snapshot_ = {broker_.figures(), broker_.accounts().used(), peer_session_ != 0 || carries_,
                 carries_};
}

Server::Snapshot Server::snapshot() const
{
    const std::lock_guard held(snapshot_lock_);
    return snapshot_;
}

} // namespace ntbd
