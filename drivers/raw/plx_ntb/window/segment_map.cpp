// SPDX-License-Identifier: BSD-3-Clause
#include "window/segment_map.hpp"

#include <algorithm>

namespace plx::pmd
{

void SegmentMap::reset(unsigned segments, unsigned windows, unsigned taken)
{
    taken_.reset();
    segments_ = segments;
    windows_ = windows;
    for (unsigned i = 0; i < taken; ++i)
        taken_.set(i);
}

unsigned SegmentMap::run(unsigned first) const
{
    const unsigned end = (first / per_window() + 1) * per_window();
    unsigned at = first;
    while (at < end && !taken_.test(at))
        ++at;
    return at - first;
}

int SegmentMap::take(unsigned count, unsigned window)
{
    if (count == 0 || segments_ == 0 || (window != any && window >= windows_))
        return -1;
    const unsigned begin = window == any ? 0 : window * per_window();
    const unsigned end = window == any ? segments_ : begin + per_window();
    for (unsigned at = begin; at < end;) {
        const unsigned free_here = run(at);
        if (free_here >= count) {
            for (unsigned i = 0; i < count; ++i)
                taken_.set(at + i);
            return static_cast<int>(at);
        }
        at += std::max(free_here, 1u);
    }
    return -1;
}

void SegmentMap::release(unsigned first, unsigned count)
{
    for (unsigned i = 0; i < count; ++i)
        taken_.reset(first + i);
}

unsigned SegmentMap::free() const
{
    return segments_ - static_cast<unsigned>(taken_.count());
}

unsigned SegmentMap::longest() const
{
    unsigned most = 0;
    for (unsigned at = 0; at < segments_;) {
        const unsigned free_here = run(at);
        most = std::max(most, free_here);
        at += std::max(free_here, 1u);
    }
    return most;
}

} // namespace plx::pmd
