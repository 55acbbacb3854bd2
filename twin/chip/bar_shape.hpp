// SPDX-License-Identifier: BSD-3-Clause
// What the set-up registers of an NT endpoint make of its BARs.
#ifndef PLX_TWIN_CHIP_BAR_SHAPE_HPP
#define PLX_TWIN_CHIP_BAR_SHAPE_HPP

#include "chip/chip.hpp"

namespace plx::twin
{

struct BarShape {
    bool enabled = false;
    bool is_64bit = false;
    uint64_t bytes = 0;
    uint64_t base = 0; ///< aligned to bytes
};
/// @param bar 0, 2, 3, 4 or 5; an upper half is not enabled
BarShape bar_shape(const Chip &chip, unsigned nt, facts::Side side, unsigned bar);

/// How the PCI BAR register @p index (0 to 5) stores a write: the bits that take it, and the
/// constant bits that are read along with them.
struct BarBits {
    uint32_t writable = 0;
    uint32_t constant = 0;
};
BarBits bar_bits(const Chip &chip, unsigned nt, facts::Side side, unsigned index);

/// The set-up word(s) of a 64-bit prefetchable BAR of @p bytes.
constexpr uint64_t setup_64bit(uint64_t bytes)
{
    return ~(bytes - 1) | 0xC;
}

} // namespace plx::twin

#endif
