// SPDX-License-Identifier: BSD-3-Clause
#include "window/exposed_memory.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cinttypes>
#include <cstring>

#include "queue/wire.hpp"
#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

constexpr uint64_t memory_bytes_max = wire::block_bytes_max;
constexpr uint32_t rights_known = RTE_PMD_PLX_NTB_MEMORY_WRITE | RTE_PMD_PLX_NTB_MEMORY_READ;
static_assert(RTE_PMD_PLX_NTB_MEMORY_WRITE == hw::rights_write &&
                  RTE_PMD_PLX_NTB_MEMORY_READ == hw::rights_read,
              "the public rights are the chip's");

/// The bus addresses of a range of @p memory: its pieces, cut to the range.
unsigned cut(const WindowMemory &memory, uint64_t at, uint64_t bytes, hw::Piece *out)
{
    const hw::Piece whole{memory.bus, memory.bytes};
    const hw::Piece *pieces = memory.pieces != nullptr ? memory.pieces : &whole;
    const unsigned count = memory.pieces != nullptr ? memory.piece_count : 1;
    unsigned n = 0;
    for (unsigned i = 0; i < count && bytes > 0; ++i) {
        if (at >= pieces[i].bytes) {
            at -= pieces[i].bytes;
            continue;
        }
        const uint64_t here = std::min(bytes, pieces[i].bytes - at);
        out[n++] = {pieces[i].address + at, here};
        bytes -= here;
        at = 0;
    }
    return n;
}

} // namespace

int ExposedMemory::refuse(int error, const char *what, uint64_t found, uint64_t expected) const
{
    PLX_LOG(ERR, "%s: window: expected %s: found 0x%" PRIx64 ", limit 0x%" PRIx64 "\n", device_,
            what, found, expected);
    return error;
}

// ---- the peer's window

int ExposedMemory::open(const WindowChoice &choice)
{
    choice_ = choice;
    map_.reset(0, 1u << choice_.split, 0);
    const hw::WindowRules rules = chip_.window_rules(hw::Chip::data_window);
    if (choice.split > rules.split_max()) {
        PLX_INIT_LOG(ERR,
                     "%s: split=%u: expected at most %u: a window is split by its A-LUT, which has "
                     "%u entries\n",
                     device_, choice.split, rules.split_max(), rules.entries);
        return -ENOTSUP;
    }
    return fit(0);
}

int ExposedMemory::fit(uint64_t block)
{
    const hw::WindowRules rules = chip_.window_rules(hw::Chip::data_window);
    const unsigned split = choice_.split;
    // Room for as much memory again as the block, or for the block in its part of the window.
    const uint64_t wanted =
        std::max({uint64_t{choice_.segment_kib} * 1024 * rules.entries,
                  block << std::max(split, 1u), uint64_t{facts::window_size_min}});
    // The size of the BAR is given.
    const uint64_t bytes = chip_.shared() ? rules.bytes_max : std::min(rules.bytes_max, wanted);
    if (block > bytes >> split) {
        PLX_INIT_LOG(ERR,
                     "%s: a block of %" PRIu64 " MiB does not fit the peer's window of %" PRIu64
                     " MiB: fewer or smaller buffers\n",
                     device_, block >> 20, bytes >> split >> 20);
        return -EINVAL;
    }
    if (rules.entries == 0)
        return 0;
    hw::Refusal why;
    const int rc = chip_.window_fix(bytes, &why);
    if (rc != 0)
        PLX_INIT_LOG(ERR, "%s: a window of 0x%" PRIx64 " bytes: expected %s\n", device_, bytes,
                     why.what);
    return rc;
}

uint64_t ExposedMemory::segment_bytes() const
{
    const hw::WindowRules rules = chip_.window_rules(hw::Chip::data_window);
    return rules.entries == 0 ? 0 : rules.segment(rules.bytes_min);
}

uint64_t ExposedMemory::block_min() const
{
    return std::max(segment_bytes(), wire::block_bytes_min);
}

void ExposedMemory::opened(uint64_t bytes)
{
    closed(); // opening began with that
    // A block of the window's size uses base and offset, and leaves no segment.
    const uint64_t segment = chip_.segment_bytes();
    const unsigned entries = chip_.window_rules(hw::Chip::data_window).entries;
    map_.reset(segment == 0 ? 0 : entries, 1u << choice_.split,
               segment == 0 ? 0 : static_cast<unsigned>(bytes / segment));
}

void ExposedMemory::closed()
{
    for (Exposure &exposure : exposures_)
        if (exposure.memory != nullptr)
            forget(&exposure);
    map_.reset(0, 1u << choice_.split, 0);
}

void ExposedMemory::forget(Exposure *exposure)
{
    if (map_.segments() != 0)
        map_.release(exposure->first, exposure->segments);
    --exposure->memory->exposures;
    *exposure = {};
}

// ---- memory

int ExposedMemory::alloc(size_t bytes, int node, rte_pmd_plx_ntb_memory *out)
{
    const hw::WindowRules rules = chip_.window_rules(hw::Chip::data_window);
    if (rules.entries == 0)
        return refuse(-ENOTSUP,
                      "a chip with an A-LUT, as memory cannot be exposed by base and offset", 0, 0);
    const uint64_t most = std::min(rules.bytes_min >> choice_.split, memory_bytes_max);
    if (bytes == 0 || bytes > most)
        return refuse(-EINVAL, "1 byte up to what one part of the window shows", bytes, most);
    Memory *place = std::find_if(memories_.begin(), memories_.end(),
                                 [](const Memory &m) { return m.memory.base == nullptr; });
    if (place == memories_.end())
        return refuse(-ENOSPC, "at most so many pieces of memory", memories_max, memories_max);

    const uint64_t whole = std::max(std::bit_ceil(uint64_t{bytes}), block_min());
    WindowMemory memory;
    int rc = platform_.ops->memory_alloc(platform_.ctx, whole, node, rules, &memory);
    if (rc == 0 && memory.bytes < whole) {
        platform_.ops->memory_free(platform_.ctx, memory);
        rc = -ENOMEM;
    }
    if (rc != 0)
        return refuse(rc, "memory that the window can show", whole, most);
    // Cleared: earlier contents must not leak to the peer.
    std::memset(memory.base, 0, memory.bytes);
    *place = {memory, 0};
    *out = {.address = memory.base, .bytes = memory.bytes};
    return 0;
}

int ExposedMemory::free(const void *address)
{
    Memory *found = std::find_if(memories_.begin(), memories_.end(), [address](const Memory &m) {
        return address != nullptr && m.memory.base == address;
    });
    if (found == memories_.end())
        return refuse(-ENOENT, "the start of memory that was allocated to be exposed",
                      reinterpret_cast<uintptr_t>(address), 0);
    if (found->exposures != 0)
        return refuse(-EBUSY, "memory that is not exposed any more: revoke it first",
                      found->exposures, 0);
    platform_.ops->memory_free(platform_.ctx, found->memory);
    *found = {};
    return 0;
}

void ExposedMemory::drop()
{
    for (Memory &m : memories_) {
        if (m.memory.base != nullptr)
            platform_.ops->memory_free(platform_.ctx, m.memory);
        m = {};
    }
}

ExposedMemory::Range ExposedMemory::locate(const void *address, size_t bytes)
{
    const auto at = reinterpret_cast<uintptr_t>(address);
    for (Memory &m : memories_) {
        const auto base = reinterpret_cast<uintptr_t>(m.memory.base);
        if (m.memory.base != nullptr && at >= base && at - base < m.memory.bytes &&
            bytes <= m.memory.bytes - (at - base))
            return {&m, at - base};
    }
    return {};
}

// ---- exposing

const ExposedMemory::Exposure *ExposedMemory::overlapping(const Range &range, size_t bytes) const
{
    for (const Exposure &g : exposures_)
        if (g.memory == range.memory && range.at < g.at + g.bytes && g.at < range.at + bytes)
            return &g;
    return nullptr;
}

int ExposedMemory::check_expose(const Range &range, size_t bytes, uint32_t rights,
                                uint32_t part) const
{
    const uint64_t segment = segment_bytes();
    if (segment == 0)
        return refuse(-ENOTSUP,
                      "a chip with an A-LUT, as memory cannot be exposed by base and offset", 0, 0);
    if ((rights & ~rights_known) != 0)
        return refuse(-EINVAL, "rights of read and write", rights, rights_known);
    if (part != RTE_PMD_PLX_NTB_MEMORY_ANY && part >= map_.parts())
        return refuse(-EINVAL, "one of the parts of the window, or any", part, map_.parts());
    if (range.memory == nullptr)
        return refuse(-EINVAL, "a range inside one such memory", bytes, 0);
    if (range.at % segment != 0)
        return refuse(-EINVAL, "an offset in the memory that is a multiple of the segment",
                      range.at, segment);
    if (bytes == 0 || bytes % segment != 0)
        return refuse(-EINVAL, "a size that is a multiple of the segment", bytes, segment);
    if (const Exposure *other = overlapping(range, bytes))
        return refuse(-EBUSY, "a range that is not exposed yet", range.at, other->at);
    if (!is_connected(link_.state()))
        return refuse(-ENOTCONN, "a peer: what is exposed belongs to a connection", 0, 0);
    return 0;
}

int ExposedMemory::show(const Range &range, size_t bytes, uint32_t rights, unsigned first)
{
    hw::Piece pieces[SegmentMap::segments_max];
    const unsigned count = cut(range.memory->memory, range.at, bytes, pieces);
    hw::Refusal why;
    const int rc = chip_.segments_set(first, pieces, count, rights, &why);
    return rc == -EINVAL ? refuse(rc, why.what, why.found, why.expected) : rc;
}

int ExposedMemory::expose(const void *address, size_t bytes, uint32_t rights, uint32_t part,
                          uint64_t *offset)
{
    const Range range = locate(address, bytes);
    int rc = check_expose(range, bytes, rights, part);
    if (rc != 0)
        return rc;
    rights = rights == 0 ? RTE_PMD_PLX_NTB_MEMORY_WRITE : rights;
    const auto segments = static_cast<unsigned>(bytes / segment_bytes());
    const int first =
        map_.take(segments, part == RTE_PMD_PLX_NTB_MEMORY_ANY ? SegmentMap::any : part);
    if (first < 0)
        return refuse(-ENOSPC, "as many free segments in a row", segments, map_.longest());
    Exposure *exposure = std::find_if(exposures_.begin(), exposures_.end(),
                                      [](const Exposure &g) { return g.memory == nullptr; });
    // There are no more exposures than segments, so there is a place.
    *exposure = {range.memory, range.at, bytes, rights, static_cast<unsigned>(first), segments};
    ++range.memory->exposures;
    rc = show(range, bytes, rights, exposure->first);
    if (rc == 0) {
        *offset = exposure->first * segment_bytes();
        return 0;
    }
    // Kept if the chip does not answer: the peer may have access.
    if (rc == -EINVAL || chip_.segments_clear(exposure->first, segments) == 0)
        forget(exposure);
    return rc == -EINVAL ? rc : refuse(-EIO, "a chip that answers", 0, 0);
}

ExposedMemory::Exposure *ExposedMemory::find_exact(const Range &range, size_t bytes)
{
    for (Exposure &g : exposures_)
        if (g.memory != nullptr && g.memory == range.memory && g.at == range.at && g.bytes == bytes)
            return &g;
    return nullptr;
}

int ExposedMemory::revoke(const void *address, size_t bytes)
{
    Exposure *exposure = find_exact(locate(address, bytes), bytes);
    if (exposure == nullptr)
        return -ENOENT; // not the caller's error: a loss of the peer may have come first
    if (chip_.segments_clear(exposure->first, exposure->segments) != 0)
        return refuse(-EIO, "a chip that answers", 0, 0);
    forget(exposure);
    return 0;
}

int ExposedMemory::find(const void *address, rte_pmd_plx_ntb_memory_exposed *out) const
{
    const auto at = reinterpret_cast<uintptr_t>(address);
    for (const Exposure &g : exposures_) {
        if (g.memory == nullptr)
            continue;
        const auto base = reinterpret_cast<uintptr_t>(g.base());
        if (at < base || at - base >= g.bytes)
            continue;
        *out = describe(g);
        return 0;
    }
    return -ENOENT;
}

rte_pmd_plx_ntb_memory_exposed ExposedMemory::describe(const Exposure &g) const
{
    return {.address = g.memory->memory.base + g.at,
            .bytes = g.bytes,
            .offset = g.first * segment_bytes(),
            .rights = g.rights,
            .part = g.first / map_.per_part()};
}

unsigned ExposedMemory::exposure_count() const
{
    return static_cast<unsigned>(
        std::count_if(exposures_.begin(), exposures_.end(),
                      [](const Exposure &g) { return g.memory != nullptr; }));
}

bool ExposedMemory::exposure(uint64_t index, rte_pmd_plx_ntb_memory_exposed *out) const
{
    for (const Exposure &g : exposures_)
        if (g.memory != nullptr && index-- == 0) {
            *out = describe(g);
            return true;
        }
    return false;
}

// ---- our window, and queries

int ExposedMemory::peer(uint64_t offset, size_t bytes, rte_pmd_plx_ntb_window_view *out) const
{
    if (!is_connected(link_.state()))
        return -ENOTCONN;
    // The peer's block lies at the start of our window and is not for applications.
    const uint64_t begin = link_.peer().block_bytes;
    const uint64_t end = platform_.window_bytes;
    if (bytes == 0 || offset < begin || offset >= end || bytes > end - offset)
        return refuse(-EINVAL, "a range of the peer's window behind its queue pairs", offset,
                      offset < begin ? begin : end);
    *out = {.address = platform_.window + offset,
            .bus = platform_.window_bus == 0 ? 0 : platform_.window_bus + offset};
    return 0;
}

void ExposedMemory::info(rte_pmd_plx_ntb_memory_info *out) const
{
    const hw::WindowRules rules = chip_.window_rules(hw::Chip::data_window);
    const bool alut = rules.entries != 0;
    out->translation = alut ? RTE_PMD_PLX_NTB_MEMORY_ALUT : RTE_PMD_PLX_NTB_MEMORY_BASE_OFFSET;
    out->window_bytes = alut ? rules.bytes_min : rules.bytes_max;
    out->segment_bytes = segment_bytes();
    out->segments = rules.entries;
    out->free_segments = map_.free();
    out->longest_free = map_.longest();
    out->parts = map_.parts();
    out->memory_bytes_max = alut ? std::min(rules.bytes_min >> choice_.split, memory_bytes_max) : 0;
    out->store_rights = platform_.store_rights;
}

int ExposedMemory::align(uint64_t bytes, rte_pmd_plx_ntb_memory_align *out) const
{
    const hw::WindowRules rules = chip_.window_rules(hw::Chip::data_window);
    // With an A-LUT the size of the peer's window is fixed when the device is configured, and with
    // it the segments'.
    out->size_max = rules.entries != 0 ? rules.bytes_min : rules.bytes_max;
    if (bytes > out->size_max)
        return -ERANGE;
    out->addr_align = out->size_align = rules.segment(bytes);
    return 0;
}

} // namespace plx::pmd
