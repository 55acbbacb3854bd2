// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/worker_setup.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/log.hpp"
#include "channel/dedicated_worker.hpp"
#include "channel/ending.hpp"
#include "channel/listener.hpp"
#include "endpoint/endpoint.hpp"
#include "rma/one_sided.hpp"
#include "rma/responder.hpp"
#include "transport/poll_set.hpp"

namespace ntbmsg
{

namespace
{

constexpr uint32_t default_channels = 4096;
constexpr uint32_t default_rx_mbufs = 16384;
// In addition to granted messages: what the application has received and not freed, and control
// messages.
constexpr uint32_t min_spare_mbufs = 1024;
// Control messages are freed as they are sent, except those that a DMA engine reads.
constexpr uint32_t control_mbufs = 511;
constexpr uint16_t control_room = 128;
// For one-sided operations: what one burst of them copies.
constexpr uint32_t op_mbufs = 511;
// The longest inline message (rte_pmd_plx_ntb_queue_config::pool).
constexpr uint16_t inline_room = 1024;
constexpr unsigned pool_cache = 256;

rte_mempool *make_pool(const Worker &w, const char *kind, uint32_t mbufs, uint16_t room, int socket)
{
    char name[RTE_MEMPOOL_NAMESIZE];
    std::snprintf(name, sizeof(name), "ntbmsg_%s_%u_%u", kind, w.dev_id, w.index);
    rte_mempool *pool =
        rte_pktmbuf_pool_create(name, mbufs, std::min(pool_cache, mbufs / 2), 0,
                                static_cast<uint16_t>(RTE_PKTMBUF_HEADROOM + room), socket);
    if (pool == nullptr)
        NTBMSG_LOG(ERR, "device %u, worker %u: no memory for %u mbufs: %s", w.dev_id, w.index,
                   mbufs, rte_strerror(rte_errno));
    return pool;
}

int make_pools(Worker &w, uint32_t rx_mbufs, int socket)
{
    const uint32_t spare = std::max(min_spare_mbufs, rx_mbufs / 4);
    w.rx_pool = make_pool(w, "wrx", rx_mbufs + spare, inline_room, socket);
    w.control_pool = make_pool(w, "wctl", control_mbufs, control_room, socket);
    w.op_pool = make_pool(w, "op", op_mbufs, RTE_MBUF_DEFAULT_DATAROOM, socket);
    if (w.rx_pool == nullptr || w.control_pool == nullptr || w.op_pool == nullptr)
        return -ENOMEM;
    w.empty = rte_pktmbuf_alloc(w.control_pool);
    return w.empty != nullptr ? 0 : -ENOMEM;
}

/// Ends a channel because the endpoint closes; its handle becomes invalid.
void forget(Channel &c)
{
    if (state_of(c) == state_free)
        return;
    if (state_of(c) == state_requested && withdraw(c))
        return;
    leave_set(c);
    leave_cq(c);
    c.handle.store(false, std::memory_order_relaxed);
    c.owed = 0;
    c.calls.store(0, std::memory_order_relaxed);
    end(c, NTBMSG_CHANNEL_LOST, NTBMSG_REASON_NONE);
    maybe_free(c);
}

} // namespace

int init_worker(Worker &w, Endpoint &e, uint16_t index, const Sizes &sizes)
{
    w.endpoint = &e;
    w.regions = &e.regions;
    w.up = &e.up;
    w.dev_id = e.dev_id;
    w.queue = static_cast<uint16_t>(e.queues + index);
    begin_use(w);
    w.index = index;
    w.losses = &e.losses;
    w.ends = &e.ends;
    w.chores = chore_hello;
    static_assert(protocol::op_data == 0); // the flags of tx_flow, too
    w.rx_flow.flags = w.held.flow.flags = protocol::op_data;
    w.held.flow.high = w.held.words;
    w.reads_left = read_bytes_per_poll;
    w.inline_max = sizes.inline_max;
    w.own_buf_bytes = sizes.buf_bytes;
    w.own_max_message = sizes.max_message;
    w.peer_buffers.set(sizes.buf_bytes);
    if (pthread_mutex_init(&w.lock, nullptr) != 0)
        return -ENOMEM;
    w.has_lock = true;
    const ntbmsg_endpoint_options &o = e.options;
    w.dedicated = o.dedicated != 0;
    const uint32_t rx_mbufs = o.rx_mbufs != 0 ? o.rx_mbufs : default_rx_mbufs;
    w.budget.left = {rx_mbufs, sizes.buffers};
    if (const int rc = make_pools(w, rx_mbufs, sizes.socket); rc != 0)
        return rc;
    const uint32_t channels = o.channels != 0 ? o.channels : default_channels;
    const int rc = w.slots.init(w, channels, sizes.socket);
    if (rc != 0)
        NTBMSG_LOG(ERR, "device %u, worker %u: no memory for %u channels", e.dev_id, index,
                   channels);
    return rc;
}

void end_worker(Worker &w)
{
    if (w.dedicated)
        serve(w); // calls made before the stop
    w.calls.store(nullptr, std::memory_order_relaxed);
    for (uint32_t i = 0; i < w.slots.count(); ++i)
        forget(w.slots[i]);
    rte_pktmbuf_free(w.empty);
    w.empty = nullptr;
}

void free_worker(Worker &w)
{
    mark_closed(w);
    w.slots.destroy();
    if (w.has_lock)
        pthread_mutex_destroy(&w.lock);
    rte_mempool_free(w.rx_pool);
    rte_mempool_free(w.control_pool);
    rte_mempool_free(w.op_pool);
}

unsigned held_mbufs(const Worker &w)
{
    unsigned held = 0;
    for (const rte_mempool *pool : {w.rx_pool, w.control_pool, w.op_pool}) {
        if (pool != nullptr)
            held += rte_mempool_in_use_count(pool);
    }
    return held;
}

} // namespace ntbmsg
