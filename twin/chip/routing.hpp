// SPDX-License-Identifier: BSD-3-Clause
// Where an access through a window ends up: from one host's BAR through its chip, over the cable,
// and where there are two chips through the other chip's link BARs, into that host's memory or that
// chip's registers.
#ifndef PLX_TWIN_CHIP_ROUTING_HPP
#define PLX_TWIN_CHIP_ROUTING_HPP

#include "chip/chip.hpp"

namespace plx::twin
{

/// Memory blocks of one host: as many as an A-LUT has segments, so that each can be one of its own.
inline constexpr unsigned max_blocks = 256;
inline constexpr unsigned max_extents = 1024;
inline constexpr unsigned window_bars[] = {2, 4};
inline constexpr unsigned window_count = 2;

/// The CPU of a host as it is seen on the bus, and the windows it looks through.
struct Viewer {
    uint64_t bar_bytes[window_count] = {};
    uint16_t write_rid = 0;
    uint16_t read_rid = 0;
};

/// A block of memory on the far host's bus.
struct Region {
    bool present = false;
    uint64_t bus = 0;
    uint64_t bytes = 0;
    uint64_t page_bytes = 0;
    uint64_t generation = 0; ///< changes whenever other memory lies behind it; 0: none is known
};

/// A direction over the cable.
struct Way {
    const Chip *near = nullptr; ///< of the host that accesses
    const Chip *far = nullptr;  ///< NULL: nothing plugged in
    bool link_up = false;
    const Region *regions = nullptr;        ///< max_blocks, the far host's
    facts::Side enters = facts::Side::virt; ///< of the near chip
    bool one_chip = false; ///< there is no other: the far host is on its other side
};

/// Rights along a way, as an A-LUT entry has them.
inline constexpr uint8_t right_write = 1;
inline constexpr uint8_t right_read = 2;
inline constexpr uint8_t right_both = 3;

enum class Target : uint8_t { nothing, memory, csr };

/// One straight piece of a way.
struct Step {
    Target target = Target::nothing;
    uint8_t rights = 0;
    uint8_t region = 0;
    uint64_t at = 0;    ///< offset in the region, or CSR offset
    uint64_t bytes = 0; ///< how far this holds; at least 1
};
/// Follows address translation alone: requester IDs are the caller's, see admit().
/// @param offset below the window's @p bar_bytes
Step step(const Way &way, unsigned bar, uint64_t bar_bytes, uint64_t offset);

/// What the requester-ID tables along a way make of requester @p rid.
struct Admission {
    bool near = false;  ///< past the near chip's table
    bool far = false;   ///< past the far chip's link side, where there is one
    uint16_t proxy = 0; ///< who it is on the link
};
Admission admit(const Way &way, uint16_t rid);

/// A piece of a window that leads to memory.
struct Extent {
    uint64_t offset;
    uint64_t bytes;
    uint64_t at;         ///< offset in the region
    uint64_t generation; ///< of the region
    uint8_t window;      ///< index into window_bars
    uint8_t region;
    uint8_t rights; ///< of every requester that the tables admit
    bool direct;    ///< the host's CPU has both rights, and whole pages can be mapped
};
/// All that a host's windows show.
struct View {
    unsigned count = 0;
    bool overflow = false; ///< pieces beyond max_extents are not listed and not mapped
    Extent extents[max_extents];
};
void resolve(const Way &way, const Viewer &viewer, View *out);
bool same_view(const View &a, const View &b);
/// Whether @p before gave access to a byte of @p region, or a right on it, that @p after does not.
bool shrinks(const View &before, const View &after, unsigned region);
/// Whether a view leads into @p region at all.
bool reaches(const View &view, unsigned region);

} // namespace plx::twin

#endif
