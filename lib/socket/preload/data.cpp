// SPDX-License-Identifier: BSD-3-Clause
// The calls that move bytes.
#include "kernel/memory.hpp"
#include "kernel/shadow.hpp"
#include "kernel/system.hpp"
#include "preload/attach.hpp"
#include "preload/upgrade.hpp"

#include <algorithm>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/single_threaded.h>

namespace ntb::socket::preload
{

namespace
{
enum class Way { In, Out };

constexpr int peeks_all = MSG_PEEK | MSG_WAITALL;

long answer(ssize_t result)
{
    if (result >= 0)
        return result;
    errno = static_cast<int>(-result);
    return -1;
}

void count_bytes(Way way, ssize_t bytes)
{
    if (state.verbose && bytes > 0)
        (way == Way::In ? state.figures->received : state.figures->sent)
            .fetch_add(static_cast<std::uint64_t>(bytes), std::memory_order_relaxed);
}

// The parts of a call from some byte on, a handful at a time.
class Rest
{
public:
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
    static constexpr int places = 16;
    const iovec *parts_;
    int n_;
    std::size_t offset_ = 0;
    iovec place_[places];
};

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
        if ((flags_ & MSG_DONTWAIT) != 0)
            return -EAGAIN;
        begin();
        const std::uint32_t event = way_ == Way::In ? EPOLLIN : EPOLLOUT;
        // Most waits are over by then, and need not ask the kernel for anything.
        if (until_ == 0 && held.body()->waits(event)) {
            const timespec some = {0, unasked_ns};
            const int status = wait(held, event, &some, true);
            if (status != -EAGAIN)
                return status;
        }
        const std::uint32_t changes = held.body()->changes();
        const int fd = held.body()->number(fd_);
        if (fd < 0)
            return -EBADF; // it could not be kept open
        if ((kernel::call(SYS_fcntl, fd, F_GETFL) & O_NONBLOCK) != 0) {
            held.body()->forget_waiting();
            return -EAGAIN;
        }
        if (!is_asked_)
            ask(fd);
        // A number that was closed unseen.
        if (kernel::cookie_of(fd) != held.object()->cookie)
            return -ESTALE;
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
        const int fd = held.body()->number(fd_);
        if (fd < 0)
            return -EBADF;
        if ((flags_ & MSG_DONTWAIT) != 0 ||
            (kernel::call(SYS_fcntl, fd, F_GETFL) & O_NONBLOCK) != 0)
            return -EAGAIN;
        begin();
        if (!is_asked_)
            ask(fd);
        if (kernel::cookie_of(fd) != held.object()->cookie)
            return -ESTALE;
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

    void begin()
    {
        if (began_ != 0)
            return;
        began_ = now_ns();
        before_ = handled();
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
    void ask(int fd)
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

// One step of a call: by the connection, or by the kernel where it has stayed TCP meanwhile.
ssize_t step(Body &body, int named, Way way, const iovec *places, int n, int flags)
{
    const int fd = body.number(named);
    ssize_t result;
    if (Connection *one = body.claimed(); one != nullptr) {
        result =
            way == Way::In ? one->receive(fd, places, n, flags) : one->send(fd, places, n, flags);
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

// Whether no more comes than is there: an end, an error, or urgent data.
bool has_end(Body &body, int named)
{
    const int fd = body.number(named);
    constexpr std::uint32_t ends = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI;
    Connection *one = body.claimed();
    return ((one == nullptr ? kernel::events_of(fd, ends) : one->look(fd, EPOLLIN)) & ends) != 0;
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

// With MSG_PEEK and MSG_WAITALL: all that is wanted, or what there is before an end, the time-out
// or a signal.
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

// As the kernel's calls: sends all; receives what is there, or all with MSG_WAITALL.
ssize_t transfer(Held &held, int fd, Way way, const iovec *parts, int n, int flags)
{
    Rest rest(parts, n);
    Waiting waiting(fd, way, flags);
    ssize_t done = 0;
    const bool all = way == Way::Out || (flags & MSG_WAITALL) != 0;
    for (;;) {
        if (way == Way::In && done > 0 && is_at_mark(*held.body(), fd))
            return done;
        int count = 0;
        const iovec *places = rest.next(&count);
        // A part that was sent is the result, and the signal comes with the next call.
        const int now = way == Way::Out && done > 0 ? flags | MSG_NOSIGNAL : flags;
        ssize_t result = step(*held.body(), fd, way, places, count, now);
        if (result > 0) {
            done += result;
            rest.skip(static_cast<std::size_t>(result));
            if (!all || rest.is_over())
                return done;
            continue;
        }
        if (result == -EAGAIN)
            result = waiting.wait(held);
        else if (result == 0)
            return done;
        if (result >= 0)
            continue;
        if (Connection *one = held.body() == nullptr ? nullptr : held.body()->claimed();
            one != nullptr && done > 0)
            one->owe(result);
        return done > 0 ? done : result;
    }
}

bool is_empty(const iovec *parts, int n)
{
    return std::all_of(parts, parts + n, [](const iovec &part) { return part.iov_len == 0; });
}

// Nothing is wanted: recv() waits until something is there all the same, and takes none of it.
ssize_t receive_nothing(Held &held, int fd, int flags)
{
    char byte;
    const iovec part = {&byte, 1};
    const ssize_t result = transfer(held, fd, Way::In, &part, 1, flags | MSG_PEEK);
    return result > 0 ? 0 : result;
}

// Where read() and its kin have nothing to do they do not wait, unlike recv().
bool is_for_files(Call call)
{
    return call == Call::read || call == Call::__read_chk || call == Call::readv ||
           call == Call::preadv2 || call == Call::preadv64v2;
}

// The kernel answers EFAULT to a pointer that leads nowhere. Here only that one is looked for.
bool has_null(const iovec *parts, int n)
{
    for (int i = 0; i < n; i++)
        if (parts[i].iov_base == nullptr && parts[i].iov_len > 0)
            return true;
    return false;
}

// What the kernel refuses of lengths before it touches a byte: above all a negative number that was
// taken for one.
int check(const iovec *parts, int n, bool is_one)
{
    constexpr std::uint64_t user_space = std::uint64_t{1} << 56; // on no machine is it larger
    for (int i = 0; i < n; i++) {
        if (parts[i].iov_len > SSIZE_MAX)
            return is_one ? -EFAULT : -EINVAL;
        if (reinterpret_cast<std::uintptr_t>(parts[i].iov_base) + parts[i].iov_len > user_space)
            return -EFAULT;
    }
    return 0;
}

// One call on one descriptor. Where nothing is tracked it is the kernel's, after one load.
template <typename Kernel>
ssize_t data(Call call, int fd, Way way, const iovec *parts, int n, int flags, Kernel kernel,
             bool is_one = false)
{
    // The kernel's answer to none is EFAULT.
    if (state.table.find(fd) == nullptr || (parts == nullptr && n > 0)) [[likely]]
        return kernel();
    Held held(fd, Object::Kind::Connection);
    if (held.body() == nullptr)
        return kernel();
    count(call);
    Turn turn(held, fd);
    ssize_t result = -ESTALE;
    if (turn.connection() != nullptr && n >= 0 && n <= IOV_MAX &&
        (flags & (MSG_ERRQUEUE | MSG_FASTOPEN)) == 0) {
        KeepErrno keep;
        if (const int error = check(parts, n, is_one); error != 0)
            result = error;
        else if ((flags & MSG_TRUNC) == 0 && has_null(parts, n))
            result = -EFAULT;
        else if (way == Way::In && (flags & peeks_all) == peeks_all && !is_empty(parts, n))
            result = peek_all(held, fd, parts, n, flags);
        else if (way == Way::Out || !is_empty(parts, n))
            result = transfer(held, fd, way, parts, n, flags);
        else
            result = is_for_files(call) ? 0 : receive_nothing(held, fd, flags);
    }
    if (result == -ESTALE) {
        turn.to_kernel();
        result = kernel();
    } else {
        result = answer(result);
    }
    count_bytes(way, result);
    return result;
}

template <typename Kernel>
ssize_t data(Call call, int fd, Way way, const void *at, size_t size, int flags, Kernel kernel)
{
    // No call moves more at once.
    constexpr std::size_t most = 0x7ffff000;
    const iovec part = {const_cast<void *>(at), size > SSIZE_MAX ? size : std::min(size, most)};
    return data(call, fd, way, &part, 1, flags, kernel, true);
}

int parts_of(const msghdr *message)
{
    return message->msg_iovlen > IOV_MAX ? -1 : static_cast<int>(message->msg_iovlen);
}

template <typename Each>
void for_descriptors(const msghdr *message, Each each)
{
    if (message->msg_control == nullptr || message->msg_controllen < sizeof(cmsghdr))
        return;
    auto *words = const_cast<msghdr *>(message);
    for (cmsghdr *one = CMSG_FIRSTHDR(words); one != nullptr; one = CMSG_NXTHDR(words, one)) {
        if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS)
            continue;
        const auto *fds = reinterpret_cast<const int *>(CMSG_DATA(one));
        for (std::size_t i = 0; i < (one->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++)
            each(fds[i]);
    }
}

// Descriptors that go with a message: who gets them may know nothing of rings.
void leaves(const msghdr *message)
{
    if (state.figures != nullptr)
        for_descriptors(message, [](int fd) { hand_on(fd); });
}

ssize_t no_name(int fd, ssize_t got, const sockaddr *from, socklen_t *length)
{
    if (got >= 0 && from != nullptr && length != nullptr && state.table.find(fd) != nullptr)
        *length = 0;
    return got;
}

// What the kernel says beside the bytes of TCP.
void finish_message(msghdr *message)
{
    if (message->msg_name != nullptr)
        message->msg_namelen = 0;
    message->msg_controllen = 0;
    message->msg_flags = 0;
}

// Descriptors that came with a message.
void arrived(const msghdr *message)
{
    for_descriptors(message, [](int fd) { born(fd); });
}

// recvmmsg() and sendmmsg(): one after the other, an error is the result if it is the first.
template <typename Step, typename Kernel>
int messages(Call call, int fd, Way way, mmsghdr *all, unsigned n, Step step, Kernel kernel)
{
    if (state.table.find(fd) == nullptr || all == nullptr) [[likely]]
        return kernel();
    Held held(fd, Object::Kind::Connection);
    if (held.body() == nullptr)
        return kernel();
    count(call);
    Turn turn(held, fd);
    if (turn.connection() == nullptr) {
        turn.to_kernel();
        const int done = kernel();
        for (int i = 0; i < done; i++)
            count_bytes(way, all[i].msg_len);
        return done;
    }
    unsigned done = 0;
    ssize_t result = 0;
    {
        KeepErrno keep;
        for (; done < n; done++) {
            const msghdr &one = all[done].msg_hdr;
            result = one.msg_iov == nullptr && one.msg_iovlen > 0
                         ? -EFAULT
                         : check(one.msg_iov, parts_of(&one), false);
            if (result == 0)
                result = step(held, all[done].msg_hdr, done);
            if (result < 0)
                break;
            all[done].msg_len = static_cast<unsigned>(result);
            count_bytes(way, result);
            // Behind a part: what it had kept is given up, and the number is of something else.
            if (held.body() == nullptr) {
                done++;
                break;
            }
        }
    }
    return done > 0 ? static_cast<int>(done) : static_cast<int>(answer(result));
}

// sendfile() to a connection, from a file that can be read at an offset.
ssize_t send_file(Held &held, int to, int from, off_t *offset, size_t size)
{
    // A thread may have a stack of some pages.
    constexpr std::size_t small = 4096, most = 65536;
    kernel::Array<char, small> bytes(size > small ? std::min(size, most) : small);
    if (bytes.data() == nullptr)
        return -ENOMEM;
    off_t at = offset != nullptr ? *offset : kernel::call(SYS_lseek, from, 0, SEEK_CUR);
    if (at < 0) // a pipe, of which the kernel says this
        return at == -ESPIPE ? -EINVAL : static_cast<ssize_t>(at);
    std::size_t sent = 0;
    ssize_t result = 0;
    while (sent < size) {
        result = kernel::call(SYS_pread64, from, bytes.data(), std::min(most, size - sent), at);
        if (result <= 0)
            break;
        const iovec part = {bytes.data(), static_cast<std::size_t>(result)};
        const ssize_t taken = transfer(held, to, Way::Out, &part, 1, 0);
        if (taken < 0) {
            result = taken;
            break;
        }
        sent += static_cast<std::size_t>(taken);
        at += taken;
        if (taken < result)
            break;
    }
    if (sent == 0)
        return result;
    if (offset != nullptr)
        *offset = at;
    else
        kernel::call(SYS_lseek, from, at, SEEK_SET);
    return static_cast<ssize_t>(sent);
}

// Parts of preadv2() and its kin, or -1: the kernel refuses the call, and says why.
int by_ring(int n, off_t offset, int flags)
{
    constexpr int known = RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT | RWF_APPEND;
    return offset == -1 && (flags & ~known) == 0 ? n : -1;
}

template <typename Kernel>
ssize_t file_data(Call call, int to, int from, off_t *offset, size_t size, Kernel kernel)
{
    if (state.table.find(to) == nullptr) [[likely]]
        return kernel();
    Held held(to, Object::Kind::Connection);
    if (held.body() == nullptr)
        return kernel();
    count(call);
    Turn turn(held, to);
    ssize_t result = -ESTALE;
    if (turn.connection() != nullptr) {
        KeepErrno keep;
        result = send_file(held, to, from, offset, size);
    }
    if (result == -ESTALE) {
        turn.to_kernel();
        result = kernel();
    } else {
        result = answer(result);
    }
    count_bytes(Way::Out, result);
    return result;
}
} // namespace

NTB_EXPORT(ssize_t, read, int fd, void *to, size_t size)
{
    return data(Call::read, fd, Way::In, to, size, 0, [=] { return real().read(fd, to, size); });
}

NTB_EXPORT(ssize_t, __read_chk, int fd, void *to, size_t size, size_t room)
{
    return data(Call::__read_chk, fd, Way::In, to, size, 0,
                [=] { return real().__read_chk(fd, to, size, room); });
}

NTB_EXPORT(ssize_t, readv, int fd, const iovec *parts, int n)
{
    return data(Call::readv, fd, Way::In, parts, n, 0, [=] { return real().readv(fd, parts, n); });
}

NTB_EXPORT(ssize_t, recv, int fd, void *to, size_t size, int flags)
{
    return data(Call::recv, fd, Way::In, to, size, flags,
                [=] { return real().recv(fd, to, size, flags); });
}

NTB_EXPORT(ssize_t, __recv_chk, int fd, void *to, size_t size, size_t room, int flags)
{
    return data(Call::__recv_chk, fd, Way::In, to, size, flags,
                [=] { return real().__recv_chk(fd, to, size, room, flags); });
}

NTB_EXPORT(ssize_t, recvfrom, int fd, void *to, size_t size, int flags, sockaddr *from,
           socklen_t *length)
{
    const ssize_t got = data(Call::recvfrom, fd, Way::In, to, size, flags,
                             [=] { return real().recvfrom(fd, to, size, flags, from, length); });
    return no_name(fd, got, from, length);
}

NTB_EXPORT(ssize_t, __recvfrom_chk, int fd, void *to, size_t size, size_t room, int flags,
           sockaddr *from, socklen_t *length)
{
    const ssize_t got = data(Call::__recvfrom_chk, fd, Way::In, to, size, flags, [=] {
        return real().__recvfrom_chk(fd, to, size, room, flags, from, length);
    });
    return no_name(fd, got, from, length);
}

NTB_EXPORT(ssize_t, recvmsg, int fd, msghdr *message, int flags)
{
    bool by_kernel = false;
    const auto kernel = [&] {
        by_kernel = true;
        return real().recvmsg(fd, message, flags);
    };
    const ssize_t got =
        state.table.find(fd) == nullptr || message == nullptr
            ? kernel()
            : data(Call::recvmsg, fd, Way::In, message->msg_iov, parts_of(message), flags, kernel);
    if (got >= 0 && !by_kernel)
        finish_message(message);
    else if (got >= 0 && state.figures != nullptr)
        arrived(message);
    return got;
}

NTB_EXPORT(int, recvmmsg, int fd, mmsghdr *all, unsigned n, int flags, timespec *timeout)
{
    const auto step = [=](Held &held, msghdr &one, unsigned done) {
        const bool waits = done == 0 || (flags & MSG_WAITFORONE) == 0;
        const ssize_t got = transfer(held, fd, Way::In, one.msg_iov, parts_of(&one),
                                     (flags & ~MSG_WAITFORONE) | (waits ? 0 : MSG_DONTWAIT));
        if (got >= 0)
            finish_message(&one);
        return got;
    };
    const int got = messages(Call::recvmmsg, fd, Way::In, all, n, step,
                             [=] { return real().recvmmsg(fd, all, n, flags, timeout); });
    if (state.figures != nullptr)
        for (int i = 0; i < got; i++)
            arrived(&all[i].msg_hdr);
    return got;
}

NTB_EXPORT(ssize_t, write, int fd, const void *from, size_t size)
{
    return data(Call::write, fd, Way::Out, from, size, 0,
                [=] { return real().write(fd, from, size); });
}

NTB_EXPORT(ssize_t, writev, int fd, const iovec *parts, int n)
{
    return data(Call::writev, fd, Way::Out, parts, n, 0,
                [=] { return real().writev(fd, parts, n); });
}

NTB_EXPORT(ssize_t, send, int fd, const void *from, size_t size, int flags)
{
    return data(Call::send, fd, Way::Out, from, size, flags,
                [=] { return real().send(fd, from, size, flags); });
}

NTB_EXPORT(ssize_t, sendto, int fd, const void *from, size_t size, int flags, const sockaddr *to,
           socklen_t length)
{
    return data(Call::sendto, fd, Way::Out, from, size, flags, [=] {
        const ssize_t sent = real().sendto(fd, from, size, flags, to, length);
        if ((flags & MSG_FASTOPEN) != 0 && sent >= 0)
            count(Reason::fast_open);
        return sent;
    });
}

NTB_EXPORT(ssize_t, sendmsg, int fd, const msghdr *message, int flags)
{
    const auto kernel = [=] { return real().sendmsg(fd, message, flags); };
    if (state.table.find(fd) == nullptr || message == nullptr) {
        if (message != nullptr)
            leaves(message);
        return kernel();
    }
    return data(Call::sendmsg, fd, Way::Out, message->msg_iov, parts_of(message), flags, kernel);
}

NTB_EXPORT(int, sendmmsg, int fd, mmsghdr *all, unsigned n, int flags)
{
    if (state.table.find(fd) == nullptr && all != nullptr && state.figures != nullptr)
        for (unsigned i = 0; i < n && i < IOV_MAX; i++)
            leaves(&all[i].msg_hdr);
    const auto step = [=](Held &held, const msghdr &one, unsigned) {
        return transfer(held, fd, Way::Out, one.msg_iov, parts_of(&one), flags);
    };
    return messages(Call::sendmmsg, fd, Way::Out, all, n, step,
                    [=] { return real().sendmmsg(fd, all, n, flags); });
}

NTB_EXPORT(ssize_t, preadv2, int fd, const iovec *parts, int n, off_t offset, int flags)
{
    return data(Call::preadv2, fd, Way::In, parts, by_ring(n, offset, flags),
                (flags & RWF_NOWAIT) != 0 ? MSG_DONTWAIT : 0,
                [=] { return real().preadv2(fd, parts, n, offset, flags); });
}

NTB_EXPORT(ssize_t, preadv64v2, int fd, const iovec *parts, int n, off_t offset, int flags)
{
    return data(Call::preadv64v2, fd, Way::In, parts, by_ring(n, offset, flags),
                (flags & RWF_NOWAIT) != 0 ? MSG_DONTWAIT : 0,
                [=] { return real().preadv64v2(fd, parts, n, offset, flags); });
}

NTB_EXPORT(ssize_t, pwritev2, int fd, const iovec *parts, int n, off_t offset, int flags)
{
    return data(Call::pwritev2, fd, Way::Out, parts, by_ring(n, offset, flags),
                (flags & RWF_NOWAIT) != 0 ? MSG_DONTWAIT : 0,
                [=] { return real().pwritev2(fd, parts, n, offset, flags); });
}

NTB_EXPORT(ssize_t, pwritev64v2, int fd, const iovec *parts, int n, off_t offset, int flags)
{
    return data(Call::pwritev64v2, fd, Way::Out, parts, by_ring(n, offset, flags),
                (flags & RWF_NOWAIT) != 0 ? MSG_DONTWAIT : 0,
                [=] { return real().pwritev64v2(fd, parts, n, offset, flags); });
}

NTB_EXPORT(ssize_t, sendfile, int to, int from, off_t *offset, size_t size)
{
    return file_data(Call::sendfile, to, from, offset, size,
                     [=] { return real().sendfile(to, from, offset, size); });
}

NTB_EXPORT(ssize_t, sendfile64, int to, int from, off_t *offset, size_t size)
{
    return file_data(Call::sendfile64, to, from, offset, size,
                     [=] { return real().sendfile64(to, from, offset, size); });
}

NTB_EXPORT(ssize_t, splice, int from, off_t *from_at, int to, off_t *to_at, size_t size,
           unsigned flags)
{
    const bool sends = state.table.find(to) != nullptr;
    const int fd = sends ? to : from;
    if (state.table.find(fd) == nullptr) [[likely]]
        return real().splice(from, from_at, to, to_at, size, flags);
    // The pipe's end is the kernel's, so the connection's is as well.
    leave(fd);
    count(Call::splice);
    const ssize_t moved = real().splice(from, from_at, to, to_at, size, flags);
    count_bytes(sends ? Way::Out : Way::In, moved);
    return moved;
}

NTB_EXPORT(int, shutdown, int fd, int how)
{
    const Held held(fd, Object::Kind::Connection);
    if (held.body() == nullptr)
        return real().shutdown(fd, how);
    count(Call::shutdown);
    // An end that was said by TCP is no beginning for rings.
    held.body()->give_up();
    Connection *one = held.body()->claimed();
    if (one == nullptr)
        return real().shutdown(fd, how);
    const int result = one->shutdown(fd, how);
    if (how != SHUT_WR)
        held.body()->await_sleepers();
    return static_cast<int>(answer(result));
}

static int ioctl_of(int fd, unsigned long request, void *argument)
{
    const Held held(fd, Object::Kind::Connection);
    if (held.body() == nullptr)
        return real().ioctl(fd, request, argument);
    count(Call::ioctl);
    // Of what a ring has the kernel sends no SIGIO.
    if (request == FIOASYNC && argument != nullptr && *static_cast<const int *>(argument) != 0) {
        KeepErrno keep;
        held.body()->leave(fd);
    }
    Connection *one = held.body()->claimed();
    if (one != nullptr && request == SIOCATMARK && argument != nullptr) {
        *static_cast<int *>(argument) = one->is_at_mark(fd) ? 1 : 0;
        return 0;
    }
    if (one == nullptr || request != FIONREAD || argument == nullptr) {
        const int result = real().ioctl(fd, request, argument);
        if (request == FIONBIO)
            held.body()->forget_waiting();
        return result;
    }
    const ssize_t bytes = one->readable_bytes(fd);
    if (bytes >= 0)
        *static_cast<int *>(argument) = static_cast<int>(bytes);
    return static_cast<int>(answer(bytes < 0 ? bytes : 0));
}

NTB_EXPORT(int, ioctl, int fd, unsigned long request, ...)
{
    va_list words;
    va_start(words, request);
    void *argument = va_arg(words, void *);
    va_end(words);
    return ioctl_of(fd, request, argument);
}

namespace
{
// What stdio would write by a system call of its own. @return as vdprintf()
int print(int fd, const char *format, va_list words)
{
    char *text = nullptr;
    const int size = vasprintf(&text, format, words);
    if (size < 0)
        return -1;
    const char *at = text;
    int left = size;
    while (left > 0) {
        const ssize_t written = ntb_write(fd, at, static_cast<std::size_t>(left));
        if (written <= 0)
            break;
        at += written;
        left -= static_cast<int>(written);
    }
    KeepErrno keep;
    free(text);
    return left == 0 ? size : -1;
}

bool is_connection(int fd)
{
    return Held(fd, Object::Kind::Connection).body() != nullptr;
}
} // namespace

NTB_EXPORT(int, vdprintf, int fd, const char *format, va_list words)
{
    return is_connection(fd) ? print(fd, format, words) : real().vdprintf(fd, format, words);
}

NTB_EXPORT(int, dprintf, int fd, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    const int size = ntb_vdprintf(fd, format, words);
    va_end(words);
    return size;
}

NTB_EXPORT(int, __vdprintf_chk, int fd, int flag, const char *format, va_list words)
{
    return is_connection(fd) ? print(fd, format, words)
                             : real().__vdprintf_chk(fd, flag, format, words);
}

NTB_EXPORT(int, __dprintf_chk, int fd, int flag, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    const int size = ntb___vdprintf_chk(fd, flag, format, words);
    va_end(words);
    return size;
}

// The C library's asks the kernel by a call of its own.
NTB_EXPORT(int, sockatmark, int fd)
{
    int is = 0;
    return ioctl_of(fd, SIOCATMARK, &is) < 0 ? -1 : is;
}

} // namespace ntb::socket::preload
