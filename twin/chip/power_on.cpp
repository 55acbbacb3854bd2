// SPDX-License-Identifier: BSD-3-Clause
#include "chip/power_on.hpp"

#include "chip/bar_shape.hpp"
#include "chip/capabilities.hpp"
#include "chip/dma_regs.hpp"
#include "chip/register_map.hpp"
#include "chip/registers.hpp"
#include "plx_fields.hpp"
#include "plx_ids.hpp"

namespace plx::twin
{

namespace
{
using facts::Side;
namespace reg = facts::reg;
namespace field = facts::field;

// A production board with two NT ports, 8 and 9 (EEP R); its VS_DEBUG lets
// both be reached (bits 28 and 29: I).
constexpr uint32_t image_two_nt_upstream = 0xC0292800;
constexpr uint32_t image_two_nt_debug = 0x33000000;

void set(Chip &chip, uint32_t offset, uint32_t value)
{
    chip.csr[offset / 4].store(value);
}
void set64(Chip &chip, uint32_t offset, uint64_t value)
{
    set(chip, offset, static_cast<uint32_t>(value));
    set(chip, offset + 4, static_cast<uint32_t>(value >> 32));
}

// The table's reset values for one page of the CSR space.
void reset_page(Chip &chip, uint32_t base, Page page)
{
    for (const facts::Reg &r : facts::regs)
        if (lies_in(r, page) && r.reset.mark != facts::Mark::unknown &&
            r.offset < facts::block_size)
            set(chip, base + r.offset, r.reset.value);
}

void set_identity(Chip &chip, unsigned nt, Side side)
{
    const uint32_t base = nt_base(nt, side);
    const uint32_t device =
        (side == Side::virt ? facts::device_nt0_virtual : facts::device_nt0_link) + nt;
    set(chip, base + reg::pci_id, device << 16 | facts::vendor_plx);
    set(chip, base + reg::pci_class_revision, facts::class_nt << 8 | silicon_revision);
    set(chip, base + reg::pci_subsystem_id, chip_number << 16 | facts::vendor_plx);
    set_capabilities(chip, base);
    set(chip, base + reg::nt_port_id,
        field::nt_index.put(nt) | field::link_side.put(side == Side::link));
    set(chip, base + reg::pcie_link_cap,
        field::port_number.put(facts::nt_port(get(chip, reg::vs0_upstream), nt).port));
}

void reset_nt(Chip &chip, unsigned nt, Side side, const PowerOn &values)
{
    const uint32_t base = nt_base(nt, side);
    reset_page(chip, base, side == Side::link ? nt_link : nt_virtual);
    set_identity(chip, nt, side);
    set64(chip, base + reg::bar_setup(side, 2), setup_64bit(values.bar_bytes[index_of(side)][0]));
    set64(chip, base + reg::bar_setup(side, 4), setup_64bit(values.bar_bytes[index_of(side)][1]));
}

// xorshift64*: any seed but 0 will do.
uint32_t garbage(uint64_t &state)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return static_cast<uint32_t>(state * 0x2545F4914F6CDD1D >> 32);
}

bool kept_by_firmware(const Place &place, uint32_t offset, bool shared)
{
    const Side side = place.page == nt_link ? Side::link : Side::virt;
    const uint32_t first = reg::bar_setup(side, 2) - 4;
    const bool bars =
        within(reg::pci_bar, place.at) || (place.at >= first && place.at < first + 20);
    return offset == reg::vs0_upstream ||
           (bars && (place.page == nt_virtual || (shared && place.page == nt_link)));
}

// What only an EEPROM gives, as far as any source says.
bool shares_out_dma(uint32_t offset)
{
    const uint32_t first = facts::dma_base(0);
    return offset == first + dma_reg::global_control || offset == first + dma_reg::port_assign;
}
} // namespace

void power_on(Chip &chip, const PowerOn &values)
{
    for (uint32_t p = facts::port_count; p-- > 0;)
        reset_page(chip, facts::port_base(p),
                   p == 0                              ? port0
                   : p % facts::ports_per_station == 0 ? station
                                                       : port);
    if (cabled_nt(chip) == 1) {
        set(chip, reg::vs0_upstream, image_two_nt_upstream);
        set(chip, reg::vs_debug, image_two_nt_debug);
    }
    for (unsigned nt = 0; nt < facts::nt_count; nt++)
        for (const Side side : {Side::virt, Side::link})
            if (facts::nt_port(get(chip, reg::vs0_upstream), nt).enabled)
                reset_nt(chip, nt, side, values);
    power_on_dma(chip, values);
}

void reset_dma_block(Chip &chip, unsigned channel)
{
    reset_page(chip, facts::dma_base(channel), dma_function);
}

void reset_link_block(Chip &chip, const PowerOn &values)
{
    const uint32_t base = nt_block(chip, Side::link);
    for (uint32_t at = 0; at < facts::block_size; at += 4)
        set(chip, base + at, 0);
    reset_nt(chip, cabled_nt(chip), Side::link, values);
}

void scramble(Chip &chip, uint64_t seed, bool shared)
{
    uint64_t state = seed * 2 + 1;
    for (uint32_t offset = 0; offset < facts::bar0_size; offset += 4) {
        const Place place = place_of(chip, offset);
        if (kind_at(place) != Kind::missing && !kept_by_firmware(place, offset, shared) &&
            !shares_out_dma(offset))
            reg_write(chip, offset, garbage(state), 0);
    }
    for (std::atomic<uint32_t> &engine : chip.dma_state)
        engine.store(dma_ran | dma_stale);
    const uint32_t errors = nt_block(chip, Side::virt) + reg::link_err_status;
    chip.csr[errors / 4].fetch_or(garbage(state) & facts::link_err_all);
}

void preset(Chip &chip, uint32_t offset, uint32_t value)
{
    const Place place = place_of(chip, offset);
    const bool upstream = offset == reg::vs0_upstream;
    const bool endpoint = place.page == nt_virtual || place.page == nt_link;
    if (endpoint && place.at == reg::pci_command_status)
        value |= capability_list;
    if ((endpoint && (is_capability(place.at) || place.at == reg::pci_cap_pointer)) ||
        kind_at(place) == Kind::missing || (!upstream && kept_by_firmware(place, offset, false)) ||
        (upstream && !facts::nt_port(value, cabled_nt(chip)).enabled))
        return;
    set(chip, offset, value);
}

} // namespace plx::twin
