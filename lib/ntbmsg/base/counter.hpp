// SPDX-License-Identifier: BSD-3-Clause
// A count that one thread advances and any thread reads.
#ifndef NTBMSG_BASE_COUNTER_HPP
#define NTBMSG_BASE_COUNTER_HPP

#include <atomic>
#include <cstdint>

namespace ntbmsg
{

class Counter
{
public:
    void add(uint64_t n)
    {
        value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    uint64_t get() const { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<uint64_t> value_;
};

} // namespace ntbmsg

#endif
