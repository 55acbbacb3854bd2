// SPDX-License-Identifier: BSD-3-Clause
// System calls past libc: its functions are the ones that the preload takes the place of, they
// change errno, and some are points of cancellation.
#ifndef NTB_SOCKET_KERNEL_SYSTEM_HPP
#define NTB_SOCKET_KERNEL_SYSTEM_HPP

#include <cerrno>
#include <type_traits>

#include <sys/syscall.h>
#include <unistd.h>

namespace ntb::socket::kernel
{

/// @return what the kernel answers: a value, or a negative errno
inline long call6(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    register long r10 asm("r10") = d;
    register long r8 asm("r8") = e;
    register long r9 asm("r9") = f;
    long result;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return result;
#else
    const int saved = errno;
    const long result = ::syscall(number, a, b, c, d, e, f);
    const long answer = result == -1 ? -errno : result;
    errno = saved;
    return answer;
#endif
}

template <typename T>
long word_of(T value)
{
    if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<long>(value);
    else if constexpr (std::is_null_pointer_v<T>)
        return 0;
    else
        return static_cast<long>(value);
}

/// A system call with up to six arguments, numbers or pointers.
template <typename... Args>
long call(long number, Args... args)
{
    static_assert(sizeof...(args) <= 6);
    const long words[6] = {word_of(args)...};
    return call6(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

} // namespace ntb::socket::kernel

#endif
