// SPDX-License-Identifier: BSD-3-Clause
#include "host/power.hpp"

#include "chip/doorbell_faults.hpp"
#include "chip/interrupt.hpp"
#include "chip/registers.hpp"
#include "host/host.hpp"
#include "plx_fields.hpp"

#include <cstdio>

namespace plx::twin
{

namespace
{
using facts::Side;
namespace reg = facts::reg;

// What firmware does to a card before a driver sees it.
void assign_bars(Host &host)
{
    const uint32_t base = nt_block(*host.chip, host.side);
    if (host.side == Side::link) {
        constexpr uint32_t csr_address = 0xE0000000;
        constexpr uint32_t bus = 1;
        reg_write(*host.chip, base + reg::pci_bar[0], csr_address, 0);
        host.chip->csr[(base + reg::captured_bus) / 4].store(bus);
    }
    for (unsigned i = 0; i < window_count; i++) {
        const uint64_t address = host.windows[i].bus;
        const uint32_t at = base + reg::pci_bar[window_bars[i]];
        reg_write(*host.chip, at, static_cast<uint32_t>(address), 0);
        reg_write(*host.chip, at + 4, static_cast<uint32_t>(address >> 32), 0);
    }
    const uint32_t command = base + reg::pci_command_status;
    host.chip->csr[command / 4].fetch_or(facts::field::mem_enable.mask());
    for (unsigned channel = 0; channel < facts::dma_function_count; channel++)
        if (host.owns_dma(channel))
            capture_bus(host, channel);
}

// How the EEPROM shares the A-LUT out among the NT ports.
void fit_alut(Host &host)
{
    const uint32_t entries = host.config.alut_entries;
    uint32_t up = get(*host.chip, reg::vs0_upstream);
    for (unsigned nt = 0; nt < facts::nt_count; nt++) {
        const bool has =
            nt == cabled_nt(*host.chip) ? entries != 0 : entries == facts::alut_entries_two_nt;
        up = facts::field::alut_modes[nt].set(up, has);
    }
    host.chip->csr[reg::vs0_upstream / 4].store(up);
}

void fit_setup(Host &host)
{
    const uint32_t base = nt_block(*host.chip, host.side);
    for (unsigned i = 0; i < window_count; i++) {
        const uint32_t at = base + reg::bar_setup(host.side, window_bars[i]);
        const uint64_t setup = ~(host.self.bar_bytes[i] - 1) | 0xC;
        host.chip->csr[at / 4].store(static_cast<uint32_t>(setup));
        host.chip->csr[at / 4 + 1].store(static_cast<uint32_t>(setup >> 32));
    }
}

// The faults of the process before end with it.
void end_faults(Host &host)
{
    Chip &chip = *host.chip;
    for (const Side side : {Side::virt, Side::link})
        if (has_doorbells(host, side))
            end_doorbell_faults(chip, side);
    if (chip.held_down.load() == 0)
        return;
    chip.enabled_at.store(now_ns(host));
    chip.held_down.store(0);
}
} // namespace

void power_on_anew(Host &host)
{
    power_on(*host.chip, power_values(host));
    fit_alut(host);
    host.chip->enabled_at.store(now_ns(host));
    if (host.config.state == ChipState::random)
        scramble(*host.chip, host.config.random_seed, host.one_chip);
    for (uint32_t i = 0; i < host.former.count; i++)
        preset(*host.chip, host.former.words[i].offset, host.former.words[i].value);
    assign_dma(*host.chip, power_values(host));
}

PowerOn power_values(const Host &host)
{
    PowerOn values;
    values.dma_channels = host.config.dma_channels;
    values.dma_link_channels = host.config.dma_link_channels;
    values.dma_flr = host.config.switches.dma_flr;
    values.dma_port_assign = host.config.switches.dma_port_assign;
    for (unsigned i = 0; i < window_count; i++) {
        const uint64_t own = host.self.bar_bytes[i];
        const uint64_t theirs = host.one_chip ? host.peer.bar_bytes[i] : 0;
        values.bar_bytes[index_of(host.side)][i] = own;
        values.bar_bytes[index_of(other(host.side))][i] = theirs != 0 ? theirs : own;
    }
    return values;
}

// A down is counted before it begins.
void restart_chip(Host &host)
{
    host.chip->downs.fetch_add(1);
    for (std::atomic<uint32_t> &word : host.chip->csr)
        word.store(0);
    power_on_anew(host);
}

void settle_in(Host &host)
{
    end_faults(host);
    host.chip->train_us.store(host.config.switches.train_us);
    interrupt_rules(*host.chip, host.side, host.config.switches);
    power_up(host);
    host.chip_id = host.chip->id.load();
    host.identity = identity_of(*host.chip);
}

bool is_usable(const Host &host, const Chip &chip)
{
    return shows_identity(chip, host.config.nt) && chip.enabled_at.load() <= now_ns(host);
}

void mend_chip(Host &host)
{
    Chip &chip = *host.chip;
    const bool spoilt = chip.id.load() != host.chip_id || chip.nt.load() != host.config.nt ||
                        !same_identity(identity_of(chip), host.identity) || !is_usable(host, chip);
    if (!spoilt || host.gone)
        return;
    fprintf(stderr, "plx twin: the peer that left the cable %s has spoilt the chip: reset\n",
            host.cable_name);
    chip.id.store(host.chip_id);
    chip.nt.store(host.config.nt);
    chip.protect_until.store(0);
    // Registers that a driver writes once, and no other finds wrong, may be spoilt with the rest.
    restart_chip(host);
    restore_identity(chip, host.identity);
    settle_in(host);
}

void power_up(Host &host)
{
    // The EEPROM of this run.
    fit_setup(host);
    // A file says itself how the A-LUT is shared out.
    if (host.side == Side::virt && host.config.state != ChipState::file)
        fit_alut(host);
    assign_bars(host);
}

void capture_bus(Host &host, unsigned channel)
{
    const uint32_t at = facts::dma_base(channel) + facts::reg::captured_bus;
    host.chip->csr[at / 4].store(facts::field::captured_bus.put(host.config.dma_rid >> 8));
}

} // namespace plx::twin
