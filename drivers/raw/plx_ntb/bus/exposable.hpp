// SPDX-License-Identifier: BSD-3-Clause
// Which part of an allocation the chip can expose to the peer in one window: the search over bus
// addresses. No EAL: a pure function.
#ifndef PLX_NTB_BUS_EXPOSABLE_HPP
#define PLX_NTB_BUS_EXPOSABLE_HPP

#include <cstddef>
#include <cstdint>

#include "hw/chip.hpp"

namespace plx::pmd
{

/// Memory that is contiguous in virtual addresses, in pages whose bus addresses may be anything.
struct IovaMap {
    size_t bytes = 0;      ///< multiple of page_bytes
    size_t page_bytes = 0; ///< within a page bus addresses are contiguous
    uint64_t (*iova)(void *ctx, size_t offset) = nullptr; ///< of a page's start
    void *ctx = nullptr;
};

/// A part that one window can show.
struct Exposable {
    size_t offset = 0; ///< in the allocation
    size_t bytes = 0;  ///< power of two; 0: there is none
    unsigned pieces = 0;
};

/// Finds the largest part of @p map, at most @p bytes_max and at least @p bytes_min (both powers
/// of two), that a window under @p rules can show: by the A-LUT pieces that are multiples of its
/// segment, without it one run that is aligned to its own size. Alignment is looked at, page by
/// page, never inferred from virtual addresses.
/// @param pieces room for facts::alut_entries_one_nt: the part in bus addresses
Exposable find_exposable(const IovaMap &map, size_t bytes_max, size_t bytes_min,
                         const hw::WindowRules &rules, hw::Piece *pieces);

} // namespace plx::pmd

#endif
