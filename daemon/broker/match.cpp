// SPDX-License-Identifier: BSD-3-Clause
// Who connects meets who listens. The daemon of the listener decides, so that there is one who
// does: it makes the memory and the bells, and sends the other end to the peer's daemon.
#include "broker/broker.hpp"
#include "broker/parts.hpp"
#include "wire/sealed.hpp"

#include <cerrno>
#include <cstring>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ntbd
{

using ntbc::Message;
using ntbc::Parcel;
using ntbc::Type;

namespace
{
// Of the peer's daemon: one that is wrong or does not keep its clients' quotas fills nothing here.
constexpr size_t offers_max = 65536;

int no_memory()
{
    return errno == EMFILE || errno == ENFILE ? -EMFILE : -ENOMEM;
}
} // namespace

// ---- an end here looks for a listener

void Broker::seek(End &end)
{
    if (!end.key.local) {
        if (peer_)
            send_offer(end);
        else if (!end.waits)
            fail(end, -EHOSTUNREACH);
        return;
    }
    Listener *listener = listener_for(end.key);
    if (listener != nullptr) {
        if (const int status = join(*listener, {&end, nullptr}); status != 0)
            fail(end, status);
    } else if (!end.waits) {
        fail(end, -ECONNREFUSED);
    }
}

void Broker::send_offer(const End &end)
{
    Message m;
    m.type = Type::offer;
    m.id = end.id;
    m.flags = end.waits ? ntbc::flag_wait : 0;
    m.uid = end.client->user.uid;
    m.gid = end.client->user.gid;
    m.key_bytes = static_cast<uint32_t>(end.key.name.size());
    end.key.name.copy(reinterpret_cast<char *>(m.key), ntbc::key_bytes_max);
    outbox_.to_peer(m, nullptr, 0);
}

// ---- a listener finds those who wait

void Broker::serve_waiting(Listener &listener)
{
    const uint64_t id = listener.id;
    const Key key = listener.key;
    std::vector<uint64_t> callers;
    if (key.local) {
        for (const auto &[end_id, end] : ends_)
            if (end->memory == nullptr && end->deadline_ms != 0 && end->key == key)
                callers.push_back(end_id);
    } else {
        for (const auto &[offer_id, offer] : offers_)
            if (offer->key.name == key.name)
                callers.push_back(offer_id);
    }
    for (const uint64_t caller : callers) {
        const auto found = listeners_.find(id); // it may have been for one alone
        if (found == listeners_.end())
            return;
        if (key.local) {
            End &end = *ends_.at(caller);
            if (const int status = join(*found->second, {&end, nullptr}); status != 0)
                fail(end, status);
        } else {
            const auto offer = std::move(offers_.at(caller));
            offers_.erase(caller);
            if (const int status = join(*found->second, {nullptr, offer.get()}); status != 0)
                refuse(*offer, status);
        }
    }
}

// ---- both are there

/// @return 0, or why they are not joined
int Broker::join(Listener &listener, const Caller &caller)
{
    if (listener.waiting >= listener.backlog)
        return -ECONNREFUSED;
    Client &owner = *listener.client;
    const uint64_t bytes = ntbc::memory_bytes(config_.ring_bytes);
    if (!accounts_.take_connection(owner.user.uid, bytes))
        return -EDQUOT;
    const bool carried = caller.offer != nullptr && carriage_ == Carriage::daemon;
    Fds fds;
    Token token = {};
    std::shared_ptr<Memory> memory = Memory::create(config_.ring_bytes, &fds.memory);
    const User &user = caller.end != nullptr ? caller.end->client->user : caller.offer->user;
    if (memory == nullptr ||
        !make_bells(fds.bells, outbox_.closer_of(owner.user.uid), outbox_.closer_of(user.uid)) ||
        (carried && getrandom(token.data(), token.size(), 0) != sizeof(token))) {
        accounts_.give_connection(owner.user.uid, bytes);
        return no_memory();
    }
    End &accepted = accept_end(listener, memory);
    accepted.charged = bytes;
    accepted.carried = carried;
    const int theirs[] = {fds.memory, fds.bells[0].get()};
    const int ours[] = {fds.memory, fds.bells[1].get()};
    if (caller.end != nullptr) {
        caller.end->memory = memory;
        caller.end->pair = accepted.id;
        accepted.pair = caller.end->id;
        announce(*caller.end, Type::connected, owner.user, theirs);
        announce(accepted, Type::accepted, user, ours);
    } else {
        accepted.remote = caller.offer->id;
        Message m;
        m.type = Type::matched;
        m.id = caller.offer->id;
        m.other = accepted.id;
        m.ring_bytes = memory->ring_bytes();
        m.uid = owner.user.uid;
        m.gid = owner.user.gid;
        if (carried) {
            m.key_bytes = static_cast<uint32_t>(token.size());
            memcpy(m.key, token.data(), token.size());
            carry(accepted, RelayOrder::Kind::expect, &fds, token, 0);
        }
        outbox_.to_peer(m, carried ? nullptr : theirs, carried ? 0 : 2);
        announce(accepted, Type::accepted, user, ours);
    }
    figures_.matched++;
    if (listener.once) {
        accepted.listener = 0;
        remove_listener(listener.id);
    }
    return 0;
}

// The other end of the client's bell goes to the thread that carries. It learns of the connection
// before the peer's daemon is.
void Broker::carry(const End &end, RelayOrder::Kind kind, Fds *fds, const Token &token,
                   uint32_t peer_ring_bytes)
{
    RelayOrder order;
    order.kind = kind;
    order.id = end.id;
    order.peer_id = end.remote;
    order.token = token;
    order.memory = end.memory;
    order.client_end = end.index;
    order.peer_ring_bytes = peer_ring_bytes;
    order.bell = std::move(fds->bells[0]);
    outbox_.to_carrier(std::move(order));
}

void Broker::order(const End &end, RelayOrder::Kind kind)
{
    RelayOrder order;
    order.kind = kind;
    order.id = end.id;
    outbox_.to_carrier(std::move(order));
}

Broker::End &Broker::accept_end(Listener &listener, std::shared_ptr<Memory> memory)
{
    auto end = std::make_unique<End>();
    end->id = ++last_id_;
    end->client = listener.client;
    end->owner = listener.client->user.uid;
    end->key = listener.key;
    end->waits = false;
    end->memory = std::move(memory);
    end->index = 1;
    end->listener = listener.id;
    listener.waiting++;
    listener.client->ends.insert(end->id);
    End &made = *end;
    ends_[made.id] = std::move(end);
    return made;
}

void Broker::announce(const End &end, Type type, const User &other, const int *fds)
{
    Message m;
    m.type = type;
    m.id = end.id;
    m.other = end.listener;
    m.ring_bytes = end.memory->ring_bytes();
    m.end = end.index;
    m.uid = other.uid;
    m.gid = other.gid;
    outbox_.to_client(end.client->id, m, fds, 2);
}

// ---- the peer's daemon

void Broker::peer_up(Carriage carriage)
{
    peer_ = true;
    carriage_ = carriage;
    claims_.peer_up(carriage);
    for (const auto &[_, end] : ends_)
        if (!end->key.local && end->memory == nullptr && end->deadline_ms != 0)
            send_offer(*end);
}

void Broker::peer_down()
{
    peer_ = false;
    claims_.peer_down();
    segments_.peer_down();
    offers_.clear();
    std::vector<uint64_t> closed;
    for (const auto &[id, end] : ends_) {
        if (end->key.local)
            continue;
        end->remote = 0;
        if (end->carried) {
            // What arrived is delivered first: relay_ended() follows.
            if (!end->relay_ended)
                order(*end, RelayOrder::Kind::abandon);
            continue;
        }
        end->remote_gone = true;
        if (end->client == nullptr)
            closed.push_back(id);
        else if (end->memory != nullptr)
            end_open(id, -ECONNRESET);
        else if (end->deadline_ms != 0 && !end->waits)
            fail(*end, -EHOSTUNREACH);
    }
    for (const uint64_t id : closed)
        remove_end(id);
}

bool Broker::take_from_peer(ntbc::Parcel *parcel)
{
    const Message &m = parcel->message;
    if (m.key_kind == ntbc::key_tuple)
        return take_of_claims(parcel);
    switch (m.type) {
    case Type::offer:
        return take_offer(m);
    case Type::withdraw:
        take_withdrawal(m.id);
        return true;
    case Type::matched:
        take_match(parcel);
        return true;
    case Type::refused:
        take_refusal(m);
        return true;
    case Type::gone:
        take_gone(m);
        return true;
    case Type::find_segment:
    case Type::segment_found:
        return take_of_segments(parcel);
    default:
        return false;
    }
}

bool Broker::take_of_segments(Parcel *parcel)
{
    const Message &m = parcel->message;
    if (carriage_ == Carriage::daemon)
        return false;
    if (m.type == Type::segment_found)
        return segments_.found(parcel);
    const auto found = ends_.find(m.id);
    const bool is_known = found != ends_.end() && !found->second->key.local;
    segments_.find(m, grants_status(is_known ? found->second.get() : nullptr));
    return true;
}

bool Broker::take_of_claims(ntbc::Parcel *parcel)
{
    const Message &m = parcel->message;
    switch (m.type) {
    case Type::offer:
        return claims_.take_offer(m);
    case Type::withdraw:
        claims_.take_withdrawal(m.id);
        return true;
    case Type::matched:
        claims_.take_match(parcel);
        return true;
    case Type::refused:
        claims_.take_refusal(m);
        return true;
    case Type::gone:
        claims_.take_gone(m);
        return true;
    case Type::fin:
        // Through the daemons it comes behind the words that it is about, by their pipe.
        if (carriage_ == Carriage::daemon)
            return false;
        claims_.take_fin(m);
        return true;
    default:
        return false;
    }
}

void Broker::refuse(const Offer &offer, int status)
{
    Message m;
    m.type = Type::refused;
    m.id = offer.id;
    m.status = status;
    outbox_.to_peer(m, nullptr, 0);
}

bool Broker::take_offer(const Message &m)
{
    if (m.key_bytes == 0 || m.id == 0 || offers_.count(m.id) != 0 || offers_.size() >= offers_max)
        return false;
    auto offer = std::make_unique<Offer>();
    offer->id = m.id;
    offer->key = key_of(m);
    offer->key.local = false;
    offer->user = {m.uid, m.gid, 0};
    Listener *listener = listener_for(offer->key);
    if (listener != nullptr) {
        if (const int status = join(*listener, {nullptr, offer.get()}); status != 0)
            refuse(*offer, status);
    } else if ((m.flags & ntbc::flag_wait) != 0) {
        offers_[m.id] = std::move(offer);
    } else {
        refuse(*offer, -ECONNREFUSED);
    }
    return true;
}

void Broker::take_withdrawal(uint64_t id)
{
    offers_.erase(id);
}

// The memory that the peer's daemon has made. Its rings may be larger than ours.
int Broker::take_memory(const End &end, Parcel *parcel, std::shared_ptr<Memory> *out)
{
    if (parcel->count != 2 || !ntbc::is_bell(parcel->fd(1)))
        return -EPROTO;
    *out = Memory::open(parcel->message.ring_bytes, parcel->fd(0));
    if (*out == nullptr)
        return -EPROTO;
    accounts_.give_connection(end.owner, end.charged);
    if (accounts_.take_connection(end.owner, (*out)->bytes()))
        return 0;
    accounts_.take_connection(end.owner, end.charged);
    return -EDQUOT;
}

// Memory of this host, as large as it was charged.
int Broker::make_memory(const End &end, const Message &m, Fds *fds, std::shared_ptr<Memory> *out)
{
    if (m.key_bytes != sizeof(Token) || m.other == 0 || !ntbc::is_ring_size(m.ring_bytes))
        return -EPROTO;
    *out =
        Memory::create(static_cast<uint32_t>((end.charged - ntbc::page_bytes) / 2), &fds->memory);
    const bool made =
        *out != nullptr && make_bells(fds->bells, outbox_.closer_of(end.client->user.uid), {});
    return made ? 0 : no_memory();
}

// One that was closed meanwhile, or has run out of time, is answered so: the other end is let go.
void Broker::take_match(Parcel *parcel)
{
    const Message &m = parcel->message;
    const auto found = ends_.find(m.id);
    const bool carried = carriage_ == Carriage::daemon;
    Fds fds;
    std::shared_ptr<Memory> memory;
    int status = -ECANCELED;
    if (found != ends_.end() && found->second->client != nullptr && !found->second->key.local &&
        found->second->memory == nullptr && found->second->deadline_ms != 0)
        status = carried ? make_memory(*found->second, m, &fds, &memory)
                         : take_memory(*found->second, parcel, &memory);
    if (status != 0) {
        Message gone;
        gone.type = Type::gone;
        gone.id = m.other;
        gone.status = -ECANCELED;
        outbox_.to_peer(gone, nullptr, 0);
        if (status != -ECANCELED)
            fail(*found->second, status);
        return;
    }
    End &end = *found->second;
    end.charged = memory->bytes();
    end.memory = std::move(memory);
    end.remote = m.other;
    end.carried = carried;
    figures_.matched++;
    const int made[] = {fds.memory, fds.bells[1].get()};
    const int sent[] = {parcel->fd(0), parcel->fd(1)};
    announce(end, Type::connected, {m.uid, m.gid, 0}, carried ? made : sent);
    if (carried) {
        Token token;
        memcpy(token.data(), m.key, token.size());
        carry(end, RelayOrder::Kind::connect, &fds, token, m.ring_bytes);
    }
}

void Broker::take_refusal(const Message &m)
{
    const auto found = ends_.find(m.id);
    if (found == ends_.end() || found->second->key.local || found->second->memory != nullptr ||
        found->second->deadline_ms == 0)
        return;
    fail(*found->second, m.status < 0 ? m.status : -ECONNREFUSED);
}

void Broker::take_gone(const Message &m)
{
    const auto found = ends_.find(m.id);
    if (found == ends_.end() || found->second->key.local || found->second->memory == nullptr)
        return;
    End &end = *found->second;
    if (end.carried) {
        order(end, RelayOrder::Kind::abandon);
        return;
    }
    if (m.status != 0)
        end_open(m.id, -ECONNRESET);
    if (m.status != 0 && m.status != -ECANCELED)
        return; // revoked there; its client has still to close it
    end.remote_gone = true;
    if (end.client == nullptr)
        remove_end(m.id);
}

// ---- connections through the daemon

void Broker::relay_ended(uint64_t id, int status)
{
    if (claims_.has(id)) {
        claims_.relay_ended(id, status);
        return;
    }
    End &end = *ends_.at(id);
    end.relay_ended = true;
    // One that was never joined there is waited for by no one else.
    if (status != 0 && end.remote != 0 && peer_) {
        Message gone;
        gone.type = Type::gone;
        gone.id = end.remote;
        gone.status = -ECANCELED;
        outbox_.to_peer(gone, nullptr, 0);
    }
    if (end.client == nullptr)
        remove_end(id);
    else if (status != 0)
        end_open(id, status);
}

} // namespace ntbd
