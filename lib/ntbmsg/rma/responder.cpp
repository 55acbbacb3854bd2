// SPDX-License-Identifier: BSD-3-Clause
// Requests of the peer are checked and executed when they arrive, and answered in order.
#include "rma/responder.hpp"

#include <algorithm>
#include <atomic>

#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "rma/cq.hpp"
#include "rma/region.hpp"
#include "transport/payload.hpp"
#include "transport/sending.hpp"

namespace ntbmsg
{

namespace
{

using protocol::Request;
using protocol::Status;

/// Keeps a region from being revoked while it is accessed.
class RegionAccess
{
public:
    RegionAccess(const Worker &w, uint64_t key) : region_(w.regions->enter(key)) {}
    ~RegionAccess()
    {
        if (region_ != nullptr)
            Regions::leave(*region_);
    }
    RegionAccess(const RegionAccess &) = delete;
    RegionAccess &operator=(const RegionAccess &) = delete;

    /// Whether an access is allowed; counts a refusal.
    Status check(uint32_t right, uint64_t offset, uint64_t bytes) const
    {
        if (region_ == nullptr)
            return Status::no_key;
        Status status = Status::done;
        if ((region_->rights & right) != right)
            status = Status::no_right;
        else if (bytes > region_->bytes || offset > region_->bytes - bytes)
            status = Status::outside;
        if (status != Status::done)
            region_->refused.fetch_add(1, std::memory_order_relaxed);
        return status;
    }
    ntbmsg_region &region() const { return *region_; }
    std::byte *at(uint64_t offset) const { return region_->address + offset; }

private:
    ntbmsg_region *region_;
};

Status do_write(const Worker &w, const Request &q, const rte_mbuf *m)
{
    const RegionAccess inside(w, q.key);
    const Status status = inside.check(NTBMSG_RIGHT_WRITE, q.offset, q.bytes);
    if (status != Status::done)
        return status;
    payload_copy(m, sizeof(q), inside.at(q.offset), static_cast<uint32_t>(q.bytes));
    inside.region().writes.fetch_add(1, std::memory_order_relaxed);
    return status;
}

/// For data that were stored through the memory window: whether the region still exists.
Status check_stored(const Worker &w, const Request &q)
{
    if (q.bytes > NTBMSG_MAX_OPERATION)
        return Status::outside; // longer than any operation
    const RegionAccess inside(w, q.key);
    return inside.check(NTBMSG_RIGHT_WRITE, q.offset, q.bytes);
}

Status do_atomic(const Worker &w, uint32_t op, const Request &q, uint64_t &before)
{
    const RegionAccess inside(w, q.key);
    const Status status = inside.check(NTBMSG_RIGHT_ATOMIC, q.offset, sizeof(uint64_t));
    if (status != Status::done)
        return status;
    std::byte *place = inside.at(q.offset);
    if (reinterpret_cast<uintptr_t>(place) % sizeof(uint64_t) != 0) {
        inside.region().refused.fetch_add(1, std::memory_order_relaxed);
        return Status::outside;
    }
    const std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t *>(place));
    if (op == protocol::op_fetch_add) {
        before = word.fetch_add(q.bytes, std::memory_order_seq_cst);
    } else {
        before = q.extra;
        word.compare_exchange_strong(before, q.bytes, std::memory_order_seq_cst);
    }
    inside.region().atomics.fetch_add(1, std::memory_order_relaxed);
    return status;
}

/// Whether the word that the peer stored into the region's probe line has arrived.
Status do_probe(const Worker &w, const Request &q)
{
    const RegionAccess inside(w, q.key);
    const Status status = inside.check(NTBMSG_RIGHT_WRITE, 0, 0);
    if (status != Status::done)
        return status;
    if (!inside.region().direct)
        return Status::not_there;
    const std::atomic_ref<uint64_t> word(
        *reinterpret_cast<uint64_t *>(inside.at(inside.region().bytes)));
    return word.load(std::memory_order_acquire) == q.extra ? Status::done : Status::not_there;
}

Status check_read(const Worker &w, const Request &q)
{
    const RegionAccess inside(w, q.key);
    const Status status = inside.check(NTBMSG_RIGHT_READ, q.offset, q.bytes);
    if (status == Status::done)
        inside.region().reads.fetch_add(1, std::memory_order_relaxed);
    return status;
}

// ---- requests

/// Whether @p bytes is a valid payload size for that operation.
bool is_valid(uint32_t op, const Request &q, uint32_t bytes)
{
    const bool carries = op == protocol::op_write || op == protocol::op_write_imm;
    if (op == protocol::op_read && q.bytes > NTBMSG_MAX_OPERATION)
        return false;
    return bytes - sizeof(q) == (carries ? q.bytes : 0);
}

bool has_imm(uint32_t op)
{
    return op == protocol::op_write_imm || op == protocol::op_notify;
}

/// Extends the run of adjacent writes by an executed request, or ends it.
void extend_run(Run &run, uint32_t op, const Request &q, Status status)
{
    const bool served = op == protocol::op_write || op == protocol::op_write_imm;
    if (!served || status != Status::done) {
        run = {};
        return;
    }
    const bool goes_on = run.bytes != 0 && run.key == q.key && run.end == q.offset;
    run = {q.key, q.offset + q.bytes, q.bytes + (goes_on ? run.bytes : 0)};
}

/// Bytes of a write with immediate data whose last message is @p q: what it says, at most what has
/// arrived.
uint32_t imm_write_bytes(const Run &run, const Request &q)
{
    const uint64_t most = std::min<uint64_t>(std::max(run.bytes, q.bytes), NTBMSG_MAX_OPERATION);
    return static_cast<uint32_t>(
        std::clamp<uint64_t>(protocol::write_bytes_of(q.extra), q.bytes, most));
}

/// Executes @p q, or records what is left to be done.
void execute(const Worker &w, const Channel &c, uint32_t op, const Request &q, const rte_mbuf *m,
             Run &run, Answer &a)
{
    if (has_imm(op) && (c.cq == nullptr || !c.handle)) {
        a.status = Status::no_right; // no completion queue for the immediate data
        run = {};
        return;
    }
    switch (op) {
    case protocol::op_write:
    case protocol::op_write_imm:
        a.status = do_write(w, q, m);
        break;
    case protocol::op_notify:
    case protocol::op_confirm:
        a.status = check_stored(w, q);
        break;
    case protocol::op_read:
        a.status = check_read(w, q);
        a.kind = a.status == Status::done ? Answer::Kind::read : Answer::Kind::done;
        a.key = q.key;
        a.offset = q.offset;
        a.left = static_cast<uint32_t>(q.bytes);
        break;
    case protocol::op_probe:
        a.status = do_probe(w, q);
        break;
    default:
        a.status = do_atomic(w, op, q, a.value);
        break;
    }
    extend_run(run, op, q, a.status);
    if (has_imm(op) && a.status == Status::done) {
        a.kind = Answer::Kind::imm;
        a.imm = protocol::imm_of(q.extra);
        a.bytes = imm_write_bytes(run, q);
        run = {}; // the immediate data ends it
    }
}

Responder *responder_of(Channel &c)
{
    if (c.one_sided.responder == nullptr)
        c.one_sided.responder = static_cast<Responder *>(
            rte_zmalloc("ntbmsg_responder", sizeof(Responder), RTE_CACHE_LINE_SIZE));
    return c.one_sided.responder;
}

// ---- answers

/// @return false: no room in the completion queue
bool deliver_imm(Channel &c, Answer &a)
{
    if (c.cq != nullptr && c.handle) {
        if (!cq_reserve(c))
            return false;
        a.kind = Answer::Kind::done; // before cq_put(), whose callback may come back here
        cq_put(c, {.id = 0,
                   .channel = handle_of(c),
                   .user = c.user,
                   .value = 0,
                   .bytes = a.bytes,
                   .imm = a.imm,
                   .status = 0,
                   .op = NTBMSG_OP_RECV_IMM,
                   .reserved = {}});
    }
    a.kind = Answer::Kind::done;
    return true;
}

/// Sends the next part of the data of a READ.
/// @param turn  bytes that this channel may still copy in its turn
/// @return false: its turn is over, no mbuf is free, or the message is held
bool send_read_data(Worker &w, Channel &c, Responder &o, Answer &a, uint32_t &turn)
{
    const uint32_t n = std::min({a.left, chunk_of(w), turn, w.reads_left});
    if (n == 0)
        return false;
    rte_mbuf *m = rte_pktmbuf_alloc(w.op_pool);
    if (m == nullptr)
        return false;
    {
        const RegionAccess inside(w, a.key);
        a.status = inside.check(NTBMSG_RIGHT_READ, a.offset, n);
        if (a.status == Status::done && !payload_append(w, m, inside.at(a.offset), n)) {
            rte_pktmbuf_free(m);
            return false;
        }
    }
    if (a.status != Status::done) { // revoked in the meantime
        rte_pktmbuf_free(m);
        a.left = 0;
        return true;
    }
    a.offset += n;
    a.left -= n;
    turn -= n;
    w.reads_left -= n;
    hold_or_send(w, c, o.held, protocol::op_read_data, a.request, m);
    return o.held.mbuf == nullptr;
}

bool send_done(Worker &w, Channel &c, const Answer &a)
{
    const protocol::Done done{static_cast<uint32_t>(a.status), 0, a.value};
    return send_copy(w, c.tx_word, protocol::op_done, a.request, &done, sizeof(done)) == 0;
}

/// @return true: the answer was sent
bool send_answer(Worker &w, Channel &c, Responder &o, Answer &a, uint32_t &turn)
{
    while (a.kind == Answer::Kind::read && a.left != 0) {
        if (!send_read_data(w, c, o, a, turn))
            return false;
    }
    a.kind = Answer::Kind::done;
    return send_done(w, c, a);
}

} // namespace

bool responder_receive(Worker &w, Channel &c, uint32_t op, uint32_t number, const rte_mbuf *m)
{
    Responder *o = responder_of(c);
    Request q;
    if (o == nullptr || c.close_seen || number != o->next_request ||
        o->next_request - o->answered >= protocol::requests_max ||
        !payload_read(m, &q, sizeof(q)) || !is_valid(op, q, m->pkt_len))
        return false;
    Answer &a = o->answers[number % protocol::requests_max];
    a = {};
    a.request = number;
    ++o->next_request;
    execute(w, c, op, q, m, o->run, a);
    return true;
}

bool responder_flush(Worker &w, Channel &c)
{
    Responder *o = c.one_sided.responder;
    if (o == nullptr)
        return true;
    if (!send_held(w, c, o->held))
        return false;
    // If no other channel waits, it may use the whole budget of the poll.
    uint32_t turn =
        w.operating.empty() ? w.reads_left : std::min(w.reads_left, read_bytes_per_turn);
    while (o->answered != o->next_request) {
        Answer &a = o->answers[o->answered % protocol::requests_max];
        if (a.kind == Answer::Kind::imm && !deliver_imm(c, a))
            return false;
        if (o->answered == o->next_request)
            return true; // a callback has reset the channel
        if (!send_answer(w, c, *o, a, turn))
            return false;
        ++o->answered;
    }
    return true;
}

} // namespace ntbmsg
