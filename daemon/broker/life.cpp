// SPDX-License-Identifier: BSD-3-Clause
// The life of clients, listeners and connections; how two are joined is in match.cpp.
#include "broker/broker.hpp"

#include "broker/parts.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>

namespace ntbd
{

using ntbc::Message;
using ntbc::Type;

namespace
{
constexpr uint32_t backlog_max = 1024;
constexpr uint32_t timeout_max_ms = 3600000;

// "~UID/..." is of that user alone. A number that is none belongs to no user.
bool may_listen(const std::string &name, uid_t uid)
{
    if (name.empty() || name[0] != '~')
        return true;
    std::string own = std::to_string(uid);
    own += '/';
    return name.compare(1, own.size(), own) == 0;
}

bool is_name(const Message &m)
{
    return m.key_kind == 0 && m.key_bytes > 0 &&
           std::find(m.key, m.key + m.key_bytes, 0) == m.key + m.key_bytes;
}
} // namespace

Broker::Broker(const Config &config, Outbox &outbox, uid_t own)
    : config_(config), outbox_(outbox), accounts_(config),
      claims_(config, outbox, accounts_, last_id_), segments_(outbox, accounts_, last_id_),
      own_(own)
{
}

Broker::~Broker() = default;

Broker::Key Broker::key_of(const Message &m)
{
    return {(m.flags & ntbc::flag_local) != 0,
            std::string(reinterpret_cast<const char *>(m.key), m.key_bytes)};
}

Broker::End *Broker::end_of(const Client &client, uint64_t id)
{
    return client.ends.count(id) != 0 ? ends_.at(id).get() : nullptr;
}

Broker::Listener *Broker::listener_for(const Key &key)
{
    const auto found = by_key_.find(key);
    return found != by_key_.end() ? found->second : nullptr;
}

void Broker::answer(const Client &client, const Message &request, int status, uint64_t id)
{
    Message m;
    m.type = Type::answer;
    m.request = request.request;
    m.status = status;
    m.id = id;
    outbox_.to_client(client.id, m, nullptr, 0);
}

// ---- clients

bool Broker::attach(ClientId client, const User &user)
{
    if (!accounts_.take_client(user.uid))
        return false;
    clients_[client] = std::make_unique<Client>(Client{client, user, {}, {}});
    return true;
}

void Broker::detach(ClientId id)
{
    const auto found = clients_.find(id);
    if (found == clients_.end())
        return;
    Client &client = *found->second;
    while (!client.listeners.empty())
        remove_listener(*client.listeners.begin());
    const bool had_claims = claims_.detach(id);
    if (!client.ends.empty() || had_claims)
        figures_.died++;
    while (!client.ends.empty())
        close(client, *client.ends.begin());
    segments_.detach(id);
    accounts_.give_client(client.user.uid);
    clients_.erase(found);
}

bool Broker::take(ClientId id, const Message &m)
{
    const auto found = clients_.find(id);
    if (found == clients_.end())
        return false;
    Client &client = *found->second;
    switch (m.type) {
    case Type::listen:
        listen(client, m);
        return true;
    case Type::unlisten:
        unlisten(client, m);
        return true;
    case Type::connect:
        connect(client, m);
        return true;
    case Type::taken:
        taken(client, m.id);
        return true;
    case Type::close:
        if (claims_.has(m.id))
            claims_.close(id, m.id);
        else
            close(client, m.id);
        return true;
    case Type::unclaim:
        claims_.unclaim(id, m.other);
        return true;
    case Type::fin_seen:
        claims_.fin_seen(id, m.id, static_cast<uint32_t>(m.other));
        return true;
    case Type::list:
        list(client, m);
        return true;
    case Type::revoke:
        revoke(client, m);
        return true;
    default:
        return take_of_segments(client, m);
    }
}

bool Broker::take_claim(ClientId id, const Message &m, const Shown &shown)
{
    const auto found = clients_.find(id);
    if (found == clients_.end() || m.type != Type::claim)
        return false;
    claims_.claim({id, found->second->user}, m, shown);
    return true;
}

// ---- listeners

void Broker::listen(Client &client, const Message &m)
{
    const Key key = key_of(m);
    int status = 0;
    if (!is_name(m) || m.backlog == 0 || m.backlog > backlog_max)
        status = -EINVAL;
    else if (!may_listen(key.name, client.user.uid))
        status = -EACCES;
    else if (by_key_.count(key) != 0)
        status = -EADDRINUSE;
    else if (!accounts_.take_listener(client.user.uid))
        status = -EDQUOT;
    if (status != 0) {
        answer(client, m, status);
        return;
    }
    const uint64_t id = ++last_id_;
    auto listener = std::make_unique<Listener>(
        Listener{id, &client, key, (m.flags & ntbc::flag_once) != 0, m.backlog});
    Listener &made = *listener;
    by_key_[key] = listener.get();
    listeners_[id] = std::move(listener);
    client.listeners.insert(id);
    answer(client, m, 0, id);
    serve_waiting(made);
}

void Broker::remove_listener(uint64_t id)
{
    Listener &listener = *listeners_.at(id);
    for (auto &[_, end] : ends_)
        if (end->listener == id)
            end->listener = 0;
    by_key_.erase(listener.key);
    listener.client->listeners.erase(id);
    accounts_.give_listener(listener.client->user.uid);
    listeners_.erase(id);
}

void Broker::unlisten(Client &client, const Message &m)
{
    const bool is_own = client.listeners.count(m.id) != 0;
    if (is_own)
        remove_listener(m.id);
    answer(client, m, is_own ? 0 : -ENOENT);
}

void Broker::taken(Client &client, uint64_t id)
{
    End *end = end_of(client, id);
    if (end == nullptr || end->listener == 0)
        return;
    listeners_.at(end->listener)->waiting--;
    end->listener = 0;
}

// ---- connections

void Broker::connect(Client &client, const Message &m)
{
    const uint64_t bytes = ntbc::memory_bytes(config_.ring_bytes);
    int status = 0;
    if (!is_name(m) || m.timeout_ms == 0 || m.timeout_ms > timeout_max_ms)
        status = -EINVAL;
    else if (!accounts_.take_connection(client.user.uid, bytes))
        status = -EDQUOT;
    if (status != 0) {
        answer(client, m, status);
        return;
    }
    auto end = std::make_unique<End>();
    end->id = ++last_id_;
    end->client = &client;
    end->key = key_of(m);
    end->waits = (m.flags & ntbc::flag_wait) != 0;
    end->deadline_ms = now_ms_ + m.timeout_ms;
    end->charged = bytes;
    end->owner = client.user.uid;
    End &made = *end;
    client.ends.insert(end->id);
    ends_[end->id] = std::move(end);
    answer(client, m, 0, made.id);
    seek(made);
}

// What another end has of it stays until that one is closed, too.
void Broker::close(Client &client, uint64_t id)
{
    End *end = end_of(client, id);
    if (end == nullptr)
        return;
    if (end->memory == nullptr && !end->key.local && peer_) {
        Message m;
        m.type = Type::withdraw;
        m.id = id;
        outbox_.to_peer(m, nullptr, 0);
    }
    if (end->listener != 0)
        taken(client, id);
    end_memory(*end, ntbc::gone_end(end->index));
    segments_.end_closed(client.id, id);
    client.ends.erase(id);
    end->client = nullptr;
    if (end->carried) {
        // What it sent is still on its way, and charged: relay_ended() is the end.
        order(*end, RelayOrder::Kind::let_go);
        if (end->relay_ended)
            remove_end(id);
        return;
    }
    if (end->remote != 0 && peer_) {
        Message m;
        m.type = Type::gone;
        m.id = end->remote;
        outbox_.to_peer(m, nullptr, 0);
    }
    accounts_.give_connection(end->owner, end->charged);
    // The other host's client may still read: the daemon that made the memory waits for its end.
    if (end->index == 0 || end->remote == 0 || end->remote_gone)
        remove_end(id);
}

void Broker::end_memory(End &end, uint32_t mark)
{
    if (end.memory != nullptr)
        ntbc::mark_gone(end.memory->page(), mark);
}

// The last one gives the memory back, if no process can read it any more: not one that had it from
// the peer's daemon, nor where that daemon was lost.
void Broker::remove_end(uint64_t id)
{
    End &end = *ends_.at(id);
    if (end.carried)
        accounts_.give_connection(end.owner, end.charged);
    if (end.pair != 0)
        ends_.at(end.pair)->pair = 0;
    else if (end.carried)
        end.memory->release();
    else if (end.memory != nullptr && (end.key.local || (end.index == 1 && end.remote != 0)))
        end.memory->release();
    ends_.erase(id);
}

// A connect that comes to nothing. The client closes it.
void Broker::fail(End &end, int status)
{
    Message m;
    m.type = Type::failed;
    m.id = end.id;
    m.status = status;
    end.deadline_ms = 0;
    end.waits = false;
    figures_.failed++;
    outbox_.to_client(end.client->id, m, nullptr, 0);
}

// An open connection that is taken away. The client closes it.
void Broker::end_open(uint64_t id, int status)
{
    End &end = *ends_.at(id);
    end_memory(end, ntbc::gone_revoked);
    end.revoked = true;
    segments_.drop_grants(id);
    Message m;
    m.type = Type::ended;
    m.id = id;
    m.status = status;
    if (end.client != nullptr)
        outbox_.to_client(end.client->id, m, nullptr, 0);
}

bool Broker::admits(const Client &client, uid_t uid) const
{
    const uid_t asks = client.user.uid;
    return asks == 0 || asks == own_ || asks == uid;
}

bool Broker::may_see(const Client &client, const End &end) const
{
    return end.client != nullptr && admits(client, end.client->user.uid);
}

Message Broker::entry_of(const End &end) const
{
    Message m;
    m.type = Type::entry;
    m.id = end.id;
    m.end = end.index;
    m.state = end.memory != nullptr ? 2 : end.deadline_ms != 0 ? 1 : 3;
    m.flags = end.key.local ? ntbc::flag_local : end.carried ? ntbc::flag_carried : 0;
    m.uid = end.client->user.uid;
    m.gid = end.client->user.gid;
    m.pid = static_cast<uint32_t>(end.client->user.pid);
    m.key_bytes = static_cast<uint32_t>(end.key.name.size());
    std::copy(end.key.name.begin(), end.key.name.end(), m.key);
    if (end.memory != nullptr) {
        const ntbc::Page &page = end.memory->page();
        m.ring_bytes = end.memory->ring_bytes();
        m.sent = ntbc::load(page.direction[end.index].published) & ntbc::count_mask;
        m.received = ntbc::load(page.direction[1 - end.index].consumed) & ntbc::count_mask;
        if (ntbc::load(page.gone) != 0)
            m.state = 3;
        m.other = segments_.bytes_at(end.client->id, end.id);
    }
    return m;
}

void Broker::list(const Client &client, const Message &request)
{
    const auto admitted = [&](uid_t uid) { return admits(client, uid); };
    uint32_t left = std::min(request.backlog, ntbc::list_batch);
    auto end = ends_.upper_bound(request.id);
    uint64_t claim = claims_.next_id(request.id);
    while (left > 0 && (end != ends_.end() || claim != 0)) {
        Message m;
        bool shown;
        if (claim == 0 || (end != ends_.end() && end->first < claim)) {
            shown = may_see(client, *end->second);
            if (shown)
                m = entry_of(*end->second);
            ++end;
        } else {
            shown = claims_.entry_of(claim, admitted, &m);
            claim = claims_.next_id(claim);
        }
        m.request = request.request;
        if (!shown)
            continue;
        outbox_.to_client(client.id, m, nullptr, 0);
        left--;
    }
    answer(client, request, 0);
}

void Broker::revoke(const Client &client, const Message &m)
{
    if (claims_.revoke(m.id, [&](uid_t uid) { return admits(client, uid); })) {
        figures_.revoked++;
        answer(client, m, 0);
        return;
    }
    const auto found = ends_.find(m.id);
    if (found == ends_.end() || !may_see(client, *found->second)) {
        answer(client, m, -ENOENT);
        return;
    }
    // The memory is kept, and charged, until its clients have closed it: one that still reads must
    // not find zeros instead of bytes.
    End &end = *found->second;
    figures_.revoked++;
    if (end.memory == nullptr) {
        if (end.deadline_ms != 0) {
            if (!end.key.local && peer_) {
                Message withdraw;
                withdraw.type = Type::withdraw;
                withdraw.id = end.id;
                outbox_.to_peer(withdraw, nullptr, 0);
            }
            fail(end, -ECONNRESET);
        }
    } else {
        end_open(m.id, -ECONNRESET);
        if (end.pair != 0)
            end_open(end.pair, -ECONNRESET);
        if (end.carried)
            order(end, RelayOrder::Kind::let_go);
        else if (end.remote != 0 && peer_) {
            Message gone;
            gone.type = Type::gone;
            gone.id = end.remote;
            gone.status = -ECONNRESET;
            outbox_.to_peer(gone, nullptr, 0);
        }
    }
    answer(client, m, 0);
}

// ---- segments

// Ends of one machine: its daemons know who may open what.
int Broker::grants_status(const End *end) const
{
    if (end == nullptr || end->client == nullptr)
        return -ENOENT;
    if (end->carried || (!end->key.local && carriage_ == Carriage::daemon))
        return -EOPNOTSUPP;
    if (end->memory == nullptr)
        return -ENOTCONN;
    const bool has_other = end->key.local ? end->pair != 0 : end->remote != 0 && !end->remote_gone;
    return has_other && !end->revoked ? 0 : -ECONNRESET;
}

bool Broker::take_of_segments(const Client &client, const Message &m)
{
    const End *end = end_of(client, m.id);
    const int status = grants_status(end);
    switch (m.type) {
    case Type::make_segment:
        segments_.make(client.id, client.user, m);
        return true;
    case Type::end_segment:
        segments_.end(client.id, m.id);
        return true;
    case Type::grant:
        segments_.grant(client.id, m, status);
        return true;
    case Type::ungrant:
        segments_.ungrant(client.id, m, end == nullptr ? -ENOENT : 0);
        return true;
    case Type::open_segment:
        if (status == 0 && !end->key.local)
            segments_.ask(client.id, client.user, m, end->remote, now_ms_);
        else
            segments_.open(client.id, client.user, m, end != nullptr ? end->pair : 0, status);
        return true;
    default:
        return false;
    }
}

// ---- time

int64_t Broker::next_deadline() const
{
    int64_t next = std::min(claims_.next_deadline(), segments_.next_deadline());
    for (const auto &[_, end] : ends_)
        if (end->memory == nullptr && end->deadline_ms != 0)
            next = std::min(next, end->deadline_ms);
    return next;
}

void Broker::expire(int64_t now_ms)
{
    now_ms_ = now_ms;
    claims_.expire(now_ms);
    segments_.expire(now_ms);
    for (auto &[id, end] : ends_) {
        if (end->memory != nullptr || end->deadline_ms == 0 || end->deadline_ms > now_ms)
            continue;
        if (!end->key.local && peer_) {
            Message m;
            m.type = Type::withdraw;
            m.id = id;
            outbox_.to_peer(m, nullptr, 0);
        }
        fail(*end, -ETIMEDOUT);
    }
}

Broker::Figures Broker::figures() const
{
    Figures now = figures_;
    now.clients = clients_.size();
    now.listeners = listeners_.size();
    now.segments = segments_.count();
    const Claims::Figures claims = claims_.figures();
    now.claimed = claims.open;
    now.carried = claims.carried;
    now.matched += claims.matched;
    now.failed += claims.failed;
    for (const auto &[_, end] : ends_) {
        if (end->carried && !end->relay_ended)
            now.carried++;
        if (end->memory != nullptr && end->client != nullptr)
            now.open++;
        else if (end->memory == nullptr && end->deadline_ms != 0)
            now.connecting++;
    }
    return now;
}

} // namespace ntbd
