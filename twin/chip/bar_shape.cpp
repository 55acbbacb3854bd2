// SPDX-License-Identifier: BSD-3-Clause
#include "chip/bar_shape.hpp"

namespace plx::twin
{

namespace
{
using facts::Side;
namespace reg = facts::reg;

constexpr uint32_t type_64bit = 0x4;                    // FBSD, KAO R
constexpr uint32_t type_bits = 0xF;                     //
constexpr uint64_t granule_mask = ~uint64_t{0xFFFFF};   // FBSD R: sizes start at 1 MiB
constexpr uint32_t bar0_mask = ~(facts::bar0_size - 1); // FBSD R: 256 KiB

struct Setup {
    bool enabled;
    bool is_64bit;
    uint64_t mask; // ones: address bits that the BAR decodes
    uint32_t type;
};

// Link BAR0: 2 is 32-bit, 3 is 64-bit (FBSD R). Virtual BAR0 has no set-up register that anything
// writes (Q3): a 32-bit BAR here.
Setup setup_of_bar0(const Chip &chip, unsigned nt, Side side)
{
    const uint32_t e4 =
        side == Side::link ? get(chip, nt_base(nt, side) + reg::bar0_setup_link) : 2;
    const bool wide = (e4 & 3) == 3;
    const uint64_t mask = wide ? ~uint64_t{facts::bar0_size - 1} : bar0_mask;
    return {(e4 & 2) != 0, wide, mask, wide ? type_64bit : 0};
}

bool is_upper_half(const Chip &chip, unsigned nt, Side side, unsigned bar)
{
    return (bar == 3 || bar == 5) &&
           (get(chip, nt_base(nt, side) + reg::bar_setup(side, bar - 1)) & type_64bit) != 0;
}

Setup setup_of(const Chip &chip, unsigned nt, Side side, unsigned bar)
{
    if (bar == 0)
        return setup_of_bar0(chip, nt, side);
    const uint32_t at = nt_base(nt, side) + reg::bar_setup(side, bar);
    const uint32_t low = get(chip, at);
    const bool wide = (bar == 2 || bar == 4) && (low & type_64bit) != 0;
    if (wide) {
        const uint64_t mask = get64(chip, at) & granule_mask;
        return {mask >> 63 != 0, true, mask, low & type_bits};
    }
    const uint32_t mask = low & static_cast<uint32_t>(granule_mask);
    return {mask >> 31 != 0, false, mask, low & type_bits & ~type_64bit};
}
} // namespace

BarShape bar_shape(const Chip &chip, unsigned nt, Side side, unsigned bar)
{
    BarShape shape;
    if (bar == 1 || bar > 5 || is_upper_half(chip, nt, side, bar))
        return shape;
    const Setup setup = setup_of(chip, nt, side, bar);
    if (!setup.enabled)
        return shape;
    const uint32_t at = nt_base(nt, side) + reg::pci_bar[bar];
    shape.enabled = true;
    shape.is_64bit = setup.is_64bit;
    // The lowest decoded bit gives the size even where a mask with holes was written.
    shape.bytes = setup.mask & (~setup.mask + 1);
    shape.base = (setup.is_64bit ? get64(chip, at) : get(chip, at)) & ~(shape.bytes - 1);
    return shape;
}

BarBits bar_bits(const Chip &chip, unsigned nt, Side side, unsigned index)
{
    if (index == 1 || is_upper_half(chip, nt, side, index)) {
        const Setup lower = setup_of(chip, nt, side, index - 1);
        return {lower.enabled && lower.is_64bit ? static_cast<uint32_t>(lower.mask >> 32) : 0, 0};
    }
    const Setup setup = setup_of(chip, nt, side, index);
    if (!setup.enabled)
        return {};
    return {static_cast<uint32_t>(setup.mask), setup.type};
}

} // namespace plx::twin
