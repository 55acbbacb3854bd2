// SPDX-License-Identifier: BSD-3-Clause
#include "chip.hpp"

#include <bit>
#include <cerrno>

#include "chip_plan.hpp"

namespace plx::hw
{

namespace field = facts::field;
namespace reg = facts::reg;
using facts::BarSetup;
using facts::LutEntry;
using facts::Side;

namespace
{

constexpr uint32_t all_ones = ~uint32_t{0};
constexpr uint32_t pattern_probe = 0x12345678;
constexpr unsigned pattern_tries = 1000; // E2: of 1 us each

int check_config(const ChipConfig &c, Refusal *why)
{
    if (!std::has_single_bit(c.bar2_bytes) || c.bar2_bytes < facts::window_size_min)
        return refuse(why, -EINVAL, "BAR2: a power of two, at least 1 MiB", c.bar2_bytes,
                      facts::window_size_min);
    if (c.requester_count > Chip::requesters_max)
        return refuse(why, -EINVAL, "more requesters than the requester-ID table holds",
                      c.requester_count, Chip::requesters_max);
    return 0;
}

// The plan of the link bus between two chips back to back: addresses of their BARs.
int check_plan(const ChipConfig &c, Refusal *why)
{
    if (!std::has_single_bit(c.bar4_bytes) || c.bar4_bytes < 2 * facts::window_size_min)
        return refuse(why, -EINVAL,
                      "BAR4: a power of two, at least 2 MiB, half of it for the peer's registers",
                      c.bar4_bytes, 2 * facts::window_size_min);
    // Windows must not overlap on the link bus.
    if (c.bar2_bytes > link_bus(1) || c.bar4_bytes > link_bus(1))
        return refuse(why, -EINVAL, "BARs of at most 2^61 bytes",
                      c.bar2_bytes > c.bar4_bytes ? c.bar2_bytes : c.bar4_bytes, link_bus(1));
    return 0;
}

// The link side was never enumerated if its BARs are empty, or hold what back-to-back drivers plan
// (FBSD's addresses, which are ours; those of the SDK's samples), and no interrupt line is
// assigned.                                                                            SDK R
bool is_planned(uint64_t base)
{
    constexpr uint64_t plan_mask = (uint64_t{1} << 61) - 1;
    const bool sdk = base >> 28 == 1 || base >> 28 == 2;
    return (base & plan_mask & ~uint64_t{facts::bar0_size - 1}) == 0 || sdk;
}

bool link_side_is_enumerated(const RegIo &io, unsigned nt)
{
    const auto link = [&](uint32_t reg) { return io.read32(facts::nt_base(nt, Side::link) + reg); };
    const auto base = [&](unsigned bar) {
        constexpr uint32_t type_bits = 0xF;
        constexpr uint32_t type_64bit = 4;
        const uint32_t lower = link(reg::pci_bar[bar]);
        const uint64_t upper = (lower & type_64bit) != 0 ? link(reg::pci_bar[bar + 1]) : 0;
        return upper << 32 | (lower & ~type_bits);
    };
    const uint32_t line = link(reg::pci_int_line_pin) & 0xFF;
    return !is_planned(base(0)) || !is_planned(base(2)) || (line != 0 && line != 0xFF);
}

int choose_topology(const RegIo &io, const Identity &id, Topology asked, bool *shared, Refusal *why)
{
    if (id.side == Side::link && asked == Topology::back_to_back)
        return refuse(why, -ENOTSUP, "the virtual side: chips back to back are driven from there",
                      facts::nt_base(id.nt, id.side));
    *shared = asked == Topology::root_port || id.side == Side::link ||
              (asked == Topology::automatic && link_side_is_enumerated(io, id.nt));
    return 0;
}

struct DoorbellRegs {
    uint32_t set;
    uint32_t clear;
    uint32_t mask;
    uint32_t unmask;
};
constexpr DoorbellRegs doorbell_regs(Side side)
{
    if (side == Side::virt)
        return {reg::db_virt_set, reg::db_virt_clear, reg::db_virt_mask_set,
                reg::db_virt_mask_clear};
    return {reg::db_link_set, reg::db_link_clear, reg::db_link_mask_set, reg::db_link_mask_clear};
}

} // namespace

int Chip::open(const RegIo &io, const ChipConfig &config, Refusal *why)
{
    Identity id;
    if (const int rc = identify(io, &id, why); rc != 0)
        return rc;
    bool shared = false;
    if (const int rc = choose_topology(io, id, config.topology, &shared, why); rc != 0)
        return rc;
    if (const int rc = check_config(config, why); rc != 0)
        return rc;
    if (const int rc = shared ? 0 : check_plan(config, why); rc != 0)
        return rc;

    *this = Chip();
    io_ = io;
    id_ = id;
    shared_ = shared;
    bar_bytes_[data_window] = config.bar2_bytes;
    bar_bytes_[shared_window] = config.bar4_bytes;
    if (const int rc = shared ? read_far_bars(why) : 0; rc != 0) {
        *this = Chip();
        return rc;
    }
    for (unsigned i = 0; i < config.requester_count; i++)
        requesters_[i] = {config.requesters[i], Entry::given};
    hold_link_side_ = config.hold_link_side;
    return 0;
}

// The other host has enumerated the BARs, so their sizes are given. An absent BAR4 exposes nothing.
int Chip::read_far_bars(Refusal *why)
{
    for (unsigned w = 0; w < window_count; w++) {
        const uint32_t at = far(reg::bar_setup(other(id_.side), bar_of(w)));
        const uint32_t lower = io_.read32(at);
        const uint32_t upper = io_.read32(at + 4);
        const BarSetup setup = BarSetup::decode(lower, upper);
        bar_bytes_[w] = setup.is_64bit ? setup.size : 0;
        if (w == data_window && bar_bytes_[w] == 0)
            return refuse(why, -ENOTSUP, "a 64-bit BAR2 of a power of two on the other side",
                          uint64_t{upper} << 32 | lower);
    }
    return 0;
}

// Reads a register without state: this flushes earlier writes, and shows whether the chip answers.
// A removed chip reads as all-ones, or as zeros if EAL's hot-unplug handler has mapped them; a
// device id is neither.
int Chip::flush() const
{
    return io_.read32(own(reg::pci_id)) == id_.pci_id ? 0 : -ENODEV;
}

int Chip::flush_record()
{
    const int rc = flush();
    behind_record_ = behind_record_ || rc != 0;
    return rc;
}

int Chip::start()
{
    quiet();
    close_window(data_window);
    close_window(shared_window);
    doorbells_clear(facts::doorbell_mask);
    if (!shared_)
        io_.write32(own(reg::db_link_clear), facts::doorbell_mask);
    if (on_virtual_side())
        io_.write32(own(reg::link_err_status), facts::link_err_all);
    if (const int rc = flush(); rc != 0)
        return rc;
    clear_spads();
    return program_all();
}

int Chip::program_all()
{
    const uint32_t own_id = io_.read32(own(reg::req_id_readback));
    if (own_id == all_ones)
        return -ENODEV;
    if (on_virtual_side())
        write_hold();
    if (!shared_) {
        write_peer_csr();
        write_outbound();
        write_link_lut();
    }
    write_own_lut(static_cast<uint16_t>(field::req_id.get(own_id)));
    for (unsigned w = 0; w < window_count; w++) {
        if (windows_[w].bytes == 0)
            close_window(w);
        else
            open_window(w);
    }
    // Last: before this, no request from the link side can reach what was set up above.
    write_commands();
    const int rc = flush();
    if (rc == 0)
        forget_requesters(true);
    behind_record_ = rc != 0;
    return rc;
}

int Chip::shut_down(bool keep_link)
{
    if (io_.ops == nullptr)
        return 0; // never opened
    quiet();
    for (unsigned w = 0; w < window_count; w++) {
        windows_[w] = Window();
        close_window(w);
    }
    forget_alut(0, id_.alut_entries);
    forget_requesters(false);
    if (const int rc = flush(); rc != 0)
        return rc;
    if (!keep_link && on_virtual_side())
        if (const int rc = port_set_disabled(true); rc != 0)
            return rc;
    const uint32_t command = io_.config_read32(reg::pci_command_status) & 0xFFFF;
    io_.config_write32(reg::pci_command_status, command & ~field::bus_master.mask());
    return flush();
}

// Poll mode: nothing may interrupt.
void Chip::quiet() const
{
    if (on_virtual_side())
        io_.write32(own(reg::link_err_mask), facts::link_err_all);
    doorbells_mask(facts::doorbell_mask);
    if (!shared_)
        io_.write32(own(reg::db_link_mask_set), facts::doorbell_mask);
}

// ---- the parts of program_all()

// VS_DEBUG belongs to the upstream port's block. KAO R. Always written, so that no setting of
// another driver remains.
void Chip::write_hold() const
{
    if (!id_.quirks.has(Quirk::link_loss_wipes))
        return;
    const uint32_t csr = facts::port_base(id_.upstream_port) + reg::vs_debug;
    io_.write32(csr, field::dl_down_reset_disable.set(io_.read32(csr), hold_link_side_));
}

void Chip::write_far_pair(uint32_t low_reg, uint64_t value) const
{
    io_.write32(far(low_reg), low(value));
    io_.write32(far(low_reg) + 4, high(value));
}

// Link BAR0 exposes our registers to the peer at the start of its shared window.        FBSD R
void Chip::write_peer_csr() const
{
    constexpr uint64_t type_64bit = 4;
    io_.write32(far(reg::bar0_setup_link), peer_csr_open_ ? facts::bar0_setup_64bit : 0);
    write_far_pair(reg::pci_bar[0], link_bus(shared_bar) | type_64bit);
}

// Requests through BARs 2 and 4 go to the addresses of the peer's link BARs. The A-LUT is not used
// in this direction.                                               FBSD R
void Chip::write_outbound() const
{
    for (unsigned w = 0; w < window_count; w++) {
        const unsigned bar = bar_of(w);
        io_.write32(own(reg::bar_xlat(bar)), low(link_bus(bar)));
        io_.write32(own(reg::bar_xlat(bar)) + 4, high(link_bus(bar)));
    }
    if (id_.alut_entries != 0)
        io_.write32(far(reg::alut_control), 0);
}

// Back to back the peer's link endpoint has no bus number, so what it forwards comes as
// 0:<index in its table>.                                                              FBSD R
void Chip::write_link_lut() const
{
    for (uint8_t i = 0; i < facts::lut_entry_count; i = static_cast<uint8_t>(i + 2)) {
        const LutEntry even = {true, false, 0, i};
        const LutEntry odd = {true, false, 0, static_cast<uint8_t>(i + 1)};
        io_.write32(far(reg::req_id_lut_link[i / 2u]), facts::lut_dword(even, odd));
    }
}

// The upper half of the dword is status that a one clears: it is written as zero.
void Chip::write_commands() const
{
    constexpr uint32_t on = field::mem_enable.mask() | field::bus_master.mask();
    const uint32_t own = io_.config_read32(reg::pci_command_status) & 0xFFFF;
    io_.config_write32(reg::pci_command_status, own | on);
    if (!shared_)
        io_.write32(far(reg::pci_command_status), on);
}

// ---- the peer's access to registers

int Chip::set_peer_csr(bool open)
{
    if (shared_)
        return -ENOTSUP;
    peer_csr_open_ = open;
    write_peer_csr();
    return flush_record();
}

// ---- doorbells

void Chip::ring(const RegIo &peer, uint16_t bits) const
{
    // Back to back the peer is on the virtual side of its chip; else on the side opposite to ours.
    const DoorbellRegs regs = doorbell_regs(shared_ ? other(id_.side) : Side::virt);
    peer_io(peer).write32(own(regs.set), bits);
}

uint16_t Chip::doorbells() const
{
    return static_cast<uint16_t>(io_.read32(own(doorbell_regs(id_.side).clear)));
}

void Chip::doorbells_clear(uint16_t bits) const
{
    io_.write32(own(doorbell_regs(id_.side).clear), bits);
}
void Chip::doorbells_mask(uint16_t bits) const
{
    io_.write32(own(doorbell_regs(id_.side).mask), bits);
}
void Chip::doorbells_unmask(uint16_t bits) const
{
    io_.write32(own(doorbell_regs(id_.side).unmask), bits);
}

// ---- scratchpads

// Two hosts on one chip share one set of each.                              FBSD R
uint32_t Chip::spad_csr(Whose whose, unsigned index) const
{
    const bool upper = shared_ && on_virtual_side() != (whose == Whose::own);
    const unsigned spads = plain_spads();
    if (index < spads)
        return own(reg::spad[index + (upper ? spads : 0)]);
    const unsigned patterns = facts::test_pattern_count / 2;
    return facts::test_pattern(id_.nt, index - spads + (upper ? patterns : 0));
}

int Chip::spad_read(unsigned index, uint32_t *value) const
{
    if (index >= spad_count_)
        return -EINVAL;
    *value = io_.read32(spad_csr(Whose::own, index));
    return *value == all_ones || *value == 0 ? flush() : 0;
}

unsigned Chip::plain_spads() const
{
    return shared_ ? facts::spad_count / 2 : facts::spad_count;
}

int Chip::spad_write(unsigned index, uint32_t value) const
{
    if (index >= spad_count_)
        return -EINVAL;
    const uint32_t csr = spad_csr(Whose::own, index);
    if (index >= plain_spads())
        return write_pattern(csr, value);
    io_.write32(csr, value);
    return 0;
}

int Chip::write_pattern(uint32_t csr, uint32_t value) const
{
    const unsigned tries = id_.quirks.has(Quirk::pattern_write_lock) ? pattern_tries : 1;
    for (unsigned i = 0; i < tries; i++) {
        if (i != 0)
            io_.delay_us(1);
        io_.write32(csr, value);
        if (io_.read32(csr) == value)
            return 0;
    }
    return -EAGAIN;
}

// The test-pattern registers are there if one keeps what is written to it.             FBSD R
bool Chip::has_pattern() const
{
    return write_pattern(spad_csr(Whose::own, plain_spads()), pattern_probe) == 0;
}

void Chip::clear_spads()
{
    spad_count_ = plain_spads();
    if (has_pattern())
        spad_count_ += facts::test_pattern_count / (shared_ ? 2 : 1);
    for (unsigned i = 0; i < spad_count_; i++)
        io_.write32(spad_csr(Whose::own, i), 0);
}

int Chip::peer_spad_write(const RegIo &peer, unsigned index, uint32_t value) const
{
    if (index >= spad_count_)
        return -EINVAL;
    peer_io(peer).write32(spad_csr(Whose::peer, index), value);
    return 0;
}

// ---- link

int Chip::port_set_disabled(bool disabled) const
{
    const uint32_t csr = facts::station_base(id_.nt_port) + reg::port_control;
    const uint32_t bit = uint32_t{1} << id_.nt_port % facts::ports_per_station;
    const uint32_t now = io_.read32(csr);
    if (now == all_ones)
        return -ENODEV;
    io_.write32(csr, disabled ? now | bit : now & ~bit);
    return flush();
}

int Chip::link_enable()
{
    return on_virtual_side() ? port_set_disabled(false) : flush();
}

int Chip::link_status(LinkStatus *out) const
{
    *out = LinkStatus();
    const uint32_t status = io_.read32(own(reg::pcie_link_ctl_status));
    if (status == all_ones)
        return -ENODEV;
    if (status == 0)
        return flush(); // down, or gone
    out->width = static_cast<uint8_t>(field::link_width.get(status));
    out->up = out->width != 0;
    if (out->up)
        out->speed = static_cast<uint8_t>(field::link_speed.get(status));
    return 0;
}

int Chip::link_errors_take(uint32_t *errors) const
{
    *errors = 0;
    if (!on_virtual_side()) {
        const uint32_t mark = io_.read32(own(reg::req_id_lut_link[0]));
        if (mark != lut_mark_)
            *errors = field::err_link_change.mask();
        return mark == lut_mark_ ? 0 : flush();
    }
    const uint32_t status = io_.read32(own(reg::link_err_status));
    if (status == all_ones)
        return -ENODEV;
    if (status == 0)
        return flush();
    // Only errors that were read are cleared; a new one remains for the next call.
    *errors = status & facts::link_err_all;
    if (*errors != 0)
        io_.write32(own(reg::link_err_status), *errors);
    return 0;
}

} // namespace plx::hw
