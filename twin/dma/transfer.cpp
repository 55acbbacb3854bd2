// SPDX-License-Identifier: BSD-3-Clause
#include "dma/transfer.hpp"

#include "dma/copy.hpp"
#include "host/host.hpp"

#include <algorithm>

namespace plx::twin
{

namespace
{
constexpr uint64_t plain_max = uint64_t{256} << 10; ///< so that requests to pause are seen soon
/// Moved under the host's lock at a time. No way ends in the middle: the smallest A-LUT segment is
/// as large, blocks and BARs are larger.
constexpr uint64_t checked_max = 4096;
/// What an engine moves, at the most, on a grant that was taken back meanwhile. It does no harm:
/// where memory was taken away, the window's mapping does not lead there any more.
constexpr uint64_t trust_max = uint64_t{64} << 10;

/// One end of a piece: plain memory, or a window that has to be asked for each access.
struct Leg {
    uint8_t *plain = nullptr;
    unsigned bar = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;
};

GrantBasis basis_now(const Host &host)
{
    const Chip *const peer = host.peer_chip;
    const uint64_t own_downs = host.chip->downs.load();
    const uint64_t peer_downs = peer == nullptr ? 0 : peer->downs.load();
    return {peer,
            host.chip->routes.load(),
            peer == nullptr ? 0 : peer->routes.load(),
            own_downs << 32 | peer_downs,
            host.comings,
            host.view_changes};
}

const Extent *direct_extent(const View &view, uint8_t window, uint64_t offset)
{
    for (unsigned i = 0; i < view.count; i++) {
        const Extent &e = view.extents[i];
        if (e.direct && e.window == window && offset >= e.offset && offset - e.offset < e.bytes)
            return &e;
    }
    return nullptr;
}

// The window's own mapping serves an engine as it serves the CPU, where the requester is admitted:
// whatever takes the CPU's access away takes that of the mapping.
Grant make_grant(Host &host, uint8_t window, uint64_t offset, uint16_t requester)
{
    look_at_link(host);
    if (host.behind)
        settle(host); // views are to show what registers say
    const GrantBasis basis = basis_now(host);
    const Way way = way_out(host);
    const Admission admission = admit(way, requester);
    if (!way.link_up || !admission.near || !admission.far)
        return {};
    const Extent *const e = direct_extent(*host.own_view, window, offset);
    return e == nullptr ? Grant{} : Grant{basis, e->offset, e->bytes, 0};
}

bool grants(const Grant &grant, uint64_t offset)
{
    return offset >= grant.offset && offset - grant.offset < grant.bytes;
}

bool grant_leg(const DmaEnd &end, uint64_t offset, Leg *leg)
{
    if (!grants(end.grant, offset))
        return false;
    leg->plain = end.range.address + offset;
    leg->bytes = end.grant.offset + end.grant.bytes - offset;
    return true;
}

/// @return false: the card is gone
bool find_window_leg(Host &host, DmaEnd &end, uint64_t bus, uint16_t requester, Leg *leg)
{
    const uint64_t offset = bus - end.range.bus;
    if (end.grant.trust != 0 && grant_leg(end, offset, leg))
        return true;
    Locked locked(host);
    if (host.gone)
        return false;
    if (!grants(end.grant, offset) || !(end.grant.basis == basis_now(host)))
        end.grant = make_grant(host, end.range.window, offset, requester);
    end.grant.trust = trust_max;
    if (grant_leg(end, offset, leg))
        return true;
    leg->bar = window_bars[end.range.window];
    leg->offset = offset;
    leg->bytes = checked_max - offset % checked_max;
    return true;
}

enum class Found { leg, nobody, card_gone };

Found find_leg(Host &host, DmaEnd &end, uint64_t bus, uint16_t requester, Leg *leg)
{
    if (!end.range.covers(bus)) {
        const DmaRange *const range = dma_memory_find(host.dma_memory, bus);
        if (range == nullptr)
            return Found::nobody;
        end = {*range, {}};
    }
    if (crosses(end))
        return find_window_leg(host, end, bus, requester, leg) ? Found::leg : Found::card_gone;
    leg->plain = end.range.address + (bus - end.range.bus);
    leg->bytes = end.range.bus + end.range.bytes - bus;
    return Found::leg;
}

bool link_is_open(Host &host)
{
    Locked locked(host);
    return way_out(host).link_up;
}

bool read_checked(Host &host, const Leg &from, void *to, uint64_t bytes, uint16_t requester)
{
    return window_read(&host, from.bar, from.offset, to, bytes, requester);
}

bool write_checked(Host &host, const Leg &to, const void *from, uint64_t bytes, uint16_t requester)
{
    return window_write(&host, to.bar, to.offset, from, bytes, requester);
}

Fate move_checked(Host &host, const Leg &from, const Leg &to, uint64_t bytes, uint16_t requester)
{
    uint8_t between[checked_max];
    const uint8_t *data = from.plain;
    if (data == nullptr) {
        if (!read_checked(host, from, between, bytes, requester))
            return link_is_open(host) ? Fate::read_refused : Fate::read_lost;
        data = between;
    }
    if (to.bytes == 0)
        return Fate::write_refused; // nobody's address
    if (to.plain != nullptr)
        dma_copy(to.plain, data, bytes);
    else if (!write_checked(host, to, data, bytes, requester))
        return link_is_open(host) ? Fate::write_refused : Fate::write_lost;
    return Fate::moved;
}
} // namespace

Fate dma_move(Host &host, DmaEnd &source, DmaEnd &destination, uint16_t requester,
              const DmaPiece &piece, uint64_t *moved)
{
    *moved = 0;
    // Beyond a dead link the host's own memory is as far away as what its windows show.
    if (cut_off(host))
        return Fate::read_lost;
    Leg from;
    Leg to;
    const Found read = find_leg(host, source, piece.src, requester, &from);
    const Found written = find_leg(host, destination, piece.dst, requester, &to);
    if (read == Found::card_gone || written == Found::card_gone)
        return Fate::gone;
    if (read == Found::nobody)
        return Fate::read_refused;
    const bool plain = from.plain != nullptr && to.plain != nullptr;
    uint64_t bytes = std::min({piece.bytes, from.bytes, plain ? plain_max : checked_max});
    if (written == Found::leg)
        bytes = std::min(bytes, to.bytes);
    Fate fate = Fate::moved;
    if (plain)
        dma_copy(to.plain, from.plain, bytes);
    else
        fate = move_checked(host, from, to, bytes, requester);
    for (DmaEnd *const end : {&source, &destination})
        end->grant.trust -= std::min(end->grant.trust, bytes);
    *moved = fate == Fate::moved ? bytes : 0;
    return fate;
}

} // namespace plx::twin
