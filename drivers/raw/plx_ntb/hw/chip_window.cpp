// SPDX-License-Identifier: BSD-3-Clause
// The windows of a chip: memory exposed to the peer, by base and offset or by A-LUT.
#include "chip.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "chip_plan.hpp"

namespace plx::hw
{

static_assert(bar_of(Chip::data_window) == 2 && bar_of(Chip::shared_window) == shared_bar);

namespace field = facts::field;
namespace reg = facts::reg;
using facts::BarSetup;
using facts::Side;

namespace
{

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

// One block that base and offset can expose; the only possibility without an A-LUT.
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

    // Closed in between: the peer never sees a mixture of old and new.
    const int closed = window_clear(window);
    windows_[window] = {shape.bytes, pieces[0].address, shape.alut};
    if (shape.alut)
        record_alut(0, pieces, count, segment_bytes(), rights);
    if (closed != 0)
        return closed;
    open_window(window);
    return flush_record();
}

int Chip::window_clear(unsigned window)
{
    if (window >= window_count)
        return -EINVAL;
    windows_[window] = Window();
    if (window == data_window)
        forget_alut(0, id_.alut_entries);
    close_window(window);
    return flush_record();
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
    const int rc = flush_record();
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
    return flush_record();
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

// Back to back, a closed window has no BAR. A closed window whose BAR belongs to another system
// leads to the end of the address space, where no memory is (I). With an A-LUT, a closed data
// window has entries without rights: this holds even if a link loss resets the set-up register to
// an open default.
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

// From the target to the source: translation first, then the BAR. In the block of the side that
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

/// Where addresses that hit the far BAR2 are translated.
uint32_t Chip::alut_csr(facts::RegArray part, uint32_t entry) const
{
    return facts::alut_array(id_.nt, other(id_.side), id_.alut_entries) +
           facts::alut_entry(part, entry);
}

// High and low address, flushed before any right is set: by another register of the chip, because
// A-LUT RAM is not read (E6).                                        VCA R
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

} // namespace plx::hw
