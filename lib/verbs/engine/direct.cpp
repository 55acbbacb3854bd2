// SPDX-License-Identifier: BSD-3-Clause
// Requests that need nobody at the other end: its memory is mapped here. And regions of this engine
// that its peers map.
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include <fcntl.h>

#include "engine/engine.hpp"
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
        pthread_mutex_lock(&engine->mutex());
}

void behind_fork()
{
    for (Engine *engine = engines.first(); engine; engine = engine->direct_engines.next())
        pthread_mutex_unlock(&engine->mutex());
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

int Engine::be_direct(Segments &segments)
{
    if (!can_exchange())
        return -EOPNOTSUPP;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, [] { pthread_atfork(before_fork, behind_fork, in_child); });
    {
        const Locked locked(engines_mutex);
        engines.append(direct_engines);
    }
    const Locked locked(mutex_);
    segments_ = &segments;
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

void Engine::share(std::uint32_t key)
{
    if (segments_)
        ++counts_[try_share(keys_.at(key))];
}

ntbv_count Engine::try_share(Region &region)
{
    if (reinterpret_cast<std::uintptr_t>(region.memory) % page != 0 || region.length % page != 0 ||
        region.length == 0)
        return NTBV_COUNT_NO_PAGES;
    if ((region.access & (NTBV_REMOTE_WRITE | NTBV_REMOTE_READ)) == 0)
        return NTBV_COUNT_NO_RIGHTS;
    if ((region.access & NTBV_MW_BIND) != 0)
        return NTBV_COUNT_WINDOWS;
    for (const Shared *other = shared_.first(); other; other = other->all.next())
        if (region.memory < other->memory + other->bytes &&
            other->memory < region.memory + region.length)
            return NTBV_COUNT_OVERLAPS;
    if (!is_plain_memory(region.memory, region.length))
        return NTBV_COUNT_NOT_PLAIN;
    std::unique_ptr<Shared> shared(new (std::nothrow) Shared);
    if (shared)
        shared->segment = segments_->create(region.length + page);
    if (!shared || !shared->segment)
        return NTBV_COUNT_NO_SEGMENT;
    if (exchange_to_segment(region.memory, region.length, *shared->segment) != 0)
        return NTBV_COUNT_NO_EXCHANGE;
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
    revoked_word(*shared->segment).exchange(1);
    for (std::uint32_t i = 0; i < n_links_; ++i)
        for (const std::uint64_t number : shared->given[i].number)
            if (number != 0 && has_port(links_[i]))
                links_[i].port->revoke(number);
    // Rather than to leave a peer in the program's memory for ever, a write of another thread may
    // be lost where the kernel has no more of what an exchange needs.
    if (exchange_to_private(shared->memory, shared->bytes, *shared->segment) != 0)
        copy_to_private(shared->memory, shared->bytes, *shared->segment);
    // What a peer still maps is no memory of this process any more, but for the word.
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
}

void Engine::forget_direct(Pair &pair)
{
    pair.send.reaches_peer = false;
    pair.send.detours = 0;
    pair.receive.asks_for = 0;
    for (std::uint32_t i = 0; pair.direct.data() && i < max_directs; ++i)
        forget(pair.direct[i]);
}

void Engine::forget(Direct &direct)
{
    if (direct.state == Direct::State::Open && --direct.opened->users == 0)
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
        constexpr std::uint32_t bytes = sizeof(Header) + sizeof(Grant);
        std::byte *const message = link.port->reserve(bytes);
        if (!message)
            return false;
        const bool writable = (rights & NTBV_REMOTE_WRITE) != 0;
        Shared::Given &given = region.shared->given[&link - links_];
        std::uint64_t &number = given.number[writable];
        if (number == 0 && !given.refused[writable]) {
            number = link.port->grant(*region.shared->segment, writable);
            given.refused[writable] = number == 0;
            ++counts_[number != 0 ? NTBV_COUNT_GRANTED : NTBV_COUNT_NOT_GRANTED];
        }
        if (number != 0) {
            const Header header = {.kind = Kind::Grant,
                                   .flags = flag::last,
                                   .to = pair.attr.dest_qpn,
                                   .from = pair.number,
                                   .bytes = sizeof(Grant),
                                   .total = sizeof(Grant),
                                   .key = key};
            const Grant grant = {number, region.iova, region.length, rights, 0};
            std::memcpy(message, &header, sizeof(header));
            std::memcpy(message + sizeof(header), &grant, sizeof(grant));
            commit(link, bytes);
        }
    }
    pair.receive.asks_for = 0;
    return true;
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
    if (rights == 0 || grant.length == 0 || grant.address + grant.length < grant.address)
        return;
    Opened *const opened = open(link, grant.number);
    if (!opened)
        return;
    const std::uint64_t there = opened->segment->bytes();
    if (there <= page || grant.length > there - page ||
        ((rights & NTBV_REMOTE_WRITE) != 0 && !opened->writable)) {
        if (opened->users == 0)
            *opened = {};
        return;
    }
    ++opened->users;
    direct.state = Direct::State::Open;
    direct.rights = static_cast<std::uint8_t>(rights);
    direct.address = grant.address;
    direct.length = grant.length;
    direct.memory = opened->segment->data();
    direct.opened = opened;
    pair.send.detours = last_detour;
}

// One mapping for all queue pairs that use it.
Opened *Engine::open(Link &link, std::uint64_t number)
{
    Opened *free = nullptr;
    for (Opened &opened : opened_) {
        if (!opened.segment)
            free = &opened;
        else if (opened.link == &link && opened.number == number)
            return &opened;
    }
    if (!free)
        free = forget_revoked();
    if (!free)
        return nullptr;
    bool writable = false;
    free->segment = link.port->open(number, writable);
    if (!free->segment)
        return nullptr;
    free->link = &link;
    free->number = number;
    free->users = 0;
    free->writable = writable;
    return free;
}

// Regions that are gone and that nobody has looked at since. @return a place that is free now
Opened *Engine::forget_revoked()
{
    for (std::uint32_t slot = 0; slot < max_pairs; ++slot)
        for (std::uint32_t i = 0; pairs_[slot] && pairs_[slot]->direct.data() && i < max_directs;
             ++i) {
            Direct &direct = pairs_[slot]->direct[i];
            if (direct.state == Direct::State::Open && revoked_word(*direct.opened->segment).load())
                forget(direct);
        }
    for (Opened &opened : opened_)
        if (!opened.segment)
            return &opened;
    return nullptr;
}

// ---- going

/// A part of local memory.
struct Engine::Part {
    std::byte *memory;
    std::uint32_t bytes;
};

// Whether the next request may need nobody, as far as it goes.
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
            std::memcpy(there, parts[i].memory, parts[i].bytes);
        place(there, parts[n - 1].memory, parts[n - 1].bytes);
        barrier_.exchange(0);
    }
    if (revoked_word(*direct.opened->segment).load(std::memory_order_acquire) != 0) {
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
