// SPDX-License-Identifier: BSD-3-Clause
// Memory that an application exposes to the peer, beside the block of the queue pairs: allocated,
// exposed with rights, revoked. doc/windows.md has the rules.
#ifndef PLX_NTB_WINDOW_EXPOSED_MEMORY_HPP
#define PLX_NTB_WINDOW_EXPOSED_MEMORY_HPP

#include <array>
#include <cstdint>

#include "link/link.hpp"
#include "platform/platform.hpp"
#include "rte_pmd_plx_ntb.h"
#include "window/choice.hpp"
#include "window/segment_map.hpp"

namespace plx::pmd
{

/// Under the device's lock, except where noted. Errors are logged, one line each.
class ExposedMemory
{
public:
    ExposedMemory(const char *device, hw::Chip &chip, const Platform &platform, const Link &link)
        : device_(device), chip_(chip), platform_(platform), link_(link)
    {
    }

    /// The chip is open. @return 0; -ENOTSUP it cannot be used as wanted
    int open(const WindowChoice &choice);
    /// Sizes the peer's window for a block of @p bytes, a power of two. While it is closed.
    /// @return 0; -EINVAL such a block does not fit; -EBUSY
    int fit(uint64_t bytes);
    /// The least size of a block, of which its size is a multiple.
    uint64_t block_min() const;

    /// The peer's window was opened and shows a block of @p bytes at its start.
    void opened(uint64_t bytes);
    /// The peer's window is known to be closed: nothing is exposed any more.
    void closed();
    /// Frees all memory. Nothing is exposed.
    void drop();

    void info(rte_pmd_plx_ntb_memory_info *out) const;
    int align(uint64_t bytes, rte_pmd_plx_ntb_memory_align *out) const;
    int alloc(size_t bytes, int node, rte_pmd_plx_ntb_memory *out);
    int free(const void *address);
    int expose(const void *address, size_t bytes, uint32_t rights, uint32_t part, uint64_t *offset);
    int revoke(const void *address, size_t bytes);
    int find(const void *address, rte_pmd_plx_ntb_memory_exposed *out) const;
    unsigned exposure_count() const;
    /// Exposed range number @p index, in no order. @return false: there are fewer
    bool exposure(uint64_t index, rte_pmd_plx_ntb_memory_exposed *out) const;
    int peer(uint64_t offset, size_t bytes, rte_pmd_plx_ntb_window_view *out) const;

private:
    /// As many allocations as segments: more could not all be exposed.
    static constexpr unsigned memories_max = SegmentMap::segments_max;

    struct Memory {
        WindowMemory memory; ///< base NULL: a free place
        unsigned exposures = 0;
    };
    struct Exposure {
        Memory *memory = nullptr; ///< NULL: a free place
        uint64_t at = 0;          ///< offset in the memory
        uint64_t bytes = 0;
        uint32_t rights = 0;
        unsigned first = 0; ///< segment
        unsigned segments = 0;

        const std::byte *base() const { return memory->memory.base + at; }
    };
    /// A range that lies in one memory.
    struct Range {
        Memory *memory = nullptr; ///< NULL: it does not
        uint64_t at = 0;
    };

    uint64_t segment_bytes() const;
    Range locate(const void *address, size_t bytes);
    Exposure *find_exact(const Range &range, size_t bytes);
    const Exposure *overlapping(const Range &range, size_t bytes) const;
    int check_expose(const Range &range, size_t bytes, uint32_t rights, uint32_t part) const;
    int show(const Range &range, size_t bytes, uint32_t rights, unsigned first);
    void forget(Exposure *exposure);
    rte_pmd_plx_ntb_memory_exposed describe(const Exposure &exposure) const;
    int refuse(int error, const char *what, uint64_t found, uint64_t expected) const;

    const char *device_;
    hw::Chip &chip_;
    const Platform &platform_;
    const Link &link_;
    WindowChoice choice_;
    SegmentMap map_; ///< of the peer's open window; no segments: closed, or without an A-LUT
    std::array<Memory, memories_max> memories_;
    std::array<Exposure, SegmentMap::segments_max> exposures_;
};

} // namespace plx::pmd

#endif
