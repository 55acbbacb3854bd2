// SPDX-License-Identifier: BSD-3-Clause
#include "chip/interrupt.hpp"

#include "chip/dma_regs.hpp"
#include "plx_fields.hpp"
#include "twin.hpp"

namespace plx::twin
{

namespace
{
using facts::Side;
namespace reg = facts::reg;
namespace field = facts::field;

constexpr uint32_t rule_needs_zero = 1;
constexpr uint32_t rule_masked_count = 2;

constexpr uint32_t msi_enable = uint32_t{1} << 16; // G: message control

// Doorbells are one bank, seen in both blocks; link errors are the virtual side's alone.
struct Doorbells {
    uint32_t set;
    uint32_t mask;
};

Doorbells doorbells_of(const Chip &chip, Side side)
{
    const uint32_t bank = nt_block(chip, Side::virt);
    if (side == Side::virt)
        return {bank + reg::db_virt_set, bank + reg::db_virt_mask_set};
    return {bank + reg::db_link_set, bank + reg::db_link_mask_set};
}

uint32_t open_doorbells(const Chip &chip, Side side)
{
    const Doorbells d = doorbells_of(chip, side);
    return get(chip, d.set) & ~get(chip, d.mask);
}

uint32_t open_errors(const Chip &chip, Side side)
{
    if (side == Side::link)
        return 0;
    const uint32_t virt = nt_block(chip, Side::virt);
    return get(chip, virt + reg::link_err_status) & ~get(chip, virt + reg::link_err_mask);
}

bool intx_asserted(const Chip &chip, Side side)
{
    if (field::intx_disable.get(get(chip, nt_block(chip, side) + reg::pci_command_status)) != 0)
        return false;
    return open_doorbells(chip, side) != 0 || open_errors(chip, side) != 0;
}

/// E1: only when the register goes from all zeros to non-zero; whether masked bits count is open.
bool doorbell_sends_msi(const Chip &chip, uint32_t mask, uint32_t before, uint32_t bits)
{
    const uint32_t rules = chip.interrupt_rules.load();
    if ((bits & ~before & ~mask) == 0)
        return false;
    if ((rules & rule_needs_zero) == 0)
        return true;
    return ((rules & rule_masked_count) != 0 ? before : before & ~mask) == 0;
}

} // namespace

bool msi_enabled(const Chip &chip, Side side)
{
    return (get(chip, nt_block(chip, side) + reg::msi_control) & msi_enable) != 0;
}

void set_doorbells(Chip &chip, uint32_t at, uint32_t bits)
{
    const uint32_t before = chip.csr[at / 4].fetch_or(bits);
    for (const Side side : {Side::virt, Side::link}) {
        const Doorbells d = doorbells_of(chip, side);
        if (at == d.set && msi_enabled(chip, side) &&
            doorbell_sends_msi(chip, get(chip, d.mask), before, bits))
            chip.msi[index_of(side)].store(1);
    }
}

void latch_link_errors(Chip &chip, uint32_t bits)
{
    const uint32_t virt = nt_block(chip, Side::virt);
    const uint32_t open = ~get(chip, virt + reg::link_err_mask);
    const uint32_t before = chip.csr[(virt + reg::link_err_status) / 4].fetch_or(bits);
    // As with doorbells, no source says (I).
    if (msi_enabled(chip, Side::virt) && (before & open) == 0 && (bits & open) != 0)
        chip.msi[index_of(Side::virt)].store(1);
}

void interrupt_rules(Chip &chip, Side side, const Switches &switches)
{
    chip.interrupt_rules.store((switches.msi_needs_zero ? rule_needs_zero : 0) |
                               (switches.masked_doorbells_count ? rule_masked_count : 0));
    chip.interrupt_notified[index_of(side)].store(0);
    chip.msi[index_of(side)].store(0);
}

bool interrupt_due(const Chip &chip, Side side)
{
    if (!msi_enabled(chip, side))
        return intx_asserted(chip, side);
    const bool masked = (get(chip, nt_block(chip, side) + reg::msi_mask) & 1) != 0; // G
    return !masked && chip.msi[index_of(side)].load() != 0;
}

bool dma_interrupt_due(const Chip &chip, unsigned channel)
{
    constexpr uint32_t pin = 1u << 15;          // VCA R: name
    constexpr uint32_t by_descriptor = 1u << 2; // its event needs no enable (5.4)
    constexpr unsigned to_events = 16;
    const uint32_t base = facts::dma_base(channel);
    const uint32_t intr = get(chip, base + dma_reg::intr_ctrl_status);
    const uint32_t command = get(chip, base + reg::pci_command_status);
    const uint32_t enabled = (intr | by_descriptor) & 0x3F;
    return (intr & pin) != 0 && field::intx_disable.get(command) == 0 &&
           (intr >> to_events & enabled) != 0;
}

} // namespace plx::twin
