// SPDX-License-Identifier: BSD-3-Clause
#include "dma/copy_paths.hpp"

#include <algorithm>
#include <cerrno>

#include <rte_malloc.h>

#include "dma/copy_measure.hpp"
#include "queue/wire.hpp"
#include "sync/clock.hpp"
#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

/// Staging memory of all engines, aligned to its size: so it lies in one hugepage and is contiguous
/// in IOVAs.
constexpr size_t staging_all = CopyPaths::engines_max * queue::staging_bytes;
static_assert((staging_all & (staging_all - 1)) == 0 && wire::scratch_bytes <= staging_all);

} // namespace

int CopyPaths::add_engine(const queue::Engine &engine)
{
    if (count_ == engines_max)
        return -1;
    engines_[count_] = engine;
    return static_cast<int>(count_++);
}

int CopyPaths::make_staging(const char *device, int node)
{
    if (count_ == 0 || staging_ != nullptr)
        return 0;
    staging_ =
        static_cast<std::byte *>(rte_zmalloc_socket("plx_staging", staging_all, staging_all, node));
    if (staging_ != nullptr)
        return 0;
    PLX_INIT_LOG(ERR, "%s: no memory to stage the header lines of %u DMA channels\n", device,
                 count_);
    return -ENOMEM;
}

void CopyPaths::drop()
{
    rte_free(staging_);
    staging_ = nullptr;
}

void CopyPaths::choose(const CopyRequest &request, const queue::Ops &ops, std::byte *window,
                       uint64_t window_bus, uint32_t inline_max, unsigned queues)
{
    const unsigned usable = window_bus != 0 ? std::min(count_, queues) : 0;
    window_bus_ = window_bus;
    unsigned ready = 0;
    for (unsigned i = 0; i < count_; ++i) {
        const queue::Engine &e = engines_[i];
        ready_[i] = i < usable && e.halt(e.ctx) && !e.failed(e.ctx);
        ready += ready_[i];
    }
    if (ready_[0] && !measured_ && wants_measuring(request))
        measure(ops, window, window_bus);
    choice_ = choose_copy(request, measured_curve_, inline_max, ready);
}

void CopyPaths::measure(const queue::Ops &ops, std::byte *window, uint64_t window_bus)
{
    const queue::Engine &e = engines_[0];
    measured_ = true;
    measured_curve_ = measure_copy({.cpu = ops.copy,
                                    .engine = e,
                                    .to = window + wire::scratch_offset,
                                    .to_bus = window_bus + wire::scratch_offset,
                                    .from = staging_,
                                    .from_iova = rte_malloc_virt2iova(staging_),
                                    .piece = wire::scratch_bytes,
                                    .now_ns = timer_ns});
    ready_[0] = e.halt(e.ctx) && !e.failed(e.ctx);
}

queue::EngineSetup CopyPaths::setup(unsigned queue, const rte_mempool *window_pool) const
{
    if (choice_.dma_min == 0 || queue >= count_ || !ready_[queue])
        return {};
    const size_t at = queue * queue::staging_bytes;
    return {.engine = engines_[queue],
            .peer_block = window_bus_,
            .staging = staging_ + at,
            .staging_iova = rte_malloc_virt2iova(staging_) + at,
            .min_bytes = choice_.dma_min,
            .window_pool = window_pool};
}

bool CopyPaths::failed(unsigned queue) const
{
    return queue < count_ && ready_[queue] && engines_[queue].failed(engines_[queue].ctx);
}

} // namespace plx::pmd
