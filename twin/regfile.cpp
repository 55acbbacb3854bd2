// SPDX-License-Identifier: BSD-3-Clause
#include "regfile.hpp"

#include "bar_shape.hpp"
#include "dma_regs.hpp"
#include "interrupt.hpp"
#include "plx_fields.hpp"
#include "plx_ids.hpp"

namespace plx::twin
{

namespace
{
using facts::Access;
using facts::Block;
using facts::Side;
namespace reg = facts::reg;
namespace field = facts::field;

constexpr uint32_t page_mask = facts::block_size - 1;
constexpr uint32_t words_per_page = facts::block_size / 4;

// ---- which register lies where

// The kinds of 4 KiB blocks in the CSR space; each is laid out once.
enum Page : uint8_t {
    port0,
    station,
    port,
    nt_virtual,
    nt_link,
    alut,
    dma_function,
    page_kinds,
    absent
};

enum class Kind : uint8_t { missing, ro, rw, w1s, w1c };

struct Layout {
    Kind kind[page_kinds][words_per_page];
};

// `unknown` means that no source tells; plain storage is the likeliest answer. `mixed` registers
// are storage with the masks of writable_bits() and clearing_bits().
constexpr Kind kind_of(Access access)
{
    switch (access) {
    case Access::ro:
        return Kind::ro;
    case Access::w1s:
        return Kind::w1s;
    case Access::w1c:
        return Kind::w1c;
    default:
        return Kind::rw;
    }
}

// A DMA function has the header and the capabilities of the NT endpoints (1.6).
constexpr bool is_header(const facts::Reg &r)
{
    return r.block == Block::nt_both && r.offset < dma_reg::global_control;
}

constexpr bool lies_in(const facts::Reg &r, Page page)
{
    switch (r.block) {
    case Block::chip:
        return page == port0;
    case Block::station:
        return page == port0 || page == station;
    case Block::port:
        return page == port0 || page == station || page == port;
    case Block::nt_both:
        return page == nt_virtual || page == nt_link || (page == dma_function && is_header(r));
    case Block::nt_virtual:
        return page == nt_virtual;
    case Block::nt_link:
        return page == nt_link;
    case Block::alut:
        return page == alut;
    case Block::dma:
        return page == dma_function;
    }
    return false;
}

constexpr Layout layout = [] {
    Layout l{};
    for (const facts::Reg &r : facts::regs)
        for (uint8_t page = 0; page < page_kinds; page++)
            for (uint32_t i = 0; lies_in(r, static_cast<Page>(page)) && i < r.count; i++)
                if (r.offset + i * r.stride < facts::block_size)
                    l.kind[page][(r.offset + i * r.stride) / 4] = kind_of(r.access);
    return l;
}();

struct Place {
    Page page = absent;
    unsigned nt = 0;
    uint32_t at = 0; ///< inside the page
};

Place nt_place(const Chip &chip, uint32_t offset)
{
    const uint32_t from_top = (facts::bar0_size - 1 - offset) / facts::block_size;
    const unsigned nt = from_top / 2;
    const Page page = from_top % 2 == 0 ? nt_link : nt_virtual;
    if (!facts::nt_port(get(chip, reg::vs0_upstream), nt).enabled)
        return {};
    return {page, nt, offset & page_mask};
}

Place place_of(const Chip &chip, uint32_t offset)
{
    const uint32_t block = offset / facts::block_size;
    if (offset >= facts::bar0_size || offset % 4 != 0)
        return {};
    if (offset >= nt_base(facts::nt_count - 1, Side::virt))
        return nt_place(chip, offset);
    if (offset >= facts::alut_array0_base)
        return {alut, 0, offset & page_mask};
    unsigned channel = 0;
    if (in_dma_function(chip, offset, &channel))
        return {dma_function, 0, offset & page_mask};
    if (block >= facts::port_count)
        return {};
    if (block % facts::ports_per_station != 0)
        return {port, 0, offset & page_mask};
    return {block == 0 ? port0 : station, 0, offset & page_mask};
}

Kind kind_at(const Place &place)
{
    return place.page == absent ? Kind::missing : layout.kind[place.page][place.at / 4];
}

// Doorbells and scratchpads are one set of registers, seen in both blocks of an NT port; the
// clear registers of a pair are another view of the set registers (FBSD, VCA R; D).
uint32_t canonical(const Place &place, uint32_t offset)
{
    if (place.page != nt_virtual && place.page != nt_link)
        return offset;
    if (place.at < reg::db_virt_set || place.at >= reg::spad[facts::spad_count])
        return offset;
    const uint32_t home = nt_base(place.nt, Side::virt);
    if (place.at >= reg::spad[0])
        return home + place.at;
    switch (place.at) {
    case reg::db_virt_clear:
        return home + reg::db_virt_set;
    case reg::db_virt_mask_clear:
        return home + reg::db_virt_mask_set;
    case reg::db_link_clear:
        return home + reg::db_link_set;
    case reg::db_link_mask_clear:
        return home + reg::db_link_mask_set;
    default:
        return home + place.at;
    }
}

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

constexpr bool within(facts::RegArray array, uint32_t at)
{
    return at >= array.first && at < array.first + array.count * array.stride;
}

// Header and capabilities, as every endpoint of the chip has them.
WriteMask header_mask(uint32_t at)
{
    switch (at) {
    case reg::pci_command_status:
        return {command_bits, command_status_w1c, 0};
    case reg::pcie_dev_ctl_status:
        return {low_half, dev_status_w1c, 0};
    case reg::pcie_link_ctl_status:
    case reg::pcie_link_ctl_status + 0x20: // LinkCtl2 (G: the capability's layout)
        return {low_half, 0, 0};
    case reg::msi_control:
        return {msi_bits, 0, 0};
    case reg::pcie_cap:
        return {0, 0, 0};
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

// ---- power-on

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

// What only an EEPROM gives, as far as any source tells.
bool shares_out_dma(uint32_t offset)
{
    const uint32_t first = facts::dma_base(0);
    return offset == first + dma_reg::global_control || offset == first + dma_reg::port_assign;
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
bool write_register(Chip &chip, uint32_t offset, uint32_t value, uint64_t now_ns, uint32_t lanes)
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
    WriteMask mask = mask_of(chip, place);
    mask.store &= lanes;
    mask.clear &= lanes;
    return store(chip, at, value, mask) && routes_by(chip, place, offset);
}

} // namespace

bool reg_write(Chip &chip, uint32_t offset, uint32_t value, uint64_t now_ns, uint32_t lanes)
{
    if (!write_register(chip, offset, value, now_ns, lanes))
        return false;
    chip.routes.fetch_add(1); // after the write: who still sees the old count has looked before it
    return true;
}

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
    if (kind_at(place) == Kind::missing || (!upstream && kept_by_firmware(place, offset, false)) ||
        (upstream && !facts::nt_port(value, cabled_nt(chip)).enabled))
        return;
    set(chip, offset, value);
}

} // namespace plx::twin
