// SPDX-License-Identifier: BSD-3-Clause
// How the daemons of two hosts are joined. Where connections go through them, over the bridge: the
// channels of their introductions carry the messages, too. Else, on one machine, they find each
// other's socket: each has sent the other a secret over the bridge. The one whose secret is smaller
// connects, and shows the other's; it is answered with its own. Both are of the same user, or they
// do not talk.
#include "server/listen.hpp"
#include "server/log.hpp"
#include "server/server.hpp"
#include "server/session.hpp"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <utility>

namespace ntbd
{

using ntbc::Message;
using ntbc::Parcel;
using ntbc::Type;

namespace
{
constexpr int64_t retry_after_ms = 100;

Message with_token(Type type, const Token &token)
{
    Message m;
    m.type = type;
    m.key_bytes = static_cast<uint32_t>(token.size());
    memcpy(m.key, token.data(), token.size());
    return m;
}

bool shows(const Message &m, const Token &token)
{
    return m.key_bytes == token.size() && is_same_token(m.key, token);
}

bool is_of_this_user(int fd, uid_t *user)
{
    ucred other;
    socklen_t bytes = sizeof(other);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &bytes) != 0)
        return false;
    *user = other.uid;
    return other.uid == geteuid();
}
} // namespace

void Server::take_news()
{
    while (const auto news = mailbox_.take()) {
        switch (news->kind) {
        case LinkNews::Kind::introducing:
            own_ = news->own;
            agree_with_peer();
            break;
        case LinkNews::Kind::introduced:
            known_ = news->peer;
            agree_with_peer();
            break;
        case LinkNews::Kind::message:
            take_told(news->message);
            break;
        case LinkNews::Kind::relay_ended:
            broker_.relay_ended(news->id, news->status);
            break;
        case LinkNews::Kind::relay_fin:
            broker_.relay_fin(news->id, news->generation);
            break;
        case LinkNews::Kind::lost:
            lose_peer();
            break;
        }
    }
}

void Server::agree_with_peer()
{
    if (!own_ || !known_ || carriage_)
        return;
    carriage_ = agree(*own_, *known_);
    if (!carriage_) {
        log("the configurations of this and the peer host exclude each other's carrier");
    } else if (*carriage_ == Carriage::direct) {
        meet_peer();
    } else {
        carries_ = true;
        log("joined with the daemon of the peer host, over the bridge");
        set_peer_host(known_->host);
        broker_.peer_up(Carriage::daemon);
    }
}

void Server::take_told(const Message &m)
{
    Parcel parcel;
    parcel.message = m;
    show(Observer::Way::from_peer, 0, m);
    if (!own_ || (carries_ && broker_.take_from_peer(&parcel)))
        return;
    log("the daemon of the peer host does not keep to the protocol");
    RelayOrder order;
    order.kind = RelayOrder::Kind::drop_peer;
    order.token = own_->token;
    to_carrier(std::move(order));
}

void Server::lose_peer()
{
    own_.reset();
    known_.reset();
    carriage_.reset();
    if (std::exchange(carries_, false)) {
        log("the daemon of the peer host is gone");
        set_peer_host(0);
        broker_.peer_down();
    }
    retry_ms_ = INT64_MAX;
    for (const uint64_t id : {peer_session_, waiting_session_})
        if (const auto found = sessions_.find(id); found != sessions_.end())
            doom(*found->second);
}

// Before the clients hear of connections with it.
void Server::set_peer_host(uint16_t number)
{
    peer_host_ = number;
    Message m;
    m.type = Type::peer;
    m.id = number;
    for (const auto &[_, session] : sessions_)
        if (session->stage == Stage::client)
            send(*session, m, nullptr, 0);
}

void Server::meet_peer()
{
    if (!own_ || !known_ || carriage_ != Carriage::direct || peer_session_ != 0)
        return;
    if (own_->token < known_->token)
        connect_to_peer();
    else if (const auto found = sessions_.find(waiting_session_); found != sessions_.end())
        answer_introduction(*found->second);
}

void Server::connect_to_peer()
{
    const int fd = connect_to_daemon(known_->path);
    if (fd < 0) {
        retry_ms_ = now_ms_ + retry_after_ms;
        return;
    }
    uid_t user = 0;
    if (!is_of_this_user(fd, &user)) {
        log("%s: the daemon there is of user %u, not %u: not joined", known_->path.c_str(), user,
            geteuid());
        close(fd);
        return;
    }
    add(fd, {user, 0, 0}, Stage::introducing);
    if (const auto found = sessions_.find(last_id_); found != sessions_.end())
        send(*found->second, with_token(Type::introduce, known_->token), nullptr, 0);
}

bool Server::take_introduction(Session &session, const Message &m)
{
    if (!own_ || session.user.uid != geteuid() || !shows(m, own_->token) || peer_session_ != 0 ||
        waiting_session_ != 0)
        return false;
    session.stage = Stage::waiting_peer;
    waiting_session_ = session.id;
    meet_peer();
    return true;
}

void Server::answer_introduction(Session &session)
{
    waiting_session_ = 0;
    send(session, with_token(Type::introduced, known_->token), nullptr, 0);
    become_peer(session);
}

bool Server::take_introduced(Session &session, const Message &m)
{
    if (m.type != Type::introduced || !own_ || !shows(m, own_->token) || peer_session_ != 0)
        return false;
    become_peer(session);
    return true;
}

void Server::become_peer(Session &session)
{
    session.stage = Stage::peer;
    peer_session_ = session.id;
    log("joined with the daemon of the peer host, on this machine");
    set_peer_host(known_->host);
    broker_.peer_up();
}

} // namespace ntbd
