// SPDX-License-Identifier: BSD-3-Clause
// Allocation of the segments of the peer's memory window. No DPDK, no heap.
#ifndef PLX_NTB_WINDOW_SEGMENT_MAP_HPP
#define PLX_NTB_WINDOW_SEGMENT_MAP_HPP

#include <bitset>

#include "hw/facts/plx_regs.hpp"

namespace plx::pmd
{

/// The segments of a window in order, divided into parts of equal size: an allocation lies in one
/// part.
class SegmentMap
{
public:
    static constexpr unsigned segments_max = facts::alut_entries_one_nt;
    static constexpr unsigned any = ~0u;

    /// @param segments at most segments_max; @param parts divides it (0 segments: any number)
    /// @param taken the first segments are in use already
    void reset(unsigned segments, unsigned parts, unsigned taken);
    unsigned segments() const { return segments_; }
    unsigned parts() const { return parts_; }
    unsigned per_part() const { return segments_ / parts_; }

    /// Allocates @p count contiguous segments: the first that fit, in part @p part or in any.
    /// @return the first of them; -1: no such run is free
    int take(unsigned count, unsigned part);
    void release(unsigned first, unsigned count);

    unsigned free() const;
    /// The longest free run in one part.
    unsigned longest() const;

private:
    /// How many are free from @p first on, within its part.
    unsigned run(unsigned first) const;

    std::bitset<segments_max> taken_;
    unsigned segments_ = 0;
    unsigned parts_ = 1;
};

} // namespace plx::pmd

#endif
