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
    /// By hand one instruction, as in the driver's queues. The thread sanitizer has to see the
    /// atomic.
    void add(uint64_t n)
    {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
        asm("addq %1, %0" : "+m"(value_) : "er"(n) : "cc");
#else
        value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
#endif
    }
    uint64_t get() const
    {
        return value_.load(std::memory_order_relaxed);
    }

private:
    std::atomic<uint64_t> value_;
};

} // namespace ntbmsg

#endif
