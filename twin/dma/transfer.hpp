// SPDX-License-Identifier: BSD-3-Clause
// Moving the bytes of a descriptor: from one bus address to another, each of which is local memory
// or lies in a window.
#ifndef PLX_TWIN_DMA_TRANSFER_HPP
#define PLX_TWIN_DMA_TRANSFER_HPP

#include "dma/copy.hpp"
#include "dma/dma_host.hpp"

#include <cstddef>

namespace plx::twin
{

/// What an engine remembers of the addresses at one end of its transfers.
struct DmaEnd {
    DmaRange range;
    DirectAccess direct;
};

enum class Fate : uint8_t {
    moved,
    read_refused,
    read_lost, ///< no completion will come
    write_refused,
    write_lost, ///< the link is down
    card_gone,  ///< the card
};

struct DmaPiece {
    uint64_t src;
    uint64_t dst;
    uint64_t bytes; ///< at least 1
};

/// Moves the beginning of @p piece, as much as one way serves. Under the lock of host.bus_memory().
/// Data become visible after those of earlier calls, and eight aligned bytes at once.
/// @param moved how much; at least 1 where the fate is `moved`, else 0
Fate dma_move(DmaHost &host, DmaCopier &copier, DmaEnd &source, DmaEnd &destination,
              uint16_t requester, const DmaPiece &piece, uint64_t *moved);

/// Whether @p end leads through a window, after a dma_move().
inline bool crosses(const DmaEnd &end)
{
    return end.range.kind == RangeKind::window;
}

} // namespace plx::twin

#endif
