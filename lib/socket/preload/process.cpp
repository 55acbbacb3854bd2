// SPDX-License-Identifier: BSD-3-Clause
// The calls by which processes come and go, and those that pass libc.
#include "preload/state.hpp"

#include <cstdarg>
#include <sys/syscall.h>

namespace ntb::socket::preload
{

NTB_EXPORT(pid_t, _Fork)
{
    const pid_t child = real()._Fork();
    if (child == 0 && state.figures != nullptr)
        forked_in_child();
    return child;
}

NTB_EXPORT(void, _exit, int status)
{
    report();
    real()._exit(status);
    __builtin_unreachable();
}

NTB_EXPORT(void, _Exit, int status)
{
    report();
    real()._Exit(status);
    __builtin_unreachable();
}

// Descriptors come and go by system calls made here, too.
NTB_EXPORT(long, syscall, long number, ...)
{
    long word[6];
    va_list words;
    va_start(words, number);
    for (long &one : word)
        one = va_arg(words, long);
    va_end(words);
    const int first = static_cast<int>(word[0]);
    switch (number) {
    case SYS_close:
    case SYS_dup3:
#ifdef SYS_dup2
    case SYS_dup2:
#endif
        closing(number == SYS_close ? first : static_cast<int>(word[1]));
        break;
    case SYS_io_uring_setup:
        state.uses_io_uring = true;
        break;
    default:
        break;
    }
    const long result =
        real().syscall(number, word[0], word[1], word[2], word[3], word[4], word[5]);
    if (result < 0)
        return result;
    switch (number) {
#ifdef SYS_open
    case SYS_open:
#endif
    case SYS_openat:
    case SYS_socket:
    case SYS_accept4:
    case SYS_dup:
    case SYS_eventfd2:
    case SYS_epoll_create1:
    case SYS_memfd_create:
    case SYS_timerfd_create:
    case SYS_pidfd_open:
    case SYS_pidfd_getfd:
    case SYS_io_uring_setup:
        born(static_cast<int>(result));
        break;
    default:
        break;
    }
    return result;
}

} // namespace ntb::socket::preload
