// SPDX-License-Identifier: BSD-3-Clause
// The calls by which descriptors come and go.
#include "preload/sets.hpp"
#include "preload/upgrade.hpp"

#include <climits>
#include <cstdarg>
#include <cstdint>
#include <fcntl.h>
#include <linux/close_range.h>
#include <unistd.h>

namespace ntb::socket::preload
{

namespace
{
void take_copy(int from, int made)
{
    if (state.table.find(from) == nullptr)
        return;
    KeepErrno keep;
    if (!is_own_process())
        return;
    state.table.copy(from, made);
    if (made <= STDERR_FILENO) [[unlikely]]
        leave_for_stdio(made);
}

// The number is the program's to take, and what it stood for is closed by that. One that the
// library has hidden is in use.
template <typename Kernel>
int replace(int from, int to, Kernel kernel)
{
    if (from == to)
        return kernel();
    if (state.table.hidden(to)) {
        errno = EBUSY;
        return -1;
    }
    // If `from` is not open nothing is closed.
    if (state.table.find(to) != nullptr && real().fcntl(from, F_GETFD) >= 0)
        closing(to);
    const int made = kernel();
    if (made >= 0) {
        born(made);
        take_copy(from, made);
    }
    return made;
}

int copied(int from, int made)
{
    if (made >= 0) {
        born(made);
        take_copy(from, made);
    }
    return made;
}

int close_one(int fd, int (*kernel)(int))
{
    if (state.table.hidden(fd)) [[unlikely]] {
        errno = EBADF;
        return -1;
    }
    closing(fd);
    return kernel(fd);
}

// All but the hidden ones.
int close_between(unsigned first, unsigned last, int flags)
{
    if (first > last)
        return real().close_range(first, last, flags);
    // Numbers that stand for nothing here may still be members of sets: those forget them when they
    // are used again.
    for (int fd = state.table.next(first, last); fd >= 0;
         fd = state.table.next(static_cast<unsigned>(fd) + 1, last))
        closing(fd);
    for (;;) {
        const int hidden = state.table.next_hidden(first, last);
        if (hidden < 0)
            return real().close_range(first, last, flags);
        const auto at = static_cast<unsigned>(hidden);
        if (at > first)
            if (const int status = real().close_range(first, at - 1, flags); status != 0)
                return status;
        if (at == last)
            return 0;
        first = at + 1;
    }
}

FILE *opened(FILE *file)
{
    if (file != nullptr)
        born(fileno(file));
    return file;
}

template <typename Function>
int control(Function *kernel, int fd, int operation, void *argument)
{
    if (state.table.hidden(fd)) [[unlikely]] {
        errno = EBADF;
        return -1;
    }
    // Of what a ring has the kernel sends no SIGIO.
    if (operation == F_SETFL && (reinterpret_cast<std::uintptr_t>(argument) & O_ASYNC) != 0)
        leave(fd);
    const int result = kernel(fd, operation, argument);
    if (operation == F_SETFL)
        forget_waiting(fd);
    return operation == F_DUPFD || operation == F_DUPFD_CLOEXEC ? copied(fd, result) : result;
}
} // namespace

NTB_EXPORT(int, close, int fd)
{
    return close_one(fd, real().close);
}
NTB_EXPORT(int, __close, int fd)
{
    return close_one(fd, real().__close);
}

NTB_EXPORT(int, close_range, unsigned first, unsigned last, int flags)
{
    // Hidden ones are closed by exec anyway.
    if ((flags & CLOSE_RANGE_CLOEXEC) != 0)
        return real().close_range(first, last, flags);
    return close_between(first, last, flags);
}

NTB_EXPORT(void, closefrom, int first)
{
    if (close_between(first < 0 ? 0 : static_cast<unsigned>(first), UINT_MAX, 0) != 0)
        real().closefrom(first);
}

NTB_EXPORT(int, dup, int fd)
{
    return copied(fd, real().dup(fd));
}

NTB_EXPORT(int, dup2, int from, int to)
{
    return replace(from, to, [=] { return real().dup2(from, to); });
}

NTB_EXPORT(int, dup3, int from, int to, int flags)
{
    return replace(from, to, [=] { return real().dup3(from, to, flags); });
}

NTB_EXPORT(int, fcntl, int fd, int operation, ...)
{
    va_list words;
    va_start(words, operation);
    void *argument = va_arg(words, void *);
    va_end(words);
    return control(real().fcntl, fd, operation, argument);
}

NTB_EXPORT(int, fcntl64, int fd, int operation, ...)
{
    va_list words;
    va_start(words, operation);
    void *argument = va_arg(words, void *);
    va_end(words);
    return control(real().fcntl64, fd, operation, argument);
}

// Whatever stdio does with the descriptor is not seen.
NTB_EXPORT(FILE *, fdopen, int fd, const char *mode)
{
    FILE *file = real().fdopen(fd, mode);
    if (file != nullptr && state.table.find(fd) != nullptr) {
        count(Reason::stdio);
        leave(fd);
    }
    return file;
}

NTB_EXPORT(int, fclose, FILE *file)
{
    if (file != nullptr)
        closing(fileno(file));
    return real().fclose(file);
}

NTB_EXPORT(FILE *, fopen, const char *path, const char *mode)
{
    return opened(real().fopen(path, mode));
}

NTB_EXPORT(FILE *, fopen64, const char *path, const char *mode)
{
    return opened(real().fopen64(path, mode));
}

#define NTB_MODE(last)                                                                             \
    va_list words;                                                                                 \
    va_start(words, last);                                                                         \
    const auto mode = (last & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(words, mode_t) : 0;             \
    va_end(words)

NTB_EXPORT(int, open, const char *path, int flags, ...)
{
    NTB_MODE(flags);
    return born(real().open(path, flags, mode));
}

NTB_EXPORT(int, open64, const char *path, int flags, ...)
{
    NTB_MODE(flags);
    return born(real().open64(path, flags, mode));
}

NTB_EXPORT(int, openat, int folder, const char *path, int flags, ...)
{
    NTB_MODE(flags);
    return born(real().openat(folder, path, flags, mode));
}

NTB_EXPORT(int, openat64, int folder, const char *path, int flags, ...)
{
    NTB_MODE(flags);
    return born(real().openat64(folder, path, flags, mode));
}

NTB_EXPORT(int, __open_2, const char *path, int flags)
{
    return born(real().__open_2(path, flags));
}

NTB_EXPORT(int, __open64_2, const char *path, int flags)
{
    return born(real().__open64_2(path, flags));
}

NTB_EXPORT(int, __openat_2, int folder, const char *path, int flags)
{
    return born(real().__openat_2(folder, path, flags));
}

NTB_EXPORT(int, __openat64_2, int folder, const char *path, int flags)
{
    return born(real().__openat64_2(folder, path, flags));
}

NTB_EXPORT(int, creat, const char *path, mode_t mode)
{
    return born(real().creat(path, mode));
}
NTB_EXPORT(int, creat64, const char *path, mode_t mode)
{
    return born(real().creat64(path, mode));
}

NTB_EXPORT(int, pipe, int *ends)
{
    const int status = real().pipe(ends);
    if (status == 0)
        born(ends[0]), born(ends[1]);
    return status;
}

NTB_EXPORT(int, pipe2, int *ends, int flags)
{
    const int status = real().pipe2(ends, flags);
    if (status == 0)
        born(ends[0]), born(ends[1]);
    return status;
}

NTB_EXPORT(int, socketpair, int family, int type, int protocol, int *ends)
{
    const int status = real().socketpair(family, type, protocol, ends);
    if (status == 0)
        born(ends[0]), born(ends[1]);
    return status;
}

NTB_EXPORT(int, socket, int family, int type, int protocol)
{
    return born(real().socket(family, type, protocol));
}

NTB_EXPORT(int, eventfd, unsigned value, int flags)
{
    return born(real().eventfd(value, flags));
}

NTB_EXPORT(int, signalfd, int fd, const sigset_t *mask, int flags)
{
    const int made = real().signalfd(fd, mask, flags);
    return fd == -1 ? born(made) : made;
}

NTB_EXPORT(int, timerfd_create, int clock, int flags)
{
    return born(real().timerfd_create(clock, flags));
}

NTB_EXPORT(int, inotify_init)
{
    return born(real().inotify_init());
}
NTB_EXPORT(int, inotify_init1, int flags)
{
    return born(real().inotify_init1(flags));
}

NTB_EXPORT(int, memfd_create, const char *name, unsigned flags)
{
    return born(real().memfd_create(name, flags));
}

NTB_EXPORT(int, epoll_create, int size)
{
    return set_born(real().epoll_create(size), attendant());
}
NTB_EXPORT(int, epoll_create1, int flags)
{
    return set_born(real().epoll_create1(flags), attendant());
}
NTB_EXPORT(int, pidfd_open, pid_t pid, unsigned flags)
{
    return born(real().pidfd_open(pid, flags));
}

NTB_EXPORT(int, pidfd_getfd, int pidfd, int fd, unsigned flags)
{
    return born(real().pidfd_getfd(pidfd, fd, flags));
}

} // namespace ntb::socket::preload
