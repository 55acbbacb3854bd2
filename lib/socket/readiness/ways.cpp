// SPDX-License-Identifier: BSD-3-Clause
#include "readiness/ways.hpp"

#include <algorithm>

namespace ntb::socket
{

namespace
{
void add(std::atomic<std::uint64_t> &sum, std::uint64_t ns)
{
    sum.store(sum.load(std::memory_order_relaxed) + ns, std::memory_order_relaxed);
}
} // namespace

void Ways::took(Way way, std::uint64_t ns)
{
    if (way != next())
        return; // another thread has ended the trial
    ns = std::min(ns, most_ns);
    const std::uint32_t n = step_.load(std::memory_order_relaxed);
    step_.store(n + 1, std::memory_order_relaxed);
    if (n < trial) {
        if (n % turn >= first)
            add(sums_[static_cast<std::uint32_t>(way)], ns);
        if (n + 1 == trial)
            decide();
        return;
    }
    add(sum_, ns);
    if ((n + 1 - trial) % block != 0)
        return;
    const std::uint64_t sum = sum_.exchange(0, std::memory_order_relaxed);
    if (usual_.load(std::memory_order_relaxed) == 0)
        usual_.store(sum, std::memory_order_relaxed);
    else if (sum > usual_.load(std::memory_order_relaxed) * 3 / 2 || n + 1 >= trial + between)
        step_.store(0, std::memory_order_relaxed);
}

// One that is not much better is not worth a change: what the other end tries meanwhile is in both.
void Ways::decide()
{
    const std::uint64_t bell = sums_[0].exchange(0, std::memory_order_relaxed);
    const std::uint64_t word = sums_[1].exchange(0, std::memory_order_relaxed);
    const bool dozes = better_.load(std::memory_order_relaxed) == Way::Word;
    better_.store((dozes ? word <= bell + bell / 8 : word + word / 8 < bell) ? Way::Word
                                                                             : Way::Bell,
                  std::memory_order_relaxed);
    usual_.store(0, std::memory_order_relaxed);
    sum_.store(0, std::memory_order_relaxed);
}

} // namespace ntb::socket
