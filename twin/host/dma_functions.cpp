// SPDX-License-Identifier: BSD-3-Clause
#include "host/dma_functions.hpp"

#include "chip/dma_regs.hpp"
#include "chip/interrupt.hpp"
#include "chip/registers.hpp"
#include "host/follow.hpp"
#include "host/host.hpp"
#include "host/shared_chip.hpp"

namespace plx::twin
{

namespace
{
constexpr uint32_t all_ones = ~uint32_t{0};

bool is_there(const Host &host, unsigned channel, uint32_t offset)
{
    return channel < facts::dma_function_count && host.owns_dma(channel) &&
           offset < facts::block_size && offset % 4 == 0;
}

bool all_zero(const Chip &chip, uint32_t base)
{
    uint32_t all = 0;
    for (uint32_t at = dma_reg::block_src_lo; at <= dma_reg::ring_count; at += 4)
        all |= get(chip, base + at);
    return all == 0;
}

// E7: an engine that walked one ring takes no other before these registers were all zero; the
// address of its next descriptor stays 0 until then.
void keep_tail(Host &host, unsigned channel, uint32_t offset, uint32_t before)
{
    if (!host.config.switches.dma_stale_tail)
        return;
    Chip &chip = *host.chip;
    const uint32_t base = facts::dma_base(channel);
    std::atomic<uint32_t> &state = chip.dma_state[channel];
    const uint32_t now = get(chip, base + offset);
    if (all_zero(chip, base))
        state.fetch_and(~uint32_t{dma_ran | dma_stale});
    else if (offset == dma_reg::ring_lo && now != 0 && now != before &&
             (state.load() & dma_ran) != 0)
        state.fetch_or(dma_stale);
    if ((state.load() & dma_stale) != 0)
        chip.csr[(base + dma_reg::ring_next) / 4].store(0);
}

bool is_ring_register(uint32_t offset)
{
    return offset >= dma_reg::block_src_lo && offset <= dma_reg::ring_count;
}

} // namespace

uint32_t function_read(Host &host, unsigned channel, uint32_t offset)
{
    if (!is_there(host, channel, offset))
        return all_ones;
    host.dma[channel].register_read();
    Locked locked(host);
    if (host.stuck || host.behind)
        settle(host); // as for any register: a read shows that earlier writes have taken effect
    if (host.gone)
        return host.gone_reads_as;
    if (host.stuck)
        return all_ones;
    if (host.side == facts::Side::link)
        update_link(host);
    if (cut_off(host))
        return host.config.switches.dead_link_reads_ones ? all_ones : 0;
    return reg_read(*host.chip, facts::dma_base(channel) + offset, host.config.cpu_read_rid, false);
}

// START comes from the data path: it takes no lock of the host's.
void function_write(Host &host, unsigned channel, uint32_t offset, uint32_t value)
{
    if (!is_there(host, channel, offset) || host.gone || cut_off(host))
        return;
    const uint32_t at = facts::dma_base(channel) + offset;
    if (is_ring_register(offset)) {
        Locked locked(host);
        const uint32_t before = get(*host.chip, at);
        reg_write(*host.chip, at, value, 0);
        keep_tail(host, channel, offset, before);
    } else {
        reg_write(*host.chip, at, value, 0);
    }
    host.dma[channel].written(offset, value);
    if (offset == dma_reg::intr_ctrl_status && dma_interrupt_due(*host.chip, channel))
        host.dma_event(); // enabled while it was pending
}

unsigned dma_channels(Host *host)
{
    unsigned count = 0;
    for (unsigned channel = 0; channel < facts::dma_function_count; channel++)
        count += host->owns_dma(channel) ? 1 : 0;
    return count;
}

unsigned dma_channel(Host *host, unsigned index)
{
    unsigned channel = 0;
    for (; channel < facts::dma_function_count; channel++)
        if (host->owns_dma(channel) && index-- == 0)
            break;
    return channel;
}

uint16_t dma_requester(Host *host, unsigned index)
{
    return host->dma_requester(dma_channel(host, index));
}

uint32_t dma_read32(Host *host, unsigned index, uint32_t offset)
{
    return function_read(*host, dma_channel(host, index), offset);
}

void dma_write32(Host *host, unsigned index, uint32_t offset, uint32_t value)
{
    function_write(*host, dma_channel(host, index), offset, value);
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
