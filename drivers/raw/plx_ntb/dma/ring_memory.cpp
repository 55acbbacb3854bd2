// SPDX-License-Identifier: BSD-3-Clause
#include "dma/ring_memory.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>

#include <rte_errno.h>
#include <rte_memzone.h>

#include "sync/log.hpp"

namespace plx::pmd
{

int DmaRingMemory::reserve(const char *device, int node, uint32_t slots)
{
    release();
    // A device's name may be longer than a memzone's.
    static std::atomic<unsigned> rings{0};
    char name[RTE_MEMZONE_NAMESIZE];
    std::snprintf(name, sizeof(name), "plx_dma_ring_%u",
                  rings.fetch_add(1, std::memory_order_relaxed));
    const size_t bytes = DmaQueue::memory_bytes(slots);
    zone_ =
        rte_memzone_reserve_aligned(name, bytes, node, RTE_MEMZONE_IOVA_CONTIG, hw::dma_ring_align);
    // EAL aligns the virtual address; no page is smaller than the alignment, so the bus address is
    // aligned, too.
    if (zone_ != nullptr && zone_->iova % hw::dma_ring_align == 0)
        return 0;
    PLX_INIT_LOG(ERR, "%s: no memory for a descriptor ring of %zu bytes on node %d: %s\n", device,
                 bytes, node, rte_strerror(rte_errno));
    release();
    return -ENOMEM;
}

void DmaRingMemory::release()
{
    if (zone_ != nullptr)
        rte_memzone_free(zone_);
    zone_ = nullptr;
}

DmaMemory DmaRingMemory::memory() const
{
    return {static_cast<std::byte *>(zone_->addr), zone_->iova};
}

} // namespace plx::pmd
