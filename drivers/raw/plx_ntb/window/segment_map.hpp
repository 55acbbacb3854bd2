// SPDX-License-Identifier: BSD-3-Clause
// Which segments of the data window are in use. No DPDK, no heap.
#ifndef PLX_NTB_WINDOW_SEGMENT_MAP_HPP
#define PLX_NTB_WINDOW_SEGMENT_MAP_HPP

#include <bitset>

#include "hw/facts/plx_regs.hpp"

namespace plx::pmd
{

/// The segments of a window in their order, divided into windows of equal size: what is given out
/// lies in one of them.
class SegmentMap
{
public:
    static constexpr unsigned segments_max = facts::alut_entries_one_nt;
    static constexpr unsigned any = ~0u;

    /// @param segments at most segments_max; @param windows divides it (0 segments: any number)
    /// @param taken the first segments are given out already
    void reset(unsigned segments, unsigned windows, unsigned taken);
    unsigned segments() const { return segments_; }
    unsigned windows() const { return windows_; }
    unsigned per_window() const { return segments_ / windows_; }

    /// Gives out @p count segments in a row: the first that fit, in window @p window or in any.
    /// @return the first of them, or -1: there are not so many in a row
    int take(unsigned count, unsigned window);
    void release(unsigned first, unsigned count);

    unsigned free() const;
    /// The most that are free in a row, in one window.
    unsigned longest() const;

private:
    /// How many are free from @p first on, within its window.
    unsigned run(unsigned first) const;

    std::bitset<segments_max> taken_;
    unsigned segments_ = 0;
    unsigned windows_ = 1;
};

} // namespace plx::pmd

#endif
