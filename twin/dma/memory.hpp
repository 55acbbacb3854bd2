// SPDX-License-Identifier: BSD-3-Clause
// What a DMA engine finds on its host's bus: local memory that was mapped for it, exposed memory,
// and the windows' BARs.
#ifndef PLX_TWIN_DMA_MEMORY_HPP
#define PLX_TWIN_DMA_MEMORY_HPP

#include <cstdint>
#include <pthread.h>

namespace plx::twin
{

/// Whose a range is, and so who may take it away.
enum class RangeKind : uint8_t { mapped, block, window };

struct DmaRange {
    uint64_t bus = 0;
    uint64_t bytes = 0;
    uint8_t *address = nullptr;
    RangeKind kind = RangeKind::mapped;
    uint8_t window = 0; ///< of a window: index into window_bars

    bool covers(uint64_t at) const { return at >= bus && at - bus < bytes; }
};

/// Sorted, without overlaps. Engines hold the lock for reading while they use what they found, so a
/// range that is gone is not in use.
struct DmaMemory {
    pthread_rwlock_t lock;
    DmaRange *ranges = nullptr;
    uint32_t count = 0;
    uint32_t capacity = 0;
    uint64_t version = 0; ///< changes with every change
};

/// @return 0 or -ENOMEM
int dma_memory_open(DmaMemory *memory);
void dma_memory_close(DmaMemory *memory);
/// @return 0; -EINVAL empty, above 48 bits, overlapping; -ENOSPC; -ENOMEM
int dma_memory_add(DmaMemory *memory, const DmaRange &range);
/// Takes back the range of @p kind that begins at @p bus and has @p bytes.
/// @return 0 or -ENOENT
int dma_memory_remove(DmaMemory *memory, uint64_t bus, uint64_t bytes, RangeKind kind);
/// The range that begins at @p bus lies at another address from now on.
void dma_memory_move(DmaMemory *memory, uint64_t bus, uint8_t *address);
/// Under the lock. @return NULL where nothing answers
const DmaRange *dma_memory_find(const DmaMemory &memory, uint64_t bus);

class DmaMemoryUsed
{
public:
    explicit DmaMemoryUsed(DmaMemory &memory) : lock_(&memory.lock)
    {
        pthread_rwlock_rdlock(lock_);
    }
    ~DmaMemoryUsed() { pthread_rwlock_unlock(lock_); }
    DmaMemoryUsed(const DmaMemoryUsed &) = delete;
    DmaMemoryUsed &operator=(const DmaMemoryUsed &) = delete;

private:
    pthread_rwlock_t *lock_;
};

} // namespace plx::twin

#endif
