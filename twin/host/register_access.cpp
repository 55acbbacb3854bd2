// SPDX-License-Identifier: BSD-3-Clause
// A host's accesses to its own chip: CSRs and configuration space.
#include "chip/bar_shape.hpp"
#include "chip/doorbell_faults.hpp"
#include "chip/link.hpp"
#include "chip/registers.hpp"
#include "host/dma_functions.hpp"
#include "host/follow.hpp"
#include "host/host.hpp"
#include "host/interrupt.hpp"
#include "host/shared_chip.hpp"
#include "twin.hpp"

#include <cstdio>

namespace plx::twin
{

namespace
{
using facts::Side;
namespace reg = facts::reg;

bool link_up(const Host &host)
{
    return link_trained(*host.chip, beyond_link(host), now_ns(host));
}

// BAR2 and BAR3, or BAR4 and BAR5, as two of 32 bits: only the lower one has a window here. Said
// when the upper one gets an address, for on the way to 64 bits it may look like a BAR of its own.
void report_bar_without_window(Host &host, uint32_t offset)
{
    for (const unsigned bar : {3u, 5u})
        for (const Side side : {Side::virt, Side::link}) {
            const bool used = offset == nt_block(*host.chip, side) + reg::pci_bar[bar] &&
                              bar_shape(*host.chip, cabled_nt(*host.chip), side, bar).enabled;
            if (!used || host.narrow_bar_reported)
                continue;
            fprintf(stderr,
                    "plx twin: BAR%u was set up as a 32-bit BAR of its own: the twin has windows "
                    "behind BAR2 and BAR4 alone, so nothing is reached through it\n",
                    bar);
            host.narrow_bar_reported = true;
        }
}

bool rings_other_side(const Host &host, uint32_t offset)
{
    const uint32_t at = host.side == Side::virt ? reg::db_link_set : reg::db_virt_set;
    return host.one_chip && offset % facts::block_size == at;
}
} // namespace

uint32_t csr_read32(Host *host, uint32_t offset)
{
    unsigned channel = 0;
    if (in_dma_function(*host->chip, offset, &channel) && host->owns_dma(channel))
        return function_read(*host, channel, offset % facts::block_size);
    Locked locked(*host);
    if (host->stuck || host->behind)
        settle(*host);
    if (host->gone)
        return host->gone_reads_as;
    // A read shows that earlier writes have taken effect. Where they have not, nothing answers.
    if (host->stuck)
        return ~uint32_t{0};
    update_link(*host);
    if (cut_off(*host))
        return host->config.switches.dead_link_reads_ones ? ~uint32_t{0} : 0;
    doorbells_arrive(*host->chip, now_ns(*host));
    check_interrupt(*host);
    return reg_read(*host->chip, offset, host->config.cpu_read_rid, link_up(*host));
}

void csr_write32(Host *host, uint32_t offset, uint32_t value)
{
    unsigned channel = 0;
    if (in_dma_function(*host->chip, offset, &channel) && host->owns_dma(channel))
        return function_write(*host, channel, offset % facts::block_size, value);
    Locked locked(*host);
    if (host->gone)
        return;
    update_link(*host);
    if (cut_off(*host))
        return;
    doorbells_arrive(*host->chip, now_ns(*host));
    if (rings_other_side(*host, offset) &&
        doorbell_faulty(*host->chip, offset, value, now_ns(*host)))
        return;
    const bool moved = reg_write(*host->chip, offset, value, now_ns(*host));
    if (moved && !is_alut_ram(offset)) {
        settle(*host);
    } else if (moved && !host->behind) {
        host->behind = true;
        wake(*host);
    }
    check_interrupt(*host);
    if (moved) {
        meet_training(*host);
        report_bar_without_window(*host, offset);
    }
    notify_peer_interrupt(*host);
}

uint32_t config_read32(Host *host, uint32_t offset)
{
    if (offset >= facts::block_size)
        return 0;
    return csr_read32(host, nt_block(*host->chip, host->side) + offset);
}

void config_write32(Host *host, uint32_t offset, uint32_t value)
{
    if (offset < facts::block_size)
        csr_write32(host, nt_block(*host->chip, host->side) + offset, value);
}

} // namespace plx::twin
