// SPDX-License-Identifier: BSD-3-Clause
// The DMA channels of a device, and their users: a queue pair or a dmadev each.
#ifndef PLX_NTB_DMA_CHANNELS_HPP
#define PLX_NTB_DMA_CHANNELS_HPP

#include <atomic>
#include <memory>

#include "dma/queue.hpp"
#include "dma/ring_memory.hpp"
#include "hw/dma.hpp"
#include "platform/platform.hpp"
#include "queue/engine.hpp"

struct rte_device;

namespace plx::pmd
{

class Dmadev;

/// How often engines of queue pairs stalled with work pending, and were abandoned.
struct DmaCounts {
    std::atomic<uint64_t> stalls{0}, given_up{0};
};

class DmaChannels
{
public:
    DmaChannels() = default;
    ~DmaChannels() { close(); }
    DmaChannels(const DmaChannels &) = delete;
    DmaChannels &operator=(const DmaChannels &) = delete;

    /// Opens the channels of @p platform; a dead one is skipped and logged. The last @p dmadevs of
    /// the others become dmadevs, named <device>_dma0 and so on.
    /// @param shares the chip's assignment of its channels
    /// @param for_queues at most so many of the rest are engines of queue pairs
    /// @return 0; -ENODEV fewer than @p dmadevs channels live; -ENOMEM; logged
    int open(const char *device, rte_device *parent, const Platform &platform,
             const hw::DmaShares &shares, unsigned for_queues, unsigned dmadevs);
    /// Stops and releases everything, also dmadevs that are in use.
    void close();

    /// Channels available to queue pairs.
    unsigned engines() const { return engines_; }
    /// Why there are no more channels. After open().
    const char *why_few() const { return why_few_; }
    /// At the device's removal, also while they are used.
    void stop_dmadevs();
    /// Dmadevs that are started.
    unsigned busy_dmadevs() const;
    /// The engine for one sending half; allocates its ring at the first call. Control side.
    /// @return NULL: none, or it is not usable, logged
    const queue::Engine *engine(unsigned index);
    /// Once in a control tick of the device.
    void watch();
    DmaCounts &counts() { return counts_; }

private:
    struct Entry {
        hw::DmaChannel channel;
        unsigned number = 0; ///< as the chip counts
        DmaRingMemory ring;
        std::unique_ptr<DmaQueue> queue;
        queue::Engine engine;
        Dmadev *dmadev = nullptr;
        bool refused = false;
    };
    void open_channels(const Platform &platform, const hw::DmaShares &shares);
    void explain(const Platform &platform, const hw::DmaShares &shares);
    int open_engine(Entry *entry);

    char device_[64] = "";
    char why_few_[128] = "";
    int node_ = -1;
    Entry entries_[facts::dma_function_count];
    unsigned live_ = 0;
    unsigned engines_ = 0;
    DmaCounts counts_;
};

} // namespace plx::pmd

#endif
