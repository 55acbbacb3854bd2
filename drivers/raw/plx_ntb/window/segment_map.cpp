// SPDX-License-Identifier: BSD-3-Clause
#include "window/segment_map.hpp"

#include <algorithm>

namespace plx::pmd
{

void SegmentMap::reset(unsigned segments, unsigned parts, unsigned taken)
{
    taken_.reset();
    segments_ = segments;
    parts_ = parts;
    for (unsigned i = 0; i < taken; ++i)
        taken_.set(i);
}

unsigned SegmentMap::run(unsigned first) const
{
    const unsigned end = (first / per_part() + 1) * per_part();
    unsigned at = first;
    while (at < end && !taken_.test(at))
        ++at;
    return at - first;
}

int SegmentMap::take(unsigned count, unsigned part)
{
    if (count == 0 || segments_ == 0 || (part != any && part >= parts_))
        return -1;
    const unsigned begin = part == any ? 0 : part * per_part();
    const unsigned end = part == any ? segments_ : begin + per_part();
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
