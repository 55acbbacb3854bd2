// SPDX-License-Identifier: BSD-3-Clause
// A worker's memory for long messages: made once, lent anew in each connection.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_memory.h>
#include <rte_pmd_plx_ntb.h>

#include "base/log.hpp"
#include "endpoint/endpoint.hpp"
#include "port/payload.hpp"
#include "port/worker.hpp"
#include "rendezvous/rendezvous.hpp"

namespace ntbmsg
{

namespace
{

std::byte *last_piece(std::byte *base, uint32_t pieces, uint32_t bytes)
{
    return base + uint64_t{pieces} * bytes;
}

int make_pool(Worker &w, int socket)
{
    RendezvousMemory &r = w.rendezvous;
    char name[RTE_MEMPOOL_NAMESIZE];
    std::snprintf(name, sizeof(name), "ntbmsg_rdv_%uw%u", w.endpoint->dev_id, w.index);
    r.pool = rendezvous_pool(r, name, 0, r.shared_count, socket);
    return r.pool != nullptr ? 0 : -rte_errno;
}

void send_try(Worker &w)
{
    RendezvousMemory &r = w.rendezvous;
    w.endpoint->store(last_piece(r.peer_base, r.peer_pieces, r.peer_piece_bytes), &r.word,
                      sizeof(r.word));
    r.try_owed = send_copy(w, 0, protocol::op_try, 0, &r.word, sizeof(r.word)) != 0;
    r.try_sent = !r.try_owed;
}

void send_fence(Worker &w)
{
    RendezvousMemory &r = w.rendezvous;
    if (send_message(w, 0, protocol::op_fence, r.fence + 1, nullptr) != 0)
        return;
    ++r.fence;
    r.fence_owed = false;
    r.fenced = r.doubtful;
    r.doubtful = nullptr;
}

void begin_fence(RendezvousMemory &r)
{
    r.fence_owed = r.fenced == nullptr && r.doubtful != nullptr;
}

bool on_try(Worker &w, const rte_mbuf *m)
{
    RendezvousMemory &r = w.rendezvous;
    uint64_t word = 0;
    if (m->pkt_len != sizeof(word) || !payload_read(m, &word, sizeof(word)) || r.pool == nullptr ||
        r.tried_owed)
        return false;
    const std::atomic_ref<uint64_t> there(
        *reinterpret_cast<uint64_t *>(last_piece(r.base, r.piece_count, protocol::piece_bytes)));
    r.tried = there.load(std::memory_order_acquire) == word ? 1 : 0;
    r.tried_owed = true;
    return true;
}

/// The way was found. Channels of a dedicated worker are looked at by each poll.
void tell_waiting(const Worker &w)
{
    for (uint32_t i = 0; i < w.slots.count(); ++i) {
        Channel &c = w.slots[i];
        if (!c.wants_way)
            continue;
        c.wants_way = false;
        if (c.want_write && may_send(state_of(c))) {
            c.want_write = false;
            tell(c, NTBMSG_WRITABLE);
        }
    }
}

bool on_tried(Worker &w, uint32_t found)
{
    RendezvousMemory &r = w.rendezvous;
    if (!r.try_sent || found > 1)
        return false;
    r.try_sent = false;
    r.try_owed = found == 0; // the mapping follows late
    r.ready = found == 1;
    if (r.ready) {
        engine_choose(w);
        tell_waiting(w);
    }
    return true;
}

bool on_fence(Worker &w, uint32_t number)
{
    RendezvousMemory &r = w.rendezvous;
    if (r.fenced_owed)
        return false; // one at a time
    r.fenced_owed = true;
    r.peer_fence = number;
    r.peer_copies = w.engine.given;
    return true;
}

bool on_fenced(RendezvousMemory &r, uint32_t number)
{
    if (r.fenced == nullptr || number != r.fence)
        return false;
    rte_pktmbuf_free(r.fenced);
    r.fenced = nullptr;
    begin_fence(r);
    return true;
}

} // namespace

rte_mempool *rendezvous_pool(const RendezvousMemory &r, const char *name, uint32_t first,
                             uint32_t count, int socket)
{
    rte_pktmbuf_extmem memory{};
    memory.buf_ptr = r.base + uint64_t{first} * protocol::piece_bytes;
    memory.buf_iova = rte_mem_virt2iova(memory.buf_ptr);
    memory.buf_len = uint64_t{count} * protocol::piece_bytes;
    memory.elt_size = protocol::piece_bytes;
    // Without caches of lcores, so that all that is free can be had by one message.
    return rte_pktmbuf_pool_create_extbuf(name, count, 0, 0, memory.elt_size, socket, &memory, 1);
}

uint32_t rendezvous_own_longest(const Channel &c)
{
    if (c.worker->rendezvous.pool == nullptr)
        return 0;
    const uint64_t bytes =
        uint64_t{std::min(rx_pool_pieces(c), protocol::pieces_max)} * protocol::piece_bytes;
    return static_cast<uint32_t>(std::min<uint64_t>(bytes, NTBMSG_MAX_MESSAGE));
}

int rendezvous_make(Worker &w, size_t bytes, size_t pool_bytes, int socket)
{
    RendezvousMemory &r = w.rendezvous;
    rte_pmd_plx_ntb_window_memory memory{};
    int rc = rte_pmd_plx_ntb_window_alloc(w.endpoint->dev_id, bytes, &memory);
    if (rc == 0) {
        r.base = static_cast<std::byte *>(memory.address);
        r.bytes = memory.bytes;
        r.piece_count = static_cast<uint32_t>(bytes / protocol::piece_bytes) - 1;
        r.shared_count = r.piece_count - static_cast<uint32_t>(pool_bytes / protocol::piece_bytes);
        rc = make_pool(w, socket);
    }
    if (rc != 0)
        NTBMSG_LOG(ERR, "device %u, worker %u: no %zu bytes of memory for long messages: %s",
                   w.endpoint->dev_id, w.index, bytes, rte_strerror(-rc));
    return rc;
}

void rendezvous_unmake(Worker &w)
{
    RendezvousMemory &r = w.rendezvous;
    rx_pools_free(w);
    rte_mempool_free(r.pool);
    if (r.base != nullptr)
        rte_pmd_plx_ntb_window_free(w.endpoint->dev_id, r.base); // the device is stopped
    r.pool = nullptr;
    r.base = nullptr;
}

bool rendezvous_lend(Worker &w, protocol::Hello &hello)
{
    RendezvousMemory &r = w.rendezvous;
    if (r.pool == nullptr)
        return true;
    if (!w.endpoint->up.load(std::memory_order_acquire))
        return false;
    rte_pmd_plx_ntb_window_info info{};
    info.size = sizeof(info);
    rte_pmd_plx_ntb_window_grant grant{};
    const uint16_t id = w.endpoint->dev_id;
    int rc = rte_pmd_plx_ntb_window_info_get(id, &info);
    if (rc == 0 && rte_pmd_plx_ntb_window_find(id, r.base, &grant) != 0)
        rc = rte_pmd_plx_ntb_window_expose(id, r.base, r.bytes,
                                           RTE_PMD_PLX_NTB_WINDOW_WRITE | info.store_rights,
                                           RTE_PMD_PLX_NTB_WINDOW_ANY, &grant.offset);
    if (rc == -ENOTCONN || rc == -EBUSY)
        return false;
    if (rc == 0) { // else long messages do without
        hello.pieces = r.piece_count;
        hello.piece_bytes = protocol::piece_bytes;
        hello.rendezvous_offset = grant.offset;
    }
    return true;
}

void rendezvous_meet(Worker &w, const protocol::Hello &hello)
{
    RendezvousMemory &r = w.rendezvous;
    rte_pmd_plx_ntb_window_view view{};
    const uint32_t bytes = hello.piece_bytes;
    r.peer_pieces = 0;
    r.peer_longest.store(0, std::memory_order_relaxed);
    r.ready = false;
    if (hello.pieces == 0 || hello.pieces > UINT16_MAX || !std::has_single_bit(bytes) ||
        bytes < protocol::piece_bytes_min || bytes > protocol::piece_bytes_max ||
        hello.rendezvous_offset % protocol::piece_bytes_min != 0 ||
        rte_pmd_plx_ntb_window_peer(w.endpoint->dev_id, hello.rendezvous_offset,
                                    (uint64_t{hello.pieces} + 1) * bytes, &view) != 0)
        return;
    r.peer_base = static_cast<std::byte *>(view.address);
    r.peer_bus = view.bus;
    r.peer_pieces = hello.pieces;
    r.peer_piece_bytes = bytes;
    const uint64_t longest = uint64_t{std::min(hello.pieces, protocol::pieces_max)} * bytes;
    r.peer_longest.store(static_cast<uint32_t>(std::min<uint64_t>(longest, NTBMSG_MAX_MESSAGE)),
                         std::memory_order_relaxed);
    r.word = rte_get_tsc_cycles() | 1;
    r.try_owed = true;
    w.chores |= chore_rendezvous;
}

void rendezvous_lose(Worker &w)
{
    RendezvousMemory &r = w.rendezvous;
    r.peer_pieces = 0;
    r.peer_longest.store(0, std::memory_order_relaxed);
    r.ready = r.try_owed = r.try_sent = r.tried_owed = r.fence_owed = r.fenced_owed = false;
    // Whoever comes next is lent the memory after the one before is fenced by the driver.
    rte_pktmbuf_free(r.doubtful);
    rte_pktmbuf_free(r.fenced);
    r.doubtful = r.fenced = nullptr;
}

uint32_t rendezvous_longest(const Worker &w)
{
    return w.rendezvous.peer_longest.load(std::memory_order_relaxed);
}

bool rendezvous_worker_receive(Worker &w, uint32_t op, uint32_t argument, const rte_mbuf *m)
{
    w.chores |= chore_rendezvous;
    if (op == protocol::op_try)
        return on_try(w, m);
    if (m->pkt_len != 0)
        return false;
    if (op == protocol::op_tried)
        return on_tried(w, argument);
    return op == protocol::op_fence ? on_fence(w, argument) : on_fenced(w.rendezvous, argument);
}

void rendezvous_doubt(Worker &w, rte_mbuf *chain)
{
    RendezvousMemory &r = w.rendezvous;
    rte_mbuf *last = chain;
    while (last->next != nullptr)
        last = last->next;
    last->next = r.doubtful;
    r.doubtful = chain;
    begin_fence(r);
    w.chores |= chore_rendezvous;
}

void rendezvous_chores(Worker &w)
{
    RendezvousMemory &r = w.rendezvous;
    // A channel that was reset before owes its RESET in front of the fence.
    if (r.fence_owed && (w.chores & chore_owing) == 0)
        send_fence(w);
    // What the engine still copies for a channel that was reset is in front of it.
    if (r.fenced_owed && engine_passed(w.engine, r.peer_copies))
        r.fenced_owed = send_message(w, 0, protocol::op_fenced, r.peer_fence, nullptr) != 0;
    if (r.try_owed)
        send_try(w);
    if (r.tried_owed)
        r.tried_owed = send_message(w, 0, protocol::op_tried, r.tried, nullptr) != 0;
    for (uint32_t turns = w.slots.used(); turns > 0; --turns) {
        Channel *c = w.moving.pop();
        if (c == nullptr)
            break;
        const bool pushed = rendezvous_push(*c, *c->rendezvous);
        if (!rendezvous_grant(*c, *c->rendezvous) || !pushed)
            w.moving.push(*c);
    }
    engine_submit(w.engine);
    if (w.moving.empty() && engine_idle(w.engine) && !r.fence_owed && !r.fenced_owed &&
        !r.try_owed && !r.tried_owed)
        w.chores &= ~chore_rendezvous;
}

} // namespace ntbmsg
