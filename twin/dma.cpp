// SPDX-License-Identifier: BSD-3-Clause
// The DMA functions as a host's driver sees them.
#include "host.hpp"

namespace plx::twin
{

namespace
{
constexpr uint32_t all_ones = ~uint32_t{0};

bool is_there(const Host &host, unsigned channel, uint32_t offset)
{
    return channel < dma_channels(*host.chip) && offset < facts::block_size;
}

void write(Host &host, unsigned channel, uint32_t offset, uint32_t value, uint32_t lanes)
{
    if (!is_there(host, channel, offset))
        return;
    Locked locked(host);
    if (!host.gone)
        reg_write(*host.chip, facts::dma_base(channel) + offset, value, now_ns(host), lanes);
}
} // namespace

unsigned dma_channels(Host *host)
{
    return dma_channels(*host->chip);
}

uint16_t dma_requester(Host *host, unsigned channel)
{
    return static_cast<uint16_t>((host->config.dma_rid & ~7u) | (channel + 1));
}

uint32_t dma_read32(Host *host, unsigned channel, uint32_t offset)
{
    if (!is_there(*host, channel, offset))
        return all_ones;
    Locked locked(*host);
    if (host->gone)
        return host->gone_reads_as;
    return reg_read(*host->chip, facts::dma_base(channel) + offset, host->config.cpu_read_rid,
                    false);
}

void dma_write32(Host *host, unsigned channel, uint32_t offset, uint32_t value)
{
    write(*host, channel, offset, value, all_ones);
}

void dma_write16(Host *host, unsigned channel, uint32_t offset, uint16_t value)
{
    const uint32_t shift = offset % 4 * 8;
    if (offset % 2 == 0)
        write(*host, channel, offset - offset % 4, uint32_t{value} << shift, 0xFFFFu << shift);
}

int dma_map(Host *host, void *address, uint64_t bus, uint64_t bytes)
{
    return dma_memory_add(&host->dma_memory,
                          {bus, bytes, static_cast<uint8_t *>(address), RangeKind::mapped, 0});
}

int dma_unmap(Host *host, uint64_t bus, uint64_t bytes)
{
    return dma_memory_remove(&host->dma_memory, bus, bytes, RangeKind::mapped);
}

} // namespace plx::twin
