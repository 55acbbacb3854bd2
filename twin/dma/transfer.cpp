// SPDX-License-Identifier: BSD-3-Clause
#include "dma/transfer.hpp"

#include <algorithm>

namespace plx::twin
{

namespace
{
/// Moved under the host's lock at a time. No way ends in the middle: the smallest A-LUT segment is
/// as large, blocks and BARs are larger.
constexpr uint64_t checked_max = 4096;
/// What an engine moves, at the most, by direct access that was revoked meanwhile. It does no harm:
/// where memory was taken away, the window's mapping does not lead there any more.
constexpr uint64_t trust_max = uint64_t{64} << 10;

/// One end of a piece: plain memory, or a window that has to be asked for each access.
struct Leg {
    uint8_t *plain = nullptr;
    unsigned window = 0; ///< index into window_bars
    uint64_t offset = 0;
    uint64_t bytes = 0;
};

bool direct_leg(const DmaEnd &end, uint64_t offset, Leg *leg)
{
    if (!end.direct.covers(offset))
        return false;
    leg->plain = end.range.address + offset;
    leg->bytes = end.direct.offset + end.direct.bytes - offset;
    return true;
}

/// @return false: the card is gone
bool find_window_leg(DmaHost &host, DmaEnd &end, uint64_t bus, uint16_t requester, Leg *leg)
{
    const uint64_t offset = bus - end.range.bus;
    if (end.direct.trust != 0 && direct_leg(end, offset, leg))
        return true;
    if (!host.renew_direct(end.direct, end.range.window, offset, requester))
        return false;
    end.direct.trust = trust_max;
    if (direct_leg(end, offset, leg))
        return true;
    leg->window = end.range.window;
    leg->offset = offset;
    leg->bytes = checked_max - offset % checked_max;
    return true;
}

enum class Found { leg, nothing, card_gone };

Found find_leg(DmaHost &host, DmaEnd &end, uint64_t bus, uint16_t requester, Leg *leg)
{
    if (!end.range.covers(bus)) {
        const DmaRange *const range = dma_memory_find(host.bus_memory(), bus);
        if (range == nullptr)
            return Found::nothing;
        end = {*range, {}};
    }
    if (crosses(end))
        return find_window_leg(host, end, bus, requester, leg) ? Found::leg : Found::card_gone;
    leg->plain = end.range.address + (bus - end.range.bus);
    leg->bytes = end.range.bus + end.range.bytes - bus;
    return Found::leg;
}

Fate move_checked(DmaHost &host, DmaCopier &copier, const Leg &from, const Leg &to, uint64_t bytes,
                  uint16_t requester)
{
    copier.settle(); // before what other ways store
    uint8_t between[checked_max];
    const uint8_t *data = from.plain;
    if (data == nullptr) {
        if (!host.read_window(from.window, from.offset, between, bytes, requester))
            return host.link_open() ? Fate::read_refused : Fate::read_lost;
        data = between;
    }
    if (to.bytes == 0)
        return Fate::write_refused; // no memory at that address
    if (to.plain != nullptr)
        copier.copy(to.plain, data, bytes);
    else if (!host.write_window(to.window, to.offset, data, bytes, requester))
        return host.link_open() ? Fate::write_refused : Fate::write_lost;
    return Fate::moved;
}
} // namespace

Fate dma_move(DmaHost &host, DmaCopier &copier, DmaEnd &source, DmaEnd &destination,
              uint16_t requester, const DmaPiece &piece, uint64_t *moved)
{
    *moved = 0;
    // Beyond a dead link the host's own memory is as far away as what its windows show.
    if (host.cut_off())
        return Fate::read_lost;
    Leg from;
    Leg to;
    const Found read = find_leg(host, source, piece.src, requester, &from);
    const Found written = find_leg(host, destination, piece.dst, requester, &to);
    if (read == Found::card_gone || written == Found::card_gone)
        return Fate::card_gone;
    if (read == Found::nothing)
        return Fate::read_refused;
    const bool plain = from.plain != nullptr && to.plain != nullptr;
    uint64_t bytes = std::min({piece.bytes, from.bytes, plain ? plain_max : checked_max});
    if (written == Found::leg)
        bytes = std::min(bytes, to.bytes);
    Fate fate = Fate::moved;
    if (plain)
        copier.copy(to.plain, from.plain, bytes);
    else
        fate = move_checked(host, copier, from, to, bytes, requester);
    spend_trust(source, destination, bytes);
    *moved = fate == Fate::moved ? bytes : 0;
    return fate;
}

} // namespace plx::twin
