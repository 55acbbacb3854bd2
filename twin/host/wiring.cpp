// SPDX-License-Identifier: BSD-3-Clause
#include "host/wiring.hpp"

#include "plx_regs.hpp"
#include "twin.hpp"

namespace plx::twin
{

namespace
{
constexpr uint32_t word_one_chip = 1;
constexpr uint32_t word_nt = 2;
constexpr uint32_t word_link_side = 4;
constexpr uint32_t word_dma_shift = 3; // a count
constexpr uint32_t word_dma_max = facts::dma_function_count;
} // namespace

Wiring wiring_of(const Config &config)
{
    const bool one_chip = config.topology == Topology::root_port;
    return {one_chip, config.nt, config.link_side, one_chip ? config.dma_link_channels : 0};
}

uint32_t wiring_word(const Wiring &w)
{
    return (w.one_chip ? word_one_chip : 0) | (w.nt != 0 ? word_nt : 0) |
           (w.link_side ? word_link_side : 0) | w.dma_link_channels << word_dma_shift;
}

bool wiring_from(uint32_t word, Wiring *out)
{
    if (word >> word_dma_shift > word_dma_max)
        return false;
    *out = {(word & word_one_chip) != 0, (word & word_nt) != 0 ? 1u : 0u,
            (word & word_link_side) != 0, word >> word_dma_shift};
    return true;
}

const char *wiring_conflict(const Wiring &own, const Wiring &theirs)
{
    if (own.one_chip != theirs.one_chip)
        return own.one_chip ? "root-port topology here, back to back there"
                            : "back to back here, root-port topology there";
    if (own.nt != theirs.nt)
        return own.nt != 0 ? "NT port 1 here, 0 there" : "NT port 0 here, 1 there";
    if (own.one_chip && own.link_side == theirs.link_side)
        return own.link_side ? "both are on the link side" : "both are on the virtual side";
    if (own.dma_link_channels != theirs.dma_link_channels)
        return "another number of DMA channels on the link side here than there";
    return nullptr;
}

} // namespace plx::twin
