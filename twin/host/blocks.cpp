// SPDX-License-Identifier: BSD-3-Clause
// The memory that a host exposes: twin::memory_add() and memory_remove().
#include "host/follow.hpp"
#include "host/host.hpp"
#include "twin.hpp"

#include <cerrno>

namespace plx::twin
{

namespace
{
/// @return whether there was a slot for it
bool expose(Host &host, const Block &block)
{
    Locked locked(host);
    for (Block &slot : host.blocks) {
        if (slot.base != nullptr)
            continue;
        slot = block;
        follow(host);
        host.ops->update_peer(host);
        return true;
    }
    return false;
}

DmaRange dma_range(const Block &block)
{
    return {reinterpret_cast<uintptr_t>(block.base), block.bytes,
            static_cast<uint8_t *>(block.base), RangeKind::block, 0};
}
} // namespace

int memory_add(Host *host, size_t bytes, int numa_node, bool want_huge, Memory *out)
{
    if (bytes < size_t{1} << 20 || bytes > size_t{1} << 30 || (bytes & (bytes - 1)) != 0)
        return -EINVAL;
    Block block;
    int error = block_create(bytes, numa_node, want_huge, &block);
    if (error != 0)
        return error;
    const DmaRange range = dma_range(block);
    error = dma_memory_add(&host->dma_memory, range);
    if (error == 0 && expose(*host, block)) {
        *out = {block.base, range.bus, bytes, block.page_bytes};
        return 0;
    }
    if (error == 0)
        dma_memory_remove(&host->dma_memory, range.bus, range.bytes, range.kind);
    block_destroy(&block);
    return error == 0 ? -ENOSPC : error;
}

int memory_remove(Host *host, const Memory &memory)
{
    // The engines first: they hold their lock while they ask for the host's.
    if (dma_memory_remove(&host->dma_memory, memory.bus, memory.bytes, RangeKind::block) != 0)
        return -ENOENT;
    Block block;
    {
        Locked locked(*host);
        for (Block &slot : host->blocks)
            if (slot.base == memory.base) {
                block = slot;
                slot = {};
            }
        follow(*host);
        host->ops->update_peer(*host);
    }
    block_destroy(&block);
    return 0;
}

} // namespace plx::twin
