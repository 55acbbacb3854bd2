// SPDX-License-Identifier: BSD-3-Clause
// Moving the bytes of a descriptor: from one bus address to another, each of which is local memory
// or lies in a window.
#ifndef PLX_TWIN_DMA_TRANSFER_HPP
#define PLX_TWIN_DMA_TRANSFER_HPP

#include "dma/copy.hpp"
#include "dma/dma_host.hpp"

#include <algorithm>
#include <cstddef>

namespace plx::twin
{

/// Moved by direct access in one go, so that requests to pause are seen soon.
inline constexpr uint64_t plain_max = uint64_t{256} << 10;

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

/// Where @p bytes at @p bus lie, at least 1, if all of them are plain memory that @p end remembers,
/// and open still; else NULL: dma_move() finds out.
inline uint8_t *known_place(const DmaEnd &end, uint64_t bus, uint64_t bytes)
{
    const auto holds = [bytes](uint64_t room, uint64_t at) {
        return at < room && bytes <= room - at;
    };
    const uint64_t inside = bus - end.range.bus; // too much, where that is below
    if (!holds(end.range.bytes, inside))
        return nullptr;
    const DirectAccess &direct = end.direct;
    if (crosses(end) && (direct.trust == 0 || !holds(direct.bytes, inside - direct.offset)))
        return nullptr;
    return end.range.address + inside;
}

/// @p bytes went through either end, or less.
inline void spend_trust(DmaEnd &source, DmaEnd &destination, uint64_t bytes)
{
    for (DmaEnd *const end : {&source, &destination})
        if (end->direct.trust != 0)
            end->direct.trust -= std::min(end->direct.trust, bytes);
}

} // namespace plx::twin

#endif
