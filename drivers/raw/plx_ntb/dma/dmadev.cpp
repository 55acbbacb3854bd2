// SPDX-License-Identifier: BSD-3-Clause
#include "dma/dmadev.hpp"

#include <cerrno>
#include <cinttypes>
#include <new>

#include <rte_alarm.h>
#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_dmadev_pmd.h>

#include <locked.hpp>

#include "sync/clock.hpp"
#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

constexpr uint32_t copies_min = 16;
constexpr unsigned tick_us = 10'000;
constexpr unsigned stop_tries = 200;
constexpr unsigned stop_wait_us = 200;

rte_dma_status_code status_of(DmaOutcome outcome)
{
    switch (outcome) {
    case DmaOutcome::ok:
        return RTE_DMA_STATUS_SUCCESSFUL;
    case DmaOutcome::read_failed:
        return RTE_DMA_STATUS_BUS_READ_ERROR;
    case DmaOutcome::write_failed:
        return RTE_DMA_STATUS_BUS_WRITE_ERROR;
    case DmaOutcome::not_tried:
        return RTE_DMA_STATUS_NOT_ATTEMPTED;
    case DmaOutcome::unknown:
    case DmaOutcome::pending:
        break;
    }
    return RTE_DMA_STATUS_ERROR_UNKNOWN;
}

} // namespace

void report_seen(const char *device, unsigned channel, const DmaQueue &queue, DmaQueue::Seen seen)
{
    if (seen == DmaQueue::Seen::stalled)
        PLX_LOG(WARNING,
                "%s: DMA channel %u stalled with copies pending (last descriptor at 0x%08x): "
                "started again, %u times so far\n",
                device, channel, queue.last_seen(), queue.stalls());
    if (seen == DmaQueue::Seen::given_up)
        PLX_LOG(ERR,
                "%s: DMA channel %u hangs, or does not answer: it is cut off from the bus, its "
                "pending copies are reported as failed\n",
                device, channel);
}

Dmadev::Dmadev(const DmadevSetup &setup, const char *name, Dmadev **slot)
    : channel_(setup.channel), slot_(slot), index_(setup.index), node_(setup.node)
{
    std::snprintf(device_, sizeof(device_), "%s", setup.device);
    std::snprintf(name_, sizeof(name_), "%s", name);
}

Dmadev *Dmadev::self(const rte_dma_dev *dev)
{
    return static_cast<Dmadev *>(dev->data->dev_private);
}

int Dmadev::create(const DmadevSetup &setup, Dmadev **slot)
{
    static const rte_dma_dev_ops ops = {.dev_info_get = info_get,
                                        .dev_configure = configure,
                                        .dev_start = start,
                                        .dev_stop = stop,
                                        .dev_close = close,
                                        .vchan_setup = vchan_setup,
                                        .stats_get = stats_get,
                                        .stats_reset = stats_reset,
                                        .vchan_status = vchan_status,
                                        .dev_dump = dump};
    char name[RTE_DEV_NAME_MAX_LEN];
    std::snprintf(name, sizeof(name), "%.50s_dma%u", setup.device, setup.index);
    rte_dma_dev *dev = rte_dma_pmd_allocate(name, setup.node, sizeof(Dmadev));
    if (dev == nullptr) {
        PLX_INIT_LOG(ERR, "%s: no dmadev %s: the name is taken, or there is no room for more\n",
                     setup.device, name);
        return -ENOMEM;
    }
    auto *made = new (dev->data->dev_private) Dmadev(setup, name, slot);
    dev->device = setup.parent;
    dev->dev_ops = &ops;
    dev->fp_obj->dev_private = made;
    dev->fp_obj->copy = copy;
    // copy_sg and fill remain the library's stubs, which refuse.
    dev->fp_obj->submit = submit;
    dev->fp_obj->completed = completed;
    dev->fp_obj->completed_status = completed_status;
    dev->fp_obj->burst_capacity = burst_capacity;
    dev->state = RTE_DMA_DEV_READY;
    *slot = made;
    return 0;
}

void Dmadev::destroy(Dmadev **slot)
{
    (*slot)->halt();
    char name[sizeof((*slot)->name_)];
    std::snprintf(name, sizeof(name), "%s", (*slot)->name_);
    rte_dma_pmd_release(name); // closes it
}

void Dmadev::halt()
{
    if (started())
        rte_dma_stop(static_cast<int16_t>(rte_dma_get_dev_id_by_name(name_)));
}

// ---- control

int Dmadev::info_get(const rte_dma_dev *dev, rte_dma_info *info, uint32_t)
{
    info->dev_name = dev->data->dev_name;
    info->dev_capa = RTE_DMA_CAPA_MEM_TO_MEM | RTE_DMA_CAPA_OPS_COPY | RTE_DMA_CAPA_HANDLES_ERRORS;
    info->max_vchans = 1;
    info->max_desc = DmaQueue::copies_max;
    info->min_desc = copies_min;
    return 0;
}

int Dmadev::configure(rte_dma_dev *, const rte_dma_conf *, uint32_t)
{
    return 0; // the library has compared it with info_get()
}

int Dmadev::vchan_setup(rte_dma_dev *dev, uint16_t, const rte_dma_vchan_conf *conf, uint32_t)
{
    Dmadev *d = self(dev);
    d->copies_ = 0;
    const int rc = d->ring_.reserve(d->name_, d->node_, DmaQueue::slots_for(conf->nb_desc));
    if (rc == 0)
        d->copies_ = conf->nb_desc;
    return rc;
}

int Dmadev::start(rte_dma_dev *dev)
{
    Dmadev *d = self(dev);
    if (d->copies_ == 0) {
        PLX_LOG(ERR, "%s: its virtual channel is not set up\n", d->name_);
        return -EINVAL;
    }
    hw::Refusal why;
    const int rc =
        d->queue_.open(d->channel_, d->ring_.memory(), d->copies_, monotonic_us, nullptr, &why);
    if (rc != 0) {
        PLX_LOG(ERR, "%s: the engine cannot be used: expected %s (found 0x%" PRIx64 ")\n", d->name_,
                why.what, why.found);
        return rc;
    }
    d->submitted_mark_ = 0;
    d->started_.store(true, std::memory_order_release);
    if (d->arm())
        return 0;
    stop(dev);
    return -ENOMEM;
}

/// Drops outstanding copies: the application cannot ask for them any more.
int Dmadev::stop(rte_dma_dev *dev)
{
    Dmadev *d = self(dev);
    d->started_.store(false, std::memory_order_release);
    rte_eal_alarm_cancel(on_tick, d);
    // No tick is under way, but EAL's alarms promise no order: what the last one read is read, so
    // the memory may become another's. Pairs with on_tick().
    d->ticks_.load(std::memory_order_acquire);
    const ntb::Locked locked(d->mutex_);
    for (unsigned i = 0; i < stop_tries && !d->queue_.close(); ++i)
        rte_delay_us_sleep(stop_wait_us);
    return 0;
}

int Dmadev::close(rte_dma_dev *dev)
{
    Dmadev *d = self(dev);
    *d->slot_ = nullptr;
    d->~Dmadev();
    return 0;
}

bool Dmadev::arm()
{
    const int rc = rte_eal_alarm_set(tick_us, on_tick, this);
    if (rc != 0)
        PLX_LOG(CRIT, "%s: EAL sets no alarm: its engine is not watched\n", name_);
    return rc == 0;
}

bool Dmadev::watch()
{
    // Pairs with start(), so that the lock is seen initialized; EAL's alarms promise no order.
    if (!started_.load(std::memory_order_acquire))
        return false;
    const ntb::Locked locked(mutex_);
    const bool started = started_.load(std::memory_order_relaxed);
    if (started)
        report_seen(name_, index_, queue_, queue_.watch());
    return started;
}

void Dmadev::on_tick(void *arg)
{
    auto *d = static_cast<Dmadev *>(arg);
    if (d->watch())
        d->arm();
    d->ticks_.fetch_add(1, std::memory_order_release); // the last access; pairs with stop()
}

int Dmadev::stats_get(const rte_dma_dev *dev, uint16_t, rte_dma_stats *stats, uint32_t)
{
    const Dmadev *d = self(dev);
    const auto since = [](const Count &count, uint64_t base) {
        return count.value.load(std::memory_order_relaxed) - base;
    };
    stats->submitted = since(d->submitted_, d->base_.submitted);
    stats->completed = since(d->completed_, d->base_.completed);
    stats->errors = since(d->errors_, d->base_.errors);
    return 0;
}

int Dmadev::stats_reset(rte_dma_dev *dev, uint16_t)
{
    Dmadev *d = self(dev);
    d->base_ = {.submitted = d->submitted_.value.load(std::memory_order_relaxed),
                .completed = d->completed_.value.load(std::memory_order_relaxed),
                .errors = d->errors_.value.load(std::memory_order_relaxed)};
    return 0;
}

int Dmadev::vchan_status(const rte_dma_dev *dev, uint16_t, enum rte_dma_vchan_status *status)
{
    Dmadev *d = self(dev);
    if (d->queue_.failed())
        *status = RTE_DMA_VCHAN_HALTED_ERROR;
    else
        *status = d->queue_.idle() ? RTE_DMA_VCHAN_IDLE : RTE_DMA_VCHAN_ACTIVE;
    return 0;
}

int Dmadev::dump(const rte_dma_dev *dev, FILE *file)
{
    const Dmadev *d = self(dev);
    const hw::DmaChannel::Status status = d->channel_->status();
    std::fprintf(file, "%s of %s: %s\n", d->name_, d->device_,
                 !status.answers      ? "does not answer"
                 : status.in_progress ? "at work"
                                      : "at rest");
    if (d->started())
        std::fprintf(file,
                     "  copies: %" PRIu64 " given, %" PRIu64 " collected, at most %u under way\n",
                     d->queue_.given(), d->queue_.collected(), d->queue_.capacity());
    std::fprintf(file, "  last descriptor at 0x%08x; stalls: %u%s\n", status.last,
                 d->queue_.stalls(), d->started() && d->queue_.failed() ? "; abandoned" : "");
    return 0;
}

// ---- data path: one lcore

void Dmadev::submit_all()
{
    submitted_.add(queue_.given() - submitted_mark_);
    submitted_mark_ = queue_.given();
    queue_.start();
}

int Dmadev::copy(void *dev, uint16_t, rte_iova_t src, rte_iova_t dst, uint32_t length,
                 uint64_t flags)
{
    auto *d = static_cast<Dmadev *>(dev);
    if (unlikely(d->queue_.room() == 0))
        return -ENOSPC;
    if (unlikely(length > facts::dma_xfer_bytes_max || src >= hw::dma_address_end ||
                 dst >= hw::dma_address_end))
        return -EINVAL;
    if (unlikely(d->queue_.failed()))
        return -EIO;
    const auto index = static_cast<uint16_t>(d->queue_.given());
    d->queue_.copy(src, dst, length, (flags & RTE_DMA_OP_FLAG_FENCE) != 0);
    if ((flags & RTE_DMA_OP_FLAG_SUBMIT) != 0)
        d->submit_all();
    return index;
}

int Dmadev::submit(void *dev, uint16_t)
{
    static_cast<Dmadev *>(dev)->submit_all();
    return 0;
}

uint16_t Dmadev::completed(void *dev, uint16_t, uint16_t most, uint16_t *last, bool *has_error)
{
    auto *d = static_cast<Dmadev *>(dev);
    uint32_t n = d->queue_.collect_good(most);
    DmaOutcome outcome = DmaOutcome::pending;
    while (n < most && (outcome = d->queue_.outcome()) == DmaOutcome::ok)
        n += d->queue_.collect_good(most - n);
    *has_error = n < most && outcome != DmaOutcome::pending;
    *last = static_cast<uint16_t>(d->queue_.collected() - 1);
    d->completed_.add(n);
    return static_cast<uint16_t>(n);
}

uint16_t Dmadev::completed_status(void *dev, uint16_t, uint16_t most, uint16_t *last,
                                  rte_dma_status_code *status)
{
    auto *d = static_cast<Dmadev *>(dev);
    uint16_t n = 0;
    uint16_t errors = 0;
    while (n < most) {
        const DmaOutcome outcome = d->queue_.outcome();
        if (outcome == DmaOutcome::pending)
            break;
        status[n++] = status_of(outcome);
        errors = static_cast<uint16_t>(errors + (outcome != DmaOutcome::ok));
        d->queue_.collect();
    }
    *last = static_cast<uint16_t>(d->queue_.collected() - 1);
    d->completed_.add(n);
    d->errors_.add(errors);
    return n;
}

uint16_t Dmadev::burst_capacity(const void *dev, uint16_t)
{
    return static_cast<uint16_t>(static_cast<const Dmadev *>(dev)->queue_.room());
}

} // namespace plx::pmd
