// SPDX-License-Identifier: BSD-3-Clause
// A DMA channel as a standard rte_dmadev.
#ifndef PLX_NTB_DMA_DMADEV_HPP
#define PLX_NTB_DMA_DMADEV_HPP

#include <atomic>
#include <cstdio>

#include <pthread.h>
#include <rte_dmadev.h>

#include "dma/queue.hpp"
#include "dma/ring_memory.hpp"

struct rte_device;
struct rte_dma_dev;

namespace plx::pmd
{

struct DmadevSetup {
    const char *device; ///< rawdev
    unsigned index;     ///< of the dmadevs of that device
    rte_device *parent;
    int node;
    hw::DmaChannel *channel; ///< opened
};

/// Logs what watch() has found, if anything.
void report_seen(const char *device, unsigned channel, const DmaQueue &queue, DmaQueue::Seen seen);

class Dmadev
{
public:
    /// @param slot set to the device; NULL again once it is closed, also by the application
    /// @return 0; -ENOMEM no dmadev, or the name is taken; logged
    static int create(const DmadevSetup &setup, Dmadev **slot);
    /// Stops it, if need be, and releases it.
    static void destroy(Dmadev **slot);
    /// As rte_dma_stop(), if it is started.
    void halt();
    bool started() const { return started_.load(std::memory_order_relaxed); }

private:
    Dmadev(const DmadevSetup &setup, const char *name, Dmadev **slot);

    static Dmadev *self(const rte_dma_dev *dev);
    // Operations of rte_dmadev.
    static int info_get(const rte_dma_dev *dev, rte_dma_info *info, uint32_t size);
    static int configure(rte_dma_dev *dev, const rte_dma_conf *conf, uint32_t size);
    static int vchan_setup(rte_dma_dev *dev, uint16_t vchan, const rte_dma_vchan_conf *conf,
                           uint32_t size);
    static int start(rte_dma_dev *dev);
    static int stop(rte_dma_dev *dev);
    static int close(rte_dma_dev *dev);
    static int stats_get(const rte_dma_dev *dev, uint16_t vchan, rte_dma_stats *stats,
                         uint32_t size);
    static int stats_reset(rte_dma_dev *dev, uint16_t vchan);
    static int vchan_status(const rte_dma_dev *dev, uint16_t vchan,
                            enum rte_dma_vchan_status *status);
    static int dump(const rte_dma_dev *dev, FILE *file);
    // Its data path.
    static int copy(void *dev, uint16_t vchan, rte_iova_t src, rte_iova_t dst, uint32_t length,
                    uint64_t flags);
    static int submit(void *dev, uint16_t vchan);
    static uint16_t completed(void *dev, uint16_t vchan, uint16_t most, uint16_t *last,
                              bool *has_error);
    static uint16_t completed_status(void *dev, uint16_t vchan, uint16_t most, uint16_t *last,
                                     rte_dma_status_code *status);
    static uint16_t burst_capacity(const void *dev, uint16_t vchan);

    static void on_tick(void *arg);
    bool arm();
    bool watch();
    void submit_all();

    /// A counter of the using lcore, read by any thread: a plain add.
    struct Count {
        std::atomic<uint64_t> value{0};
        void add(uint64_t n)
        {
            value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
        }
    };

    DmaQueue queue_;
    /// Guards the control side: the tick against start and stop.
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    Count submitted_, completed_, errors_;
    uint64_t submitted_mark_ = 0; ///< of queue_.given()
    hw::DmaChannel *channel_;
    DmaRingMemory ring_;
    Dmadev **slot_;
    rte_dma_stats base_ = {}; ///< at the last reset
    std::atomic<bool> started_{false};
    std::atomic<uint32_t> ticks_{0}; // that have ended
    uint32_t copies_ = 0;            ///< as set up; 0: not
    unsigned index_;
    int node_;
    char device_[64];
    char name_[64];
};

} // namespace plx::pmd

#endif
