// SPDX-License-Identifier: BSD-3-Clause
// Memory of a host whose bus addresses follow one another. That of rte_malloc() is made of pages
// that need not: an engine that goes on behind the end of one leaves the memory it was to copy.
#ifndef BENCH_HOST_DMA_MEMORY_HPP
#define BENCH_HOST_DMA_MEMORY_HPP

#include <cstddef>

#include <rte_memory.h>
#include <rte_memzone.h>

namespace bench
{

class DmaMemory
{
public:
    DmaMemory() = default;
    ~DmaMemory() { release(); }
    DmaMemory(const DmaMemory &) = delete;
    DmaMemory &operator=(const DmaMemory &) = delete;

    /// Zeros, from a page of 4 KiB on. One at a time in a process.
    /// @param bytes  that fit into a page of EAL's with some room to spare
    /// @return false: there is no such memory, rte_errno says why
    bool reserve(size_t bytes)
    {
        constexpr unsigned alignment = 4096;
        release();
        m_zone = rte_memzone_reserve_aligned("bench_dma", bytes, SOCKET_ID_ANY,
                                             RTE_MEMZONE_IOVA_CONTIG, alignment);
        return m_zone != nullptr;
    }

    void release()
    {
        if (m_zone != nullptr)
            rte_memzone_free(m_zone);
        m_zone = nullptr;
    }

    std::byte *data() const { return static_cast<std::byte *>(m_zone->addr); }
    rte_iova_t iova() const { return m_zone->iova; }

private:
    const rte_memzone *m_zone = nullptr;
};

} // namespace bench

#endif
