// SPDX-License-Identifier: BSD-3-Clause
#ifndef PLX_NTB_DMA_RING_MEMORY_HPP
#define PLX_NTB_DMA_RING_MEMORY_HPP

#include <cstdint>

#include "dma/queue.hpp"

struct rte_memzone;

namespace plx::pmd
{

/// Memory of a descriptor ring: a memzone on the node of the card.
class DmaRingMemory
{
public:
    DmaRingMemory() = default;
    ~DmaRingMemory() { release(); }
    DmaRingMemory(const DmaRingMemory &) = delete;
    DmaRingMemory &operator=(const DmaRingMemory &) = delete;

    /// @return 0; -ENOMEM, logged
    int reserve(const char *device, int node, uint32_t slots);
    void release();
    DmaMemory memory() const;

private:
    const rte_memzone *zone_ = nullptr;
};

} // namespace plx::pmd

#endif
