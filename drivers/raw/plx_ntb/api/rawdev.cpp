// SPDX-License-Identifier: BSD-3-Clause
// The rawdev: its operations, its life, and the gate before the hot path.
#include "device/device.hpp"

#include <algorithm>
#include <cerrno>
#include <new>

#include <rte_branch_prediction.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_rawdev.h>
#include <rte_rawdev_pmd.h>

#include "sync/log.hpp"

extern "C" {
RTE_LOG_REGISTER_SUFFIX(plx_ntb_logtype_init, init, NOTICE);
RTE_LOG_REGISTER_SUFFIX(plx_ntb_logtype_driver, driver, NOTICE);
}

namespace plx::pmd
{

namespace
{

static_assert(sizeof(queue::Meta) == sizeof(rte_pmd_plx_ntb_meta) &&
                  offsetof(queue::Meta, flags) == offsetof(rte_pmd_plx_ntb_meta, flags),
              "the queue's view of caller metadata is the public one");

/// The lcore of a half tells where it lives, once a connection; the control thread warns.
template <class H>
void introduce(H *half)
{
    half->lcore_node.store(static_cast<int>(rte_socket_id()), std::memory_order_relaxed);
    half->thread.store(pthread_self(), std::memory_order_relaxed);
}

/// One thread that has both halves may answer what it receives. Where a half moves to another
/// thread later, nothing goes wrong: a line is asked for in vain.
void pair_up(TxHalf &tx, RxHalf &rx)
{
    const bool one_thread =
        tx.thread.load(std::memory_order_relaxed) == rx.thread.load(std::memory_order_relaxed);
    queue::rx_answered_by(rx.state, one_thread ? tx.state : nullptr);
}

/// The burst that meets a new word at its gate.
__rte_noinline int first_burst(TxHalf *half, uint32_t word, rte_mbuf **mbufs,
                               const queue::Meta *meta, uint16_t n)
{
    introduce(half);
    pair_up(*half, *half->rx);
    return meet_word<CpuMemory>(
        word, &half->seen, [=] { return half->burst(half->state, mbufs, meta, n); },
        [half] {
            half->doorbell.ring();
            half->rings->fetch_add(1, std::memory_order_relaxed);
        });
}
__rte_noinline int first_burst(RxHalf *half, uint32_t word, rte_mbuf **mbufs, queue::Meta *meta,
                               uint16_t n)
{
    introduce(half);
    pair_up(*half->tx, *half);
    half->seen = word;
    return half->burst(half->state, mbufs, meta, n);
}

/// One burst behind the gate; `closed` is what the caller gets while there is no peer.
template <class H, class Meta, class QueueMeta>
inline int gated(void *queue, rte_mbuf **mbufs, Meta *meta, uint16_t n, int closed)
{
    auto *half = static_cast<H *>(queue);
    auto *queue_meta = reinterpret_cast<QueueMeta *>(meta);
    const int rc = pass(
        half->gate, &half->seen, closed,
        [=] { return half->burst(half->state, mbufs, queue_meta, n); },
        [=](uint32_t word) { return first_burst(half, word, mbufs, queue_meta, n); });
    if (unlikely(rc == -EPROTO)) {
        half->broken.store(true, std::memory_order_relaxed);
        return closed;
    }
    return rc;
}

int gated_tx(void *queue, rte_mbuf **mbufs, const rte_pmd_plx_ntb_meta *meta, uint16_t n)
{
    return gated<TxHalf, const rte_pmd_plx_ntb_meta, const queue::Meta>(queue, mbufs, meta, n,
                                                                        -ENOTCONN);
}

int gated_rx(void *queue, rte_mbuf **mbufs, rte_pmd_plx_ntb_meta *meta, uint16_t n)
{
    return gated<RxHalf, rte_pmd_plx_ntb_meta, queue::Meta>(queue, mbufs, meta, n, 0);
}

// ---- rawdev operations

int info_get(rte_rawdev *raw, rte_rawdev_obj_t info, size_t size)
{
    auto *out = static_cast<rte_pmd_plx_ntb_info *>(info);
    if (out == nullptr || size != sizeof(*out) || out->size != sizeof(*out))
        return -EINVAL;
    Device *device = device_of(raw);
    const Geometry &g = device->geometry();
    *out = {.size = sizeof(*out),
            .queues = device->queue_count(),
            .ring_lines = g.ring_lines,
            .buffers = g.buffers,
            .buf_bytes = g.buf_bytes,
            .inline_max = g.inline_max,
            .max_message = device->max_message(),
            .socket_id = device->node(),
            .window_bytes = device->platform().window_bytes,
            .block_bytes = device->block().bytes,
            .window_pool = device->window_pool()};
    std::snprintf(out->burst, sizeof(out->burst), "%s", device->ops()->name);
    std::snprintf(out->platform, sizeof(out->platform), "%s", device->platform().ops->name);
    return 0;
}

int configure(const rte_rawdev *raw, rte_rawdev_obj_t config, size_t size)
{
    rte_pmd_plx_ntb_config defaults{};
    defaults.size = sizeof(defaults);
    if (config == nullptr)
        return device_of(raw)->configure(defaults);
    if (size != sizeof(defaults)) {
        PLX_INIT_LOG(ERR,
                     "%s: configuration of %zu bytes: expected struct "
                     "rte_pmd_plx_ntb_config, %zu bytes\n",
                     raw->name, size, sizeof(defaults));
        return -EINVAL;
    }
    return device_of(raw)->configure(*static_cast<const rte_pmd_plx_ntb_config *>(config));
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
    return device == nullptr ? 0 : device->close();
}

int queue_def_conf(rte_rawdev *raw, uint16_t queue, rte_rawdev_obj_t conf, size_t size)
{
    auto *out = static_cast<rte_pmd_plx_ntb_queue_config *>(conf);
    if (out == nullptr || size != sizeof(*out) || device_of(raw)->queue(queue) == nullptr)
        return -EINVAL;
    *out = {.size = sizeof(*out), .pool = nullptr};
    return 0;
}

int queue_setup(rte_rawdev *raw, uint16_t queue, rte_rawdev_obj_t conf, size_t size)
{
    rte_mempool *pool = nullptr;
    if (conf != nullptr) {
        const auto *in = static_cast<const rte_pmd_plx_ntb_queue_config *>(conf);
        if (size != sizeof(*in) || in->size != sizeof(*in))
            return -EINVAL;
        pool = in->pool;
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

/// As raw/ntb has it: the context is the queue; below, buf_addr is the mbuf.
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

/// Closes a device and ends it. The close that comes with the release of a rawdev finds none.
int release(rte_rawdev *raw)
{
    Device *device = device_of(raw);
    if (const int rc = device->close(); rc != 0)
        return rc;
    raw->dev_private = nullptr;
    device->~Device();
    rte_free(device);
    return rte_rawdev_pmd_release(raw);
}

} // namespace

Device *device_of(const rte_rawdev *raw)
{
    return static_cast<Device *>(raw->dev_private);
}

Device *device_of(uint16_t dev_id)
{
    if (dev_id >= RTE_RAWDEV_MAX_DEVS)
        return nullptr;
    const rte_rawdev *raw = &rte_rawdevs[dev_id];
    if (raw->attached != RTE_RAWDEV_ATTACHED || raw->dev_ops != &rawdev_ops)
        return nullptr;
    return device_of(raw);
}

Device *device_named(const char *name)
{
    const rte_rawdev *raw = rte_rawdev_pmd_get_named_dev(name);
    return raw == nullptr ? nullptr : device_of(raw->dev_id);
}

int device_create(const char *name, const Platform &platform, const Options &options,
                  rte_device *device)
{
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
    raw->driver_name = "raw_plx_ntb";
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

// ---- the public border

using plx::pmd::Device;
using plx::pmd::QueuePair;

namespace
{
QueuePair *queue_of(uint16_t dev_id, uint16_t queue)
{
    Device *device = plx::pmd::device_of(dev_id);
    return device == nullptr ? nullptr : device->queue(queue);
}
} // namespace

int rte_pmd_plx_ntb_tx_burst(uint16_t dev_id, uint16_t queue, rte_mbuf **mbufs,
                             const rte_pmd_plx_ntb_meta *meta, uint16_t n)
{
    QueuePair *qp = queue_of(dev_id, queue);
    return unlikely(qp == nullptr) ? -ENODEV : plx::pmd::gated_tx(&qp->tx, mbufs, meta, n);
}

int rte_pmd_plx_ntb_rx_burst(uint16_t dev_id, uint16_t queue, rte_mbuf **mbufs,
                             rte_pmd_plx_ntb_meta *meta, uint16_t n)
{
    QueuePair *qp = queue_of(dev_id, queue);
    return unlikely(qp == nullptr) ? -ENODEV : plx::pmd::gated_rx(&qp->rx, mbufs, meta, n);
}

int rte_pmd_plx_ntb_burst_get(uint16_t dev_id, uint16_t queue, rte_pmd_plx_ntb_burst *out)
{
    QueuePair *qp = queue_of(dev_id, queue);
    if (qp == nullptr)
        return -ENODEV;
    if (out == nullptr)
        return -EINVAL;
    *out = {.tx = plx::pmd::gated_tx,
            .rx = plx::pmd::gated_rx,
            .tx_queue = &qp->tx,
            .rx_queue = &qp->rx};
    return 0;
}

int rte_pmd_plx_ntb_find(const char *name)
{
    if (name == nullptr)
        return -EINVAL;
    const rte_rawdev *raw = rte_rawdev_pmd_get_named_dev(name);
    return raw != nullptr && plx::pmd::device_of(raw->dev_id) != nullptr ? raw->dev_id : -ENODEV;
}

int rte_pmd_plx_ntb_link_get(uint16_t dev_id, rte_pmd_plx_ntb_link *link)
{
    Device *device = plx::pmd::device_of(dev_id);
    if (device == nullptr)
        return -ENODEV;
    if (link == nullptr)
        return -EINVAL;
    device->link_info(link);
    return 0;
}

int rte_pmd_plx_ntb_inject(uint16_t dev_id, rte_pmd_plx_ntb_fault fault, uint32_t argument)
{
    Device *device = plx::pmd::device_of(dev_id);
    if (device == nullptr || device->closed())
        return -ENODEV;
    const plx::pmd::Platform &platform = device->platform();
    return platform.ops->inject == nullptr ? -ENOTSUP
                                           : platform.ops->inject(platform.ctx, fault, argument);
}

int rte_pmd_plx_ntb_event_register(uint16_t dev_id, rte_pmd_plx_ntb_event_fn fn, void *arg)
{
    Device *device = plx::pmd::device_of(dev_id);
    if (device == nullptr)
        return -ENODEV;
    device->set_callback(fn, arg);
    return 0;
}
