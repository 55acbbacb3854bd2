// SPDX-License-Identifier: BSD-3-Clause
#include "rendezvous/copy_engine.hpp"

#include <algorithm>
#include <cerrno>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_dmadev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_rawdev.h>

#include "base/log.hpp"
#include "endpoint/endpoint.hpp"
#include "port/worker.hpp"

namespace ntbmsg
{

namespace
{

constexpr uint32_t default_depth = 256, max_depth = 4096;
constexpr uint16_t collected_max = 64;
// A driver gives an engine that hangs up after a second, and what it had comes back.
constexpr unsigned drain_tries = 30'000;
constexpr unsigned drain_nap_us = 100;
constexpr uint32_t never = UINT32_MAX;

EngineCopy &copy_at(const CopyEngine &e, uint32_t number)
{
    return e.copies[number & e.mask];
}

void give_up(Worker &w, const char *why)
{
    CopyEngine &e = w.engine;
    if (e.failed)
        return;
    e.failed = true;
    NTBMSG_LOG(ERR, "device %u, worker %u: dmadev %d %s: long messages go by the CPU",
               w.endpoint->dev_id, w.index, e.dev, why);
}

/// The oldest copy is done, by whomever.
void retire(Worker &w)
{
    CopyEngine &e = w.engine;
    const EngineCopy &copy = copy_at(e, e.done++);
    if (copy.channel == nullptr) {
        rte_pktmbuf_free(copy.last_of);
        return;
    }
    Rendezvous &r = *copy.channel->rendezvous;
    OutgoingMessage &o = r.out[copy.message % rendezvous_depth];
    --o.under_way;
    o.landed += copy.ends_piece ? 1 : 0;
    w.moving.push(*copy.channel);
}

void copy_instead(Worker &w)
{
    CopyEngine &e = w.engine;
    const EngineCopy &copy = copy_at(e, e.done);
    e.errors.add(1);
    // Of a channel that has ended nothing more may be stored.
    if (copy.channel != nullptr && !connection_changed(w))
        w.endpoint->store(copy.to, copy.from, copy.bytes);
}

bool says(const CopyEngine &e, enum rte_dma_vchan_status wanted)
{
    enum rte_dma_vchan_status status = RTE_DMA_VCHAN_ACTIVE;
    return rte_dma_vchan_status(e.dev, e.vchan, &status) == 0 && status == wanted;
}

/// The dmadev is there, with that virtual channel, and can copy.
bool is_usable(int16_t dev, uint16_t vchan)
{
    rte_dma_info info{};
    constexpr uint64_t needed = RTE_DMA_CAPA_MEM_TO_MEM | RTE_DMA_CAPA_OPS_COPY;
    return rte_dma_is_valid(dev) && rte_dma_info_get(dev, &info) == 0 && vchan < info.nb_vchans &&
           (info.dev_capa & needed) == needed;
}

} // namespace

void engine_choose(Worker &w)
{
    CopyEngine &e = w.engine;
    if (e.copies == nullptr)
        return;
    uint64_t measured = 0;
    e.min_bytes = e.wanted_min;
    if (e.wanted_min == 0) {
        const bool known = rte_rawdev_get_attr(w.endpoint->dev_id, "dma_min", &measured) == 0;
        e.min_bytes = known && measured != 0 ? static_cast<uint32_t>(measured) : never;
    }
    if (w.rendezvous.peer_bus == 0)
        e.min_bytes = never;
    if (e.min_bytes == never)
        NTBMSG_LOG(INFO, "device %u, worker %u: long messages go by the CPU: %s",
                   w.endpoint->dev_id, w.index,
                   w.rendezvous.peer_bus == 0 ? "the window is out of the engine's reach"
                   : e.wanted_min == never    ? "as it was asked for"
                                              : "the device has measured no size for an engine");
    else
        NTBMSG_LOG(INFO, "device %u, worker %u: long messages of %u bytes and more go by dmadev %d",
                   w.endpoint->dev_id, w.index, e.min_bytes, e.dev);
}

bool engine_wants(const Worker &w, const rte_mbuf *m)
{
    const CopyEngine &e = w.engine;
    if (e.copies == nullptr || e.failed || m->pkt_len < e.min_bytes)
        return false;
    for (; m != nullptr; m = m->next) {
        const rte_iova_t iova = rte_mbuf_iova_get(m);
        if (iova == 0 || iova == RTE_BAD_IOVA)
            return false;
    }
    return true;
}

bool engine_copy(Worker &w, const EngineCopy &copy)
{
    CopyEngine &e = w.engine;
    if (unlikely(e.failed || e.given - e.done > e.mask))
        return false;
    const int rc = rte_dma_copy(e.dev, e.vchan, copy.from_iova, copy.to_bus, copy.bytes, 0);
    if (unlikely(rc < 0)) {
        if (rc != -ENOSPC || engine_idle(e)) // not started
            give_up(w, "takes no copies");
        return false;
    }
    copy_at(e, e.given++) = copy;
    e.bytes.add(copy.bytes);
    e.to_submit = true;
    return true;
}

void engine_submit(CopyEngine &e)
{
    if (!e.to_submit)
        return;
    e.to_submit = false;
    rte_dma_submit(e.dev, e.vchan);
}

void engine_collect(Worker &w)
{
    CopyEngine &e = w.engine;
    rte_dma_status_code codes[collected_max];
    const auto most = static_cast<uint16_t>(std::min<uint32_t>(collected_max, e.given - e.done));
    const uint16_t n = rte_dma_completed_status(e.dev, e.vchan, most, nullptr, codes);
    bool bad = false;
    for (uint16_t i = 0; i < n; ++i) {
        if (unlikely(codes[i] != RTE_DMA_STATUS_SUCCESSFUL)) {
            copy_instead(w);
            bad = true;
        }
        retire(w);
    }
    if (unlikely(bad) && says(e, RTE_DMA_VCHAN_HALTED_ERROR))
        give_up(w, "has halted");
}

void engine_leave(Worker &w, Channel &c)
{
    CopyEngine &e = w.engine;
    // From the newest on: the first one of a message that is met is the last one of it.
    for (uint32_t i = e.given; i != e.done; --i) {
        EngineCopy &copy = copy_at(e, i - 1);
        if (copy.channel != &c)
            continue;
        OutgoingMessage &o = c.rendezvous->out[copy.message % rendezvous_depth];
        copy.channel = nullptr;
        copy.last_of = o.mbuf;
        o.mbuf = nullptr;
    }
}

void engine_drain(Worker &w)
{
    CopyEngine &e = w.engine;
    engine_submit(e);
    for (unsigned i = 0; i < drain_tries && !engine_idle(e); ++i) {
        engine_collect(w);
        rte_delay_us_sleep(drain_nap_us);
    }
}

void engine_free(CopyEngine &e)
{
    rte_free(e.copies);
    e.copies = nullptr;
}

} // namespace ntbmsg

using namespace ntbmsg;

int ntbmsg_worker_dma_set(ntbmsg_worker *worker, const ntbmsg_dma_options *options)
{
    if (!is_live(worker, __func__) ||
        (options != nullptr && (options->size != sizeof(*options) || options->depth > max_depth)))
        return -EINVAL;
    const Using use(watch_of(*worker), "worker", __func__);
    Worker &w = *worker;
    CopyEngine &e = w.engine;
    if (!engine_idle(e))
        return -EBUSY;
    if (options == nullptr) {
        engine_free(e);
        e.failed = true; // messages that were to go by it are on their way
        return 0;
    }
    if (!is_usable(options->dma_dev, options->dma_vchan))
        return -ENODEV;
    const uint32_t depth = rte_align32pow2(options->depth != 0 ? options->depth : default_depth);
    auto *copies = static_cast<EngineCopy *>(
        rte_zmalloc("ntbmsg_copies", depth * sizeof(EngineCopy), RTE_CACHE_LINE_SIZE));
    if (copies == nullptr)
        return -ENOMEM;
    engine_free(e);
    e.copies = copies;
    e.mask = depth - 1;
    e.wanted_min = options->min_bytes;
    e.min_bytes = never;
    e.dev = options->dma_dev;
    e.vchan = options->dma_vchan;
    e.failed = false;
    if (w.rendezvous.ready)
        engine_choose(w);
    return 0;
}
