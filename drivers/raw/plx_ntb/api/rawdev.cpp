// SPDX-License-Identifier: BSD-3-Clause
#include "api/rawdev.hpp"

#include <algorithm>
#include <cerrno>
#include <new>

#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_rawdev.h>
#include <rte_rawdev_pmd.h>

#include <sized.hpp>

#include "api/attributes.hpp"
#include "api/bursts.hpp"
#include "api/devices.hpp"
#include "api/diagnostics.hpp"
#include "api/holding.hpp"
#include "api/statistics.hpp"
#include "sync/gate.hpp"
#include "sync/log.hpp"

namespace plx::pmd
{

const char driver_name[] = "raw_plx_ntb";

namespace
{

int info_get(rte_rawdev *raw, rte_rawdev_obj_t info, size_t size)
{
    auto *out = static_cast<rte_pmd_plx_ntb_info *>(info);
    if (out == nullptr || size < sizeof(out->size) || size != out->size)
        return -EINVAL;
    constexpr size_t first_version =
        offsetof(rte_pmd_plx_ntb_info, block_bytes) + sizeof(out->block_bytes);
    Device *device = device_of(raw);
    const Geometry &g = device->geometry();
    rte_pmd_plx_ntb_info now = {.size = sizeof(now),
                                .queues = device->queue_count(),
                                .ring_lines = g.ring_lines,
                                .buffers = g.buffers,
                                .buf_bytes = g.buf_bytes,
                                .inline_max = g.inline_most,
                                .max_message = device->max_message(),
                                .socket_id = device->node(),
                                .window_bytes = device->platform().window_bytes,
                                .block_bytes = device->block().bytes,
                                .buffer_pool = device->window_pool()};
    std::snprintf(now.burst, sizeof(now.burst), "%s", device->ops()->name);
    std::snprintf(now.platform, sizeof(now.platform), "%s", device->platform().ops->name);
    return ntb::write_sized(now, first_version, *out);
}

int configure(const rte_rawdev *raw, rte_rawdev_obj_t config, size_t size)
{
    rte_pmd_plx_ntb_config defaults{};
    defaults.size = sizeof(defaults);
    if (config == nullptr)
        return device_of(raw)->configure(defaults);
    const auto *given = static_cast<const rte_pmd_plx_ntb_config *>(config);
    if (size < sizeof(given->size) || size != given->size) {
        PLX_INIT_LOG(ERR,
                     "%s: configuration of %zu bytes: expected struct rte_pmd_plx_ntb_config with "
                     "its size\n",
                     raw->name, size);
        return -EINVAL;
    }
    return device_of(raw)->configure(*given);
}

int start(rte_rawdev *raw)
{
    return device_of(raw)->start();
}

void stop(rte_rawdev *raw)
{
    device_of(raw)->stop();
}

int close(rte_rawdev *raw)
{
    Device *device = device_of(raw);
    const int rc = device == nullptr ? 0 : device->close();
    if (rc == 0)
        tell_gone(raw->dev_id);
    return rc;
}

int queue_def_conf(rte_rawdev *raw, uint16_t queue, rte_rawdev_obj_t conf, size_t size)
{
    auto *out = static_cast<rte_pmd_plx_ntb_queue_config *>(conf);
    if (out == nullptr || size < sizeof(out->size) || device_of(raw)->queue(queue) == nullptr)
        return -EINVAL;
    const rte_pmd_plx_ntb_queue_config now = {.size = sizeof(now), .pool = nullptr};
    out->size = size;
    return ntb::write_sized(now, sizeof(now), *out);
}

int queue_setup(rte_rawdev *raw, uint16_t queue, rte_rawdev_obj_t conf, size_t size)
{
    rte_mempool *pool = nullptr;
    if (conf != nullptr) {
        const auto *in = static_cast<const rte_pmd_plx_ntb_queue_config *>(conf);
        if (size < sizeof(in->size) || size != in->size)
            return -EINVAL;
        rte_pmd_plx_ntb_queue_config config;
        if (const int rc = ntb::read_sized(*in, sizeof(config), config); rc != 0)
            return rc;
        pool = config.pool;
    }
    return device_of(raw)->queue_setup(queue, pool);
}

int queue_release(rte_rawdev *raw, uint16_t queue)
{
    return device_of(raw)->queue_release(queue);
}

uint16_t queue_count(rte_rawdev *raw)
{
    return device_of(raw)->queue_count();
}

constexpr unsigned burst_max = 32;

/// As in raw/ntb: the context is the queue, and buf_addr is an mbuf.
QueuePair *queue_in(rte_rawdev *raw, rte_rawdev_obj_t context)
{
    const auto queue = reinterpret_cast<uintptr_t>(context);
    return queue > UINT16_MAX ? nullptr : device_of(raw)->queue(static_cast<uint16_t>(queue));
}

int enqueue_bufs(rte_rawdev *raw, rte_rawdev_buf **bufs, unsigned count, rte_rawdev_obj_t context)
{
    QueuePair *qp = queue_in(raw, context);
    if (qp == nullptr)
        return -EINVAL;
    unsigned done = 0;
    while (done < count) {
        rte_mbuf *mbufs[burst_max];
        const unsigned n = std::min(count - done, burst_max);
        for (unsigned i = 0; i < n; ++i)
            mbufs[i] = static_cast<rte_mbuf *>(bufs[done + i]->buf_addr);
        const int sent = gated_tx(&qp->tx, mbufs, nullptr, static_cast<uint16_t>(n));
        if (sent < 0)
            return done > 0 ? static_cast<int>(done) : sent;
        done += static_cast<unsigned>(sent);
        if (static_cast<unsigned>(sent) < n)
            break;
    }
    return static_cast<int>(done);
}

int dequeue_bufs(rte_rawdev *raw, rte_rawdev_buf **bufs, unsigned count, rte_rawdev_obj_t context)
{
    QueuePair *qp = queue_in(raw, context);
    if (qp == nullptr)
        return -EINVAL;
    unsigned done = 0;
    while (done < count) {
        rte_mbuf *mbufs[burst_max];
        const unsigned n = std::min(count - done, burst_max);
        const int got = gated_rx(&qp->rx, mbufs, nullptr, static_cast<uint16_t>(n));
        for (int i = 0; i < got; ++i)
            bufs[done + static_cast<unsigned>(i)]->buf_addr = mbufs[i];
        if (got <= 0)
            break;
        done += static_cast<unsigned>(got);
        if (static_cast<unsigned>(got) < n)
            break;
    }
    return static_cast<int>(done);
}

const rte_rawdev_ops rawdev_ops = {
    .dev_info_get = info_get,
    .dev_configure = configure,
    .dev_start = start,
    .dev_stop = stop,
    .dev_close = close,
    .queue_def_conf = queue_def_conf,
    .queue_setup = queue_setup,
    .queue_release = queue_release,
    .queue_count = queue_count,
    .enqueue_bufs = enqueue_bufs,
    .dequeue_bufs = dequeue_bufs,
    .dump = dump,
    .attr_get = attr_get,
    .attr_set = attr_set,
    .xstats_get = xstats_get,
    .xstats_get_names = xstats_get_names,
    .xstats_get_by_name = xstats_get_by_name,
    .xstats_reset = xstats_reset,
    .dev_selftest = selftest,
};

/// Whether EAL has seen CPUs on a NUMA node.
bool has_node(int node)
{
    for (unsigned i = 0; i < rte_socket_count(); ++i)
        if (rte_socket_id_by_idx(i) == node)
            return true;
    return false;
}

/// Closes and destroys a device. The close at the release of the rawdev then finds none.
int release(rte_rawdev *raw)
{
    Device *device = device_of(raw);
    if (const int rc = device->close(); rc != 0)
        return rc;
    tell_gone(raw->dev_id);
    raw->dev_private = nullptr;
    free_device(raw->dev_id, device);
    return rte_rawdev_pmd_release(raw);
}

} // namespace

int device_create(const char *name, const Platform &platform, const Options &options,
                  rte_device *device)
{
    // Checked before anything is allocated on the node.
    if (options.node >= 0 && !has_node(options.node)) {
        PLX_INIT_LOG(ERR, "%s: devarg numa=%d: this machine has no such NUMA node\n", name,
                     options.node);
        platform.ops->detach(platform.ctx);
        return -EINVAL;
    }
    const int socket = options.node >= 0 ? options.node : platform.node;
    rte_rawdev *raw = rte_rawdev_pmd_allocate(name, sizeof(Device), socket);
    if (raw == nullptr) {
        PLX_INIT_LOG(ERR, "%s: no rawdev: the name is taken, or %u devices exist\n", name,
                     RTE_RAWDEV_MAX_DEVS);
        platform.ops->detach(platform.ctx);
        return -ENOMEM;
    }
    auto *made = new (raw->dev_private) Device(raw, name, platform, options);
    raw->device = device;
    raw->driver_name = driver_name;
    raw->dev_ops = &rawdev_ops;
    int rc = gate_init();
    if (rc != 0)
        PLX_INIT_LOG(ERR, "%s: this kernel has no private expedited membarrier (Linux 4.14)\n",
                     name);
    else
        rc = made->probe();
    if (rc != 0)
        release(raw);
    return rc;
}

int device_destroy(const char *name)
{
    rte_rawdev *raw = rte_rawdev_pmd_get_named_dev(name);
    if (raw == nullptr)
        return -ENODEV;
    if (raw->started)
        rte_rawdev_stop(raw->dev_id);
    Device *device = device_of(raw);
    device->dma().stop_dmadevs();
    return release(raw);
}

} // namespace plx::pmd
