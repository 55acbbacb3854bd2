// SPDX-License-Identifier: BSD-3-Clause
#include "plx_chip.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>

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
constexpr unsigned shared_bar = 4;
constexpr uint32_t pattern_probe = 0x12345678;
constexpr unsigned pattern_tries = 1000; // E2: of 1 us each

constexpr unsigned bar_of(unsigned window)
{
    return window == Chip::data_window ? 2 : shared_bar;
}

// The link bus is private to the two chips: addresses follow from the BAR number alone, so two
// drivers agree without a word.                                                        FBSD R
constexpr uint64_t link_bus(unsigned bar)
{
    return uint64_t{bar} << 61;
}

constexpr uint32_t low(uint64_t value)
{
    return static_cast<uint32_t>(value);
}
constexpr uint32_t high(uint64_t value)
{
    return static_cast<uint32_t>(value >> 32);
}

int refuse(Refusal *why, int error, const char *what, uint64_t found, uint64_t expected = 0)
{
    if (why != nullptr)
        *why = {what, found, expected};
    return error;
}

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

// What chips back to back make of their BARs on the link bus between them.
int check_plan(const ChipConfig &c, Refusal *why)
{
    if (!std::has_single_bit(c.bar4_bytes) || c.bar4_bytes < 2 * facts::window_size_min)
        return refuse(why, -EINVAL,
                      "BAR4: a power of two, at least 2 MiB, half of it for the peer's registers",
                      c.bar4_bytes, 2 * facts::window_size_min);
    // Windows must not run into each other on the link bus.
    if (c.bar2_bytes > link_bus(1) || c.bar4_bytes > link_bus(1))
        return refuse(why, -EINVAL, "BARs of at most 2^61 bytes",
                      c.bar2_bytes > c.bar4_bytes ? c.bar2_bytes : c.bar4_bytes, link_bus(1));
    return 0;
}

// Nobody has enumerated the link side if its BARs are empty, or hold what back-to-back drivers plan
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

struct Shape {
    uint64_t bytes = 0;
    bool alut = false;
};

int add_up(const WindowRules &rules, const Piece *pieces, unsigned count, uint64_t *bytes,
           Refusal *why)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; i++) {
        // Bounded before it is added, so the sum cannot wrap.
        if (pieces[i].bytes > rules.bytes_max - sum)
            return refuse(why, -EINVAL, "more bytes than the window shows", pieces[i].bytes,
                          rules.bytes_max - sum);
        if (pieces[i].address + pieces[i].bytes < pieces[i].address)
            return refuse(why, -EINVAL, "an address range that does not wrap", pieces[i].address);
        sum += pieces[i].bytes;
    }
    *bytes = sum;
    return 0;
}

// One block that base and offset can show; without an A-LUT nothing else will do.
int check_plain(const WindowRules &rules, const Piece &piece, uint32_t rights, Refusal *why)
{
    const uint64_t size = rules.bar_bytes(piece.bytes);
    if (rights != rights_all)
        return refuse(why, -EINVAL, "rights other than read and write need an A-LUT", rights,
                      rights_all);
    if (piece.bytes != size)
        return refuse(why, -EINVAL, "a size that is a power of two, at least 1 MiB", piece.bytes,
                      size);
    if ((piece.address & (size - 1)) != 0)
        return refuse(why, -EINVAL, "an address that is a multiple of the size", piece.address,
                      size);
    return 0;
}

// Segments are powers of two, as is what they divide.
int check_segments(const Piece *pieces, unsigned count, uint64_t segment, Refusal *why)
{
    for (unsigned i = 0; i < count; i++) {
        if ((pieces[i].address & (segment - 1)) != 0)
            return refuse(why, -EINVAL, "an address that is a multiple of the A-LUT segment",
                          pieces[i].address, segment);
        if (pieces[i].bytes == 0 || (pieces[i].bytes & (segment - 1)) != 0)
            return refuse(why, -EINVAL, "a size that is a multiple of the A-LUT segment",
                          pieces[i].bytes, segment);
    }
    return 0;
}

int check_shape(const WindowRules &rules, const Piece *pieces, unsigned count, uint32_t rights,
                Shape *shape, Refusal *why)
{
    const unsigned count_max = rules.entries == 0 ? 1 : rules.entries;
    if (count > count_max)
        return refuse(why, -EINVAL, "fewer pieces of memory", count, count_max);
    if ((rights & ~rights_all) != 0)
        return refuse(why, -EINVAL, "rights of read and write", rights, rights_all);
    if (const int rc = add_up(rules, pieces, count, &shape->bytes, why); rc != 0)
        return rc;
    if (shape->bytes == 0)
        return 0;
    if (rules.entries == 0)
        return check_plain(rules, pieces[0], rights, why);
    if (count == 1 && check_plain(rules, pieces[0], rights, nullptr) == 0)
        return 0;
    shape->alut = true;
    return check_segments(pieces, count, rules.segment(shape->bytes), why);
}

} // namespace

uint64_t WindowRules::bar_bytes(uint64_t bytes) const
{
    if (bytes > bytes_max)
        return 0;
    return bytes <= bytes_min ? bytes_min : std::bit_ceil(bytes);
}

uint64_t WindowRules::segment(uint64_t bytes) const
{
    return bar_bytes(bytes) / (entries == 0 ? 1 : entries);
}

unsigned WindowRules::split_max() const
{
    constexpr unsigned most = 7;
    return entries == 0 ? 0 : std::min(most, static_cast<unsigned>(std::countr_zero(entries)));
}

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
    requester_count_ = config.requester_count;
    for (unsigned i = 0; i < requester_count_; i++)
        requesters_[i] = config.requesters[i];
    hold_link_side_ = config.hold_link_side;
    return 0;
}

// The other host has enumerated them, so they are what they are. A BAR4 that is none shows nothing.
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

// A register of the chip that holds neither data nor state: reading it flushes what was written
// before, and tells a chip that answers from one that has gone. What is read in the place of that
// is all-ones, or zeros where EAL's hot-unplug handler has mapped them: a device id is neither.
int Chip::flush() const
{
    return io_.read32(own(reg::pci_id)) == id_.pci_id ? 0 : -ENODEV;
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
    // Last: until the link side may answer as target and master, nothing of the above can be hit.
    write_commands();
    return flush();
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

// VS_DEBUG belongs to the upstream port's block. KAO R; kept equal to what was asked for, so that
// a setting left by somebody else does not hold.
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

// Link BAR0 shows our registers to the peer at the start of its shared window.        FBSD R
void Chip::write_peer_csr() const
{
    constexpr uint64_t type_64bit = 4;
    io_.write32(far(reg::bar0_setup_link), peer_csr_open_ ? facts::bar0_setup_64bit : 0);
    write_far_pair(reg::pci_bar[0], link_bus(shared_bar) | type_64bit);
}

// What we send through BARs 2 and 4 goes to the addresses where the peer's link BARs listen. The
// A-LUT stands aside in this direction.                                               FBSD R
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

// 0:0 (CPU writes), the id of our own reads (E14, E17), the requesters given; the rest off,
// whatever a predecessor left.                                                         FBSD R
void Chip::write_own_lut(uint16_t own_id)
{
    LutEntry entries[facts::lut_entry_count];
    entries[0] = LutEntry::of(0);
    entries[1] = LutEntry::of(own_id);
    for (unsigned i = 0; i < requester_count_; i++)
        entries[2 + i] = LutEntry::of(requesters_[i]);

    const facts::RegArray table = reg::req_id_lut(id_.side);
    for (unsigned i = 0; i < facts::lut_entry_count; i += 2)
        io_.write32(own(table[i / 2]), facts::lut_dword(entries[i], entries[i + 1]));
    lut_mark_ = facts::lut_dword(entries[0], entries[1]);
}

// Back to back nobody gave the peer's link endpoint a bus number, so what it forwards comes as
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

// ---- windows

WindowRules Chip::window_rules(unsigned window) const
{
    WindowRules rules;
    if (window >= window_count)
        return rules;
    rules.bytes_max = bar_bytes_[window] - outbound_offset(window);
    rules.bytes_min = shared_                 ? rules.bytes_max
                      : window == data_window ? data_bytes_min_
                                              : facts::window_size_min;
    rules.entries = window == data_window ? id_.alut_entries : 0;
    return rules;
}

uint64_t Chip::outbound_offset(unsigned window) const
{
    return window == shared_window && !shared_ ? bar_bytes_[shared_window] / 2 : 0;
}

int Chip::window_set(unsigned window, const Piece *pieces, unsigned count, uint32_t rights,
                     Refusal *why)
{
    if (window >= window_count)
        return refuse(why, -EINVAL, "a window that exists", window, window_count - 1);
    Shape shape;
    if (const int rc = check_shape(window_rules(window), pieces, count, rights, &shape, why);
        rc != 0)
        return rc;
    if (shape.bytes == 0)
        return window_clear(window);

    // Closed in between: at no moment does the peer see a mixture of old and new.
    const int closed = window_clear(window);
    windows_[window] = {shape.bytes, pieces[0].address, shape.alut};
    if (shape.alut)
        record_alut(0, pieces, count, segment_bytes(), rights);
    if (closed != 0)
        return closed;
    open_window(window);
    return flush();
}

int Chip::window_clear(unsigned window)
{
    if (window >= window_count)
        return -EINVAL;
    windows_[window] = Window();
    if (window == data_window)
        forget_alut(0, id_.alut_entries);
    close_window(window);
    return flush();
}

int Chip::window_fix(uint64_t bytes, Refusal *why)
{
    if (id_.alut_entries == 0)
        return refuse(why, -ENOTSUP, "a chip with an A-LUT: base and offset show one block", 0);
    if (windows_[data_window].bytes != 0)
        return refuse(why, -EBUSY, "a closed window", windows_[data_window].bytes);
    if (!std::has_single_bit(bytes) || bytes < facts::window_size_min ||
        bytes > bar_bytes_[data_window])
        return refuse(why, -EINVAL, "a power of two from 1 MiB to BAR2", bytes,
                      bar_bytes_[data_window]);
    data_bytes_min_ = bytes;
    return 0;
}

uint64_t Chip::segment_bytes() const
{
    const Window &w = windows_[data_window];
    return w.alut ? window_rules(data_window).segment(w.bytes) : 0;
}

int Chip::segments_set(unsigned first, const Piece *pieces, unsigned count, uint32_t rights,
                       Refusal *why)
{
    const uint64_t segment = segment_bytes();
    if (segment == 0)
        return refuse(why, -EINVAL, "a data window that is open through the A-LUT", 0);
    if (rights == rights_none || (rights & ~rights_all) != 0)
        return refuse(why, -EINVAL, "rights of read and write, one at least", rights, rights_all);
    uint64_t bytes = 0;
    if (const int rc = add_up(window_rules(data_window), pieces, count, &bytes, why); rc != 0)
        return rc;
    if (const int rc = check_segments(pieces, count, segment, why); rc != 0)
        return rc;
    const uint64_t segments = bytes / segment;
    if (first > id_.alut_entries || segments == 0 || segments > id_.alut_entries - first)
        return refuse(why, -EINVAL, "segments that the A-LUT has", first + segments,
                      id_.alut_entries);

    const auto n = static_cast<unsigned>(segments);
    if (const int rc = segments_clear(first, n); rc != 0)
        return rc;
    record_alut(first, pieces, count, segment, rights);
    write_alut(first, n);
    write_alut_rights(first, n);
    const int rc = flush();
    if (rc != 0)
        forget_alut(first, n);
    return rc;
}

int Chip::segments_clear(unsigned first, unsigned count)
{
    if (first > id_.alut_entries || count > id_.alut_entries - first)
        return -EINVAL;
    forget_alut(first, count);
    write_alut_rights(first, count);
    return flush();
}

void Chip::forget_alut(unsigned first, unsigned count)
{
    std::fill_n(alut_ + first, count, AlutEntry());
}

void Chip::record_alut(unsigned first, const Piece *pieces, unsigned count, uint64_t segment,
                       uint32_t rights)
{
    unsigned n = first;
    for (unsigned i = 0; i < count; i++)
        for (uint64_t at = 0; at < pieces[i].bytes; at += segment)
            alut_[n++] = {pieces[i].address + at, rights};
}

// Set-up before BAR: the other way round may leave the BAR inconsistent (SDK R). The upper half
// carries the enable bit, so it goes last when opening and first when closing.
void Chip::write_setup(unsigned window, uint64_t bytes) const
{
    const unsigned bar = bar_of(window);
    const BarSetup setup = {bytes, true, true};
    const uint32_t csr = far(reg::bar_setup(Side::link, bar));
    if (bytes == 0)
        io_.write32(csr + 4, setup.high());
    io_.write32(csr, setup.low());
    if (bytes == 0)
        return;
    io_.write32(csr + 4, setup.high());
    write_far_pair(reg::pci_bar[bar], link_bus(bar) + outbound_offset(window));
}

// A closed window of chips back to back has no BAR; one whose BAR is another system's leads to the
// end of all addresses, where no memory is (I). Where a chip has an A-LUT, a closed data window is
// one that asks it and is granted nothing: that lasts even if a link loss puts the set-up register
// back to an open default.
void Chip::close_window(unsigned window) const
{
    if (shared_)
        write_far_pair(reg::bar_xlat(bar_of(window)), ~uint64_t{0});
    else
        write_setup(window, 0);
    if (window != data_window || id_.alut_entries == 0)
        return;
    for (uint32_t i = 0; i < id_.alut_entries; i++)
        io_.write32(alut_csr(reg::alut_permission, i), rights_none);
    io_.write32(own(reg::alut_control), field::alut_enable.put(1));
}

// From behind to front: what is reached first, then the way to it. In the block of the side that
// traffic goes to, ALUT_CONTROL decides between A-LUT and base (FBSD, VCA: D).
void Chip::open_window(unsigned window) const
{
    const Window &w = windows_[window];
    write_far_pair(reg::bar_xlat(bar_of(window)), w.alut ? ~uint64_t{0} : w.address);
    if (w.alut)
        write_alut(0, id_.alut_entries);
    if (window == data_window && id_.alut_entries != 0)
        io_.write32(own(reg::alut_control), field::alut_enable.put(w.alut));
    if (!shared_)
        write_setup(window, window_rules(window).bar_bytes(w.bytes));
    if (w.alut)
        write_alut_rights(0, id_.alut_entries);
}

/// Where what hits the far BAR2 is looked up.
uint32_t Chip::alut_csr(facts::RegArray part, uint32_t entry) const
{
    return facts::alut_array(id_.nt, other(id_.side), id_.alut_entries) +
           facts::alut_entry(part, entry);
}

// High, low, and known to be there before any right is granted: the flush is another register of
// the chip, because A-LUT RAM is not read (E6).                                        VCA R
void Chip::write_alut(unsigned first, unsigned count) const
{
    for (uint32_t i = first; i < first + count; i++) {
        io_.write32(alut_csr(reg::alut_upper, i), high(alut_[i].address));
        io_.write32(alut_csr(reg::alut_lower, i), low(alut_[i].address));
    }
    (void)flush();
}

void Chip::write_alut_rights(unsigned first, unsigned count) const
{
    for (uint32_t i = first; i < first + count; i++)
        io_.write32(alut_csr(reg::alut_permission, i), alut_[i].rights);
}

int Chip::set_peer_csr(bool open)
{
    if (shared_)
        return -ENOTSUP;
    peer_csr_open_ = open;
    write_peer_csr();
    return flush();
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

// One set of each is all that two hosts on one chip have.                              FBSD R
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

int Chip::peer_spad_read(const RegIo &peer, unsigned index, uint32_t *value) const
{
    if (index >= spad_count_)
        return -EINVAL;
    *value = peer_io(peer).read32(spad_csr(Whose::peer, index));
    return 0;
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
int Chip::link_disable()
{
    return on_virtual_side() ? port_set_disabled(true) : -ENOTSUP;
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
    // Only what was seen is cleared: what comes in between stays for the next call.
    *errors = status & facts::link_err_all;
    if (*errors != 0)
        io_.write32(own(reg::link_err_status), *errors);
    return 0;
}

} // namespace plx::hw
