// SPDX-License-Identifier: BSD-3-Clause
#include "preload/transfer.hpp"

#include "kernel/shadow.hpp"
#include "kernel/system.hpp"
#include "readiness/poll.hpp"

#include <csignal>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/single_threaded.h>

namespace ntb::socket::preload
{

namespace
{
// The parts of a call from some byte on, a handful at a time.
class Rest
{
public:
    static constexpr int places = 16;

    Rest(const iovec *parts, int n) : parts_(parts), n_(n) {}

    const iovec *next(int *n)
    {
        if (offset_ == 0 && n_ <= places) {
            *n = n_;
            return parts_;
        }
        *n = n_ < places ? n_ : places;
        for (int i = 0; i < *n; i++)
            place_[i] = parts_[i];
        place_[0].iov_base = static_cast<char *>(place_[0].iov_base) + offset_;
        place_[0].iov_len -= offset_;
        return place_;
    }
    void skip(std::size_t bytes)
    {
        offset_ += bytes;
        while (n_ > 0 && offset_ >= parts_->iov_len) {
            offset_ -= parts_->iov_len;
            parts_++;
            n_--;
        }
    }
    bool is_over() const { return n_ == 0; }

private:
    const iovec *parts_;
    int n_;
    std::size_t offset_ = 0;
    iovec place_[places];
};

// The first step is one of the first parts alone: of none with a byte it would be an end of file.
inline void skip_empty(const iovec *&parts, int &n)
{
    while (n > Rest::places && parts->iov_len == 0) {
        parts++;
        n--;
    }
}

std::int64_t now_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

// One call that blocks, and what it has waited for. As in the kernel it goes on with its connection
// whatever becomes of the number.
class Waiting
{
public:
    Waiting(int fd, Way way, int flags) : fd_(fd), way_(way), flags_(flags) {}

    /// @return 0: call again; else a negative errno
    int wait(Held &held)
    {
        if (!begin())
            return -EAGAIN;
        const std::uint32_t event = way_ == Way::In ? EPOLLIN : EPOLLOUT;
        // Most waits are over by then, and need not ask the kernel for anything.
        if (until_ == 0 && held.body()->waits(event)) {
            const timespec some = {0, unasked_ns};
            const int status = wait(held, event, &some, true);
            if (status != -EAGAIN)
                return status;
        }
        const std::uint32_t changes = held.body()->changes();
        if (const int error = ask(held); error != 0)
            return error;
        if (until_ == 0) {
            held.body()->found_waiting(event, changes);
            if (way_ == Way::In && __libc_single_threaded != 0)
                return wait(held, event, nullptr, true);
            const timespec some = way_ == Way::In ? unclosed : unshut;
            const int status = wait(held, event, &some, true);
            return status == -EAGAIN ? 0 : status;
        }
        const std::int64_t rest = std::max<std::int64_t>(until_ - now_ns(), 0);
        const timespec left = {rest / 1000000000, rest % 1000000000};
        return wait(held, event, &left, false);
    }

    /// For who wants more than there is, and takes none of it: no bell says that more has come.
    /// @return as wait()
    int nap(Held &held)
    {
        if (!begin())
            return -EAGAIN;
        if (const int error = ask(held); error != 0)
            return error;
        const std::int64_t rest = until_ == 0 ? nap_ns : std::min(until_ - now_ns(), nap_ns);
        if (rest <= 0)
            return -EAGAIN;
        const int status = asleep(held, [rest](Body &) {
            const timespec some = {0, rest};
            kernel::call(SYS_nanosleep, &some, nullptr);
            return 0;
        });
        if (status != 0)
            return status;
        return handled().all != before_.all ? -EINTR : 0;
    }

    /// Until a pipe has room. @return as wait()
    int wait_for_room(Held &held, int pipe)
    {
        if (!begin())
            return -EAGAIN;
        return asleep(held, [=, this](Body &) { return wait_for(pipe, EPOLLOUT, before_); });
    }

private:
    /// How late it may be seen that there is more to peek at.
    static constexpr std::int64_t nap_ns = 1000000;
    /// How late it may be seen that another process has changed the flags of the descriptor or its
    /// time-out, or that the number stands for another file: some ticks of the kernel's.
    static constexpr long unasked_ns = 10000000;
    /// How late a writer may see that another thread has shut this end down: no bell says so.
    static constexpr timespec unshut = {0, 100000000};
    /// How late who sleeps may see what the kernel has to say, where another thread has closed the
    /// number meanwhile: poll() looks the number up again each time that it is woken.
    static constexpr timespec unclosed = {1, 0};

    /// @retval false the call does not wait
    bool begin()
    {
        if ((flags_ & MSG_DONTWAIT) != 0)
            return false;
        if (began_ != 0)
            return true;
        began_ = now_ns();
        before_ = handled();
        return true;
    }
    /// Asks the kernel what it knows of the descriptor. @return 0: it may wait; else a negative
    /// errno
    int ask(Held &held)
    {
        const int fd = held.body()->number(fd_);
        if (fd < 0)
            return -EBADF; // it could not be kept open
        if ((kernel::call(SYS_fcntl, fd, F_GETFL) & O_NONBLOCK) != 0) {
            held.body()->forget_waiting();
            return -EAGAIN;
        }
        if (!is_asked_)
            ask_time(fd);
        // A number that was closed unseen.
        return kernel::cookie_of(fd) == held.object()->cookie ? 0 : -ESTALE;
    }
    int wait(Held &held, std::uint32_t event, const timespec *time, bool restarts)
    {
        return asleep(held, [=, this](Body &body) {
            return wait_for(body, event, time, attendant(), restarts, &before_);
        });
    }
    template <typename Sleep>
    int asleep(Held &held, Sleep sleep)
    {
        Object *object = held.object();
        Body &body = *held.body();
        const std::uint64_t cookie = object->cookie;
        const std::uint32_t place = held.keep();
        const int status = sleep(body);
        return held.take_back(place, fd_, object, cookie) ? status : -EBADF;
    }
    void ask_time(int fd)
    {
        is_asked_ = true;
        timeval time = {};
        socklen_t length = sizeof(time);
        kernel::call(SYS_getsockopt, fd, SOL_SOCKET, way_ == Way::In ? SO_RCVTIMEO : SO_SNDTIMEO,
                     &time, &length);
        if (time.tv_sec != 0 || time.tv_usec != 0)
            until_ = began_ + time.tv_sec * 1000000000ll + time.tv_usec * 1000ll;
    }

    int fd_;
    Way way_;
    int flags_;
    bool is_asked_ = false;
    std::int64_t began_ = 0;
    std::int64_t until_ = 0;
    Handled before_ = {}; ///< a handler between two of its waits ends it, too (rule W9)
};

ssize_t step_by(Connection &one, int fd, Way way, const iovec *places, int n, int flags)
{
    return way == Way::In ? one.receive(fd, places, n, flags) : one.send(fd, places, n, flags);
}

// One step of a call: by the connection, or by the kernel where it has stayed TCP meanwhile.
ssize_t step(Body &body, int named, Way way, const iovec *places, int n, int flags)
{
    const int fd = body.number(named);
    ssize_t result;
    if (Connection *one = body.claimed(); one != nullptr) {
        result = step_by(*one, fd, way, places, n, flags);
    } else {
        result = way == Way::In ? kernel::receive(fd, places, n, flags)
                                : kernel::send(fd, places, n, flags);
    }
    if (fd == named)
        body.announce(fd);
    return result;
}

// Where a call that wants more than there is ends, as in the kernel.
bool is_at_mark(Body &body, int named)
{
    const int fd = body.number(named);
    Connection *one = body.claimed();
    return one == nullptr ? kernel::is_at_mark(fd) : one->is_at_mark(fd);
}

// Whether no more comes than is there: an end, also by an error, or urgent data.
bool has_end(Body &body, int named)
{
    const int fd = body.number(named);
    constexpr std::uint32_t ends = EPOLLRDHUP | EPOLLHUP | EPOLLPRI;
    Connection *one = body.claimed();
    return ((one == nullptr ? kernel::events_of(fd, ends) : one->look(fd, EPOLLIN)) & ends) != 0;
}

bool wants_all(Way way, int flags)
{
    return way == Way::Out || (flags & MSG_WAITALL) != 0;
}

bool is_whole(ssize_t moved, const iovec &part)
{
    return static_cast<std::size_t>(moved) == part.iov_len;
}

// @return what a call says that an error has ended behind so many bytes
ssize_t end_behind(Held &held, ssize_t done, ssize_t error)
{
    if (done == 0)
        return error;
    if (Connection *one = held.body() == nullptr ? nullptr : held.body()->claimed(); one != nullptr)
        one->owe(error);
    return done;
}

// Whether all that is wanted was peeked at, or is there: one look does not pass from the kernel's
// bytes to a ring's and to the kernel's again.
bool has_all(Body &body, int fd, ssize_t peeked, std::size_t wanted)
{
    if (static_cast<std::size_t>(peeked) >= wanted)
        return true;
    Connection *one = body.claimed();
    return one != nullptr && one->readable_bytes(body.number(fd)) >= static_cast<ssize_t>(wanted);
}
} // namespace

ssize_t peek_all(Held &held, int fd, const iovec *parts, int n, int flags)
{
    std::size_t wanted = 0;
    for (int i = 0; i < n; i++)
        wanted += parts[i].iov_len;
    Waiting waiting(fd, Way::In, flags);
    for (;;) {
        // To be seen before what precedes it is counted.
        const bool ends = has_end(*held.body(), fd);
        ssize_t result = step(*held.body(), fd, Way::In, parts, n, flags);
        if (result == 0 || (result > 0 && (ends || has_all(*held.body(), fd, result, wanted))))
            return result;
        const ssize_t there = result;
        if (result == -EAGAIN)
            result = waiting.wait(held);
        else if (result > 0)
            result = waiting.nap(held);
        if (result < 0)
            return there > 0 ? there : result;
    }
}

namespace
{
// The call has begun with a step, and that was not all.
// @param result  of that step
[[gnu::noinline]] ssize_t go_on(Held &held, int fd, Way way, const iovec *parts, int n, int flags,
                                ssize_t result)
{
    Rest rest(parts, n);
    Waiting waiting(fd, way, flags);
    ssize_t done = 0;
    for (;;) {
        if (result > 0) {
            done += result;
            rest.skip(static_cast<std::size_t>(result));
            if (!wants_all(way, flags) || rest.is_over())
                return done;
        } else if (result == 0) {
            return done;
        } else {
            if (result == -EAGAIN)
                result = waiting.wait(held);
            if (result < 0)
                return end_behind(held, done, result);
        }
        if (way == Way::In && done > 0 && is_at_mark(*held.body(), fd))
            return done;
        int count = 0;
        const iovec *places = rest.next(&count);
        // A part that was sent is the result, and the signal comes with the next call.
        const int now = way == Way::Out && done > 0 ? flags | MSG_NOSIGNAL : flags;
        result = step(*held.body(), fd, way, places, count, now);
    }
}

// What a call says whose first step had this result: nearly all are over by then.
ssize_t go_on_if_needed(Held &held, int fd, Way way, const iovec *parts, int n, int flags,
                        ssize_t first)
{
    if (first > 0 && (!wants_all(way, flags) || (n == 1 && is_whole(first, *parts)))) [[likely]]
        return first;
    if (first == -EAGAIN && (flags & MSG_DONTWAIT) != 0)
        return first;
    return go_on(held, fd, way, parts, n, flags, first);
}
} // namespace

ssize_t transfer(Held &held, int fd, Way way, const iovec *parts, int n, int flags)
{
    skip_empty(parts, n);
    const ssize_t first = step(*held.body(), fd, way, parts, std::min(n, Rest::places), flags);
    return go_on_if_needed(held, fd, way, parts, n, flags, first);
}

namespace
{
// Bytes that a pipe takes at once, as far as no one else writes to it; 0: none. What is in it may
// lie in as many places as it has, but one: only of an empty one all are known.
ssize_t room_of(int pipe)
{
    constexpr int one_place = PIPE_BUF;
    const std::uint32_t events = kernel::events_of(pipe, EPOLLOUT);
    if ((events & EPOLLERR) != 0) {
        kernel::call(SYS_tgkill, kernel::call(SYS_getpid), kernel::call(SYS_gettid), SIGPIPE);
        return -EPIPE;
    }
    if ((events & EPOLLOUT) == 0)
        return 0;
    int bytes = 0;
    const long status = kernel::call(SYS_ioctl, pipe, FIONREAD, &bytes);
    return status == 0 && bytes == 0 ? kernel::call(SYS_fcntl, pipe, F_GETPIPE_SZ) : one_place;
}
} // namespace

ssize_t splice_to_pipe(Held &held, int fd, int pipe, std::size_t size, bool waits_for_room)
{
    Waiting waiting(fd, Way::In, 0);
    for (;;) {
        ssize_t result = room_of(pipe);
        if (result < 0)
            return result;
        if (result == 0) {
            result = waits_for_room ? waiting.wait_for_room(held, pipe) : -EAGAIN;
        } else {
            const std::size_t most = std::min(size, static_cast<std::size_t>(result));
            Body &body = *held.body();
            const int now = body.number(fd);
            Connection *one = body.claimed();
            result = one != nullptr ? one->splice(now, pipe, most) : -ESTALE;
            if (now == fd)
                body.announce(fd);
            if (result != -EAGAIN)
                return result;
            result = waiting.wait(held);
        }
        if (result < 0)
            return result;
    }
}

namespace
{
// Nothing is wanted: recv() waits until something is there all the same, and takes none of it.
ssize_t receive_nothing(Held &held, int fd, int flags)
{
    char byte;
    const iovec part = {&byte, 1};
    const ssize_t result = transfer(held, fd, Way::In, &part, 1, flags | MSG_PEEK);
    return result > 0 ? 0 : result;
}

bool is_empty(const iovec *parts, int n)
{
    return std::all_of(parts, parts + n, [](const iovec &part) { return part.iov_len == 0; });
}

// The kernel answers EFAULT to a pointer that leads nowhere. Here only that one is looked for.
bool has_null(const iovec *parts, int n)
{
    return std::any_of(parts, parts + n, [](const iovec &part) {
        return part.iov_base == nullptr && part.iov_len > 0;
    });
}

// Where read() and its kin have nothing to do they do not wait, unlike recv().
bool is_for_files(Call call)
{
    return call == Call::read || call == Call::__read_chk || call == Call::readv ||
           call == Call::preadv2 || call == Call::preadv64v2;
}

// Bytes, and where they lie: nothing that the kernel would refuse, or that has a meaning of its
// own.
bool is_plain(const iovec &part)
{
    return part.iov_base != nullptr && part.iov_len - 1 < SSIZE_MAX &&
           reinterpret_cast<std::uintptr_t>(part.iov_base) + part.iov_len <= user_space;
}

bool are_plain(const iovec *parts, int n)
{
    for (int i = 0; i < n; i++)
        if (!is_plain(parts[i]))
            return false;
    return n > 0;
}

// What is said without a step of the connection.
// @param is_one  of bytes at one place
// @retval false  nothing is: it is to be made
bool is_answered(Held &held, Kind kind, int fd, const iovec *parts, int n, int flags, bool is_one,
                 ssize_t &answer)
{
    answer = check(parts, n, is_one);
    if (answer == 0 && (flags & MSG_TRUNC) == 0 && has_null(parts, n))
        answer = -EFAULT;
    if (answer != 0)
        return true;
    if (kind.way == Way::Out || !is_empty(parts, n))
        return false;
    answer = is_for_files(kind.call) ? 0 : receive_nothing(held, fd, flags);
    return true;
}

// One call on a connection. The number stands for it: it was just looked up.
[[gnu::always_inline]] inline ssize_t move(Held &held, Connection &one, Kind kind, int fd,
                                           const iovec *parts, int n, int flags, bool is_one)
{
    KeepErrno keep;
    ssize_t answer = 0;
    if (!are_plain(parts, n) && is_answered(held, kind, fd, parts, n, flags, is_one, answer))
        [[unlikely]]
        return answer;
    if (kind.way == Way::In && (flags & peeks_all) == peeks_all) [[unlikely]]
        return peek_all(held, fd, parts, n, flags);
    skip_empty(parts, n);
    const ssize_t first = step_by(one, fd, kind.way, parts, std::min(n, Rest::places), flags);
    held.body()->announce(fd);
    return go_on_if_needed(held, fd, kind.way, parts, n, flags, first);
}

template <typename Kernel>
[[gnu::always_inline]] inline ssize_t make(Object &found, Kind kind, int fd, const iovec *parts,
                                           int n, int flags, bool is_one, const Kernel &kernel)
{
    Held held(found, fd, Object::Kind::Connection);
    Body *const body = held.body();
    if (body == nullptr)
        return kernel();
    count(kind.call);
    Turn turn(held, *body, fd);
    Connection *const one = turn.connection();
    ssize_t result = -ESTALE;
    if (one != nullptr && n >= 0 && n <= IOV_MAX && (flags & (MSG_ERRQUEUE | MSG_FASTOPEN)) == 0)
        [[likely]]
        result = move(held, *one, kind, fd, parts, n, flags, is_one);
    return finish_call(turn, kind.way, result, kernel);
}

// Whether a receive would find nothing, where a few loads say so. false: it is to be made.
[[gnu::always_inline]] inline bool finds_nothing(Object &found, int fd, const iovec &part)
{
    const Held held(found, fd, Object::Kind::Connection);
    const Body *const body = held.body();
    return body != nullptr && !state.verbose && is_plain(part) && body->finds_nothing();
}

[[gnu::noinline]] ssize_t make_one(int fd, void *at, size_t size, int flags, const OneCall &call,
                                   Object &found)
{
    // No call moves more at once.
    constexpr std::size_t most = 0x7ffff000;
    const iovec part = {at, size > SSIZE_MAX ? size : std::min(size, most)};
    return make(found, call.kind, fd, &part, 1, flags, true,
                [&] { return call.kernel(fd, at, size, flags, call); });
}

// Who looks again and again until there is something gets his answer by a few loads. A function of
// its own, for it needs less registers and room than the call itself.
[[gnu::noinline]] ssize_t look_or_make_one(int fd, void *at, size_t size, int flags,
                                           const OneCall &call, Object &found)
{
    if (finds_nothing(found, fd, {at, size}))
        return answer(-EAGAIN);
    return make_one(fd, at, size, flags, call, found);
}
} // namespace

ssize_t data_of_object(int fd, void *at, size_t size, int flags, const OneCall &call, Object &found)
{
    const bool looks = flags == MSG_DONTWAIT && call.kind.way == Way::In;
    return looks ? look_or_make_one(fd, at, size, flags, call, found)
                 : make_one(fd, at, size, flags, call, found);
}

ssize_t data_of_object(Object &found, Kind kind, int fd, const iovec *parts, int n, int flags,
                       const KernelCall &kernel)
{
    return make(found, kind, fd, parts, n, flags, false, kernel);
}

} // namespace ntb::socket::preload
