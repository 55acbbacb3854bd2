// SPDX-License-Identifier: BSD-3-Clause
// Counts that the threads of one process share, at the price of a plain one while there is one
// thread.
#ifndef NTB_SOCKET_KERNEL_THREADS_HPP
#define NTB_SOCKET_KERNEL_THREADS_HPP

#include <atomic>
#include <cstdint>

#include <sys/single_threaded.h>

namespace ntb::socket::kernel
{

/// Adds one, as fetch_add(1) does. A handler that runs between load and store leaves the count as
/// it was, or leaves this call for good by longjmp(). A second thread is not born in between: that
/// takes a call of pthread_create() by this one, which handlers may not make.
/// @return what it was
inline std::uint32_t add(std::atomic<std::uint32_t> &count)
{
    if (__libc_single_threaded == 0)
        return count.fetch_add(1);
    const std::uint32_t now = count.load(std::memory_order_relaxed);
    count.store(now + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return now;
}

/// As add(): takes one away.
inline std::uint32_t subtract(std::atomic<std::uint32_t> &count)
{
    if (__libc_single_threaded == 0)
        return count.fetch_sub(1);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const std::uint32_t now = count.load(std::memory_order_relaxed);
    count.store(now - 1, std::memory_order_relaxed);
    // A handler that runs behind this has the count that the caller goes on from.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return now;
}

} // namespace ntb::socket::kernel

#endif
