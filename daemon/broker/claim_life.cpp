// SPDX-License-Identifier: BSD-3-Clause
// What clients ask for and are shown.
#include "broker/claim_parts.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/socket.h>
#include <vector>

namespace ntbd
{

using ntbc::Message;
using ntbc::Type;

namespace
{
constexpr uint32_t timeout_max_ms = 60000;
} // namespace

Claims::Claims(const Config &config, Outbox &outbox, Accounts &accounts, uint64_t &last_id)
    : config_(config), outbox_(outbox), accounts_(accounts), last_id_(last_id)
{
}

Claims::~Claims() = default;

Claims::Claim *Claims::of_client(ClientId client, uint64_t id)
{
    const auto found = claims_.find(id);
    return found != claims_.end() && found->second->owner.client == client ? found->second.get()
                                                                           : nullptr;
}

Claims::Claim *Claims::waiting(const Key &key)
{
    const auto found = waiting_.find(key);
    return found != waiting_.end() ? claims_.at(found->second).get() : nullptr;
}

void Claims::claim(const Owner &owner, const Message &m, const Shown &shown)
{
    const bool accepted = (m.flags & ntbc::flag_accepted) != 0;
    const uint64_t bytes = charge_of(config_.ring_bytes);
    const Key key = {accepted ? shown.remote + shown.local : shown.local + shown.remote,
                     accepted ? 1 : 0};
    int status = shown.status;
    if (status == 0 && (m.other == 0 || m.timeout_ms == 0 || m.timeout_ms > timeout_max_ms))
        status = -EINVAL;
    if (status == 0 && cookies_.count(shown.cookie) != 0)
        status = -EALREADY;
    // One that waits with these addresses is of a socket that is gone, or of a process that
    // handed this one on.
    if (Claim *old = status == 0 ? waiting(key) : nullptr; old != nullptr)
        fail(*old, -ECANCELED);
    if (status == 0 && !accounts_.take_connection(owner.user.uid, bytes))
        status = -EDQUOT;
    if (status != 0) {
        Message no;
        no.type = Type::unclaimed;
        no.other = m.other;
        no.status = status;
        failed_++;
        outbox_.to_client(owner.client, no, nullptr, 0);
        return;
    }
    const uint64_t id = ++last_id_;
    auto made = std::unique_ptr<Claim>(new Claim{id, owner, m.other, shown.cookie, key.first,
                                                 key.second, now_ms_ + m.timeout_ms, bytes,
                                                 m.pid == static_cast<uint32_t>(owner.user.pid)});
    Claim &claim = *made;
    claims_[id] = std::move(made);
    waiting_[key] = id;
    Claim *mirror = waiting({key.first, 1 - key.second});
    if (mirror != nullptr) {
        join(accepted ? claim : *mirror, accepted ? mirror : &claim, nullptr);
    } else if (!accepted) {
        send_offer(claim);
    } else {
        const auto offer = std::find_if(offers_.begin(), offers_.end(), [&](const auto &one) {
            return one.second->tuple == key.first;
        });
        if (offer == offers_.end())
            return;
        const auto taken = std::move(offer->second);
        offers_.erase(offer);
        join(claim, nullptr, taken.get());
    }
}

void Claims::fail(Claim &claim, int status)
{
    Message m;
    m.type = Type::unclaimed;
    m.other = claim.token;
    m.status = status;
    if (claim.memory != nullptr) { // its client has been given the memory
        end(claim, status);
        return;
    }
    failed_++;
    outbox_.to_client(claim.owner.client, m, nullptr, 0);
    forget(claim.id);
}

void Claims::drop(uint64_t id)
{
    again_.erase(id);
    claims_.erase(id);
}

/// An end that its client has left.
void Claims::forget(uint64_t id)
{
    Claim &claim = *claims_.at(id);
    const bool stays = claim.carried && claim.memory != nullptr && !claim.relay_ended;
    if (claim.owner.client != 0) {
        if (!stays)
            accounts_.give_connection(claim.owner.user.uid, claim.charged);
        open_ -= claim.memory != nullptr;
    }
    claim.owner.client = 0;
    if (claim.memory == nullptr) {
        withdraw(claim);
        const auto key = waiting_.find({claim.tuple, claim.index});
        if (key != waiting_.end() && key->second == id)
            waiting_.erase(key);
        claims_.erase(id);
        return;
    }
    cookies_.erase(claim.cookie);
    if (stays)
        return; // relay_ended() is the end
    // While the other end lives it may still ask for what this one has left (rule D2).
    const auto other = claims_.find(claim.pair);
    if ((claim.remote != 0 && !claim.remote_gone && !claim.carried) ||
        (other != claims_.end() && other->second->owner.client != 0))
        return;
    if (claim.made_here || other != claims_.end())
        claim.memory->release();
    if (other != claims_.end())
        drop(other->first);
    drop(id);
}

// Also one that was matched while its client withdrew it.
void Claims::unclaim(ClientId client, uint64_t token)
{
    const auto is_meant = [&](uint64_t id) {
        const Claim &claim = *claims_.at(id);
        return claim.owner.client == client && claim.token == token;
    };
    for (const auto &[_, id] : waiting_)
        if (is_meant(id)) {
            forget(id);
            return;
        }
    for (const auto &[id, _] : claims_)
        if (is_meant(id)) {
            close(client, id);
            return;
        }
}

void Claims::close(ClientId client, uint64_t id)
{
    Claim *claim = of_client(client, id);
    if (claim == nullptr)
        return;
    if (claim->carried) {
        order(*claim, RelayOrder::Kind::let_go);
    } else if (claim->remote != 0 && peer_) {
        report_to_peer(Type::gone, claim->remote);
    }
    forget(id);
}

bool Claims::detach(ClientId client)
{
    std::vector<uint64_t> left;
    for (const auto &[id, claim] : claims_)
        if (claim->owner.client == client)
            left.push_back(id);
    for (const uint64_t id : left)
        let_go(*claims_.at(id));
    return !left.empty();
}

/// For holders that are gone.
void Claims::let_go(Claim &claim)
{
    if (claim.memory != nullptr) {
        ntb::socket::say_gone(claim.record->record(), page_of(*claim.memory), claim.index);
        ring_other(claim);
    }
    close(claim.owner.client, claim.id);
}

// No flag of the socket matters, nor does a full one: then the bell is readable already.
void Claims::ring_other(const Claim &claim)
{
    const char both = 3;
    send(claim.bell.get(), &both, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/// One that is taken away: its client closes it.
void Claims::end(Claim &claim, int status)
{
    ntbc::mark_gone(claim.memory->page(), ntbc::gone_revoked);
    ring_other(claim);
    Message m;
    m.type = Type::ended;
    m.id = claim.id;
    m.status = status;
    if (claim.owner.client != 0)
        outbox_.to_client(claim.owner.client, m, nullptr, 0);
}

bool Claims::revoke(uint64_t id, const std::function<bool(uid_t)> &admits)
{
    const auto found = claims_.find(id);
    if (found == claims_.end() || found->second->owner.client == 0 ||
        !admits(found->second->owner.user.uid))
        return false;
    Claim &claim = *found->second;
    if (claim.memory == nullptr) {
        fail(claim, -ECONNRESET);
        return true;
    }
    end(claim, -ECONNRESET);
    if (const auto other = claims_.find(claim.pair); other != claims_.end())
        end(*other->second, -ECONNRESET);
    if (claim.carried) {
        order(claim, RelayOrder::Kind::let_go); // it finds the mark
    } else if (claim.remote != 0 && peer_) {
        report_to_peer(Type::gone, claim.remote, -ECONNRESET);
    }
    return true;
}

// ---- what is shown

uint64_t Claims::next_id(uint64_t after) const
{
    const auto next = claims_.upper_bound(after);
    return next != claims_.end() ? next->first : 0;
}

bool Claims::entry_of(uint64_t id, const std::function<bool(uid_t)> &admits, Message *out) const
{
    const auto found = claims_.find(id);
    if (found == claims_.end() || found->second->owner.client == 0 ||
        !admits(found->second->owner.user.uid))
        return false;
    const Claim &claim = *found->second;
    out->type = Type::entry;
    out->id = id;
    out->end = claim.index;
    out->state = claim.memory == nullptr ? 1 : ntbc::load(claim.memory->page().gone) != 0 ? 3 : 2;
    out->flags = claim.carried                                  ? ntbc::flag_carried
                 : claim.remote == 0 && claim.memory != nullptr ? ntbc::flag_local
                                                                : 0;
    out->uid = claim.owner.user.uid;
    out->gid = claim.owner.user.gid;
    out->pid = static_cast<uint32_t>(claim.owner.user.pid);
    out->key_kind = ntbc::key_tuple;
    out->key_bytes = static_cast<uint32_t>(claim.tuple.size());
    claim.tuple.copy(reinterpret_cast<char *>(out->key), ntbc::key_bytes_max);
    if (claim.memory != nullptr) {
        const ntb::socket::Figures now = figures_of(claim.record->record());
        out->ring_bytes = claim.memory->ring_bytes();
        out->sent = now.sent_by_ring;
        out->received = now.received_by_ring;
        out->sent_by_tcp = now.sent_by_kernel;
        out->received_by_tcp = now.received_by_kernel;
        out->directions = (now.sender & 0xFF) | (now.receiver & 0xFF) << 8;
    }
    return true;
}

Claims::Figures Claims::figures() const
{
    return {waiting_.size(), open_, carried_, matched_, failed_};
}

} // namespace ntbd
