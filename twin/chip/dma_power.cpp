// SPDX-License-Identifier: BSD-3-Clause
// What DMA functions are at power-on, and what resets leave of them.
#include "chip/capabilities.hpp"
#include "chip/dma_regs.hpp"
#include "chip/power_on.hpp"
#include "plx_ids.hpp"

namespace plx::twin
{

namespace
{
namespace reg = facts::reg;

constexpr uint32_t dma_dev_cap = 0x8FE4; // VCA-EEP R, without the bit for FLR

void set(Chip &chip, uint32_t offset, uint32_t value)
{
    chip.csr[offset / 4].store(value);
}

void set_dma_identity(Chip &chip, unsigned channel, const PowerOn &values)
{
    const uint32_t base = facts::dma_base(channel);
    const uint32_t capable = values.dma_flr ? dma_field::flr_capable.mask() : 0;
    set(chip, base + reg::pci_id, uint32_t{facts::device_dma} << 16 | facts::vendor_plx);
    set(chip, base + reg::pci_class_revision, facts::class_dma << 8 | silicon_revision);
    set(chip, base + reg::pci_subsystem_id, chip_number << 16 | facts::vendor_plx);
    set_capabilities(chip, base);
    set(chip, base + dma_reg::dev_cap, dma_dev_cap | capable);
}

// What production boards give to a chip of two channels, and to one of four (VCA-EEP R). Without
// an EEPROM their DMA registers are zero.
constexpr bool has_many(const PowerOn &values)
{
    return values.dma_channels > 2;
}

constexpr uint32_t global_control_value(const PowerOn &values)
{
    return has_many(values) ? 0 : 2;
}

// Channel numbers of a chip that shows fewer than four: 0 and 2, or the first.
constexpr bool is_shown(unsigned channel, const PowerOn &values)
{
    return facts::dma_channel_shown(global_control_value(values), channel) &&
           (has_many(values) ? channel : channel / 2) < values.dma_channels;
}

constexpr unsigned number_of_shown(const PowerOn &values)
{
    unsigned count = 0;
    for (unsigned channel = 0; channel < facts::dma_function_count; channel++)
        count += is_shown(channel, values);
    return count;
}

// The last ones are the NT port's, the others the upstream port's.
uint32_t port_assign_value(const Chip &chip, const PowerOn &values)
{
    const uint32_t up = get(chip, reg::vs0_upstream);
    const uint32_t upstream = facts::upstream_port(up);
    const uint32_t nt = facts::nt_port(up, cabled_nt(chip)).port;
    const unsigned kept =
        number_of_shown(values) - std::min(number_of_shown(values), values.dma_link_channels);
    uint32_t value = 0;
    unsigned rank = 0;
    for (unsigned channel = 0; channel < facts::dma_function_count; channel++)
        if (is_shown(channel, values))
            value |= (rank++ < kept ? upstream : nt) << 8 * channel;
    return value;
}

void power_on_function(Chip &chip, unsigned channel, const PowerOn &values)
{
    const uint32_t base = facts::dma_base(channel);
    reset_dma_block(chip, channel);
    set_dma_identity(chip, channel, values);
    // Of the chip, in the first function alone.
    set(chip, base + dma_reg::global_control, channel == 0 ? global_control_value(values) : 0);
    set(chip, base + dma_reg::port_assign, channel == 0 ? port_assign_value(chip, values) : 0);
    if (has_many(values)) {
        set(chip, base + dma_reg::bandwidth, 0x01000010);
        set(chip, base + dma_reg::station_ram_thresholds, 0x001D0018);
    }
    chip.dma_resets[channel].fetch_add(1);
}

DmaOwner owner_by(const Chip &chip, unsigned channel, const PowerOn &values)
{
    const uint32_t base = facts::dma_base(0);
    if (!is_shown(channel, values) ||
        !facts::dma_channel_shown(get(chip, base + dma_reg::global_control), channel))
        return DmaOwner::absent;
    const uint32_t up = get(chip, reg::vs0_upstream);
    const uint8_t port = facts::dma_channel_port(get(chip, base + dma_reg::port_assign), channel);
    if (!values.dma_port_assign || port == facts::upstream_port(up))
        return DmaOwner::virt;
    const facts::NtPort nt = facts::nt_port(up, cabled_nt(chip));
    return nt.enabled && port == nt.port ? DmaOwner::link : DmaOwner::other;
}
} // namespace

void power_on_dma(Chip &chip, const PowerOn &values)
{
    for (unsigned channel = 0; channel < facts::dma_function_count; channel++)
        if (is_shown(channel, values)) {
            chip.dma_state[channel].store(0);
            power_on_function(chip, channel, values);
        }
    assign_dma(chip, values);
}

void assign_dma(Chip &chip, const PowerOn &values)
{
    for (unsigned channel = 0; channel < facts::dma_function_count; channel++)
        chip.dma_owner[channel].store(static_cast<uint32_t>(owner_by(chip, channel, values)));
}

void reset_link_dma(Chip &chip, const PowerOn &values)
{
    for (unsigned channel = 0; channel < facts::dma_function_count; channel++) {
        if (dma_owner(chip, channel) != DmaOwner::link)
            continue;
        const uint32_t base = facts::dma_base(channel);
        const uint32_t mode = get(chip, base + dma_reg::global_control);
        const uint32_t shares = get(chip, base + dma_reg::port_assign);
        power_on_function(chip, channel, values);
        set(chip, base + dma_reg::global_control, mode); // of the whole chip
        set(chip, base + dma_reg::port_assign, shares);
        if ((chip.dma_state[channel].fetch_and(dma_hung) & dma_hung) != 0) // E9
            chip.csr[(base + dma_reg::ctrl_status) / 4].fetch_or(dma_field::in_progress.mask());
    }
}

void reset_dma_function(Chip &chip, unsigned channel, const PowerOn &values)
{
    const uint32_t base = facts::dma_base(channel);
    for (uint32_t at = 0; at < facts::block_size; at += 4)
        set(chip, base + at, 0);
    set_dma_identity(chip, channel, values);
}

} // namespace plx::twin
