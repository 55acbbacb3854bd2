// SPDX-License-Identifier: BSD-3-Clause
// The process's life: what is read at its start, its forks, and what it reports at its end.
#include "preload/state.hpp"

#include "kernel/memory.hpp"
#include "kernel/shadow.hpp"
#include "kernel/system.hpp"
#include "preload/attach.hpp"
#include "preload/handover.hpp"
#include "preload/sets.hpp"
#include "preload/upgrade.hpp"
#include "spin.hpp"

#include <algorithm>
#include <csignal>
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

namespace
{
constexpr std::size_t most_descriptors = 1 << 20;
constexpr std::uint32_t most_objects = 1 << 16;

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
    auto *figures = kernel::map<Figures>(1, MAP_SHARED, fd);
    if (figures == nullptr)
        return false;
    figures->version = Figures::right_version;
    figures->pid = own_pid();
    strncpy(figures->program, program_invocation_short_name, sizeof(figures->program) - 1);
    // Last: who finds it knows that the rest is there.
    std::atomic_ref(figures->magic).store(Figures::right_magic, std::memory_order_release);
    state.figures = figures;
    return true;
}

// What the page has of the attachment's counts: matched, received, sent, unmatched, refused.
std::atomic<std::uint64_t> taken_figures[5];

// fork() is seen as a call, and then knows what came of it. daemon() and forkpty() are seen here
// alone.
thread_local bool fork_is_seen = false;

void before_fork_now()
{
    upgrade_before_fork();
}

void after_fork_now(pid_t child)
{
    if (child == 0) {
        state.pid = own_pid();
        state.table.forked();
        Uses::forked();
    }
    upgrade_after_fork(child);
    if (child != 0)
        return;
    // A child's attachment counts from nothing.
    for (std::atomic<std::uint64_t> &one : taken_figures)
        one = 0;
    state.table.end_left();
}

void around_fork(void (*step)())
{
    if (!fork_is_seen)
        step();
}

// Nothing of the program's is called here but what is safe before main(): other libraries may not
// be ready.
__attribute__((constructor(101))) void load()
{
    find_real();
    KeepErrno keep;
    // It is for this program alone.
    Will will;
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
    if (!make_bodies(most_objects) ||
        !state.table.make(descriptors, most_objects, [](Object *object) { finish(object, -1); }))
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
    take_inheritance(will);
    process_spinning().most_us = state.config.spin_us();
    pthread_atfork([] { around_fork(before_fork_now); },
                   [] { around_fork([] { after_fork_now(1); }); },
                   [] { around_fork([] { after_fork_now(0); }); });
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

namespace
{
// Who connects to no address in particular reaches the one that it is bound to, or the host's own:
// the kernel has made it the socket's own one, also where the connection is still on its way.
bool name_reached(int fd, Address *remote)
{
    static constexpr std::uint8_t any4[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff},
                                  any6[16] = {};
    if (memcmp(remote->bytes, any4, sizeof(any4)) != 0 &&
        memcmp(remote->bytes, any6, sizeof(any6)) != 0)
        return true;
    const std::uint16_t port = remote->port;
    const bool named = name_of(SYS_getsockname, fd, remote);
    remote->port = port;
    return named;
}

// The number goes; with the last one the object. In order: calls find it no more, sets
// forget it, it ends.
void drop(int fd, bool is_open)
{
    state.table.forget_added(fd);
    Object *object = state.table.use(fd);
    if (object == nullptr) {
        closed_in_sets(fd, nullptr, true);
        return;
    }
    const Table::Taken taken = state.table.take(fd);
    if (taken.object == object && object->kind == Object::Kind::Connection) {
        auto *body = static_cast<Body *>(object->body.load());
        closed_in_sets(fd, body, taken.last);
        if (body != nullptr)
            body->number_closed(is_open ? fd : -1, taken.last);
    } else if (taken.object == object) {
        auto *set = static_cast<Set *>(object->body.load());
        closed_in_sets(fd, nullptr, true);
        if (const int other = taken.last ? -1 : state.table.number_of(object); other >= 0)
            set->moved(other);
    }
    if (state.table.leave(object))
        finish(object, is_open ? fd : -1);
}
} // namespace

void closing_slowly(int fd)
{
    KeepErrno keep;
    if (is_own_process())
        drop(fd, true);
}

void born_slowly(int fd)
{
    KeepErrno keep;
    if (!is_own_process())
        return;
    count(Reason::unseen);
    drop(fd, false);
}

namespace
{
// Counted, where it is not.
bool may_go_by_ring(Role role, const Address &place, const Address &remote)
{
    if (!state.config.wanted(role, program_invocation_short_name, place))
        return count(Reason::no_rule), false;
    const char *daemon = state.config.daemon_of(remote);
    if (daemon == nullptr)
        return count(Reason::no_host), false;
    if (state.uses_io_uring.load(std::memory_order_relaxed))
        return count(Reason::io_uring), false;
    if (attachment_of(daemon) == nullptr)
        return count(Reason::other_daemon), false;
    return true;
}

// Then a connection is the kernel's from its beginning, and nothing has to be known of it: what is
// asked of the kernel about one takes a third of what it takes to make it. With -v its calls are
// counted.
bool is_without_daemon()
{
    const Attachment *at = attachment();
    return at != nullptr && !state.verbose && at->is_out_of_reach();
}
} // namespace

// One that this program does not want is kept all the same: its children have it, too.
void inherited(int fd, std::uint64_t cookie, int place)
{
    Address remote, local;
    const bool connected =
        name_of(SYS_getpeername, fd, &remote) && name_of(SYS_getsockname, fd, &local);
    const bool accepted = family().socket_at(place).accepted;
    count(Reason::inherited);
    Object *object = state.table.add(fd, Object::Kind::Connection, cookie);
    if (object == nullptr)
        return count(Reason::no_room);
    const Address &named = accepted ? local : remote;
    const bool late =
        connected && state.config.wanted(Role::Late, program_invocation_short_name, named);
    const bool wanted =
        connected && may_go_by_ring(late ? Role::Late : Role::Inherit, named, remote);
    inherit(*object, fd, place,
            !wanted ? Claims::Never
            : late  ? Claims::AfterChild
                    : Claims::AtFirstUse);
    state.table.done(object);
}

void made(Role role, int fd, const sockaddr *peer, socklen_t length, bool connecting)
{
    if (state.figures == nullptr)
        return;
    // One that the number stood for before it was closed unseen has to go first.
    if (is_without_daemon() && state.table.find(fd) == nullptr)
        return count(Reason::not_looked_at);
    if (!is_own_process())
        return;
    KeepErrno keep;
    Address remote, local;
    if (peer == nullptr ? !name_of(SYS_getpeername, fd, &remote)
                        : !Address::of(peer, length, &remote))
        return;
    if (!is_tcp(fd))
        return count(Reason::not_tcp);
    if (role == Role::Connect && !name_reached(fd, &remote))
        return;
    if (role == Role::Accept && !name_of(SYS_getsockname, fd, &local))
        return;
    if (!may_go_by_ring(role, role == Role::Accept ? local : remote, remote))
        return;
    const std::uint64_t cookie = kernel::cookie_of(fd);
    if (const Object *known = state.table.find(fd); known != nullptr) {
        // The call that asks whether one that did not wait has succeeded.
        if (known->kind == Object::Kind::Connection && known->cookie == cookie)
            return;
        // Of another socket, closed unseen.
        drop(fd, false);
    }
    // Sets may know the number of before it was this: then they ask the kernel.
    if (state.has_sets.load(std::memory_order_relaxed))
        closed_in_sets(fd, nullptr, true);
    Object *object = state.table.add(fd, Object::Kind::Connection, cookie);
    if (object == nullptr)
        return count(Reason::no_room);
    const bool late = role == Role::Accept &&
                      state.config.wanted(Role::Late, program_invocation_short_name, local);
    begin(*object, fd, role == Role::Accept, connecting,
          late ? Claims::InChild : Claims::AtFirstUse);
    state.table.done(object);
}

void before_fork()
{
    if (state.figures == nullptr)
        return;
    before_fork_now();
    fork_is_seen = true;
}

void after_fork(pid_t child)
{
    if (state.figures == nullptr)
        return;
    fork_is_seen = false;
    after_fork_now(child);
}

void take_figures()
{
    const Attachment *at = attachment();
    if (state.figures == nullptr || at == nullptr)
        return;
    const Attachment::Figures now = at->figures();
    const auto add = [](std::atomic<std::uint64_t> &to, std::atomic<std::uint64_t> &before,
                        std::uint64_t value) { to.fetch_add(value - before.exchange(value)); };
    add(state.figures->matched, taken_figures[0], now.matched);
    add(state.figures->ring_received, taken_figures[1], now.ring_received);
    add(state.figures->ring_sent, taken_figures[2], now.ring_sent);
    const auto reason = [](Reason one) -> std::atomic<std::uint64_t> & {
        return state.figures->reasons[static_cast<int>(one)];
    };
    add(reason(Reason::unmatched), taken_figures[3], now.unmatched);
    add(reason(Reason::refused), taken_figures[4], now.refused);
}

void report()
{
    // A child of a raw system call may have a lock that no thread of its own holds.
    if (Attachment *at = attachment(); at != nullptr && is_own_process())
        at->settle();
    take_figures();
    if (!state.verbose || state.report < 0 || state.figures->pid != own_pid())
        return;
    const Figures &figures = *state.figures;
    Text text;
    text.add("ntbsocket: %s (%d):\n", figures.program, figures.pid);
    for (std::size_t i = 0; i < reason_count; i++)
        if (const std::uint64_t times = figures.reasons[i].load(); times != 0)
            text.add("  %llu %s\n", static_cast<unsigned long long>(times), reason_texts[i]);
    const auto bytes = [&text](const char *way, std::uint64_t received, std::uint64_t sent) {
        text.add("  by %s: %llu bytes received, %llu sent\n", way,
                 static_cast<unsigned long long>(received), static_cast<unsigned long long>(sent));
    };
    text.add("  %llu matched\n", static_cast<unsigned long long>(figures.matched.load()));
    bytes("ring", figures.ring_received, figures.ring_sent);
    // A process that is killed has not counted all of what it moved.
    const auto rest = [](std::uint64_t all, std::uint64_t ring) {
        return all - std::min(all, ring);
    };
    bytes("TCP", rest(figures.received, figures.ring_received),
          rest(figures.sent, figures.ring_sent));
    text.add("  calls:");
    for (std::size_t i = 0; i < call_count; i++)
        if (const std::uint64_t times = figures.calls[i].load(); times != 0)
            text.add(" %s %llu", call_names[i], static_cast<unsigned long long>(times));
    text.add("\n");
    // A file that may not grow, and a pipe without a reader, answer a write with a signal, which
    // would end a program that ends well. They stay blocked: the process is at its end.
    const std::uint64_t signals =
        (std::uint64_t{1} << (SIGXFSZ - 1)) | (std::uint64_t{1} << (SIGPIPE - 1));
    kernel::call(SYS_rt_sigprocmask, SIG_BLOCK, &signals, nullptr, 8);
    text.write_to(state.report);
    state.verbose = false;
}

} // namespace ntb::socket::preload
