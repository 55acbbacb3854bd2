// SPDX-License-Identifier: BSD-3-Clause
// What a claim gets that has found its mirror, here or at the peer's daemon.
#include "broker/claim_parts.hpp"

#include <cerrno>
#include <cstring>
#include <sys/random.h>
#include <sys/socket.h>

namespace ntbd
{

using ntbc::Message;
using ntbc::Type;

/// Makes the memory of both ends. @return 0, or why they are not joined: both have failed
int Claims::join(Claim &accepted, Claim *connected, const Offer *offer)
{
    Fd memory_fd;
    Descriptor bells[2];
    const User theirs = connected != nullptr ? connected->owner.user : offer->user;
    const User ours = accepted.owner.user;
    std::shared_ptr<Memory> memory = Memory::create(config_.ring_bytes, &memory_fd.fd);
    bool made = memory != nullptr &&
                make_bells(bells, outbox_.closer_of(ours.uid), outbox_.closer_of(theirs.uid));
    Token token = {};
    const bool carried = connected == nullptr && carriage_ == Carriage::daemon;
    accepted.made_here = true;
    accepted.carried = carried;
    if (carried && getrandom(token.data(), token.size(), 0) != sizeof(token))
        made = false;
    bool opened = made && open(accepted, memory, memory_fd.fd, std::move(bells[1]), theirs);
    if (connected != nullptr) {
        if (opened)
            withdraw(*connected);
        opened = opened && open(*connected, memory, memory_fd.fd, std::move(bells[0]), ours);
        if (opened) {
            connected->pair = accepted.id;
            accepted.pair = connected->id;
        }
    } else if (opened) {
        accepted.remote = offer->id;
        Message m;
        m.type = Type::matched;
        m.key_kind = ntbc::key_tuple;
        m.id = offer->id;
        m.other = accepted.id;
        m.ring_bytes = memory->ring_bytes();
        m.uid = ours.uid;
        m.gid = ours.gid;
        if (carried) {
            m.key_bytes = static_cast<uint32_t>(token.size());
            memcpy(m.key, token.data(), token.size());
            carry(accepted, RelayOrder::Kind::expect, std::move(bells[0]), token);
        }
        const int fds[] = {memory_fd.fd, bells[0].get()};
        outbox_.to_peer(m, fds, carried ? 0 : 2);
    }
    if (opened) {
        matched_++;
        return 0;
    }
    const int status = errno == EMFILE || errno == ENFILE ? -EMFILE : -ENOMEM;
    if (connected != nullptr)
        fail(*connected, status);
    if (offer != nullptr)
        report_to_peer(Type::refused, offer->id, status);
    fail(accepted, status);
    return status;
}

// The carrier learns of a connection before the peer's daemon does. @param bell of the other end
void Claims::carry(const Claim &claim, RelayOrder::Kind kind, Descriptor bell, const Token &token)
{
    RelayOrder order;
    order.kind = kind;
    order.id = claim.id;
    order.peer_id = claim.remote;
    order.token = token;
    order.memory = claim.memory;
    order.is_claim = true;
    order.client_end = claim.index;
    order.peer_ring_bytes = claim.memory->ring_bytes();
    order.bell = std::move(bell);
    outbox_.to_carrier(std::move(order));
    carried_++;
}

void Claims::order(const Claim &claim, RelayOrder::Kind kind, uint32_t generation)
{
    RelayOrder order;
    order.kind = kind;
    order.id = claim.id;
    order.generation = generation;
    outbox_.to_carrier(std::move(order));
}

/// Gives an end its record, and informs its client.
bool Claims::open(Claim &claim, std::shared_ptr<Memory> memory, int memory_fd, Descriptor bell,
                  const User &other)
{
    claim.bell = std::move(bell);
    Fd record_fd;
    claim.record = RecordMemory::create(&record_fd);
    if (claim.record == nullptr)
        return false;
    claim.memory = std::move(memory);
    waiting_.erase({claim.tuple, claim.index});
    cookies_.insert(claim.cookie);
    open_++;
    Message m;
    m.type = Type::claimed;
    m.id = claim.id;
    m.other = claim.token;
    m.ring_bytes = claim.memory->ring_bytes();
    m.end = claim.index;
    m.flags = claim.carried ? ntbc::flag_carried : 0;
    m.uid = other.uid;
    m.gid = other.gid;
    const int fds[] = {memory_fd, claim.bell.get(), record_fd.fd};
    outbox_.to_client(claim.owner.client, m, fds, 3);
    return true;
}

/// As large as the peer's rings, which may be larger than ours.
bool Claims::charge(Claim &claim, uint32_t ring_bytes)
{
    accounts_.give_connection(claim.owner.user.uid, claim.charged);
    const uint64_t bytes = charge_of(ring_bytes);
    const bool fits = accounts_.take_connection(claim.owner.user.uid, bytes);
    if (fits)
        claim.charged = bytes;
    else
        accounts_.take_connection(claim.owner.user.uid, claim.charged);
    return fits;
}

/// The memory that the peer's daemon has made.
bool Claims::take_memory(Claim &claim, ntbc::Parcel *parcel)
{
    const Message &m = parcel->message;
    std::shared_ptr<Memory> memory = parcel->count == 2 && ntbc::is_bell(parcel->fd(1))
                                         ? Memory::open(m.ring_bytes, parcel->fd(0))
                                         : nullptr;
    return memory != nullptr && charge(claim, m.ring_bytes) &&
           open(claim, memory, parcel->fd(0),
                Descriptor(parcel->take_fd(1), outbox_.closer_of(m.uid)), {m.uid, m.gid, 0});
}

/// Memory of this host, as large as that of the other.
bool Claims::make_memory(Claim &claim, const Message &m)
{
    if (m.key_bytes != sizeof(Token) || m.other == 0 || !ntbc::is_ring_size(m.ring_bytes) ||
        !charge(claim, m.ring_bytes))
        return false;
    Fd memory_fd;
    Descriptor bells[2];
    std::shared_ptr<Memory> memory = Memory::create(m.ring_bytes, &memory_fd.fd);
    if (memory == nullptr || !make_bells(bells, outbox_.closer_of(claim.owner.user.uid), {}))
        return false;
    claim.carried = true;
    claim.made_here = true;
    if (!open(claim, std::move(memory), memory_fd.fd, std::move(bells[1]), {m.uid, m.gid, 0})) {
        claim.carried = false;
        return false;
    }
    claim.remote = m.other;
    Token token;
    memcpy(token.data(), m.key, token.size());
    carry(claim, RelayOrder::Kind::connect, std::move(bells[0]), token);
    return true;
}

} // namespace ntbd
