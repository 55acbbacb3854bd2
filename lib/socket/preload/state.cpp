// SPDX-License-Identifier: BSD-3-Clause
#include "preload/state.hpp"

#include "kernel/system.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

namespace ntb::socket::preload
{

State state;

namespace
{
constexpr std::size_t most_descriptors = 1 << 20;
constexpr std::uint32_t most_objects = 1 << 16;
// Hidden descriptors are from here on, or below it where the limit is lower. The kernel copies a
// table of descriptors up to the highest one at each fork, so not much higher.
constexpr int first_hidden = 960;

int own_pid()
{
    return static_cast<int>(kernel::call(SYS_getpid));
}

// A bounded text, written at once: lines of several processes stay apart.
struct Text {
    char bytes[6144];
    std::size_t size = 0;

    __attribute__((format(printf, 2, 3))) void add(const char *format, ...)
    {
        va_list words;
        va_start(words, format);
        const int more = vsnprintf(bytes + size, sizeof(bytes) - size, format, words);
        va_end(words);
        size = std::min(sizeof(bytes) - 1, size + static_cast<std::size_t>(std::max(more, 0)));
    }
    void write_to(int fd) const { kernel::call(SYS_write, fd, bytes, size); }
};

bool make_figures()
{
    const long file = kernel::call(SYS_memfd_create, Figures::name, MFD_CLOEXEC);
    if (file < 0)
        return false;
    const int fd = hide(static_cast<int>(file));
    if (fd < 0 || kernel::call(SYS_ftruncate, fd, 4096) < 0)
        return false;
    const long at =
        kernel::call(SYS_mmap, nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at < 0)
        return false;
    auto *figures = reinterpret_cast<Figures *>(at);
    figures->magic = Figures::right_magic;
    figures->version = Figures::right_version;
    figures->pid = own_pid();
    strncpy(figures->program, program_invocation_short_name, sizeof(figures->program) - 1);
    state.figures = figures;
    return true;
}

// Nothing of the program's is called here but what is safe before main(): other libraries may not
// be ready.
__attribute__((constructor(101))) void load()
{
    find_real();
    KeepErrno keep;
    const char *path = getenv(config_variable);
    if (path == nullptr)
        return;
    const char *verbose = getenv(verbose_variable);
    const bool wants_report = verbose != nullptr && strcmp(verbose, "0") != 0;
    Config::Error error;
    if (!state.config.load(path, &error)) {
        if (wants_report) {
            Text text;
            text.add("ntbsocket: %s:%u: %s; %s uses TCP\n", path, error.line, error.text,
                     program_invocation_short_name);
            text.write_to(STDERR_FILENO);
        }
        return;
    }
    rlimit limit = {};
    kernel::call(SYS_getrlimit, RLIMIT_NOFILE, &limit);
    const std::size_t descriptors = std::clamp<std::size_t>(limit.rlim_max, 1024, most_descriptors);
    state.pid = own_pid();
    if (!state.table.make(descriptors, most_objects,
                          [](Object *object) { state.table.end(object); }))
        return;
    if (!make_figures()) {
        state.table.unmake();
        return;
    }
    if (wants_report) {
        state.report =
            hide(static_cast<int>(kernel::call(SYS_fcntl, STDERR_FILENO, F_DUPFD_CLOEXEC, 3)));
        state.verbose = true;
    }
    pthread_atfork(nullptr, nullptr, forked_in_child);
}

__attribute__((destructor(101))) void unload()
{
    report();
}

bool is_tcp(int fd)
{
    int type = 0, protocol = 0;
    socklen_t size = sizeof(int);
    if (kernel::call(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 ||
        kernel::call(SYS_getsockopt, fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) < 0)
        return false;
    return type == SOCK_STREAM && protocol == IPPROTO_TCP;
}

bool name_of(long call, int fd, Address *out)
{
    sockaddr_storage storage;
    socklen_t length = sizeof(storage);
    return kernel::call(call, fd, &storage, &length) == 0 &&
           Address::of(reinterpret_cast<sockaddr *>(&storage), length, out);
}
} // namespace

bool is_own_process()
{
    return state.pid.load(std::memory_order_relaxed) == own_pid();
}

int hide(int fd)
{
    if (fd < 0)
        return -1;
    long high = kernel::call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, first_hidden);
    if (high < 0)
        high = kernel::call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);
    kernel::call(SYS_close, fd);
    if (high < 0)
        return -1;
    state.table.hide(static_cast<int>(high));
    return static_cast<int>(high);
}

void closing_slowly(int fd)
{
    KeepErrno keep;
    if (!is_own_process())
        return;
    if (const Table::Taken taken = state.table.take(fd); taken.over)
        state.table.end(taken.object);
}

void born_slowly(int fd)
{
    KeepErrno keep;
    if (!is_own_process())
        return;
    count(Reason::unseen);
    closing_slowly(fd);
}

void made(Role role, int fd, const sockaddr *peer, socklen_t length)
{
    if (state.figures == nullptr || !is_own_process())
        return;
    KeepErrno keep;
    Address remote, local;
    if (peer == nullptr ? !name_of(SYS_getpeername, fd, &remote)
                        : !Address::of(peer, length, &remote))
        return;
    if (!is_tcp(fd))
        return count(Reason::not_tcp);
    if (role == Role::Accept && !name_of(SYS_getsockname, fd, &local))
        return;
    if (!state.config.wanted(role, program_invocation_short_name,
                             role == Role::Accept ? local : remote))
        return count(Reason::no_rule);
    if (state.config.daemon_of(remote) == nullptr)
        return count(Reason::no_host);
    if (state.uses_io_uring.load(std::memory_order_relaxed))
        return count(Reason::io_uring);
    std::uint64_t cookie = 0;
    socklen_t size = sizeof(cookie);
    if (kernel::call(SYS_getsockopt, fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) < 0)
        return count(Reason::no_rings);
    closing(fd);
    count(Reason::no_rings);
    if (!state.verbose)
        return;
    if (Object *object = state.table.add(fd, Object::Kind::Connection, cookie); object != nullptr)
        state.table.done(object);
    else
        count(Reason::no_room);
}

void forked_in_child()
{
    state.pid = own_pid();
    state.table.forked();
}

void report()
{
    if (!state.verbose || state.report < 0 || state.figures->pid != own_pid())
        return;
    const Figures &figures = *state.figures;
    Text text;
    text.add("ntbsocket: %s (%d):\n", figures.program, figures.pid);
    for (std::size_t i = 0; i < reason_count; i++)
        if (const std::uint64_t times = figures.reasons[i].load(); times != 0)
            text.add("  %llu %s\n", static_cast<unsigned long long>(times), reason_texts[i]);
    text.add("  by TCP: %llu bytes received, %llu sent\n",
             static_cast<unsigned long long>(figures.tcp_received.load()),
             static_cast<unsigned long long>(figures.tcp_sent.load()));
    text.add("  calls:");
    for (std::size_t i = 0; i < call_count; i++)
        if (const std::uint64_t times = figures.calls[i].load(); times != 0)
            text.add(" %s %llu", call_names[i], static_cast<unsigned long long>(times));
    text.add("\n");
    text.write_to(state.report);
    state.verbose = false;
}

} // namespace ntb::socket::preload
