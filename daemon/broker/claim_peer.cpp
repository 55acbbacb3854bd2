// SPDX-License-Identifier: BSD-3-Clause
// What the daemon of the peer host is sent and says, and what is carried through both.
#include "broker/claim_parts.hpp"

#include <cerrno>
#include <vector>

namespace ntbd
{

using ntbc::Message;
using ntbc::Type;

namespace
{
// As of connects: of the peer's daemon.
constexpr size_t offers_max = 65536;
constexpr size_t tuple_bytes = 36;
} // namespace

void Claims::send_offer(const Claim &claim)
{
    if (!peer_)
        return;
    Message m;
    m.type = Type::offer;
    m.key_kind = ntbc::key_tuple;
    m.id = claim.id;
    m.flags = ntbc::flag_wait;
    m.uid = claim.owner.user.uid;
    m.gid = claim.owner.user.gid;
    m.key_bytes = static_cast<uint32_t>(claim.tuple.size());
    claim.tuple.copy(reinterpret_cast<char *>(m.key), ntbc::key_bytes_max);
    outbox_.to_peer(m, nullptr, 0);
}

void Claims::report_to_peer(Type type, uint64_t id, int32_t status, uint64_t other)
{
    Message m;
    m.type = type;
    m.key_kind = ntbc::key_tuple;
    m.id = id;
    m.other = other;
    m.status = status;
    outbox_.to_peer(m, nullptr, 0);
}

void Claims::withdraw(const Claim &claim)
{
    if (!peer_ || claim.index != 0)
        return;
    report_to_peer(Type::withdraw, claim.id);
}

void Claims::peer_up(Carriage carriage)
{
    peer_ = true;
    carriage_ = carriage;
    for (const auto &[_, claim] : claims_)
        if (claim->memory == nullptr && claim->index == 0)
            send_offer(*claim);
}

void Claims::peer_down()
{
    peer_ = false;
    offers_.clear();
    std::vector<uint64_t> left;
    for (const auto &[id, claim] : claims_) {
        if (claim->remote == 0)
            continue;
        claim->remote = 0;
        if (claim->carried) {
            // What has arrived is delivered first: relay_ended() follows.
            if (!claim->relay_ended)
                order(*claim, RelayOrder::Kind::abandon);
            continue;
        }
        end(*claim, -ECONNRESET);
        if (claim->owner.client == 0)
            left.push_back(id);
    }
    for (const uint64_t id : left)
        drop(id);
}

bool Claims::take_offer(const Message &m)
{
    if (m.key_bytes != tuple_bytes || m.id == 0 || offers_.count(m.id) != 0 ||
        offers_.size() >= offers_max)
        return false;
    auto offer = std::make_unique<Offer>(
        Offer{m.id, {reinterpret_cast<const char *>(m.key), tuple_bytes}, {m.uid, m.gid, 0}});
    Claim *accepted = waiting({offer->tuple, 1});
    if (accepted != nullptr)
        join(*accepted, nullptr, offer.get());
    else
        offers_[m.id] = std::move(offer);
    return true;
}

// One that was closed meanwhile, or has run out of time, is answered so: the other end is let go.
void Claims::take_match(ntbc::Parcel *parcel)
{
    const Message &m = parcel->message;
    const auto found = claims_.find(m.id);
    const bool waits = found != claims_.end() && found->second->memory == nullptr;
    const bool opened =
        waits && (carriage_ == Carriage::daemon ? make_memory(*found->second, m)
                                                : take_memory(*found->second, parcel));
    if (opened) {
        found->second->remote = m.other;
        matched_++;
        return;
    }
    report_to_peer(Type::gone, m.other, -ECANCELED);
    if (waits)
        fail(*found->second, -ECANCELED);
}

void Claims::take_withdrawal(uint64_t id)
{
    offers_.erase(id);
}

void Claims::take_refusal(const Message &m)
{
    const auto found = claims_.find(m.id);
    if (found != claims_.end() && found->second->memory == nullptr)
        fail(*found->second, m.status < 0 ? m.status : -ECONNREFUSED);
}

void Claims::take_gone(const Message &m)
{
    const auto found = claims_.find(m.id);
    if (found == claims_.end() || found->second->remote == 0)
        return;
    Claim &claim = *found->second;
    if (claim.carried) {
        order(claim, RelayOrder::Kind::abandon);
        return;
    }
    if (m.status != 0)
        end(claim, -ECONNRESET);
    if (m.status != 0 && m.status != -ECANCELED)
        return; // revoked there; its client has still to close it
    claim.remote_gone = true;
    if (claim.owner.client == 0) {
        if (claim.made_here)
            claim.memory->release();
        drop(m.id);
    }
}

void Claims::take_fin(const Message &m)
{
    const auto found = claims_.find(m.id);
    if (found != claims_.end() && found->second->memory != nullptr)
        say_end(*found->second, static_cast<uint32_t>(m.other));
}

// ---- those that are carried through the daemons

void Claims::relay_ended(uint64_t id, int status)
{
    Claim &claim = *claims_.at(id);
    claim.relay_ended = true;
    carried_--;
    // One that was never joined there is waited for by no one else.
    if (status != 0 && claim.remote != 0 && peer_)
        report_to_peer(Type::gone, claim.remote, -ECANCELED);
    if (claim.owner.client != 0) {
        if (status != 0)
            end(claim, -ECONNRESET);
        return;
    }
    accounts_.give_connection(claim.owner.user.uid, claim.charged);
    claim.memory->release();
    drop(id);
}

void Claims::relay_fin(uint64_t id, uint32_t generation)
{
    const auto found = claims_.find(id);
    if (found != claims_.end() && found->second->memory != nullptr)
        say_end(*found->second, generation);
}

} // namespace ntbd
