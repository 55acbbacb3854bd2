// SPDX-License-Identifier: BSD-3-Clause
// The copy engines of a device's queue pairs.
#ifndef PLX_NTB_DMA_COPY_PATHS_HPP
#define PLX_NTB_DMA_COPY_PATHS_HPP

#include <cstddef>
#include <cstdint>

#include "dma/copy_choice.hpp"
#include "queue/queue.hpp"

namespace plx::pmd
{

/// Control side only. Queue pair q has engine q: an engine processes one ring in order, so it
/// belongs to one sending half; queue pairs beyond the last engine have none.
class CopyPaths
{
public:
    static constexpr unsigned engines_max = 4; ///< channels of the chip

    /// Adds an engine for the life of the device. @return its queue pair; -1: no room
    int add_engine(const queue::Engine &engine);
    /// Allocates local memory for header lines, once. @param node NUMA node
    /// @return 0; -ENOMEM
    int make_staging(const char *device, int node);
    void drop();

    /// Before queue pairs are opened: halts the engines, measures once in the life of the device if
    /// needed, and chooses.
    /// @param window      the peer's block
    /// @param window_bus  as the engines address it; 0: they do not reach it
    void choose(const CopyRequest &request, const queue::Ops &ops, std::byte *window,
                uint64_t window_bus, uint32_t inline_max, unsigned queues);
    /// The engine of a queue pair by choose(); without one, engine.copy is NULL.
    /// @param window_pool of the device; its IOVAs are valid for the engines
    queue::EngineSetup setup(unsigned queue, const rte_mempool *window_pool) const;
    /// Whether the engine of a queue pair has failed since. Any thread.
    bool failed(unsigned queue) const;
    const CopyChoice &choice() const { return choice_; }
    unsigned engines() const { return count_; }

private:
    void measure(const queue::Ops &ops, std::byte *window, uint64_t window_bus);

    queue::Engine engines_[engines_max];
    bool ready_[engines_max] = {}; ///< halted when the queue pairs were opened
    std::byte *staging_ = nullptr; ///< of all engines, one after the other
    unsigned count_ = 0;
    uint64_t window_bus_ = 0;
    bool measured_ = false;
    CopyCurve measured_curve_;
    CopyChoice choice_;
};

} // namespace plx::pmd

#endif
