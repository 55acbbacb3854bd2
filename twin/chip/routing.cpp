// SPDX-License-Identifier: BSD-3-Clause
#include "chip/routing.hpp"

#include "chip/bar_shape.hpp"
#include "plx_fields.hpp"

#include <algorithm>

namespace plx::twin
{

namespace
{
using facts::Side;
namespace reg = facts::reg;
namespace field = facts::field;

constexpr unsigned link_bars[] = {0, 2, 3, 4, 5}; // in order of decoding
constexpr unsigned max_steps = 1u << 17;          // what resolve() spends on a scrambled chip

struct Translated {
    uint64_t address;
    uint64_t bytes; // up to here the translation is linear
    uint8_t rights;
};

bool flag(const Chip &chip, Side side, const facts::Field &bit)
{
    return bit.get(get(chip, nt_block(chip, side) + reg::pci_command_status)) != 0;
}

// C94 of a block governs traffic towards its side (D from three consistent uses, Q2).
uint32_t alut_entries(const Chip &chip, Side hit)
{
    const uint32_t control = get(chip, nt_block(chip, other(hit)) + reg::alut_control);
    if (field::alut_enable.get(control) == 0)
        return 0;
    return facts::alut_entries(get(chip, reg::vs0_upstream), cabled_nt(chip));
}

Translated by_alut(const Chip &chip, Side hit, uint32_t entries, uint64_t size, uint64_t offset)
{
    const uint64_t segment = size / entries;
    const uint32_t i = static_cast<uint32_t>(offset / segment);
    const uint32_t base = facts::alut_array(cabled_nt(chip), hit, entries);
    const uint64_t high = get(chip, base + facts::alut_entry(reg::alut_upper, i));
    const uint64_t low = get(chip, base + facts::alut_entry(reg::alut_lower, i));
    const uint32_t rights = get(chip, base + facts::alut_entry(reg::alut_permission, i));
    const uint64_t inside = offset % segment;
    return {((high << 32 | low) & ~(segment - 1)) | inside, segment - inside,
            static_cast<uint8_t>(rights & facts::alut_rights_all)};
}

// An access that hit a BAR of @p size at @p offset, on its way out at the other side.
Translated translate(const Chip &chip, Side hit, unsigned bar, const BarShape &shape,
                     uint64_t offset)
{
    const uint32_t entries = bar == 2 ? alut_entries(chip, hit) : 0;
    if (entries != 0)
        return by_alut(chip, hit, entries, shape.bytes, offset);
    const uint32_t at = nt_block(chip, hit) + reg::bar_xlat(bar);
    const uint64_t base = shape.is_64bit ? get64(chip, at) : get(chip, at);
    return {(base & ~(shape.bytes - 1)) | offset, shape.bytes - offset, right_both};
}

struct Hit {
    bool found = false;
    unsigned bar = 0;
    BarShape shape;
    uint64_t offset = 0;
    uint64_t bytes = 0; // up to here the same BAR, or none, is hit
};

Hit hit_link_bar(const Chip &chip, uint64_t address)
{
    Hit hit;
    hit.bytes = ~uint64_t{0} - address;
    if (!flag(chip, Side::link, field::mem_enable))
        return hit;
    for (const unsigned bar : link_bars) {
        const BarShape shape = bar_shape(chip, cabled_nt(chip), Side::link, bar);
        const uint64_t bytes = bar == 0 ? uint64_t{facts::bar0_size} : shape.bytes;
        if (!shape.enabled)
            continue;
        if (shape.base > address)
            hit.bytes = std::min(hit.bytes, shape.base - address);
        else if (!hit.found && address - shape.base < bytes) {
            hit.found = true;
            hit.bar = bar;
            hit.shape = shape;
            hit.offset = address - shape.base;
            hit.bytes = std::min(hit.bytes, bytes - hit.offset);
        }
    }
    return hit;
}

// The far host's memory at a bus address; up to where that holds goes to @p step.
void find_region(const Region *regions, uint64_t bus, Step *step)
{
    for (unsigned i = 0; i < max_blocks; i++) {
        const Region &r = regions[i];
        if (!r.present)
            continue;
        if (r.bus > bus) {
            step->bytes = std::min(step->bytes, r.bus - bus);
        } else if (bus - r.bus < r.bytes) {
            step->target = Target::memory;
            step->region = static_cast<uint8_t>(i);
            step->at = bus - r.bus;
            step->bytes = std::min(step->bytes, r.bytes - step->at);
            return;
        }
    }
}

// From the far chip's link side on.
Step arrive(const Way &way, uint64_t address, Step step)
{
    const Hit hit = hit_link_bar(*way.far, address);
    step.bytes = std::min(step.bytes, std::max<uint64_t>(hit.bytes, 1));
    if (!hit.found)
        return step;
    if (hit.bar == 0) {
        step.target = Target::csr;
        step.at = hit.offset;
        return step;
    }
    const Translated out = translate(*way.far, Side::link, hit.bar, hit.shape, hit.offset);
    step.bytes = std::min(step.bytes, out.bytes);
    step.rights &= out.rights;
    if (step.rights != 0 && flag(*way.far, Side::virt, field::bus_master))
        find_region(way.regions, out.address, &step);
    return step;
}

bool table_match(const Chip &chip, Side side, uint16_t rid, unsigned *index)
{
    const facts::RegArray table = reg::req_id_lut(side);
    for (unsigned i = 0; i < facts::lut_entry_count; i++) {
        const uint32_t dword = get(chip, nt_block(chip, side) + table[i / 2]);
        if (facts::LutEntry::decode(static_cast<uint16_t>(dword >> i % 2 * 16)).matches(rid)) {
            *index = i;
            return true;
        }
    }
    return false;
}

bool table_empty(const Chip &chip, Side side)
{
    const facts::RegArray table = reg::req_id_lut(side);
    uint32_t all = 0;
    for (unsigned i = 0; i < table.count; i++)
        all |= get(chip, nt_block(chip, side) + table[i]);
    return (all & 0x00010001) == 0;
}

bool admits_cpu(const Way &way, const Viewer &viewer)
{
    const Admission write = admit(way, viewer.write_rid);
    const Admission read = admit(way, viewer.read_rid);
    return write.near && write.far && read.near && read.far;
}

bool whole_pages(const Extent &e, uint64_t page)
{
    return page != 0 && ((e.offset | e.at | e.bytes) & (page - 1)) == 0;
}

// Whether a border between segments runs through a page: the pages can only be mapped together.
bool splits_page(const Extent &last, const Extent &next, uint64_t page)
{
    const bool continues = last.window == next.window && last.region == next.region &&
                           last.rights == next.rights && last.offset + last.bytes == next.offset &&
                           last.at + last.bytes == next.at;
    return continues && page != 0 && ((next.offset | next.at) & (page - 1)) != 0;
}

void add(View *out, const Extent &extent, uint64_t page)
{
    Extent *last = out->count == 0 ? nullptr : &out->extents[out->count - 1];
    if (last != nullptr && splits_page(*last, extent, page))
        last->bytes += extent.bytes;
    else if (out->count < max_extents)
        out->extents[out->count++] = extent;
    else
        out->overflow = true;
}

void resolve_window(const Way &way, uint8_t window, uint64_t bytes, View *out)
{
    unsigned steps = 0;
    for (uint64_t offset = 0; offset < bytes; steps++) {
        if (steps == max_steps) {
            out->overflow = true;
            return;
        }
        const Step s = step(way, window_bars[window], bytes, offset);
        if (s.target == Target::memory) {
            const Region &r = way.regions[s.region];
            add(out, {offset, s.bytes, s.at, r.generation, window, s.region, s.rights, false},
                r.page_bytes);
        }
        offset += std::max<uint64_t>(s.bytes, 1);
    }
}

// What the CPU may both load from and store to, in pages that can be mapped.
void mark_direct(const Region *regions, View *out)
{
    for (unsigned i = 0; i < out->count; i++) {
        Extent &e = out->extents[i];
        e.direct = e.rights == right_both && e.generation != 0 &&
                   whole_pages(e, regions[e.region].page_bytes);
    }
}

bool same_extent(const Extent &a, const Extent &b)
{
    return a.offset == b.offset && a.bytes == b.bytes && a.at == b.at &&
           a.generation == b.generation && a.window == b.window && a.region == b.region &&
           a.rights == b.rights && a.direct == b.direct;
}

// How many bytes from @p at on some extent of @p view that permits at least what @p like does.
uint64_t permitted(const View &view, const Extent &like, uint64_t at)
{
    for (unsigned i = 0; i < view.count; i++) {
        const Extent &e = view.extents[i];
        const bool enough = (like.rights & ~e.rights) == 0 && (e.direct || !like.direct);
        if (e.region == like.region && enough && at >= e.at && at - e.at < e.bytes)
            return e.bytes - (at - e.at);
    }
    return 0;
}

bool covered(const View &view, const Extent &extent)
{
    for (uint64_t done = 0; done < extent.bytes;) {
        const uint64_t more = permitted(view, extent, extent.at + done);
        if (more == 0)
            return false;
        done += more;
    }
    return true;
}
} // namespace

Step step(const Way &way, unsigned bar, uint64_t bar_bytes, uint64_t offset)
{
    Step step;
    step.bytes = bar_bytes - offset;
    if (way.far == nullptr || !way.link_up)
        return step;
    const BarShape shape = bar_shape(*way.near, cabled_nt(*way.near), way.enters, bar);
    if (!shape.enabled || offset >= shape.bytes || !flag(*way.near, way.enters, field::mem_enable))
        return step;
    const Translated out = translate(*way.near, way.enters, bar, shape, offset);
    step.bytes = std::min(step.bytes, out.bytes);
    step.rights = out.rights;
    if (step.rights == 0 || !flag(*way.near, other(way.enters), field::bus_master))
        return step;
    if (!way.one_chip)
        return arrive(way, out.address, step);
    find_region(way.regions, out.address, &step);
    return step;
}

Admission admit(const Way &way, uint16_t rid)
{
    Admission a;
    unsigned index = 0;
    if (way.far == nullptr || !table_match(*way.near, way.enters, rid, &index))
        return a;
    a.near = true;
    // The bus of the endpoint where it leaves, 0 where it was not enumerated; the slot is the
    // device, the function stays.
    const uint32_t bus =
        get(*way.near, nt_block(*way.near, other(way.enters)) + reg::captured_bus) & 0xFF;
    a.proxy = static_cast<uint16_t>(bus << 8 | index << 3 | (rid & 7u));
    a.far = way.one_chip || table_match(*way.far, Side::link, a.proxy, &index);
    return a;
}

void resolve(const Way &way, const Viewer &viewer, View *out)
{
    out->count = 0;
    out->overflow = false;
    if (way.far == nullptr || !way.link_up || table_empty(*way.near, way.enters) ||
        (!way.one_chip && table_empty(*way.far, Side::link)))
        return;
    for (uint8_t window = 0; window < window_count; window++)
        resolve_window(way, window, viewer.bar_bytes[window], out);
    if (admits_cpu(way, viewer))
        mark_direct(way.regions, out);
}

bool same_view(const View &a, const View &b)
{
    return a.count == b.count && a.overflow == b.overflow &&
           std::equal(a.extents, a.extents + a.count, b.extents, same_extent);
}

bool shrinks(const View &before, const View &after, unsigned region)
{
    if (before.overflow)
        return true;
    for (unsigned i = 0; i < before.count; i++)
        if (before.extents[i].region == region && !covered(after, before.extents[i]))
            return true;
    return false;
}

bool reaches(const View &view, unsigned region)
{
    for (unsigned i = 0; i < view.count; i++)
        if (view.extents[i].region == region)
            return true;
    return view.overflow;
}

} // namespace plx::twin
