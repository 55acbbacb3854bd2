// SPDX-License-Identifier: BSD-3-Clause
#include "rma/requester.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>

#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "rma/cq.hpp"
#include "transport/payload.hpp"
#include "wire/one_sided.hpp"

namespace ntbmsg
{

namespace
{

using protocol::Status;

Operation &operation_at(const Requester &r, uint32_t number)
{
    return r.operations[number & r.mask];
}

/// The oldest incomplete operation, to which the peer's next answer belongs. @return NULL: none
Operation *oldest(const Requester &r)
{
    const uint32_t retired = r.retired.load(std::memory_order_relaxed);
    return retired != r.posted.load(std::memory_order_acquire) ? &operation_at(r, retired)
                                                               : nullptr;
}

int status_of(Status status)
{
    switch (status) {
    case Status::done:
        return 0;
    case Status::no_key:
        return -EKEYREJECTED;
    case Status::no_right:
        return -EACCES;
    case Status::outside:
        return -ERANGE;
    case Status::not_there:
        break;
    }
    return -EIO;
}

// ---- completions

void end_probe(const Operation &o)
{
    Path path = Path::probing;
    if (!o.remote->path.compare_exchange_strong(path, o.status == 0 ? Path::found : Path::served,
                                                std::memory_order_acq_rel))
        end_use(o.remote); // it was closed in the meantime
}

void complete(Channel &c, Operation o, int status)
{
    if (o.status == 0)
        o.status = status;
    if (o.op == 0) {
        end_probe(o);
        return;
    }
    if (o.status == 0 && (o.flags & NTBMSG_WORK_SIGNAL) == 0) {
        cq_release(c);
        return;
    }
    cq_put(c, {.id = o.id,
               .channel = handle_of(c),
               .user = c.user,
               .value = o.value,
               .bytes = o.status == 0 ? o.bytes : 0,
               .imm = 0,
               .status = o.status,
               .op = o.op,
               .reserved = {}});
}

/// Removes the oldest operation; its entry may be reused at once.
Operation take_oldest(Requester &r)
{
    const uint32_t number = r.retired.load(std::memory_order_relaxed);
    const Operation o = operation_at(r, number);
    r.pieces_retired.store(r.pieces_retired.load(std::memory_order_relaxed) + o.piece_count,
                           std::memory_order_release);
    r.retired.store(number + 1, std::memory_order_release); // pairs with requester_has_room()
    return o;
}

void complete_oldest(Channel &c, Requester &r, int status)
{
    complete(c, take_oldest(r), status);
    // After the completion: one that completes at its posting does not overtake it in the queue.
    r.completed.store(r.retired.load(std::memory_order_relaxed), std::memory_order_release);
}

void retire(Channel &c, Requester &r)
{
    // What a callback posts waits for the next poll: it could complete at once, and post again.
    uint32_t left =
        r.posted.load(std::memory_order_acquire) - r.retired.load(std::memory_order_relaxed);
    for (; left > 0; --left) {
        const Operation *o = oldest(r);
        if (o == nullptr || !o->all_sent || o->requests != 0)
            return;
        if (r.sent == r.retired.load(std::memory_order_relaxed))
            ++r.sent; // it was done entirely when it was posted
        complete_oldest(c, r, 0);
    }
}

// ---- requests

struct Outgoing {
    protocol::Request request;
    uint8_t op;
    uint32_t data; ///< bytes of the pieces that follow
};

uint8_t write_op(const Operation &o, bool last)
{
    const bool imm = o.op == NTBMSG_OP_WRITE_IMM && last;
    if (o.stored)
        return imm ? protocol::op_notify : protocol::op_confirm;
    return imm ? protocol::op_write_imm : protocol::op_write;
}

/// The next request of an operation.
Outgoing next_request(const Worker &w, const Operation &o)
{
    Outgoing out{{o.remote->key, o.offset, o.bytes, 0}, 0, 0};
    switch (o.op) {
    case NTBMSG_OP_READ:
        out.op = protocol::op_read;
        return out;
    case NTBMSG_OP_FETCH_ADD:
        out.op = protocol::op_fetch_add;
        out.request.bytes = o.operand;
        return out;
    case NTBMSG_OP_COMPARE_SWAP:
        out.op = protocol::op_compare_swap;
        out.request.bytes = o.operand;
        out.request.extra = o.compare;
        return out;
    case 0:
        out.op = protocol::op_probe;
        out.request.extra = o.operand;
        return out;
    default:
        break;
    }
    if (!o.stored) {
        out.data = std::min(o.bytes - o.moved, chunk_of(w));
        out.request.offset += o.moved;
        out.request.bytes = out.data;
    }
    out.op = write_op(o, o.stored || o.moved + out.data == o.bytes);
    if (o.op == NTBMSG_OP_WRITE_IMM)
        out.request.extra = protocol::imm_and_bytes(o.imm, o.bytes);
    return out;
}

/// @return false: no mbuf is free
bool send_next(Worker &w, Channel &c, Requester &r, Operation &o)
{
    const Outgoing out = next_request(w, o);
    rte_mbuf *m = payload_begin(w, &out.request, sizeof(out.request));
    if (m == nullptr)
        return false;
    if (out.data != 0 &&
        !payload_gather(w, m, r.pieces, r.piece_mask, o.pieces, o.moved, out.data)) {
        rte_pktmbuf_free(m);
        return false;
    }
    o.moved += out.data;
    o.all_sent = out.data == 0 || o.moved == o.bytes;
    ++o.requests;
    hold_or_send(w, c, r.held, out.op, r.next_request++, m);
    return true;
}

/// Sends requests of posted operations, as many as the peer accepts unanswered.
/// @return false: no room towards the peer, or no mbuf
bool send_requests(Worker &w, Channel &c, Requester &r)
{
    if (!send_held(w, c, r.held))
        return false;
    while (r.sent != r.posted.load(std::memory_order_acquire)) {
        Operation &o = operation_at(r, r.sent);
        while (!o.all_sent) {
            if (r.next_request - r.next_answer >= w.peer_operations)
                return true; // an answer continues
            if (!send_next(w, c, r, o) || r.held.mbuf != nullptr)
                return false;
        }
        ++r.sent;
    }
    return true;
}

// ---- answers

/// Copies a part of the data of a READ into its pieces.
bool take_read_data(Requester &r, Operation &o, uint32_t request, const rte_mbuf *m)
{
    if (o.op != NTBMSG_OP_READ || o.requests == 0 || request != r.next_answer ||
        m->pkt_len > o.bytes - o.moved)
        return false;
    payload_scatter(m, r.pieces, r.piece_mask, o.pieces, o.moved);
    o.moved += m->pkt_len;
    return true;
}

bool take_done(Requester &r, Operation &o, uint32_t request, const rte_mbuf *m)
{
    protocol::Done done;
    if (o.requests == 0 || request != r.next_answer || !payload_read(m, &done, sizeof(done)) ||
        m->pkt_len != sizeof(done) || done.status > static_cast<uint32_t>(Status::not_there))
        return false;
    const int status = status_of(static_cast<Status>(done.status));
    if (o.op == NTBMSG_OP_READ && status == 0 && o.moved != o.bytes)
        return false;
    ++r.next_answer;
    --o.requests;
    o.value = done.value;
    if (status != 0) {
        o.status = o.status == 0 ? status : o.status;
        o.all_sent = true; // further requests would fail alike
    }
    return true;
}

} // namespace

Requester *requester_of(Channel &c)
{
    if (c.one_sided.requester() != nullptr)
        return c.one_sided.requester();
    const uint32_t limit = c.operations;
    const uint32_t slots = std::bit_ceil(limit);
    const uint32_t pieces = std::bit_ceil(std::max(2 * slots, uint32_t{2 * NTBMSG_MAX_SGES}));
    const size_t bytes =
        sizeof(Requester) + slots * sizeof(Operation) + pieces * sizeof(ntbmsg_sge);
    auto *r = static_cast<Requester *>(rte_zmalloc("ntbmsg_requester", bytes, RTE_CACHE_LINE_SIZE));
    if (r == nullptr)
        return nullptr;
    if (rte_pmd_plx_ntb_window_writer_create(c.worker->dev_id, &r->writer) != 0) {
        rte_free(r);
        return nullptr;
    }
    r->limit = limit;
    r->mask = slots - 1;
    r->piece_mask = pieces - 1;
    r->operations = reinterpret_cast<Operation *>(r + 1);
    r->pieces = reinterpret_cast<ntbmsg_sge *>(r->operations + slots);
    c.one_sided.made.store(r, std::memory_order_release); // the worker's thread sees it initialized
    return r;
}

void requester_free(Requester *r)
{
    if (r == nullptr)
        return;
    rte_pmd_plx_ntb_window_writer_free(r->writer);
    rte_free(r);
}

bool requester_has_room(const Requester &r, uint32_t pieces)
{
    const uint32_t under_way =
        r.posted.load(std::memory_order_relaxed) -
        r.retired.load(std::memory_order_acquire); // pairs with take_oldest()
    const uint32_t held = r.pieces_posted - r.pieces_retired.load(std::memory_order_acquire);
    return under_way < r.limit && held + pieces <= r.piece_mask + 1;
}

void requester_push(Requester &r, const Operation &operation, const ntbmsg_sge *pieces)
{
    const uint32_t number = r.posted.load(std::memory_order_relaxed);
    Operation &o = operation_at(r, number);
    o = operation;
    o.pieces = r.pieces_posted;
    for (uint32_t i = 0; i < o.piece_count; ++i)
        r.pieces[r.pieces_posted++ & r.piece_mask] = pieces[i];
    r.posted.store(number + 1,
                   std::memory_order_release); // pairs with oldest() and send_requests()
}

bool requester_receive(Channel &c, uint32_t op, uint32_t request, const rte_mbuf *m)
{
    Requester *r = c.one_sided.requester();
    if (r == nullptr || r->next_answer == r->next_request)
        return false; // nothing is unanswered
    Operation *o = oldest(*r);
    if (o == nullptr) { // cancelled: only the answers are counted
        if (request != r->next_answer)
            return false;
        r->next_answer += op == protocol::op_done ? 1 : 0;
        return true;
    }
    if (op == protocol::op_read_data)
        return take_read_data(*r, *o, request, m);
    if (!take_done(*r, *o, request, m))
        return false;
    retire(c, *r);
    return true;
}

bool requester_flush(Worker &w, Channel &c)
{
    Requester *r = c.one_sided.requester();
    if (r == nullptr)
        return true;
    const bool all = send_requests(w, c, *r);
    retire(c, *r);
    return all;
}

void requester_end(Channel &c, int status)
{
    Requester *r = c.one_sided.requester();
    if (r == nullptr)
        return;
    for (Operation *o = oldest(*r); o != nullptr; o = oldest(*r)) {
        // Data stored directly without a request for confirmation are done.
        const bool done = o->all_sent && o->requests == 0;
        r->sent = r->retired.load(std::memory_order_relaxed) + 1;
        complete_oldest(c, *r, done ? 0 : status);
    }
}

} // namespace ntbmsg
