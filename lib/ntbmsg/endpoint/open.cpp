// SPDX-License-Identifier: BSD-3-Clause
// Opening and closing of endpoints.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_rawdev.h>

#include <sized.hpp>

#include "base/log.hpp"
#include "endpoint/closing.hpp"
#include "endpoint/endpoint.hpp"
#include "endpoint/registry.hpp"
#include "endpoint/service.hpp"
#include "endpoint/worker_setup.hpp"
#include "transport/trace.hpp"

RTE_LOG_REGISTER(ntbmsg_logtype, lib.ntbmsg, NOTICE)

namespace
{

constexpr const char *driver_name = "raw_plx_ntb";
constexpr uint32_t default_tx_mbufs = 4096;
// Received inline messages that the caller may hold, and what the queues keep ready in addition.
constexpr uint32_t rx_mbufs = 4096;
constexpr uint32_t rx_mbufs_per_queue = 512;
constexpr unsigned pool_cache = 256;
// The longest inline message (rte_pmd_plx_ntb_queue_config::pool).
constexpr uint16_t inline_room = 1024;

// One endpoint per device: set from open to close.
std::atomic<bool> taken[RTE_RAWDEV_MAX_DEVS];

/// @return id of the device, or -ENODEV with the reason logged
int find_device(const char *name)
{
    const int found = rte_pmd_plx_ntb_find(name);
    if (found < 0)
        NTBMSG_LOG(ERR, "no device %s of driver %s: add it with --vdev=%s,... or -a", name,
                   driver_name, name);
    return found;
}

void on_event(uint16_t, rte_pmd_plx_ntb_event event, void *arg)
{
    static_assert(static_cast<int>(RTE_PMD_PLX_NTB_EVENT_CONNECTED) == NTBMSG_EVENT_CONNECTED);
    static_assert(static_cast<int>(RTE_PMD_PLX_NTB_EVENT_SILENT) == NTBMSG_EVENT_SILENT);
    static_assert(static_cast<int>(RTE_PMD_PLX_NTB_EVENT_ALIVE) == NTBMSG_EVENT_ALIVE);
    static_assert(static_cast<int>(RTE_PMD_PLX_NTB_EVENT_LOST) == NTBMSG_EVENT_LOST);
    static_assert(static_cast<int>(RTE_PMD_PLX_NTB_EVENT_REFUSED) == NTBMSG_EVENT_REFUSED);
    static_assert(static_cast<int>(RTE_PMD_PLX_NTB_EVENT_CLOSING) == NTBMSG_EVENT_CLOSING);
    auto &e = *static_cast<ntbmsg_endpoint *>(arg);
    ntbmsg_trace_endpoint_event(e.dev_id, event);
    // Pairs with the acquire in is_ending(): a store that begins later finds it.
    if (event == RTE_PMD_PLX_NTB_EVENT_CLOSING || event == RTE_PMD_PLX_NTB_EVENT_LOST)
        e.ends.store(e.losses.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    // Pairs with the acquire in connection_changed(): counted before any message of the next
    // connection can be received.
    if (event == RTE_PMD_PLX_NTB_EVENT_LOST) {
        e.up.store(false, std::memory_order_release);
        e.losses.fetch_add(1, std::memory_order_release);
    } else if (event == RTE_PMD_PLX_NTB_EVENT_CONNECTED) {
        e.up.store(true, std::memory_order_release);
    }
    e.events.push(static_cast<ntbmsg_event>(event));
}

bool device_info(const ntbmsg_endpoint &e, rte_pmd_plx_ntb_info &device)
{
    device.size = sizeof(device);
    rte_rawdev_info info{};
    info.dev_private = &device;
    return rte_rawdev_info_get(e.dev_id, &info, sizeof(device)) == 0;
}

int configure(ntbmsg_endpoint &e)
{
    const ntbmsg_endpoint_options &o = e.options;
    rte_pmd_plx_ntb_config config{};
    config.size = sizeof(config);
    config.queues = o.queues + o.workers;
    config.ring_lines = o.ring_lines;
    config.buffers = o.buffers;
    config.buf_bytes = o.buf_bytes;
    config.queue_buffers = o.queue_buffers;
    config.inline_max = o.inline_max;
    config.max_message = o.max_message;
    config.workers = o.workers;
    rte_rawdev_info info{};
    info.dev_private = &config;
    const int rc = rte_rawdev_configure(e.dev_id, &info, sizeof(config));
    if (rc != 0)
        NTBMSG_LOG(ERR, "device %u cannot be configured: %s", e.dev_id, rte_strerror(-rc));
    return rc;
}

/// The pool's name is unique, since a device has one endpoint.
rte_mempool *make_pool(const ntbmsg_endpoint &e, const char *kind, uint32_t mbufs, uint16_t room)
{
    char name[RTE_MEMPOOL_NAMESIZE];
    std::snprintf(name, sizeof(name), "ntbmsg_%s_%u", kind, e.dev_id);
    const unsigned cache = std::min<uint32_t>(pool_cache, mbufs * 2 / 3);
    rte_mempool *pool = rte_pktmbuf_pool_create(name, mbufs, cache, 0,
                                                static_cast<uint16_t>(RTE_PKTMBUF_HEADROOM + room),
                                                rte_rawdev_socket_id(e.dev_id));
    if (pool == nullptr)
        NTBMSG_LOG(ERR, "no memory for %u mbufs to %s: %s", mbufs,
                   std::strcmp(kind, "tx") == 0 ? "send" : "receive", rte_strerror(rte_errno));
    return pool;
}

int make_pools(ntbmsg_endpoint &e)
{
    const uint32_t tx = e.options.tx_mbufs != 0 ? e.options.tx_mbufs : default_tx_mbufs;
    const uint32_t room = e.options.tx_room != 0 ? e.options.tx_room : RTE_MBUF_DEFAULT_DATAROOM;
    e.tx_pool = make_pool(e, "tx", tx, static_cast<uint16_t>(room));
    if (e.tx_pool == nullptr)
        return -ENOMEM;
    if (e.queues == 0)
        return 0;
    e.rx_pool = make_pool(e, "rx", rx_mbufs + rx_mbufs_per_queue * e.queues, inline_room);
    return e.rx_pool != nullptr ? 0 : -ENOMEM;
}

/// Receive buffers that each worker may grant as credit: those not kept in receive-buffer rings.
uint32_t buffers_per_worker(const ntbmsg_endpoint_options &o, uint32_t buffers)
{
    const uint32_t pairs = o.queues + o.workers;
    const uint64_t in_rings =
        o.queue_buffers != 0 ? uint64_t{o.queue_buffers} * pairs : buffers / 2;
    return in_rings < buffers ? static_cast<uint32_t>(buffers - in_rings) / o.workers : 0;
}

int make_workers(ntbmsg_endpoint &e)
{
    const ntbmsg_endpoint_options &o = e.options;
    if (o.workers == 0)
        return 0;
    rte_pmd_plx_ntb_info device{};
    const int socket = rte_rawdev_socket_id(e.dev_id);
    e.workers = static_cast<ntbmsg_worker *>(rte_zmalloc_socket(
        "ntbmsg_workers", o.workers * sizeof(ntbmsg_worker), alignof(ntbmsg_worker), socket));
    if (e.workers == nullptr || !device_info(e, device)) {
        NTBMSG_LOG(ERR, "device %u: no memory for %u workers", e.dev_id, o.workers);
        return -ENOMEM;
    }
    const ntbmsg::Sizes sizes = {.inline_max = device.inline_max,
                                 .buf_bytes = device.buf_bytes,
                                 .max_message = device.max_message,
                                 .buffers = buffers_per_worker(o, device.buffers),
                                 .socket = socket};
    int rc = 0;
    while (rc == 0 && e.workers_made < o.workers) {
        const auto index = static_cast<uint16_t>(e.workers_made++);
        rc = ntbmsg::init_worker(e.workers[index], e, index, sizes);
    }
    return rc;
}

/// Queue pairs of workers follow the bare ones.
rte_mempool *pool_of(const ntbmsg_endpoint &e, uint32_t queue)
{
    return queue < e.queues ? e.rx_pool : e.workers[queue - e.queues].rx_pool;
}

/// In place of the driver's rx_next: it is always the burst function that has to say what is next.
int say_by_burst(void *, rte_mbuf **, rte_pmd_plx_ntb_rx_flow *, uint16_t)
{
    return -EAGAIN;
}

int set_up_queues(ntbmsg_endpoint &e)
{
    (void)rte_pmd_plx_ntb_room_calls_get(e.dev_id, &e.room_calls);
    (void)rte_pmd_plx_ntb_flow_calls_get(e.dev_id, &e.flow_calls);
    if (e.flow_calls.rx_next == nullptr) // the driver was built before there was one
        e.flow_calls.rx_next = say_by_burst;
    rte_pmd_plx_ntb_queue_config config{};
    config.size = sizeof(config);
    for (uint16_t q = 0; q < e.queues + e.options.workers; ++q) {
        config.pool = pool_of(e, q);
        int rc = rte_rawdev_queue_setup(e.dev_id, q, &config, sizeof(config));
        if (rc == 0) {
            e.queues_set_up = q + 1U;
            rc = rte_pmd_plx_ntb_burst_get(e.dev_id, q, &e.burst[q]);
        }
        if (rc != 0) {
            NTBMSG_LOG(ERR, "queue %u of device %u cannot be set up: %s", q, e.dev_id,
                       rte_strerror(-rc));
            return rc;
        }
    }
    return 0;
}

void attach_workers(ntbmsg_endpoint &e)
{
    for (uint32_t i = 0; i < e.options.workers; ++i) {
        e.workers[i].burst = e.burst[e.queues + i];
        e.workers[i].room_calls = &e.room_calls;
        e.workers[i].flow_calls = &e.flow_calls;
        e.workers[i].store = e.store;
    }
}

int start(ntbmsg_endpoint &e)
{
    int rc = e.events.init();
    if (rc != 0)
        return rc;
    e.has_events = true;
    rc = rte_pmd_plx_ntb_event_register(e.dev_id, on_event, &e);
    if (rc == 0)
        rc = rte_rawdev_start(e.dev_id);
    if (rc != 0)
        NTBMSG_LOG(ERR, "device %u cannot be started: %s", e.dev_id, rte_strerror(-rc));
    e.started = rc == 0;
    return rc;
}

int start_services(ntbmsg_endpoint &e)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && e.options.service != 0 && i < e.workers_made; ++i)
        rc = ntbmsg::start_service(e.workers[i]);
    return rc;
}

int bring_up(ntbmsg_endpoint &e)
{
    int rc = configure(e);
    if (rc == 0)
        rc = make_pools(e);
    if (rc == 0)
        rc = make_workers(e);
    if (rc == 0)
        rc = e.regions.init(e.dev_id);
    if (rc == 0)
        rc = rte_pmd_plx_ntb_window_store_get(e.dev_id, &e.store);
    if (rc == 0)
        rc = set_up_queues(e);
    if (rc == 0)
        attach_workers(e);
    if (rc == 0)
        rc = ntbmsg::find_stats(e.dev_id, e.stat_ids);
    if (rc == 0)
        rc = start(e);
    if (rc == 0)
        rc = start_services(e);
    return rc;
}

/// Stops the device, with @p linger_ms for the peer to confirm what was sent. @return 0; -EIO: its
/// queues are still open, and the peer may reach their memory
int stop_device(ntbmsg_endpoint &e, uint32_t linger_ms)
{
    const uint32_t left_ms = linger_ms != 0 ? ntbmsg::settle(e, linger_ms) : 0;
    const int rc = rte_pmd_plx_ntb_stop(e.dev_id, left_ms, nullptr);
    e.unconfirmed = ntbmsg::unconfirmed_on_channels(e);
    for (uint16_t q = 0; q < e.queues; ++q) {
        uint32_t count = 0;
        rte_pmd_plx_ntb_tx_unconfirmed(e.dev_id, q, &count);
        e.unconfirmed += count;
    }
    return rc == -EIO ? rc : 0; // a device that is gone needs no stop
}

/// May be called again. @return 0; -EIO: the device could not be stopped, so nothing may be freed
int stop(ntbmsg_endpoint &e, uint32_t linger_ms)
{
    for (uint32_t i = 0; i < e.workers_made; ++i)
        ntbmsg::stop_service(e.workers[i]);
    if (const int rc = e.started ? stop_device(e, linger_ms) : 0; rc != 0)
        return rc;
    if (e.has_events)
        rte_pmd_plx_ntb_event_register(e.dev_id, nullptr, nullptr);
    e.started = false;
    for (uint32_t i = 0; i < e.workers_made; ++i)
        ntbmsg::end_worker(e.workers[i]);
    return 0;
}

/// mbufs of the endpoint that the application still holds. The device is stopped, so it holds none.
unsigned held_mbufs(const ntbmsg_endpoint &e)
{
    rte_pmd_plx_ntb_info device{};
    unsigned held = 0;
    for (uint32_t i = 0; i < e.workers_made; ++i)
        held += ntbmsg::held_mbufs(e.workers[i]);
    if (device_info(e, device) && device.buffer_pool != nullptr)
        held += rte_mempool_in_use_count(device.buffer_pool);
    for (const rte_mempool *pool : {e.tx_pool, e.rx_pool}) {
        if (pool != nullptr)
            held += rte_mempool_in_use_count(pool);
    }
    return held;
}

/// Undoes what bring_up() did; nothing of the endpoint is in use any more.
void release(ntbmsg_endpoint *e)
{
    while (e->queues_set_up > 0) {
        --e->queues_set_up;
        rte_rawdev_queue_release(e->dev_id, static_cast<uint16_t>(e->queues_set_up));
    }
    while (e->workers_made > 0)
        ntbmsg::free_worker(e->workers[--e->workers_made]);
    if (e->workers != nullptr)
        ntbmsg::end_use(e->workers);
    e->regions.destroy();
    rte_mempool_free(e->rx_pool);
    rte_mempool_free(e->tx_pool);
    if (e->has_events)
        e->events.destroy();
    taken[e->dev_id].store(false, std::memory_order_release);
    ntbmsg::end_use(e);
}

/// The first version of the options.
constexpr size_t first_options =
    offsetof(ntbmsg_endpoint_options, tx_mbufs) + sizeof(ntbmsg_endpoint_options::tx_mbufs);

} // namespace

uint32_t ntbmsg_version()
{
    return NTBMSG_VERSION_MAJOR << 16 | NTBMSG_VERSION_MINOR;
}

int ntbmsg_endpoint_open(const char *device, const ntbmsg_endpoint_options *options,
                         ntbmsg_endpoint **out)
{
    if (device == nullptr || out == nullptr)
        return -EINVAL;
    ntbmsg_endpoint_options chosen;
    ntbmsg_endpoint_options_init(&chosen);
    if (options != nullptr) {
        const int rc = ntb::read_sized(*options, first_options, chosen);
        if (rc != 0) {
            NTBMSG_LOG(ERR, "options of size %zu: %s, this library knows %zu bytes", options->size,
                       rc == -E2BIG ? "options beyond are set" : "invalid", sizeof(chosen));
            return rc;
        }
    }
    if (const int rc = ntbmsg::check_options(chosen); rc != 0)
        return rc;
    const int dev_id = find_device(device);
    if (dev_id < 0)
        return dev_id;
    if (taken[dev_id].exchange(true, std::memory_order_acquire)) {
        NTBMSG_LOG(ERR, "device %s is already open", device);
        return -EBUSY;
    }
    auto *e = static_cast<ntbmsg_endpoint *>(
        rte_zmalloc_socket("ntbmsg_endpoint", sizeof(ntbmsg_endpoint), RTE_CACHE_LINE_SIZE,
                           rte_rawdev_socket_id(static_cast<uint16_t>(dev_id))));
    if (e == nullptr) {
        NTBMSG_LOG(ERR, "no memory for an endpoint on %s", device);
        taken[dev_id].store(false, std::memory_order_release);
        return -ENOMEM;
    }
    e->dev_id = static_cast<uint16_t>(dev_id);
    e->options = chosen;
    e->queues = chosen.queues;
    ntbmsg::begin_use(*e);
    if (const int rc = bring_up(*e); rc != 0) {
        // Otherwise the peer may still reach its memory: it is kept, and the device stays taken.
        if (stop(*e, 0) == 0)
            release(e);
        return rc;
    }
    ntbmsg::register_endpoint(*e);
    ntbmsg_trace_endpoint_open(e->dev_id, e->queues, e->workers_made);
    *out = e;
    return 0;
}

int ntbmsg_endpoint_close(ntbmsg_endpoint *endpoint)
{
    if (!ntbmsg::is_live(endpoint, __func__))
        return 0;
    uint64_t linger_ms = 0;
    rte_rawdev_get_attr(endpoint->dev_id, "linger_ms", &linger_ms);
    return ntbmsg_endpoint_close_linger(endpoint, static_cast<uint32_t>(linger_ms), nullptr);
}

int ntbmsg_endpoint_close_linger(ntbmsg_endpoint *endpoint, uint32_t linger_ms,
                                 uint64_t *unconfirmed_count)
{
    if (unconfirmed_count != nullptr)
        *unconfirmed_count = 0;
    if (!ntbmsg::is_live(endpoint, __func__))
        return 0;
    ntbmsg_trace_endpoint_close(endpoint->dev_id);
    ntbmsg::unregister_endpoint(*endpoint);
    const int rc = stop(*endpoint, linger_ms);
    if (unconfirmed_count != nullptr)
        *unconfirmed_count = endpoint->unconfirmed;
    if (rc != 0) {
        NTBMSG_LOG(ERR, "device %u cannot be stopped: nothing of its endpoint was freed",
                   endpoint->dev_id);
        return rc;
    }
    if (const unsigned held = held_mbufs(*endpoint); held != 0) {
        NTBMSG_LOG(ERR,
                   "device %u: the application still holds %u mbufs; the endpoint is stopped but "
                   "not freed",
                   endpoint->dev_id, held);
        return -EBUSY;
    }
    release(endpoint);
    return 0;
}

rte_mempool *ntbmsg_endpoint_pool(const ntbmsg_endpoint *endpoint)
{
    return ntbmsg::is_live(endpoint, __func__) ? endpoint->tx_pool : nullptr;
}

ntbmsg_worker *ntbmsg_endpoint_worker(ntbmsg_endpoint *endpoint, uint16_t index)
{
    return ntbmsg::is_live(endpoint, __func__) && index < endpoint->workers_made
               ? endpoint->workers + index
               : nullptr;
}
