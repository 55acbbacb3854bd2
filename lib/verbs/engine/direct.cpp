// SPDX-License-Identifier: BSD-3-Clause
// Requests that need no process at the other end: its memory is mapped here. And regions of this
// engine that its peers map.
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <fcntl.h>

#include "engine/engine.hpp"
#include "engine/peer_memory.hpp"
#include "engine/place.hpp"
#include "locked.hpp"
#include "memory/exchange.hpp"

namespace ntb::verbs
{
namespace
{

// A peer that does not answer has nothing to grant, or had nothing then.
constexpr std::uint8_t most_questions = 3;
// Requests that could go directly and are behind others: after so many in a row the next one waits
// until those are answered.
constexpr std::uint32_t most_detours = 16;
// Right after a grant one is enough.
constexpr std::uint32_t last_detour = most_detours;

std::uint32_t right_of(std::uint32_t opcode)
{
    return opcode == NTBV_READ ? NTBV_REMOTE_READ : NTBV_REMOTE_WRITE;
}

// ---- the child of a fork() has its regions for itself

pthread_mutex_t engines_mutex = PTHREAD_MUTEX_INITIALIZER;
Hook<Engine> engines;

void before_fork()
{
    pthread_mutex_lock(&engines_mutex);
    for (Engine *engine = engines.first(); engine; engine = engine->direct_engines.next())
        engine->lock().lock();
}

void behind_fork()
{
    for (Engine *engine = engines.first(); engine; engine = engine->direct_engines.next())
        engine->lock().unlock();
    pthread_mutex_unlock(&engines_mutex);
}

void in_child()
{
    for (Engine *engine = engines.first(); engine; engine = engine->direct_engines.next())
        engine->keep_in_child();
    behind_fork();
}

} // namespace

// ---- regions of this engine

int Engine::be_direct(Segments &segments, bool lends)
{
    if (!can_exchange())
        return -EOPNOTSUPP;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, [] { pthread_atfork(before_fork, behind_fork, in_child); });
    {
        const Locked locked(engines_mutex);
        engines.append(direct_engines);
    }
    const Visit visit(lock_);
    segments_ = &segments;
    lends_ = lends;
    return 0;
}

void Engine::end_direct()
{
    const Locked locked(engines_mutex);
    direct_engines.unlink();
}

void Engine::keep_in_child()
{
    for (Shared *shared = shared_.first(); shared; shared = shared->all.next())
        copy_to_private(shared->memory, shared->bytes, *shared->segment);
}

// Why a region stays served, as far as others have a say. Under the lock.
ntbv_count Engine::find_reason(const std::byte *memory, std::uint64_t length, unsigned access) const
{
    if (reinterpret_cast<std::uintptr_t>(memory) % page != 0 || length % page != 0 || length == 0)
        return NTBV_COUNT_NO_PAGES;
    if ((access & (NTBV_REMOTE_WRITE | NTBV_REMOTE_READ)) == 0 && !lends_)
        return NTBV_COUNT_NO_RIGHTS;
    if ((access & NTBV_MW_BIND) != 0)
        return NTBV_COUNT_WINDOWS;
    for (const Shared *other = shared_.first(); other; other = other->all.next())
        if (memory < other->memory + other->bytes && other->memory < memory + length)
            return NTBV_COUNT_OVERLAPS;
    return NTBV_COUNT_SHARED;
}

Engine::Offer Engine::prepare(const void *memory, std::uint64_t length, unsigned access)
{
    const auto *const begin = static_cast<const std::byte *>(memory);
    Offer offer;
    {
        const Visit visit(lock_);
        if (!segments_)
            return offer;
        offer.reason = find_reason(begin, length, access);
    }
    if (offer.reason == NTBV_COUNT_SHARED && !is_plain_memory(begin, length))
        offer.reason = NTBV_COUNT_NOT_PLAIN;
    if (offer.reason != NTBV_COUNT_SHARED)
        return offer;
    offer.segment = segments_->create(length + page);
    if (!offer.segment)
        offer.reason = NTBV_COUNT_NO_SEGMENT;
    return offer;
}

void Engine::share(std::uint32_t key, Offer &&offer)
{
    if (segments_)
        ++counts_[try_share(keys_.at(key), std::move(offer))];
}

// Another region may have come since the offer was made.
ntbv_count Engine::try_share(Region &region, Offer &&offer)
{
    if (offer.reason != NTBV_COUNT_SHARED)
        return offer.reason;
    const ntbv_count reason = find_reason(region.memory, region.length, region.access);
    if (reason != NTBV_COUNT_SHARED)
        return reason;
    std::unique_ptr<Shared> shared(new (std::nothrow) Shared);
    if (!shared || !offer.segment)
        return NTBV_COUNT_NO_SEGMENT;
    shared->segment = std::move(offer.segment);
    if (exchange_to_segment(region.memory, region.length, *shared->segment) != 0)
        return NTBV_COUNT_NO_EXCHANGE;
    registered_word(*shared->segment).store(1);
    shared->memory = region.memory;
    shared->bytes = region.length;
    shared_.append(shared->all);
    region.shared = shared.release();
    return NTBV_COUNT_SHARED;
}

// The exchange pairs with that of a peer's request: either what it has stored is among what is
// copied, or it sees the word.
void Engine::unshare(std::uint32_t key)
{
    Region &region = keys_.at(key);
    const std::unique_ptr<Shared> shared(region.shared);
    region.shared = nullptr;
    if (!shared)
        return;
    registered_word(*shared->segment).exchange(0);
    end_lending(key);
    for (std::uint32_t i = 0; i < n_links_; ++i)
        for (const std::uint64_t number : shared->given[i].number)
            if (number != 0 && number != Port::later && has_port(links_[i]))
                links_[i].port->revoke(number);
    // Rather than to leave a peer in the program's memory for ever, a write of another thread may
    // be lost where the kernel has no more of what an exchange needs.
    if (exchange_to_private(shared->memory, shared->bytes, *shared->segment) != 0)
        copy_to_private(shared->memory, shared->bytes, *shared->segment);
    // What a peer still maps is no memory of this process any more, but for the word. Its daemon
    // takes that away, too, when the segment goes.
    fallocate(shared->segment->descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
              static_cast<off_t>(shared->bytes));
}

// Nothing that was granted or opened there is of any use.
void Engine::forget_direct(const Link &link)
{
    if (!segments_)
        return;
    for (Shared *shared = shared_.first(); shared; shared = shared->all.next())
        shared->given[&link - links_] = {};
    for (std::uint32_t slot = 0; slot < max_pairs; ++slot)
        if (pairs_[slot] && pairs_[slot]->link && pairs_[slot]->link->address == link.address)
            forget_direct(*pairs_[slot]);
    for (Opened &opened : opened_)
        if (opened.is_asked_for && opened.link == &link)
            opened = {}; // no request waits for the answer
}

void Engine::forget_direct(Pair &pair)
{
    pair.send.reaches_peer = false;
    pair.send.detours = 0;
    pair.receive.asks_for = pair.receive.mapped = 0;
    pair.receive.owes_lack = false;
    for (std::uint32_t i = 0; pair.direct.data() && i < max_known; ++i)
        forget(pair.direct[i]);
    for (Lent &lent : pair.lent)
        lent = {};
}

void Engine::forget(Direct &direct)
{
    const bool uses = direct.state == Direct::State::Open || direct.state == Direct::State::Opening;
    if (uses && --direct.opened->users == 0 && !direct.opened->is_asked_for)
        *direct.opened = {};
    direct = {};
}

// ---- granting

// Of a request that was executed, so the key is one that the peer may use.
void Engine::note_question(Pair &pair, const Header &header)
{
    if ((header.flags & flag::ask) == 0 || !segments_ || header.total == 0)
        return;
    pair.receive.asks_for = header.key;
    has_work(pair);
}

// @retval false the port is full
bool Engine::answer_question(Pair &pair)
{
    const std::uint32_t key = pair.receive.asks_for;
    Region &region = keys_.at(key);
    // What this queue pair may do with it.
    const std::uint32_t rights =
        region.access & pair.attr.access & (NTBV_REMOTE_WRITE | NTBV_REMOTE_READ);
    if (region.key == key && region.pd == pair.pd->id && region.shared && rights != 0) {
        Link &link = *pair.link;
        const bool writable = (rights & NTBV_REMOTE_WRITE) != 0;
        const std::uint64_t number = find_grant(link, *region.shared, writable);
        if (number == Port::later)
            return true; // granted() is the next who looks
        if (number != 0 && !send_grant(pair, {.kind = Kind::Grant, .key = key},
                                       {number, region.iova, region.length, rights, 0}))
            return false;
    }
    pair.receive.asks_for = 0;
    return true;
}

// @param header  its kind, and what it says besides
// @retval false the port is full
bool Engine::send_grant(Pair &pair, Header header, const Grant &grant)
{
    constexpr std::uint32_t bytes = sizeof(Header) + sizeof(Grant);
    std::byte *const message = pair.link->port->reserve(bytes);
    if (!message)
        return false;
    header.flags = flag::last;
    header.to = pair.attr.dest_qpn;
    header.from = pair.number;
    header.bytes = header.total = sizeof(Grant);
    std::memcpy(message, &header, sizeof(header));
    std::memcpy(message + sizeof(header), &grant, sizeof(grant));
    commit(*pair.link, bytes);
    return true;
}

// @return 0: it is refused
std::uint64_t Engine::find_grant(Link &link, Shared &shared, bool writable)
{
    Shared::Given &given = shared.given[&link - links_];
    if (given.number[writable] == 0 && !given.refused[writable]) {
        take_number(given, writable, link.port->grant(shared.segment, writable));
        if (given.number[writable] == Port::later && service_)
            service_->wake();
    }
    return given.number[writable];
}

void Engine::take_number(Shared::Given &given, bool writable, std::uint64_t number)
{
    given.number[writable] = number;
    given.refused[writable] = number == 0;
    if (number != Port::later)
        ++counts_[number != 0 ? NTBV_COUNT_GRANTED : NTBV_COUNT_NOT_GRANTED];
}

// The region, and the port, may have gone since.
void Engine::granted(const Port &port, const Segment &segment, bool writable, std::uint64_t number)
{
    for (std::uint32_t i = 0; i < n_links_; ++i) {
        if (links_[i].port != &port || !has_port(links_[i]))
            continue;
        for (Shared *shared = shared_.first(); shared; shared = shared->all.next())
            if (shared->segment.get() == &segment &&
                shared->given[i].number[writable] == Port::later)
                take_number(shared->given[i], writable, number);
        for (std::uint32_t slot = 0; slot < max_pairs; ++slot)
            if (pairs_[slot] && pairs_[slot]->link == &links_[i] &&
                pairs_[slot]->receive.asks_for != 0)
                has_work(*pairs_[slot]);
    }
}

// ---- asking

// Whether a request that goes by a message asks for the region.
bool Engine::asks(Pair &pair, const Request &request)
{
    if (!pair.direct.data() || (request.opcode != NTBV_WRITE && request.opcode != NTBV_READ) ||
        request.bytes == 0 || request.key == 0)
        return false;
    Direct &direct = pair.direct[place_of_key(request.key)];
    if (direct.key != request.key) {
        forget(direct);
        direct.key = request.key;
        direct.state = Direct::State::Asked;
    }
    return direct.state == Direct::State::Asked && direct.asked++ < most_questions;
}

// Of what was asked for. All of it is what the peer says, but for the size of the segment.
void Engine::take_grant(Link &link, Pair &pair, const Header &header, const std::byte *payload)
{
    if (!pair.direct.data())
        return;
    Direct &direct = pair.direct[place_of_key(header.key)];
    if (direct.key != header.key || direct.state != Direct::State::Asked)
        return;
    Grant grant;
    std::memcpy(&grant, payload, sizeof(grant));
    direct.state = Direct::State::Refused;
    const std::uint32_t rights = grant.rights & (NTBV_REMOTE_WRITE | NTBV_REMOTE_READ);
    if (rights != 0)
        begin_opening(link, pair, direct, grant, rights, false);
}

// @param link  by which it came: of one to itself an engine has two
// @retval false there is nothing to open, or no place for it
bool Engine::begin_opening(Link &link, Pair &pair, Direct &direct, const Grant &grant,
                           std::uint32_t rights, bool is_lent)
{
    if (grant.length == 0 || grant.address + grant.length < grant.address)
        return false;
    Opened *const opened = open(link, grant.number);
    if (!opened)
        return false;
    opened->is_lent |= is_lent && opened->users == 0;
    ++opened->users;
    direct.state = Direct::State::Opening;
    direct.rights = static_cast<std::uint8_t>(rights);
    direct.address = grant.address;
    direct.length = grant.length;
    direct.opened = opened;
    if (!opened->is_asked_for)
        finish(pair, direct);
    return true;
}

// The port has answered: the size is what it says, and the rest has to fit.
void Engine::finish(Pair &pair, Direct &direct)
{
    const Opened &opened = *direct.opened;
    const std::uint64_t there = opened.segment ? opened.segment->bytes() : 0;
    if (there <= page || direct.length > there - page ||
        ((direct.rights & NTBV_REMOTE_WRITE) != 0 && !opened.writable)) {
        const std::uint32_t key = direct.key;
        forget(direct);
        direct.key = key;
        direct.state = Direct::State::Refused;
        return;
    }
    direct.memory = opened.segment->data();
    direct.state = Direct::State::Open;
    const auto at = static_cast<std::uint32_t>(&direct - &pair.direct[0]);
    if (at < max_directs) {
        pair.send.detours = last_detour;
        return;
    }
    pair.receive.mapped |= 1U << (at - max_directs);
    has_work(pair);
}

// One mapping for all queue pairs that use it.
Opened *Engine::open(Link &link, std::uint64_t number)
{
    Opened *free = nullptr;
    for (Opened &opened : opened_) {
        if (!opened.segment && !opened.is_asked_for)
            free = &opened;
        else if (opened.link == &link && opened.number == number)
            return &opened;
    }
    if (!free)
        free = forget_revoked();
    if (!free)
        return nullptr;
    Port::Opening opening = link.port->open(number);
    if (!opening.segment && !opening.later)
        return nullptr;
    free->segment = std::move(opening.segment);
    free->is_asked_for = opening.later;
    free->link = &link;
    free->number = number;
    free->users = 0;
    free->writable = opening.writable;
    free->is_lent = false;
    if (opening.later && service_)
        service_->wake();
    return free;
}

// Who has asked for it may have gone since, and so may the port.
void Engine::opened(const Port &port, std::uint64_t number, std::shared_ptr<Segment> segment,
                    bool writable)
{
    Opened *found = nullptr;
    for (Opened &opened : opened_)
        if (opened.is_asked_for && opened.number == number && opened.link->port == &port)
            found = &opened;
    if (!found)
        return;
    found->segment = std::move(segment);
    found->writable = writable;
    found->is_asked_for = false;
    ++found->users; // until all have looked
    for (std::uint32_t slot = 0; slot < max_pairs; ++slot)
        for (std::uint32_t i = 0; pairs_[slot] && pairs_[slot]->direct.data() && i < max_known;
             ++i) {
            Direct &direct = pairs_[slot]->direct[i];
            if (direct.state == Direct::State::Opening && direct.opened == found)
                finish(*pairs_[slot], direct);
        }
    if (--found->users == 0)
        *found = {};
}

// Regions that are gone and that were not looked at since. @return a place that is free now
Opened *Engine::forget_revoked()
{
    for (std::uint32_t slot = 0; slot < max_pairs; ++slot)
        for (std::uint32_t i = 0; pairs_[slot] && pairs_[slot]->direct.data() && i < max_known;
             ++i) {
            Direct &direct = pairs_[slot]->direct[i];
            if (direct.state == Direct::State::Open &&
                registered_word(*direct.opened->segment).load() == 0)
                forget(direct);
        }
    for (Opened &opened : opened_)
        if (!opened.segment && !opened.is_asked_for)
            return &opened;
    return nullptr;
}

// ---- going

/// A part of local memory.
struct Engine::Part {
    std::byte *memory;
    std::uint32_t bytes;
};

// Whether the next request may need no process there, as far as it goes.
std::byte *Engine::find_direct(const Pair &pair, std::uint32_t opcode, std::uint32_t key,
                               std::uint64_t address, std::uint32_t bytes)
{
    if (!pair.direct.data() || (opcode != NTBV_WRITE && opcode != NTBV_READ) || bytes == 0 ||
        !pair.send.reaches_peer || pair.attr.state != NTBV_RTS ||
        pair.link->state != Link::State::Up ||
        (opcode == NTBV_READ && pair.attr.max_rd_atomic == 0))
        return nullptr;
    return pair.direct[place_of_key(key)].find(key, address, bytes, right_of(opcode));
}

// @return how many there are; 0: one is not there, or may not be written to
std::uint32_t Engine::find_parts(const Pair &pair, const ntbv_sge *sge, std::uint32_t n_sge,
                                 std::uint32_t rights, Part *parts) const
{
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < n_sge; ++i) {
        if (sge[i].length == 0)
            continue;
        std::byte *const memory =
            keys_.find(sge[i].key, pair.pd->id, sge[i].address, sge[i].length, rights);
        if (!memory)
            return 0;
        parts[n++] = {memory, sge[i].length};
    }
    return n;
}

// The last bytes of a write are stored last. Then, with a full barrier in between, whether the
// region is still registered: it pairs with that of unshare().
// @retval false it is not, and what was done is for nothing
bool Engine::transfer(Pair &pair, std::uint32_t opcode, std::uint32_t key, std::byte *there,
                      const Part *parts, std::uint32_t n)
{
    Direct &direct = pair.direct[place_of_key(key)];
    if (opcode == NTBV_READ) {
        for (std::uint32_t i = 0; i < n; there += parts[i++].bytes)
            std::memcpy(parts[i].memory, there, parts[i].bytes);
        // The processor keeps loads in order; so does the compiler.
        std::atomic_signal_fence(std::memory_order_acquire);
    } else {
        for (std::uint32_t i = 0; i + 1 < n; there += parts[i++].bytes)
            PeerMemory::copy(there, parts[i].memory, parts[i].bytes);
        place(there, parts[n - 1].memory, parts[n - 1].bytes);
        PeerMemory::barrier(barrier_);
    }
    if (registered_word(*direct.opened->segment).load(std::memory_order_acquire) == 0) {
        forget(direct);
        return false;
    }
    ++counts_[opcode == NTBV_READ ? NTBV_COUNT_READS : NTBV_COUNT_WRITES];
    return true;
}

// The request that is next, of which nothing was ever sent.
Engine::Way Engine::go_directly(Pair &pair, Request &request)
{
    auto &send = pair.send;
    std::byte *const there =
        find_direct(pair, request.opcode, request.key, request.address, request.bytes);
    if (!there) {
        send.detours = 0;
        return Way::Message;
    }
    if (send.done != send.next) {
        if (send.detours >= most_detours)
            return Way::Waits;
        ++send.detours;
        return Way::Message;
    }
    Part parts[NTBV_MAX_SGE];
    std::uint32_t n = 1;
    if (request.is_inline())
        parts[0] = {const_cast<std::byte *>(request.data()), request.bytes};
    else
        n = find_parts(pair, request.pieces(), request.n_sge,
                       request.opcode == NTBV_READ ? NTBV_LOCAL_WRITE : 0, parts);
    if (n == 0 || !transfer(pair, request.opcode, request.key, there, parts, n))
        return Way::Message; // which finds what is wrong
    send.detours = 0;
    request.seq = send.next_seq;
    send.reads += request.is_read();
    started(pair);
    retire(pair);
    return Way::Direct;
}

// A request that need not even be queued. @retval false it has to be
bool Engine::post_directly(Pair &pair, const ntbv_send_wr &wr)
{
    constexpr unsigned known = NTBV_FENCE | NTBV_SIGNALED | NTBV_SOLICITED | NTBV_INLINE;
    auto &send = pair.send;
    if (!pair.direct.data() || send.done != send.head || pair.work.linked() ||
        pair.timer.linked() || (wr.flags & ~known) != 0 ||
        static_cast<std::uint32_t>(wr.n_sge) > send.queue.max_sge())
        return false;
    const auto n_sge = static_cast<std::uint32_t>(wr.n_sge);
    const bool is_inline = (wr.flags & NTBV_INLINE) != 0;
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < n_sge; ++i)
        bytes += wr.sge[i].length;
    if (bytes > (is_inline ? send.queue.max_inline() : std::uint32_t{NTBV_MAX_MESSAGE}) ||
        (is_inline && wr.opcode == NTBV_READ))
        return false;
    const auto total = static_cast<std::uint32_t>(bytes);
    std::byte *const there = find_direct(pair, wr.opcode, wr.remote_key, wr.remote_address, total);
    if (!there)
        return false;
    Part parts[NTBV_MAX_SGE];
    std::uint32_t n = 0;
    if (!is_inline)
        n = find_parts(pair, wr.sge, n_sge, wr.opcode == NTBV_READ ? NTBV_LOCAL_WRITE : 0, parts);
    else
        for (std::uint32_t i = 0; i < n_sge; ++i)
            if (wr.sge[i].length != 0)
                parts[n++] = {reinterpret_cast<std::byte *>(wr.sge[i].address), wr.sge[i].length};
    if (n == 0 || !transfer(pair, wr.opcode, wr.remote_key, there, parts, n))
        return false;
    if (pair.signal_all || (wr.flags & NTBV_SIGNALED) != 0)
        push(pair, *pair.send_cq,
             {.id = wr.id,
              .status = NTBV_SUCCESS,
              .opcode =
                  static_cast<std::uint32_t>(wr.opcode == NTBV_READ ? NTBV_WC_READ : NTBV_WC_WRITE),
              .bytes = total,
              .qpn = pair.number},
             false);
    if (pair.overrun)
        to_error(pair);
    return true;
}

} // namespace ntb::verbs
