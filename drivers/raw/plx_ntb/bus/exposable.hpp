// SPDX-License-Identifier: BSD-3-Clause
// Finds the part of an allocation that the peer's window can show, by its bus addresses. No
// EAL: a pure function.
#ifndef PLX_NTB_BUS_EXPOSABLE_HPP
#define PLX_NTB_BUS_EXPOSABLE_HPP

#include <cstddef>
#include <cstdint>

#include "hw/chip.hpp"

namespace plx::pmd
{

/// Memory that is contiguous in virtual addresses, in pages with arbitrary bus addresses.
struct IovaMap {
    size_t bytes = 0;      ///< multiple of page_bytes
    size_t page_bytes = 0; ///< within a page bus addresses are contiguous
    uint64_t (*iova)(void *ctx, size_t offset) = nullptr; ///< of a page's start
    void *ctx = nullptr;
};

/// A part that the peer's window can show.
struct Exposable {
    size_t offset = 0; ///< in the allocation
    size_t bytes = 0;  ///< power of two; 0: there is none
    unsigned pieces = 0;
};

/// Finds the largest part of @p map, at most @p bytes_max and at least @p bytes_min (both powers
/// of two), that a window under @p rules can expose: with the A-LUT pieces that are multiples of
/// its segment, without it one block that is aligned to its own size. Alignment is checked page by
/// page, never derived from virtual addresses.
/// @param pieces room for facts::alut_entries_one_nt: the part in bus addresses
Exposable find_exposable(const IovaMap &map, size_t bytes_max, size_t bytes_min,
                         const hw::WindowRules &rules, hw::Piece *pieces);

} // namespace plx::pmd

#endif
