// SPDX-License-Identifier: BSD-3-Clause
#include "chip/registers.hpp"

#include "chip/bar_shape.hpp"
#include "chip/capabilities.hpp"
#include "chip/dma_regs.hpp"
#include "chip/interrupt.hpp"
#include "chip/register_map.hpp"
#include "plx_fields.hpp"

namespace plx::twin
{

namespace
{
using facts::Side;
namespace reg = facts::reg;
namespace field = facts::field;

// ---- what a write may change

constexpr uint32_t command_bits = 0x0547;           // G: IO, MEM, BM, parity, SERR, INTx disable
constexpr uint32_t command_status_w1c = 0xF9000000; // SDK R [31:27]; G bit 24
constexpr uint32_t low_half = 0xFFFF;
constexpr uint32_t dev_status_w1c = 0x000F0000; // G
constexpr uint32_t msi_bits = 0x00710000;       // G: enable, KAO R: MMEN
constexpr uint32_t lut_bits = 0xFFFBFFFB;       // SDK R: bit 2 of an entry is 0

struct WriteMask {
    uint32_t store = ~uint32_t{0};
    uint32_t clear = 0;    ///< ones clear
    uint32_t constant = 0; ///< read as one
};

// Header and capabilities, as every endpoint of the chip has them.
WriteMask header_mask(uint32_t at)
{
    switch (at) {
    case reg::pci_command_status:
        return {command_bits, command_status_w1c, capability_list};
    case reg::pcie_dev_ctl_status:
        return {low_half, dev_status_w1c, 0};
    case reg::pcie_link_ctl_status:
    case reg::pcie_link_ctl_status + 0x20: // LinkCtl2 (G: the capability's layout)
        return {low_half, 0, 0};
    case reg::msi_control:
        return {msi_bits, 0, 0};
    case reg::aer_uncorr_status:
    case reg::aer_corr_status:
        return {0, ~uint32_t{0}, 0};
    default:
        return {};
    }
}

WriteMask nt_mask(const Chip &chip, const Place &place)
{
    const Side side = place.page == nt_link ? Side::link : Side::virt;
    if (within(reg::pci_bar, place.at)) {
        const BarBits bits = bar_bits(chip, place.nt, side, (place.at - reg::pci_bar[0]) / 4);
        return {bits.writable, 0, bits.constant};
    }
    if (within(reg::req_id_lut(side), place.at))
        return {lut_bits, 0, 0};
    switch (place.at) {
    case reg::link_err_mask:
        return {facts::link_err_all, 0, 0};
    case reg::link_err_status:
        return {0, facts::link_err_all, 0};
    default:
        return header_mask(place.at);
    }
}

// What only a strobe or the engine changes (START, IN_PROGRESS) is not stored.
WriteMask dma_mask(const Place &place)
{
    if (within(reg::pci_bar, place.at)) // BAR0 alone, of 4 KiB (I)
        return {place.at == reg::pci_bar[0] ? ~page_mask : 0, 0, 0};
    switch (place.at) {
    case dma_reg::ctrl_status:
        return {dma_ctrl_stored, dma_ctrl_cleared, 0};
    case dma_reg::intr_ctrl_status:
        return {low_half, dma_intr_cleared, 0};
    case dma_reg::dev_ctl_status:
        return {low_half & ~dma_field::initiate_flr.mask(), dev_status_w1c, 0};
    default:
        return header_mask(place.at);
    }
}

WriteMask mask_of(const Chip &chip, const Place &place)
{
    if (place.page == nt_virtual || place.page == nt_link)
        return nt_mask(chip, place);
    if (place.page == dma_function)
        return dma_mask(place);
    if (place.page == alut && within(reg::alut_permission, place.at))
        return {facts::alut_rights_all, 0, 0};
    return {};
}

/// @return whether the value changed
bool store(Chip &chip, uint32_t offset, uint32_t value, const WriteMask &mask)
{
    std::atomic<uint32_t> &word = chip.csr[offset / 4];
    uint32_t old = word.load();
    uint32_t next;
    do {
        next = (old & ~mask.store & ~(value & mask.clear)) | (value & mask.store) | mask.constant;
    } while (!word.compare_exchange_weak(old, next));
    return old != next;
}

// ---- what a write sets off

// Both ends must see a down, however short: it is counted before it begins. Training starts anew
// only once the port is known to be enabled later: the time is stored first.
void write_port_control(Chip &chip, uint32_t offset, uint32_t value, uint64_t now_ns)
{
    const CablePort port = cable_port(chip);
    const bool ours = port.exists && port.control == offset;
    const bool was_off = (get(chip, offset) & port.bit) != 0;
    const bool is_off = (value & port.bit) != 0;
    if (ours && !was_off && is_off)
        chip.downs.fetch_add(1);
    if (ours && was_off && !is_off)
        chip.enabled_at.store(now_ns);
    chip.csr[offset / 4].store(value);
}

bool is_port_control(const Place &place)
{
    return (place.page == port0 || place.page == station) && place.at == reg::port_control;
}
bool is_test_pattern(const Place &place)
{
    return (place.page == port0 || place.page == station) &&
           within(reg::phy_test_pattern, place.at);
}

bool any_alut_enabled(const Chip &chip)
{
    return ((get(chip, nt_block(chip, Side::virt) + reg::alut_control) |
             get(chip, nt_block(chip, Side::link) + reg::alut_control)) &
            field::alut_enable.mask()) != 0;
}

bool routes_by_alut(const Chip &chip, const Place &place, uint32_t offset)
{
    if (!any_alut_enabled(chip))
        return false;
    if (within(reg::alut_permission, place.at))
        return true;
    const uint32_t entry = place.at / 4 % facts::alut_array_entries;
    return get(chip, (offset & ~page_mask) + reg::alut_permission[entry]) != 0;
}

bool routes_by_nt(const Place &place)
{
    const Side side = place.page == nt_link ? Side::link : Side::virt;
    const uint32_t setup = reg::bar_setup(side, 2);
    return place.at == reg::pci_command_status || within(reg::pci_bar, place.at) ||
           within(reg::req_id_lut(side), place.at) || place.at == reg::alut_control ||
           (place.at >= setup - 4 && place.at < setup + 16) ||
           (place.at >= reg::bar_xlat(2) && place.at <= reg::bar_xlat(5));
}

bool routes_by(const Chip &chip, const Place &place, uint32_t offset)
{
    switch (place.page) {
    case nt_virtual:
    case nt_link:
        return place.nt == cabled_nt(chip) && routes_by_nt(place);
    case dma_function:
        return false;
    case alut:
        return routes_by_alut(chip, place, offset);
    default:
        return offset == reg::vs0_upstream;
    }
}

uint32_t link_status(bool link_up)
{
    constexpr uint32_t gen3 = 3;
    constexpr uint32_t lanes = 8;
    return link_up ? field::link_speed.put(gen3) | field::link_width.put(lanes) : 0;
}
} // namespace

CablePort cable_port(const Chip &chip)
{
    const facts::NtPort nt = facts::nt_port(get(chip, reg::vs0_upstream), cabled_nt(chip));
    if (!nt.enabled || nt.port >= facts::port_count)
        return {};
    return {true, facts::station_base(nt.port) + reg::port_control,
            uint32_t{1} << nt.port % facts::ports_per_station, nt.port};
}

bool is_doorbell_set(uint32_t offset)
{
    const uint32_t at = offset & page_mask;
    return offset >= nt_base(facts::nt_count - 1, Side::virt) &&
           (at == reg::db_virt_set || at == reg::db_link_set);
}

bool is_alut_ram(uint32_t offset)
{
    constexpr uint32_t bytes = facts::alut_array_count * facts::block_size;
    return offset >= facts::alut_array0_base && offset - facts::alut_array0_base < bytes;
}

uint32_t reg_read(const Chip &chip, uint32_t offset, uint16_t requester, bool link_up)
{
    const Place place = place_of(chip, offset);
    if (kind_at(place) == Kind::missing)
        return 0;
    const uint32_t value = get(chip, canonical(place, offset));
    if (place.page != nt_virtual && place.page != nt_link)
        return value;
    if (place.at == reg::req_id_readback)
        return field::req_id.put(requester);
    if (place.at == reg::pcie_link_ctl_status)
        return (value & low_half) | link_status(link_up && place.nt == cabled_nt(chip));
    return value;
}

namespace
{
bool write_register(Chip &chip, uint32_t offset, uint32_t value, uint64_t now_ns)
{
    const Place place = place_of(chip, offset);
    const uint32_t at = canonical(place, offset);
    switch (kind_at(place)) {
    case Kind::w1s:
        set_doorbells(chip, at, value & facts::doorbell_mask);
        return false;
    case Kind::w1c:
        chip.csr[at / 4].fetch_and(~value);
        return false;
    case Kind::rw:
        break;
    default:
        return false;
    }
    if (is_test_pattern(place) && now_ns < chip.protect_until.load())
        return false; // E2
    if (is_port_control(place)) {
        write_port_control(chip, offset, value, now_ns);
        return true;
    }
    return store(chip, at, value, mask_of(chip, place)) && routes_by(chip, place, offset);
}

} // namespace

bool reg_write(Chip &chip, uint32_t offset, uint32_t value, uint64_t now_ns)
{
    if (!write_register(chip, offset, value, now_ns))
        return false;
    chip.routes.fetch_add(1); // after the write: who still sees the old count has looked before it
    return true;
}

} // namespace plx::twin
