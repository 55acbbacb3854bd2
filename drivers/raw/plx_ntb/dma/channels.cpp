// SPDX-License-Identifier: BSD-3-Clause
#include "dma/channels.hpp"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <new>

#include <rte_cycles.h>

#include "dma/dmadev.hpp"
#include "sync/clock.hpp"
#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{
/// Outstanding copies of a queue pair: two messages of 1 MiB in buffers of 2 KiB.
constexpr uint32_t engine_copies = 1008;
/// Halting takes about 20 ms at most.
constexpr unsigned close_tries = 200;
constexpr unsigned close_wait_us = 200;

void say_unused(const char *device, unsigned channel, const hw::Refusal &why)
{
    PLX_INIT_LOG(ERR, "%s: DMA channel %u is not used: expected %s (found 0x%" PRIx64 ")\n", device,
                 channel, why.what, why.found);
}
} // namespace

int DmaChannels::open(const char *device, rte_device *parent, const Platform &platform,
                      const hw::DmaShares &shares, unsigned for_queues, unsigned dmadevs)
{
    std::snprintf(device_, sizeof(device_), "%s", device);
    node_ = platform.node;
    open_channels(platform, shares);
    explain(platform, shares);
    if (live_ < dmadevs) {
        PLX_INIT_LOG(ERR, "%s: dmadev=%u: %u DMA channels can be used: %s\n", device_, dmadevs,
                     live_, why_few_);
        return -ENODEV;
    }
    engines_ = std::min(live_ - dmadevs, for_queues);
    for (unsigned i = 0; i < dmadevs; ++i) {
        Entry &entry = entries_[live_ - dmadevs + i];
        const DmadevSetup setup{.device = device_,
                                .index = i,
                                .parent = parent,
                                .node = node_,
                                .channel = &entry.channel};
        const int rc = Dmadev::create(setup, &entry.dmadev);
        if (rc != 0) {
            close();
            return rc;
        }
    }
    return 0;
}

void DmaChannels::explain(const Platform &platform, const hw::DmaShares &shares)
{
    if (platform.dma_channels != 0)
        std::snprintf(why_few_, sizeof(why_few_), "of %u on this side of the chip, %u live",
                      platform.dma_channels, live_);
    else if (shares.shown == 0)
        std::snprintf(why_few_, sizeof(why_few_), "no DMA function was found on this side");
    else if (shares.own == 0)
        std::snprintf(why_few_, sizeof(why_few_),
                      "its EEPROM gives all %u of the chip to other ports (1FC is 0x%08x)",
                      shares.shown, shares.assigned);
    else
        std::snprintf(why_few_, sizeof(why_few_),
                      "%u of the chip are this side's, but none is bound for DPDK (10b5:87d0)",
                      shares.own);
    if (live_ == 0)
        PLX_INIT_LOG(INFO, "%s: no DMA channel: %s\n", device_, why_few_);
}

void DmaChannels::open_channels(const Platform &platform, const hw::DmaShares &shares)
{
    const unsigned sharing = std::max(shares.shown, platform.dma_channels);
    for (unsigned i = 0; i < platform.dma_channels; ++i) {
        hw::Refusal why;
        Entry &entry = entries_[live_];
        const int rc = entry.channel.open(platform.dma[i], sharing, &why);
        entry.number = i;
        if (rc == 0)
            ++live_;
        else
            say_unused(device_, i, why);
    }
}

void DmaChannels::stop_dmadevs()
{
    for (Entry &entry : entries_)
        if (entry.dmadev != nullptr)
            entry.dmadev->halt();
}

void DmaChannels::close()
{
    for (unsigned i = 0; i < live_; ++i) {
        Entry &entry = entries_[i];
        if (entry.dmadev != nullptr)
            Dmadev::destroy(&entry.dmadev);
        if (entry.queue == nullptr)
            continue;
        for (unsigned t = 0; t < close_tries && !entry.queue->close(); ++t)
            rte_delay_us_sleep(close_wait_us);
        entry.queue.reset();
        entry.ring.release();
    }
    live_ = engines_ = 0;
}

unsigned DmaChannels::busy_dmadevs() const
{
    return static_cast<unsigned>(std::count_if(entries_, entries_ + live_, [](const Entry &entry) {
        return entry.dmadev != nullptr && entry.dmadev->started();
    }));
}

int DmaChannels::open_engine(Entry *entry)
{
    entry->queue.reset(new (std::nothrow) DmaQueue);
    if (entry->queue == nullptr)
        return -ENOMEM;
    int rc = entry->ring.reserve(device_, node_, DmaQueue::slots_for(engine_copies));
    if (rc != 0)
        return rc;
    hw::Refusal why;
    rc = entry->queue->open(&entry->channel, entry->ring.memory(), engine_copies, monotonic_us,
                            nullptr, &why);
    if (rc != 0)
        say_unused(device_, entry->number, why);
    return rc;
}

const queue::Engine *DmaChannels::engine(unsigned index)
{
    if (index >= engines_ || entries_[index].refused)
        return nullptr;
    Entry &entry = entries_[index];
    if (entry.queue == nullptr && open_engine(&entry) != 0) {
        entry.queue.reset();
        entry.ring.release();
        entry.refused = true;
        return nullptr;
    }
    entry.engine = entry.queue->engine();
    return &entry.engine;
}

void DmaChannels::watch()
{
    for (unsigned i = 0; i < engines_; ++i) {
        Entry &entry = entries_[i];
        if (entry.queue == nullptr)
            continue;
        const DmaQueue::Seen seen = entry.queue->watch();
        report_seen(device_, entry.number, *entry.queue, seen);
        counts_.stalls += seen == DmaQueue::Seen::stalled;
        counts_.given_up += seen == DmaQueue::Seen::given_up;
    }
}

} // namespace plx::pmd
