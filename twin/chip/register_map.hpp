// SPDX-License-Identifier: BSD-3-Clause
// Which register lies where in the CSR space of a chip.
#ifndef PLX_TWIN_CHIP_REGISTER_MAP_HPP
#define PLX_TWIN_CHIP_REGISTER_MAP_HPP

#include "chip/chip.hpp"

namespace plx::twin
{

inline constexpr uint32_t page_mask = facts::block_size - 1;

/// The kinds of 4 KiB blocks in the CSR space; each is laid out once.
enum Page : uint8_t {
    port0,
    station,
    port,
    nt_virtual,
    nt_link,
    alut,
    dma_function,
    page_kinds,
    absent
};

/// What a write does: `missing` registers read as 0.
enum class Kind : uint8_t { missing, ro, rw, w1s, w1c };

struct Place {
    Page page = absent;
    unsigned nt = 0;
    uint32_t at = 0; ///< inside the page
};

/// The one of a CSR offset, `absent` where nothing is.
Place place_of(const Chip &chip, uint32_t offset);
Kind kind_at(const Place &place);
/// Whether a register of the table is one of such a page's.
bool lies_in(const facts::Reg &r, Page page);
/// Where a register is kept that is seen in several places.
uint32_t canonical(const Place &place, uint32_t offset);

constexpr bool within(facts::RegArray array, uint32_t at)
{
    return at >= array.first && at < array.first + array.count * array.stride;
}

} // namespace plx::twin

#endif
