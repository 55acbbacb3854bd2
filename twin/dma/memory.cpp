// SPDX-License-Identifier: BSD-3-Clause
#include "dma/memory.hpp"

#include "plx_regs.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace plx::twin
{

namespace
{
constexpr uint32_t ranges_max = 65536;
constexpr uint64_t bus_end = uint64_t{1} << facts::dma_addr_bits;

/// Where the first range lies that ends above @p bus.
uint32_t position(const DmaMemory &memory, uint64_t bus)
{
    const DmaRange *const begin = memory.ranges;
    const DmaRange *const end = begin + memory.count;
    const DmaRange *const found = std::partition_point(
        begin, end, [bus](const DmaRange &r) { return r.bus + r.bytes <= bus; });
    return static_cast<uint32_t>(found - begin);
}

int make_room(DmaMemory *memory)
{
    if (memory->count < memory->capacity)
        return 0;
    if (memory->count == ranges_max)
        return -ENOSPC;
    const uint32_t capacity = std::max(64u, memory->capacity * 2);
    void *const bigger = realloc(memory->ranges, capacity * sizeof(DmaRange));
    if (bigger == nullptr)
        return -ENOMEM;
    memory->ranges = static_cast<DmaRange *>(bigger);
    memory->capacity = capacity;
    return 0;
}

int insert(DmaMemory *memory, const DmaRange &range)
{
    const uint32_t at = position(*memory, range.bus);
    if (at < memory->count && memory->ranges[at].bus < range.bus + range.bytes)
        return -EINVAL;
    const int error = make_room(memory);
    if (error != 0)
        return error;
    DmaRange *const place = memory->ranges + at;
    std::copy_backward(place, memory->ranges + memory->count, memory->ranges + memory->count + 1);
    *place = range;
    memory->count++;
    memory->version++;
    return 0;
}

// Writers first: engines that never rest must not keep a range from going.
int open_lock(pthread_rwlock_t *lock)
{
    pthread_rwlockattr_t attributes;
    if (pthread_rwlockattr_init(&attributes) != 0)
        return -ENOMEM;
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    const int error = pthread_rwlock_init(lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    return error == 0 ? 0 : -ENOMEM;
}

class Changed
{
public:
    explicit Changed(DmaMemory &memory) : lock_(&memory.lock) { pthread_rwlock_wrlock(lock_); }
    ~Changed() { pthread_rwlock_unlock(lock_); }
    Changed(const Changed &) = delete;
    Changed &operator=(const Changed &) = delete;

private:
    pthread_rwlock_t *lock_;
};
} // namespace

int dma_memory_open(DmaMemory *memory)
{
    return open_lock(&memory->lock);
}

void dma_memory_close(DmaMemory *memory)
{
    free(memory->ranges);
    pthread_rwlock_destroy(&memory->lock);
}

int dma_memory_add(DmaMemory *memory, const DmaRange &range)
{
    if (range.bytes == 0 || range.address == nullptr || range.bytes > bus_end ||
        range.bus > bus_end - range.bytes)
        return -EINVAL;
    Changed changed(*memory);
    return insert(memory, range);
}

int dma_memory_remove(DmaMemory *memory, uint64_t bus, uint64_t bytes, RangeKind kind)
{
    Changed changed(*memory);
    const uint32_t at = position(*memory, bus);
    if (at == memory->count || memory->ranges[at].bus != bus || memory->ranges[at].bytes != bytes ||
        memory->ranges[at].kind != kind)
        return -ENOENT;
    DmaRange *const gone = memory->ranges + at;
    std::copy(gone + 1, memory->ranges + memory->count, gone);
    memory->count--;
    memory->version++;
    return 0;
}

void dma_memory_move(DmaMemory *memory, uint64_t bus, uint8_t *address)
{
    Changed changed(*memory);
    const uint32_t at = position(*memory, bus);
    if (at == memory->count || memory->ranges[at].bus != bus)
        return;
    memory->ranges[at].address = address;
    memory->version++;
}

const DmaRange *dma_memory_find(const DmaMemory &memory, uint64_t bus)
{
    const uint32_t at = position(memory, bus);
    return at < memory.count && memory.ranges[at].covers(bus) ? memory.ranges + at : nullptr;
}

} // namespace plx::twin
