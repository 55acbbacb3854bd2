// SPDX-License-Identifier: BSD-3-Clause
// The functions of the C library that this library takes the place of, and the real ones.
#ifndef NTB_SOCKET_PRELOAD_CALLS_HPP
#define NTB_SOCKET_PRELOAD_CALLS_HPP

#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>

#include <poll.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <wordexp.h>

using SignalHandler = void (*)(int);

/// Calls that move bytes of a connection or wait for it: each has a counter.
#define NTB_COUNTED_CALLS(X)                                                                       \
    X(ssize_t, read, (int, void *, size_t))                                                        \
    X(ssize_t, __read_chk, (int, void *, size_t, size_t))                                          \
    X(ssize_t, readv, (int, const iovec *, int))                                                   \
    X(ssize_t, recv, (int, void *, size_t, int))                                                   \
    X(ssize_t, __recv_chk, (int, void *, size_t, size_t, int))                                     \
    X(ssize_t, recvfrom, (int, void *, size_t, int, sockaddr *, socklen_t *))                      \
    X(ssize_t, __recvfrom_chk, (int, void *, size_t, size_t, int, sockaddr *, socklen_t *))        \
    X(ssize_t, recvmsg, (int, msghdr *, int))                                                      \
    X(int, recvmmsg, (int, mmsghdr *, unsigned, int, timespec *))                                  \
    X(ssize_t, write, (int, const void *, size_t))                                                 \
    X(ssize_t, writev, (int, const iovec *, int))                                                  \
    X(ssize_t, send, (int, const void *, size_t, int))                                             \
    X(ssize_t, sendto, (int, const void *, size_t, int, const sockaddr *, socklen_t))              \
    X(ssize_t, sendmsg, (int, const msghdr *, int))                                                \
    X(int, sendmmsg, (int, mmsghdr *, unsigned, int))                                              \
    X(ssize_t, preadv2, (int, const iovec *, int, off_t, int))                                     \
    X(ssize_t, preadv64v2, (int, const iovec *, int, off_t, int))                                  \
    X(ssize_t, pwritev2, (int, const iovec *, int, off_t, int))                                    \
    X(ssize_t, pwritev64v2, (int, const iovec *, int, off_t, int))                                 \
    X(ssize_t, sendfile, (int, int, off_t *, size_t))                                              \
    X(ssize_t, sendfile64, (int, int, off_t *, size_t))                                            \
    X(ssize_t, splice, (int, off_t *, int, off_t *, size_t, unsigned))                             \
    X(int, shutdown, (int, int))                                                                   \
    X(int, ioctl, (int, unsigned long, ...))                                                       \
    X(int, poll, (pollfd *, nfds_t, int))                                                          \
    X(int, __poll_chk, (pollfd *, nfds_t, int, size_t))                                            \
    X(int, ppoll, (pollfd *, nfds_t, const timespec *, const sigset_t *))                          \
    X(int, __ppoll_chk, (pollfd *, nfds_t, const timespec *, const sigset_t *, size_t))            \
    X(int, select, (int, fd_set *, fd_set *, fd_set *, timeval *))                                 \
    X(int, pselect, (int, fd_set *, fd_set *, fd_set *, const timespec *, const sigset_t *))       \
    X(int, epoll_ctl, (int, int, int, epoll_event *))                                              \
    X(int, epoll_wait, (int, epoll_event *, int, int))                                             \
    X(int, epoll_pwait, (int, epoll_event *, int, int, const sigset_t *))                          \
    X(int, epoll_pwait2, (int, epoll_event *, int, const timespec *, const sigset_t *))

/// Calls by which descriptors and processes come and go, and those that say what a socket is.
#define NTB_OTHER_CALLS(X)                                                                         \
    X(int, socket, (int, int, int))                                                                \
    X(int, socketpair, (int, int, int, int *))                                                     \
    X(int, accept, (int, sockaddr *, socklen_t *))                                                 \
    X(int, accept4, (int, sockaddr *, socklen_t *, int))                                           \
    X(int, connect, (int, const sockaddr *, socklen_t))                                            \
    X(int, setsockopt, (int, int, int, const void *, socklen_t))                                   \
    X(int, getsockopt, (int, int, int, void *, socklen_t *))                                       \
    X(int, sockatmark, (int))                                                                      \
    X(int, sigaction, (int, const struct sigaction *, struct sigaction *))                         \
    X(SignalHandler, signal, (int, SignalHandler))                                                 \
    X(SignalHandler, bsd_signal, (int, SignalHandler))                                             \
    X(SignalHandler, __sysv_signal, (int, SignalHandler))                                          \
    X(int, dprintf, (int, const char *, ...))                                                      \
    X(int, vdprintf, (int, const char *, va_list))                                                 \
    X(int, __dprintf_chk, (int, int, const char *, ...))                                           \
    X(int, __vdprintf_chk, (int, int, const char *, va_list))                                      \
    X(void, longjmp, (jmp_buf, int))                                                               \
    X(void, _longjmp, (jmp_buf, int))                                                              \
    X(void, siglongjmp, (jmp_buf, int))                                                            \
    X(void, __longjmp_chk, (jmp_buf, int))                                                         \
    X(int, siginterrupt, (int, int))                                                               \
    X(int, chroot, (const char *))                                                                 \
    X(pid_t, fork, ())                                                                             \
    X(int, clone, (int (*)(void *), void *, int, void *, ...))                                     \
    X(int, execve, (const char *, char *const *, char *const *))                                   \
    X(int, execvpe, (const char *, char *const *, char *const *))                                  \
    X(int, fexecve, (int, char *const *, char *const *))                                           \
    X(int, execveat, (int, const char *, char *const *, char *const *, int))                       \
    X(int, posix_spawn,                                                                            \
      (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,       \
       char *const *, char *const *))                                                              \
    X(int, posix_spawnp,                                                                           \
      (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,       \
       char *const *, char *const *))                                                              \
    X(int, system, (const char *))                                                                 \
    X(int, wordexp, (const char *, wordexp_t *, int))                                              \
    X(FILE *, popen, (const char *, const char *))                                                 \
    X(int, pclose, (FILE *))                                                                       \
    X(int, close, (int))                                                                           \
    X(int, __close, (int))                                                                         \
    X(int, close_range, (unsigned, unsigned, int))                                                 \
    X(void, closefrom, (int))                                                                      \
    X(int, dup, (int))                                                                             \
    X(int, dup2, (int, int))                                                                       \
    X(int, dup3, (int, int, int))                                                                  \
    X(int, fcntl, (int, int, ...))                                                                 \
    X(int, fcntl64, (int, int, ...))                                                               \
    X(FILE *, fdopen, (int, const char *))                                                         \
    X(int, fclose, (FILE *))                                                                       \
    X(FILE *, fopen, (const char *, const char *))                                                 \
    X(FILE *, fopen64, (const char *, const char *))                                               \
    X(int, open, (const char *, int, ...))                                                         \
    X(int, open64, (const char *, int, ...))                                                       \
    X(int, openat, (int, const char *, int, ...))                                                  \
    X(int, openat64, (int, const char *, int, ...))                                                \
    X(int, __open_2, (const char *, int))                                                          \
    X(int, __open64_2, (const char *, int))                                                        \
    X(int, __openat_2, (int, const char *, int))                                                   \
    X(int, __openat64_2, (int, const char *, int))                                                 \
    X(int, creat, (const char *, mode_t))                                                          \
    X(int, creat64, (const char *, mode_t))                                                        \
    X(int, pipe, (int *))                                                                          \
    X(int, pipe2, (int *, int))                                                                    \
    X(int, eventfd, (unsigned, int))                                                               \
    X(int, signalfd, (int, const sigset_t *, int))                                                 \
    X(int, timerfd_create, (int, int))                                                             \
    X(int, inotify_init, ())                                                                       \
    X(int, inotify_init1, (int))                                                                   \
    X(int, memfd_create, (const char *, unsigned))                                                 \
    X(int, epoll_create, (int))                                                                    \
    X(int, epoll_create1, (int))                                                                   \
    X(int, pidfd_open, (pid_t, unsigned))                                                          \
    X(int, pidfd_getfd, (int, int, unsigned))                                                      \
    X(pid_t, _Fork, ())                                                                            \
    X(void, _exit, (int))                                                                          \
    X(void, _Exit, (int))                                                                          \
    X(long, syscall, (long, ...))

namespace ntb::socket::preload
{

enum class Call {
#define NTB_NAME(result, name, parameters) name,
    NTB_COUNTED_CALLS(NTB_NAME)
#undef NTB_NAME
};

constexpr const char *const call_names[] = {
#define NTB_NAME(result, name, parameters) #name,
    NTB_COUNTED_CALLS(NTB_NAME)
#undef NTB_NAME
};
constexpr std::size_t call_count = sizeof(call_names) / sizeof(call_names[0]);

/// The functions behind this library: libc's, or those of another preload. Each libc has them all:
/// for a name that is missing dlsym() allocates, and the first to call may be an allocator that
/// starts, with its lock held.
struct Real {
#define NTB_POINTER(result, name, parameters) result(*name) parameters;
    NTB_COUNTED_CALLS(NTB_POINTER)
    NTB_OTHER_CALLS(NTB_POINTER)
#undef NTB_POINTER
};

extern Real real_functions;
extern bool real_is_known;
void find_real();

/// Programs call before the library's constructor ran: from those of other libraries.
inline const Real &real()
{
    if (!real_is_known) [[unlikely]]
        find_real();
    return real_functions;
}

} // namespace ntb::socket::preload

/// Defines a function under libc's name, but not by libc's declaration: that one says what a caller
/// may rely on, such as pointers that are never NULL, and differs from one libc to the next.
#define NTB_EXPORT(result, name, ...)                                                              \
    extern "C" __attribute__((visibility("default"))) result ntb_##name(__VA_ARGS__) asm(#name);   \
    result ntb_##name(__VA_ARGS__)

#endif
