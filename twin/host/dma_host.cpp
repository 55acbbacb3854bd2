// SPDX-License-Identifier: BSD-3-Clause
// A host as its DMA engines see it.
#include "chip/dma_regs.hpp"
#include "host/follow.hpp"
#include "host/host.hpp"
#include "host/power.hpp"
#include "host/shared_chip.hpp"
#include "twin.hpp"

namespace plx::twin
{

namespace
{
AccessBasis basis_now(const Host &host)
{
    const Chip *const peer = host.peer_chip;
    const uint64_t own_downs = host.chip->downs.load();
    const uint64_t peer_downs = peer == nullptr ? 0 : peer->downs.load();
    return {peer,
            host.chip->routes.load(),
            peer == nullptr ? 0 : peer->routes.load(),
            own_downs << 32 | peer_downs,
            host.presence_changes,
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
DirectAccess find_direct(Host &host, uint8_t window, uint64_t offset, uint16_t requester)
{
    update_link(host);
    if (host.behind)
        settle(host); // views are to show what registers say
    const AccessBasis basis = basis_now(host);
    const Way way = way_out(host);
    const Admission admission = admit(way, requester);
    if (!way.link_up || !admission.near || !admission.far)
        return {};
    const Extent *const e = direct_extent(*host.own_view, window, offset);
    return e == nullptr ? DirectAccess{} : DirectAccess{basis, e->offset, e->bytes, 0};
}
} // namespace

bool Host::cut_off() const
{
    return twin::cut_off(*this);
}

// By channel, or counted among those on the same side (Q11).
uint16_t Host::dma_requester(unsigned channel) const
{
    unsigned number = channel + 1;
    if (!config.switches.dma_function_by_channel)
        for (unsigned below = 0; below < channel; below++)
            number -= owns_dma(below) ? 0 : 1;
    return static_cast<uint16_t>((config.dma_rid & ~7u) | number);
}

void Host::reset_dma(unsigned channel, bool hung)
{
    Locked locked(*this);
    reset_dma_function(*chip, channel, power_values(*this));
    capture_bus(*this, channel);
    chip->dma_state[channel].store(hung ? uint32_t{dma_hung} : 0);
    if (hung)
        chip->csr[(facts::dma_base(channel) + dma_reg::ctrl_status) / 4].fetch_or(
            dma_field::in_progress.mask());
}

bool Host::renew_direct(DirectAccess &direct, uint8_t window, uint64_t offset, uint16_t requester)
{
    Locked locked(*this);
    if (gone)
        return false;
    if (!direct.covers(offset) || !(direct.basis == basis_now(*this)))
        direct = find_direct(*this, window, offset, requester);
    return true;
}

bool Host::read_window(unsigned window, uint64_t offset, void *out, size_t bytes,
                       uint16_t requester)
{
    return window_read(this, window_bars[window], offset, out, bytes, requester);
}

bool Host::write_window(unsigned window, uint64_t offset, const void *in, size_t bytes,
                        uint16_t requester)
{
    return window_write(this, window_bars[window], offset, in, bytes, requester);
}

bool Host::link_open()
{
    Locked locked(*this);
    return way_out(*this).link_up;
}

void Host::dma_event()
{
    wake(*this);
}

void Host::drop_link()
{
    inject(this, Fault::link_down, 1);
}

} // namespace plx::twin
