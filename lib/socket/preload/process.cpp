// SPDX-License-Identifier: BSD-3-Clause
// The calls by which processes come and go, and those that pass libc.
#include "preload/attach.hpp"
#include "preload/handover.hpp"
#include "preload/sets.hpp"
#include "preload/upgrade.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <dlfcn.h>
#include <initializer_list>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ntb::socket::preload
{

NTB_EXPORT(pid_t, fork)
{
    before_fork();
    const pid_t child = real().fork();
    KeepErrno keep;
    after_fork(child);
    return child;
}

NTB_EXPORT(pid_t, _Fork)
{
    before_fork();
    const pid_t child = real()._Fork();
    KeepErrno keep;
    after_fork(child);
    return child;
}

namespace
{
/// Before a child is made by other means than fork().
/// @param returns  the child runs code of this library before the program's
/// @return it is as one of fork(): after_fork() has to follow in both
bool begins_fork(std::uint64_t flags, bool returns)
{
    if ((flags & CLONE_VM) != 0) // as vfork(), or a thread
        return false;
    if (returns && (flags & (CLONE_FILES | CLONE_NEWPID)) == 0) {
        before_fork();
        return true;
    }
    // It is not seen, or it shares the descriptors, which each of the two would take for its own,
    // or its number is another process's here. So it cannot be among the holders.
    KeepErrno keep;
    for (int fd = state.table.next(0, ~0u); fd >= 0;
         fd = state.table.next(static_cast<unsigned>(fd) + 1, ~0u)) {
        hand_on(fd);
        leave_to_kernel(fd);
    }
    return false;
}

struct Child {
    int (*call)(void *);
    void *argument;
};

int run_child(void *at)
{
    const Child child = *static_cast<Child *>(at);
    {
        KeepErrno keep;
        after_fork(0);
    }
    return child.call(child.argument);
}
} // namespace

namespace
{
int make_child(int (*call)(void *), void *stack, int flags, void *argument, va_list words)
{
    void *const parents_number = va_arg(words, void *);
    void *const thread_area = va_arg(words, void *);
    void *const childs_number = va_arg(words, void *);
    if (call == nullptr || stack == nullptr || !begins_fork(static_cast<unsigned>(flags), true))
        return real().clone(call, stack, flags, argument, parents_number, thread_area,
                            childs_number);
    Child child = {call, argument};
    const int number =
        real().clone(run_child, stack, flags, &child, parents_number, thread_area, childs_number);
    KeepErrno keep;
    after_fork(number);
    return number;
}
} // namespace

#define NTB_CLONE(name)                                                                            \
    NTB_EXPORT(int, name, int (*call)(void *), void *stack, int flags, void *argument, ...)        \
    {                                                                                              \
        va_list words;                                                                             \
        va_start(words, argument);                                                                 \
        const int number = make_child(call, stack, flags, argument, words);                        \
        va_end(words);                                                                             \
        return number;                                                                             \
    }

NTB_CLONE(clone)
NTB_CLONE(__clone)

// The daemon's socket may be out of reach from now on.
NTB_EXPORT(int, chroot, const char *path)
{
    if (state.figures != nullptr && is_own_process() &&
        state.config.names(program_invocation_short_name)) {
        KeepErrno keep;
        attach_early();
    }
    return real().chroot(path);
}

// The other program may be one without this library: what it inherits is TCP, or becomes a ring of
// its own.
#define NTB_HAND_OVER(path, given)                                                                 \
    Handover handover(path, given);                                                                \
    const std::size_t room = handover.room();                                                      \
    char *const *const variables = handover.environment(                                           \
        room == 0 ? nullptr : static_cast<char **>(__builtin_alloca(room * sizeof(char *))))

NTB_EXPORT(int, execve, const char *path, char *const *words, char *const *environment)
{
    NTB_HAND_OVER(path, environment);
    return real().execve(path, words, variables);
}

NTB_EXPORT(int, execv, const char *path, char *const *words)
{
    NTB_HAND_OVER(path, environ);
    return real().execve(path, words, variables);
}

NTB_EXPORT(int, execvpe, const char *path, char *const *words, char *const *environment)
{
    NTB_HAND_OVER(path, environment);
    return real().execvpe(path, words, variables);
}

NTB_EXPORT(int, execvp, const char *path, char *const *words)
{
    NTB_HAND_OVER(path, environ);
    return real().execvpe(path, words, variables);
}

NTB_EXPORT(int, fexecve, int fd, char *const *words, char *const *environment)
{
    NTB_HAND_OVER(nullptr, environment);
    return real().fexecve(fd, words, variables);
}

NTB_EXPORT(int, execveat, int folder, const char *path, char *const *words,
           char *const *environment, int flags)
{
    NTB_HAND_OVER(nullptr, environment);
    return real().execveat(folder, path, words, variables, flags);
}

// execl() and its kin: the words up to the NULL, on the stack as libc has them.
#define NTB_WORDS(first, variables, call)                                                          \
    va_list list;                                                                                  \
    va_start(list, first);                                                                         \
    std::size_t n = 1;                                                                             \
    while (va_arg(list, char *) != nullptr)                                                        \
        n++;                                                                                       \
    va_end(list);                                                                                  \
    auto **words = static_cast<char **>(__builtin_alloca((n + 1) * sizeof(char *)));               \
    va_start(list, first);                                                                         \
    words[0] = const_cast<char *>(first);                                                          \
    for (std::size_t i = 1; i <= n; i++)                                                           \
        words[i] = va_arg(list, char *);                                                           \
    [[maybe_unused]] const auto next = [&list] { return va_arg(list, char *const *); };            \
    NTB_HAND_OVER(path, variables);                                                                \
    const int status = call;                                                                       \
    va_end(list);                                                                                  \
    return status

NTB_EXPORT(int, execl, const char *path, const char *first, ...)
{
    NTB_WORDS(first, environ, real().execve(path, words, variables));
}

NTB_EXPORT(int, execlp, const char *path, const char *first, ...)
{
    NTB_WORDS(first, environ, real().execvpe(path, words, variables));
}

NTB_EXPORT(int, execle, const char *path, const char *first, ...)
{
    NTB_WORDS(first, next(), real().execve(path, words, variables));
}

// They return an errno.
#define NTB_SPAWN(name, genuine, then)                                                             \
    NTB_EXPORT(int, name, int *child, const char *path, const posix_spawn_file_actions_t *actions, \
               const posix_spawnattr_t *attributes, char *const *words, char *const *environment)  \
    {                                                                                              \
        const auto spawn = genuine;                                                                \
        if (spawn == nullptr)                                                                      \
            return ENOSYS;                                                                         \
        NTB_HAND_OVER(path, environment);                                                          \
        const int status = spawn(child, path, actions, attributes, words, variables);              \
        if (status == 0) {                                                                         \
            handover.started();                                                                    \
            then;                                                                                  \
        }                                                                                          \
        return status;                                                                             \
    }
// libc has them since 2.39.
#define NTB_NEWER(name) reinterpret_cast<decltype(&posix_spawn)>(dlsym(RTLD_NEXT, #name))

NTB_SPAWN(posix_spawn, real().posix_spawn, )
NTB_SPAWN(posix_spawnp, real().posix_spawnp, )
NTB_SPAWN(pidfd_spawn, NTB_NEWER(pidfd_spawn), born(*child))
NTB_SPAWN(pidfd_spawnp, NTB_NEWER(pidfd_spawnp), born(*child))

// libc starts the shell by itself, with the environment as it is: that one cannot know of
// connections that are not claimed. This process goes on with the others. Few commands use a
// connection, and fewer read from one: none is reset because of bytes that are unread.
NTB_EXPORT(int, system, const char *command)
{
    if (command == nullptr) // whether there is a shell
        return real().system(command);
    Handover handover(nullptr, nullptr, Unread::Stay);
    const int status = real().system(command);
    handover.started();
    return status;
}

// A shell for each command in the words.
NTB_EXPORT(int, wordexp, const char *words, wordexp_t *result, int flags)
{
    if ((flags & WRDE_NOCMD) != 0)
        return real().wordexp(words, result, flags);
    Handover handover(nullptr, nullptr, Unread::Stay);
    const int status = real().wordexp(words, result, flags);
    handover.started();
    return status;
}

NTB_EXPORT(FILE *, popen, const char *command, const char *mode)
{
    Handover handover(nullptr, nullptr, Unread::Stay);
    FILE *file = real().popen(command, mode);
    if (file == nullptr)
        return nullptr;
    handover.started();
    born(fileno(file));
    return file;
}

NTB_EXPORT(int, pclose, FILE *file)
{
    if (file != nullptr)
        closing(fileno(file));
    return real().pclose(file);
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

namespace
{
// Its requests pass this library: from now on connections are TCP, also those that have rings.
void use_io_uring()
{
    state.uses_io_uring = true;
    leave_all();
}

// liburing's own function, which may have been loaded later than this library, and by a library
// that keeps it to itself.
void *of_liburing(const char *name)
{
    if (void *found = dlsym(RTLD_NEXT, name); found != nullptr)
        return found;
    for (const char *file : {"liburing.so.2", "liburing.so.1"}) {
        void *library = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
        if (library == nullptr)
            continue;
        void *found = dlsym(library, name);
        dlclose(library); // who calls has it open
        if (found != nullptr)
            return found;
    }
    return nullptr;
}
} // namespace

// liburing makes its system calls by itself, so what sets a ring up is taken here instead. It
// returns an errno as a negative number.
#define NTB_LIBURING(name, parameters, ...)                                                        \
    NTB_EXPORT(int, name, NTB_UNPACK parameters)                                                   \
    {                                                                                              \
        const KeepErrno keep;                                                                      \
        auto *genuine = reinterpret_cast<int(*) parameters>(of_liburing(#name));                   \
        if (genuine == nullptr)                                                                    \
            return -ENOSYS;                                                                        \
        use_io_uring();                                                                            \
        return genuine(__VA_ARGS__);                                                               \
    }
#define NTB_UNPACK(...) __VA_ARGS__

NTB_LIBURING(io_uring_setup, (unsigned entries, void *settings), entries, settings)
NTB_LIBURING(io_uring_queue_init, (unsigned entries, void *ring, unsigned flags), entries, ring,
             flags)
NTB_LIBURING(io_uring_queue_init_params, (unsigned entries, void *ring, void *settings), entries,
             ring, settings)
NTB_LIBURING(io_uring_queue_init_mem,
             (unsigned entries, void *ring, void *settings, void *memory, std::size_t bytes),
             entries, ring, settings, memory, bytes)

// Descriptors come and go by system calls made here, too, and children come.
NTB_EXPORT(long, syscall, long number, ...)
{
    long word[6];
    va_list words;
    va_start(words, number);
    for (long &one : word)
        one = va_arg(words, long);
    va_end(words);
    const int first = static_cast<int>(word[0]);
    bool forks = false;
    switch (number) {
#ifdef SYS_fork
    case SYS_fork:
        forks = begins_fork(0, true);
        break;
#endif
    // With a stack that is given the child does not return to here.
    case SYS_clone:
        forks = begins_fork(static_cast<std::uint64_t>(word[0]), word[1] == 0);
        break;
    case SYS_clone3:
        if (const auto *child = reinterpret_cast<const clone_args *>(word[0]);
            child != nullptr && word[1] >= CLONE_ARGS_SIZE_VER0)
            forks = begins_fork(child->flags, child->stack == 0);
        break;
    case SYS_close:
    case SYS_dup3:
#ifdef SYS_dup2
    case SYS_dup2:
#endif
        closing(number == SYS_close ? first : static_cast<int>(word[1]));
        break;
    case SYS_io_uring_setup:
        use_io_uring();
        break;
    default:
        break;
    }
    const long result =
        real().syscall(number, word[0], word[1], word[2], word[3], word[4], word[5]);
    if (forks) {
        KeepErrno keep;
        after_fork(static_cast<pid_t>(result));
    }
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
    case SYS_memfd_create:
    case SYS_timerfd_create:
    case SYS_pidfd_open:
    case SYS_pidfd_getfd:
    case SYS_io_uring_setup:
        born(static_cast<int>(result));
        break;
    case SYS_epoll_create1:
        set_born(static_cast<int>(result), attendant());
        break;
    default:
        break;
    }
    return result;
}

} // namespace ntb::socket::preload
