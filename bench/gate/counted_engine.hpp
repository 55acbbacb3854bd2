// SPDX-License-Identifier: BSD-3-Clause
// A DMA channel of a device of its own, as a standard dmadev, and memory to copy within: what the
// instructions of a copy are counted on.
#ifndef BENCH_GATE_COUNTED_ENGINE_HPP
#define BENCH_GATE_COUNTED_ENGINE_HPP

#include <cstdint>

#include "host/dma_memory.hpp"

namespace gate
{

/// Of a device that has no peer, so that what the others count is the same with it.
inline constexpr const char *engine_device = "raw_plx_ntb2";

class Engine
{
public:
    Engine(); ///< starts the dmadev
    ~Engine();
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;

    /// Prepares @p n copies of @p bytes each, to one place.
    int copy(uint16_t n, uint32_t bytes) const;
    /// Starts what was prepared. On the twin all of it is done then.
    int submit() const;
    /// @return copies that were done
    int completed(uint16_t n) const;

    static constexpr uint32_t bytes_max = 256;

private:
    int16_t m_dev = -1;
    bench::DmaMemory m_memory;
};

} // namespace gate

#endif
