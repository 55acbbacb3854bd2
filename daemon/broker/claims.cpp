// SPDX-License-Identifier: BSD-3-Clause
#include "broker/claims.hpp"

#include "record/record.hpp"
#include "wire/sealed.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ntbd
{

using ntb::socket::Record;
using ntb::socket::record_bytes;
using ntbc::Message;
using ntbc::Type;

namespace
{
constexpr uint32_t timeout_max_ms = 60000;
// As of connects: of the peer's daemon.
constexpr size_t offers_max = 65536;
constexpr size_t tuple_bytes = 36;
// How soon an end is said again that somebody's lock was in the way of.
constexpr int64_t again_ms = 2;
// One that has moved no byte by ring for so long gives its rings' pages back. What its peer has not
// taken then is looked at a few times more.
constexpr int64_t idle_ms = 1000;
constexpr int rests_max = 4;
// A receiver that has asked for TCP waits four times as long before it breaks the connection off.
constexpr int64_t ask_ms = 250;

struct Fd {
    int fd = -1;
    Fd() = default;
    explicit Fd(int taken) : fd(taken) {}
    Fd(const Fd &) = delete;
    Fd &operator=(const Fd &) = delete;
    ~Fd()
    {
        if (fd >= 0)
            ::close(fd);
    }
    int release() { return std::exchange(fd, -1); }
};

class RecordMemory
{
public:
    /// @param fd its descriptor, the caller's @return NULL: no memory or no descriptor
    static std::unique_ptr<RecordMemory> create(Fd *fd)
    {
        fd->fd = ntbc::sealed_create("ntbd-record", record_bytes);
        if (fd->fd < 0)
            return nullptr;
        void *at = ntbc::sealed_map(fd->fd, record_bytes);
        return at != nullptr ? std::unique_ptr<RecordMemory>(new RecordMemory(at)) : nullptr;
    }
    ~RecordMemory() { munmap(at_, record_bytes); }
    RecordMemory(const RecordMemory &) = delete;
    RecordMemory &operator=(const RecordMemory &) = delete;
    Record &record() { return *static_cast<Record *>(at_); }

private:
    explicit RecordMemory(void *at) : at_(at) {}
    void *at_;
};

ntb::socket::Page &page_of(Memory &memory)
{
    return reinterpret_cast<ntb::socket::Page &>(memory.page());
}

uint64_t charge_of(uint32_t ring_bytes)
{
    return ntbc::memory_bytes(ring_bytes) + record_bytes;
}
} // namespace

struct Claims::Claim {
    uint64_t id;
    Owner owner; ///< client 0: it is gone
    uint64_t token;
    uint64_t cookie;
    std::string tuple;
    uint32_t index;      ///< 0 connected, 1 accepted
    int64_t deadline_ms; ///< for a mirror
    uint64_t charged;
    std::shared_ptr<Memory> memory = nullptr; ///< NULL: waits for its mirror
    std::unique_ptr<RecordMemory> record = nullptr;
    Fd bell; ///< of this end: rings the other one
    uint64_t pair = 0;
    uint64_t remote = 0;
    bool remote_gone = false; ///< closed there
    bool made_here = false;
    bool carried = false;     ///< through the daemons, each of which has memory of its own
    bool relay_ended = false; ///< and that has ended
    int64_t again_ms = 0;     ///< when to say the end again
    uint32_t again_generation = 0;
    uint64_t progress = 0; ///< when it was last looked at
    int rests = 0;         ///< times that it rested since it moved bytes
    bool asked = false;    ///< to go back, when it was last looked at
};

struct Claims::Offer {
    uint64_t id;
    std::string tuple;
    User user;
};

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

// ---- claims

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
                                                 key.second, now_ms_ + m.timeout_ms, bytes});
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

/// Makes the memory of both ends. @return 0, or why they are not joined: both have failed
int Claims::join(Claim &accepted, Claim *connected, const Offer *offer)
{
    Fd memory_fd;
    Fd bells[2];
    int pair[2] = {-1, -1};
    std::shared_ptr<Memory> memory = Memory::create(config_.ring_bytes, &memory_fd.fd);
    bool made = memory != nullptr &&
                socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0;
    bells[0].fd = pair[0];
    bells[1].fd = pair[1];
    const User theirs = connected != nullptr ? connected->owner.user : offer->user;
    const User ours = accepted.owner.user;
    Token token = {};
    const bool carried = connected == nullptr && carriage_ == Carriage::daemon;
    accepted.made_here = true;
    accepted.carried = carried;
    if (carried && getrandom(token.data(), token.size(), 0) != sizeof(token))
        made = false;
    bool opened = made && open(accepted, memory, memory_fd.fd, bells[1].release(), theirs);
    if (connected != nullptr) {
        if (opened)
            withdraw(*connected);
        opened = opened && open(*connected, memory, memory_fd.fd, bells[0].release(), ours);
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
            carry(accepted, RelayOrder::Kind::expect, bells[0].release(), token);
        }
        const int fds[] = {memory_fd.fd, bells[0].fd};
        outbox_.to_peer(m, fds, carried ? 0 : 2);
    }
    if (opened) {
        matched_++;
        return 0;
    }
    const int status = errno == EMFILE || errno == ENFILE ? -EMFILE : -ENOMEM;
    if (connected != nullptr)
        fail(*connected, status);
    if (offer != nullptr) {
        Message no;
        no.type = Type::refused;
        no.key_kind = ntbc::key_tuple;
        no.id = offer->id;
        no.status = status;
        outbox_.to_peer(no, nullptr, 0);
    }
    fail(accepted, status);
    return status;
}

// The carrier learns of a connection before the peer's daemon does. @param bell of the other end:
// taken over
void Claims::carry(const Claim &claim, RelayOrder::Kind kind, int bell, const Token &token)
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
    order.bell = Descriptor(bell);
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

/// Gives an end its record, and informs its client. @param bell taken over
bool Claims::open(Claim &claim, std::shared_ptr<Memory> memory, int memory_fd, int bell,
                  const User &other)
{
    claim.bell.fd = bell;
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
    const int fds[] = {memory_fd, bell, record_fd.fd};
    outbox_.to_client(claim.owner.client, m, fds, 3);
    return true;
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
        claim.memory->give_back();
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
        Message m;
        m.type = Type::gone;
        m.key_kind = ntbc::key_tuple;
        m.id = claim->remote;
        outbox_.to_peer(m, nullptr, 0);
    }
    forget(id);
}

bool Claims::detach(ClientId client)
{
    std::vector<uint64_t> left;
    for (const auto &[id, claim] : claims_)
        if (claim->owner.client == client)
            left.push_back(id);
    for (const uint64_t id : left) {
        Claim &claim = *claims_.at(id);
        if (claim.memory != nullptr) {
            ntb::socket::say_gone(claim.record->record(), page_of(*claim.memory), claim.index);
            ring_other(claim);
        }
        close(client, id);
    }
    return !left.empty();
}

// No flag of the socket matters, nor does a full one: then the bell is readable already.
void Claims::ring_other(const Claim &claim)
{
    const char both = 3;
    send(claim.bell.fd, &both, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// ---- the end of a direction

void Claims::fin_seen(ClientId client, uint64_t id, uint32_t generation)
{
    Claim *claim = of_client(client, id);
    if (claim == nullptr || claim->memory == nullptr)
        return;
    if (const auto sender = claims_.find(claim->pair); sender != claims_.end())
        say_end(*sender->second, generation);
    if (claim->carried) {
        order(*claim, RelayOrder::Kind::fin, generation);
    } else if (claim->remote != 0 && peer_) {
        Message m;
        m.type = Type::fin;
        m.key_kind = ntbc::key_tuple;
        m.id = claim->remote;
        m.other = generation;
        outbox_.to_peer(m, nullptr, 0);
    }
}

void Claims::say_end(Claim &sender, uint32_t generation)
{
    again_.erase(sender.id);
    const bool alone = sender.owner.client == 0;
    if (ntb::socket::say_end(sender.record->record(), page_of(*sender.memory), sender.index,
                             generation, alone)) {
        ring_other(sender);
        return;
    }
    again_.insert(sender.id);
    sender.again_ms = now_ms_ + again_ms;
    sender.again_generation = generation;
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
        Message m;
        m.type = Type::gone;
        m.key_kind = ntbc::key_tuple;
        m.id = claim.remote;
        m.status = -ECONNRESET;
        outbox_.to_peer(m, nullptr, 0);
    }
    return true;
}

// ---- the peer's daemon

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

void Claims::withdraw(const Claim &claim)
{
    if (!peer_ || claim.index != 0)
        return;
    Message m;
    m.type = Type::withdraw;
    m.key_kind = ntbc::key_tuple;
    m.id = claim.id;
    outbox_.to_peer(m, nullptr, 0);
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
           open(claim, memory, parcel->fd(0), parcel->take_fd(1), {m.uid, m.gid, 0});
}

/// Memory of this host, as large as that of the other.
bool Claims::make_memory(Claim &claim, const Message &m)
{
    if (m.key_bytes != sizeof(Token) || m.other == 0 || !ntbc::is_ring_size(m.ring_bytes) ||
        !charge(claim, m.ring_bytes))
        return false;
    Fd memory_fd;
    int pair[2] = {-1, -1};
    std::shared_ptr<Memory> memory = Memory::create(m.ring_bytes, &memory_fd.fd);
    if (memory == nullptr ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
        return false;
    Fd bell(pair[0]);
    claim.carried = true;
    claim.made_here = true;
    if (!open(claim, std::move(memory), memory_fd.fd, pair[1], {m.uid, m.gid, 0})) {
        claim.carried = false;
        return false;
    }
    claim.remote = m.other;
    Token token;
    memcpy(token.data(), m.key, token.size());
    carry(claim, RelayOrder::Kind::connect, bell.release(), token);
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
    Message gone;
    gone.type = Type::gone;
    gone.key_kind = ntbc::key_tuple;
    gone.id = m.other;
    gone.status = -ECANCELED;
    outbox_.to_peer(gone, nullptr, 0);
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
            claim.memory->give_back();
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
    if (status != 0 && claim.remote != 0 && peer_) {
        Message gone;
        gone.type = Type::gone;
        gone.key_kind = ntbc::key_tuple;
        gone.id = claim.remote;
        gone.status = -ECANCELED;
        outbox_.to_peer(gone, nullptr, 0);
    }
    if (claim.owner.client != 0) {
        if (status != 0)
            end(claim, -ECONNRESET);
        return;
    }
    accounts_.give_connection(claim.owner.user.uid, claim.charged);
    claim.memory->give_back();
    drop(id);
}

void Claims::relay_fin(uint64_t id, uint32_t generation)
{
    const auto found = claims_.find(id);
    if (found != claims_.end() && found->second->memory != nullptr)
        say_end(*found->second, generation);
}

// ---- time

int64_t Claims::next_deadline() const
{
    int64_t next = std::numeric_limits<int64_t>::max();
    for (const auto &[_, id] : waiting_)
        next = std::min(next, claims_.at(id)->deadline_ms);
    for (const uint64_t id : again_)
        next = std::min(next, claims_.at(id)->again_ms);
    return open_ > 0 ? std::min({next, look_ms_, asks_ms_}) : next;
}

void Claims::expire(int64_t now_ms)
{
    now_ms_ = now_ms;
    std::vector<uint64_t> late;
    for (const auto &[_, id] : waiting_)
        if (claims_.at(id)->deadline_ms <= now_ms)
            late.push_back(id);
    for (const uint64_t id : late)
        fail(*claims_.at(id), -ETIMEDOUT);
    const std::set<uint64_t> again = again_;
    for (const uint64_t id : again)
        if (Claim &claim = *claims_.at(id); claim.again_ms <= now_ms)
            say_end(claim, claim.again_generation);
    if (now_ms >= look_ms_)
        look_for_idle();
    if (now_ms >= asks_ms_)
        look_for_asks();
}

/// Matched, and its client lives.
bool Claims::is_held(const Claim &claim)
{
    return claim.memory != nullptr && claim.owner.client != 0;
}

// Rule D1. A sender that runs answers by itself, so the first look only notes the ask.
void Claims::look_for_asks()
{
    asks_ms_ = now_ms_ + ask_ms;
    for (const auto &[_, claim] : claims_) {
        if (!is_held(*claim))
            continue;
        Record &record = claim->record->record();
        ntb::socket::Page &page = page_of(*claim->memory);
        const bool asked = ntb::socket::is_asked(record, page, claim->index);
        if (asked && claim->asked && ntb::socket::answer_ask(record, page, claim->index))
            ring_other(*claim);
        claim->asked = asked;
    }
}

void Claims::look_for_idle()
{
    look_ms_ = now_ms_ + idle_ms;
    for (const auto &[_, claim] : claims_) {
        if (!is_held(*claim))
            continue;
        Record &record = claim->record->record();
        const uint64_t progress = ntb::socket::progress_of(record);
        if (progress != claim->progress) {
            claim->progress = progress;
            claim->rests = 0;
        } else if (claim->rests < rests_max) {
            const bool is_done = ntb::socket::rest(record, page_of(*claim->memory), claim->index,
                                                   claim->memory->ring_bytes());
            claim->rests = is_done ? rests_max : claim->rests + 1;
            // What was said to be taken is passed on, and the other ring is the carrier's.
            if (claim->carried && !claim->relay_ended)
                order(*claim, RelayOrder::Kind::rest);
        }
    }
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
