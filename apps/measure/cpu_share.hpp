// SPDX-License-Identifier: BSD-3-Clause
// Which part of its time a polling thread had its CPU: what it measured while something else had it
// is the scheduler's figure, not ours.
#ifndef APP_CPU_SHARE_HPP
#define APP_CPU_SHARE_HPP

#include "clock.hpp"

#include <algorithm>
#include <cmath>

namespace app
{

/// A figure counts if each polling thread had its CPU for so much of the time.
inline constexpr double least_cpu_share = 0.97;

/// To show a share that is too small: down, so that it is below the bound that it has missed.
inline double whole_percent(double share)
{
    return std::floor(share * 100 + 1e-9);
}

/// Of the calling thread, from when this was made.
class CpuShare
{
public:
    CpuShare() : wall_ns_(monotonic_ns()), cpu_ns_(thread_cpu_ns()) {}

    /// From 0 to 1; 1 where no time has passed. By the same thread.
    double taken() const { return of(thread_cpu_ns() - cpu_ns_, monotonic_ns() - wall_ns_); }

    static double of(uint64_t cpu_ns, uint64_t wall_ns)
    {
        if (wall_ns == 0)
            return 1;
        return std::min(1.0, static_cast<double>(cpu_ns) / static_cast<double>(wall_ns));
    }

private:
    uint64_t wall_ns_, cpu_ns_;
};

} // namespace app

#endif
