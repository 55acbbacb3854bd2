// SPDX-License-Identifier: BSD-3-Clause
// Pages straight from the kernel: the heap is the program's, which may be in malloc() when it calls
// us.
#ifndef NTB_SOCKET_KERNEL_MEMORY_HPP
#define NTB_SOCKET_KERNEL_MEMORY_HPP

#include <cstddef>

#include <sys/mman.h>

#include "kernel/system.hpp"

namespace ntb::socket::kernel
{

/// @param flags  mmap()'s
/// @param fd     of the memory, or -1: zeros, whose pages come as they are touched
/// @return NULL: refused
template <typename T>
T *map(std::size_t count, int flags, int fd = -1)
{
    const long at = call(SYS_mmap, nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                         fd < 0 ? flags | MAP_ANONYMOUS : flags, fd, 0);
    return at < 0 && at > -4096 ? nullptr : reinterpret_cast<T *>(at);
}

/// @param at  may be NULL
template <typename T>
void unmap(T *at, std::size_t count)
{
    if (at != nullptr)
        call(SYS_munmap, at, count * sizeof(T));
}

/// An array in the frame, or of pages where that is too small.
template <typename T, std::size_t Small>
class Array
{
public:
    explicit Array(std::size_t count) : at_(small_), count_(count)
    {
        if (count > Small)
            at_ = map<T>(count, MAP_PRIVATE);
    }
    ~Array()
    {
        if (at_ != small_)
            unmap(at_, count_);
    }
    Array(const Array &) = delete;
    Array &operator=(const Array &) = delete;

    /// @return NULL: no memory
    T *data() { return at_; }

private:
    T *at_;
    std::size_t count_;
    T small_[Small];
};

} // namespace ntb::socket::kernel

#endif
