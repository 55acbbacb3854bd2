// SPDX-License-Identifier: BSD-3-Clause
// What DMA engines need of the host that they work for: the rules it was given, the memory on its
// bus, and the way through its windows. Implemented by the host (host/dma_host.cpp).
#ifndef PLX_TWIN_DMA_DMA_HOST_HPP
#define PLX_TWIN_DMA_DMA_HOST_HPP

#include "dma/memory.hpp"

#include <cstddef>
#include <cstdint>

namespace plx::twin
{

struct Chip;
struct Switches;

/// What direct access rests on. While this is the same, the same way is open to the same requester.
struct AccessBasis {
    const Chip *peer = nullptr;
    uint64_t own_routes = 0;
    uint64_t peer_routes = 0;
    uint64_t downs = 0;
    uint64_t presence_changes = 0;
    uint64_t views = 0;
    bool operator==(const AccessBasis &) const = default;
};

/// A piece of a window that an engine reaches as plain memory.
struct DirectAccess {
    AccessBasis basis;
    uint64_t offset = 0; ///< in the window
    uint64_t bytes = 0;  ///< 0: none
    uint64_t trust = 0;  ///< bytes that may pass before it is checked again
    bool covers(uint64_t at) const { return at >= offset && at - offset < bytes; }
};

/// Called without the host's lock, which the implementation takes where it needs it.
class DmaHost
{
public:
    virtual const Switches &switches() const = 0;
    /// Local memory, exposed memory and windows by bus address.
    virtual DmaMemory &bus_memory() = 0;
    /// The card was removed by surprise.
    virtual bool card_gone() const = 0;
    /// The host's own bus lies beyond a dead link.
    virtual bool cut_off() const = 0;
    /// Whether it lies beyond the link at all, so that it may be cut off.
    virtual bool beyond_link() const = 0;
    /// Whether the function of @p channel is in this host's hierarchy.
    virtual bool owns_dma(unsigned channel) const = 0;
    virtual uint16_t dma_requester(unsigned channel) const = 0;
    /// What a function-level reset leaves in the function's registers. @param hung it stays hung
    virtual void reset_dma(unsigned channel, bool hung) = 0;

    /// Brings @p direct up to date for an access at @p offset of window @p window; direct.covers()
    /// says whether there is one. @return false: the card is gone
    virtual bool renew_direct(DirectAccess &direct, uint8_t window, uint64_t offset,
                              uint16_t requester) = 0;
    /// Accesses with every rule applied. @return whether it arrived
    virtual bool read_window(unsigned window, uint64_t offset, void *out, size_t bytes,
                             uint16_t requester) = 0;
    virtual bool write_window(unsigned window, uint64_t offset, const void *in, size_t bytes,
                              uint16_t requester) = 0;
    /// Whether the link is up and both ends have seen it.
    virtual bool link_open() = 0;
    /// An event that may interrupt was latched. Never blocks.
    virtual void dma_event() = 0;
    /// Takes the link down, as Fault::link_down does.
    virtual void drop_link() = 0;

protected:
    ~DmaHost() = default;
};

} // namespace plx::twin

#endif
