// SPDX-License-Identifier: BSD-3-Clause
#include "rendezvous/rx_pool.hpp"

#include <cerrno>
#include <cstdio>

#include <rte_memory.h>
#include <rte_mempool.h>
#include <rte_rawdev.h>

#include "base/lock.hpp"
#include "endpoint/endpoint.hpp"
#include "port/worker.hpp"

namespace ntbmsg
{

namespace
{

/// The first place of @p count free pieces in a row. @return piece_count: there is none
uint32_t find_place(const RendezvousMemory &r, uint32_t count)
{
    uint32_t at = r.shared_count;
    for (unsigned i = 0; i < rx_pools_max; ++i) {
        const RxPool &p = r.pools[i];
        if (p.pool == nullptr || p.first >= at + count || p.first + p.count <= at)
            continue;
        at = p.first + p.count;
        i = UINT32_MAX; // from the beginning
    }
    return count <= r.piece_count - at ? at : r.piece_count;
}

int make(Worker &w, RxPool &p, uint32_t number, uint32_t at, uint32_t count)
{
    RendezvousMemory &r = w.rendezvous;
    char name[RTE_MEMPOOL_NAMESIZE];
    std::snprintf(name, sizeof(name), "ntbmsg_rx_%uw%up%u", w.endpoint->dev_id, w.index, number);
    p.pool = rendezvous_pool(r, name, at, count, rte_rawdev_socket_id(w.endpoint->dev_id));
    if (p.pool == nullptr)
        return -ENOMEM;
    p.first = at;
    p.count = count;
    return 0;
}

} // namespace

uint8_t rx_pool_number(const Worker &w, const rte_mempool *pool)
{
    for (unsigned i = 0; pool != nullptr && i < rx_pools_max; ++i) {
        if (w.rendezvous.pools[i].pool == pool)
            return static_cast<uint8_t>(i + 1);
    }
    return 0;
}

void rx_pool_join(Channel &c, uint8_t number)
{
    c.rx_pool = number;
    if (number != 0)
        c.worker->rendezvous.pools[number - 1].users.fetch_add(1, std::memory_order_relaxed);
}

void rx_pool_leave(Channel &c)
{
    if (c.rx_pool != 0)
        c.worker->rendezvous.pools[c.rx_pool - 1].users.fetch_sub(1, std::memory_order_release);
    c.rx_pool = 0;
}

rte_mempool *rx_pool_of(const Channel &c)
{
    const RendezvousMemory &r = c.worker->rendezvous;
    return c.rx_pool != 0 ? r.pools[c.rx_pool - 1].pool : r.pool;
}

uint32_t rx_pool_pieces(const Channel &c)
{
    const RendezvousMemory &r = c.worker->rendezvous;
    return c.rx_pool != 0 ? r.pools[c.rx_pool - 1].count : r.shared_count;
}

unsigned rx_pools_held(const Worker &w)
{
    unsigned held = 0;
    for (const RxPool &p : w.rendezvous.pools)
        held += p.pool != nullptr ? rte_mempool_in_use_count(p.pool) : 0;
    return held;
}

void rx_pools_free(Worker &w)
{
    for (RxPool &p : w.rendezvous.pools) {
        rte_mempool_free(p.pool);
        p.pool = nullptr;
    }
}

} // namespace ntbmsg

using namespace ntbmsg;

int ntbmsg_rx_pool_create(ntbmsg_worker *worker, size_t bytes, rte_mempool **out)
{
    if (!is_live(worker, __func__) || bytes == 0 || out == nullptr)
        return -EINVAL;
    Worker &w = *worker;
    RendezvousMemory &r = w.rendezvous;
    const Locked held(w.lock);
    if (bytes > r.bytes)
        return -ENOSPC;
    const auto count =
        static_cast<uint32_t>((bytes + protocol::piece_bytes - 1) / protocol::piece_bytes);
    const uint32_t at = find_place(r, count);
    if (at == r.piece_count)
        return -ENOSPC;
    for (uint32_t i = 0; i < rx_pools_max; ++i) {
        RxPool &p = r.pools[i];
        if (p.pool != nullptr)
            continue;
        const int rc = make(w, p, i, at, count);
        if (rc == 0)
            *out = p.pool;
        return rc;
    }
    return -ENOSPC;
}

int ntbmsg_rx_pool_destroy(ntbmsg_worker *worker, rte_mempool *pool)
{
    if (!is_live(worker, __func__) || pool == nullptr)
        return -EINVAL;
    const Locked held(worker->lock);
    const uint8_t number = rx_pool_number(*worker, pool);
    if (number == 0)
        return -EINVAL;
    RxPool &p = worker->rendezvous.pools[number - 1];
    if (p.users.load(std::memory_order_acquire) != 0 || rte_mempool_in_use_count(pool) != 0)
        return -EBUSY;
    p.pool = nullptr;
    rte_mempool_free(pool);
    return 0;
}
