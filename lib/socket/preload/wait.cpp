// SPDX-License-Identifier: BSD-3-Clause
// The calls that wait for descriptors.
#include "kernel/memory.hpp"
#include "kernel/system.hpp"
#include "preload/attach.hpp"
#include "preload/sets.hpp"
#include "preload/upgrade.hpp"
#include "readiness/poll.hpp"

#include <climits>
#include <sys/resource.h>

namespace ntb::socket::preload
{

namespace
{
int answer(int result)
{
    if (result >= 0)
        return result;
    errno = -result;
    return -1;
}

// NULL: for ever.
const timespec *of_ms(int ms, timespec *room)
{
    if (ms < 0)
        return nullptr;
    *room = {ms / 1000, ms % 1000 * 1000000l};
    return room;
}

// A set that is polled, or becomes a member of another one, has to be readable in the kernel.
void settle(int fd)
{
    const Held held(fd, Object::Kind::Set);
    if (Set *set = held.set(); set != nullptr)
        set->settle();
}

// More than may be open is for the kernel to refuse, as is no array.
bool is_refused(const pollfd *all, nfds_t n)
{
    rlimit limit = {};
    return all == nullptr ||
           (n > 1024 &&
            (kernel::call(SYS_getrlimit, RLIMIT_NOFILE, &limit) != 0 || n > limit.rlim_cur));
}

bool is_tracked(const pollfd *all, nfds_t n)
{
    if (is_refused(all, n))
        return false;
    for (nfds_t i = 0; i < n; i++)
        if (state.table.find(all[i].fd) != nullptr)
            return true;
    return false;
}

int poll_all(pollfd *all, nfds_t n, const timespec *timeout, const sigset_t *mask)
{
    Waits waits;
    kernel::Array<Source *, 64> sources(n);
    if (sources.data() == nullptr)
        return answer(-ENOMEM);
    bool any = false;
    for (nfds_t i = 0; i < n; i++) {
        sources.data()[i] = waits.add(all[i].fd);
        any = any || sources.data()[i] != nullptr;
        settle(all[i].fd);
    }
    if (!any)
        return real().ppoll(all, n, timeout, mask);
    return answer(socket::poll(all, n, sources.data(), timeout, mask, attendant()));
}

class Finds final : public Lookup
{
public:
    Source *source_of(int fd) override { return waits_.add(fd); }

private:
    Waits waits_;
};

bool is_tracked(int n, const fd_set *in, const fd_set *out, const fd_set *other)
{
    const int last = n - 1;
    for (int fd = last < 0 ? -1 : state.table.next(0, static_cast<unsigned>(last)); fd >= 0;
         fd = state.table.next(static_cast<unsigned>(fd) + 1, static_cast<unsigned>(last))) {
        // Sets may be longer than FD_SETSIZE.
        const auto has = [fd](const fd_set *set) {
            return set != nullptr &&
                   (reinterpret_cast<const unsigned long *>(set)[fd / 64] >> (fd % 64) & 1) != 0;
        };
        if (has(in) || has(out) || has(other))
            return true;
        if (fd == last)
            break;
    }
    return false;
}

int select_all(int n, fd_set *in, fd_set *out, fd_set *other, const timespec *timeout,
               const sigset_t *mask)
{
    for (int fd = 0; fd < n; fd++)
        if (Object *object = state.table.find(fd);
            object != nullptr && object->kind == Object::Kind::Set)
            settle(fd);
    Finds finds;
    return answer(socket::select(n, in, out, other, timeout, mask, finds, attendant()));
}

// A call that waits in a set of ours, or else the kernel's.
template <typename Kernel, typename Wait>
int with_set(Call call, int fd, Kernel kernel, Wait wait)
{
    count(call);
    const Held held(fd, Object::Kind::Set);
    Set *set = held.set();
    if (set == nullptr)
        return kernel();
    settle_nested();
    return answer(wait(*set));
}

// Where there is no place for events the kernel says so once there is one.
int wait_for_events(Set &set, epoll_event *events, int n, const timespec *timeout,
                    const sigset_t *mask)
{
    if (events != nullptr)
        return set.wait(events, n, timeout, mask);
    epoll_event one;
    const int result = set.wait(&one, n < 1 ? n : 1, timeout, mask);
    return result > 0 ? -EFAULT : result;
}

template <typename Kernel>
int wait_in_set(Call call, int fd, epoll_event *events, int n, const timespec *timeout,
                const sigset_t *mask, Kernel kernel)
{
    return with_set(call, fd, kernel,
                    [=](Set &set) { return wait_for_events(set, events, n, timeout, mask); });
}

// After the kernel's call for what stood for nothing when it was looked at. If another thread has
// given it a ring meanwhile, that has not found it in the set, or has made an entry that is the
// program's again.
[[gnu::noinline, gnu::cold]] void look_again(int fd, int operation, int member,
                                             const epoll_event *event)
{
    KeepErrno keep;
    const Held held(fd, Object::Kind::Set);
    if (held.set() == nullptr)
        return;
    const bool is_known = held.set()->changed_beside(operation, member, source_of(member), event);
    hide_wake();
    if (!is_known)
        leave(member);
}

// The kernel's own call, where no member of the set was ever upgraded. Not libc's: that one is a
// point of cancellation, and the set is in use.
template <typename Kernel>
int wait_in_set(Call call, int fd, epoll_event *events, int n, int ms, const sigset_t *mask,
                Kernel kernel)
{
    return with_set(call, fd, kernel, [=](Set &set) {
        int result = 0;
        timespec room;
        // Without a daemon nothing gets a ring during the kernel's wait: the clock is not read.
        const Attachment *at = ms > 0 ? attachment() : nullptr;
        const bool is_timed = at != nullptr && at->descriptor() >= 0;
        const Deadline deadline(is_timed ? of_ms(ms, &room) : nullptr);
        const auto wait = [=] {
            return static_cast<int>(
                kernel::call(SYS_epoll_pwait, fd, events, n, ms < 0 ? -1 : ms, mask, 8));
        };
        if (set.wait_by_kernel(ms == 0, wait, events, &result)) [[likely]]
            return result;
        // The kernel may have waited for some or all of the time before the set had a ring.
        return wait_for_events(set, events, n, is_timed ? deadline.left(room) : of_ms(ms, &room),
                               mask);
    });
}
} // namespace

NTB_EXPORT(int, poll, pollfd *all, nfds_t n, int timeout)
{
    count(Call::poll);
    timespec room;
    return is_tracked(all, n) ? poll_all(all, n, of_ms(timeout, &room), nullptr)
                              : real().poll(all, n, timeout);
}

NTB_EXPORT(int, __poll_chk, pollfd *all, nfds_t n, int timeout, size_t bytes)
{
    count(Call::__poll_chk);
    timespec room;
    return is_tracked(all, n) && bytes / sizeof(*all) >= n
               ? poll_all(all, n, of_ms(timeout, &room), nullptr)
               : real().__poll_chk(all, n, timeout, bytes);
}

NTB_EXPORT(int, ppoll, pollfd *all, nfds_t n, const timespec *timeout, const sigset_t *mask)
{
    count(Call::ppoll);
    return is_tracked(all, n) ? poll_all(all, n, timeout, mask)
                              : real().ppoll(all, n, timeout, mask);
}

NTB_EXPORT(int, __ppoll_chk, pollfd *all, nfds_t n, const timespec *timeout, const sigset_t *mask,
           size_t bytes)
{
    count(Call::__ppoll_chk);
    return is_tracked(all, n) && bytes / sizeof(*all) >= n
               ? poll_all(all, n, timeout, mask)
               : real().__ppoll_chk(all, n, timeout, mask, bytes);
}

NTB_EXPORT(int, select, int n, fd_set *in, fd_set *out, fd_set *other, timeval *timeout)
{
    count(Call::select);
    if (!is_tracked(n, in, out, other))
        return real().select(n, in, out, other, timeout);
    if (timeout == nullptr)
        return select_all(n, in, out, other, nullptr, nullptr);
    if (timeout->tv_sec < 0 || timeout->tv_usec < 0)
        return answer(-EINVAL);
    // The time that is left is stored, as the kernel does.
    const timespec time = {timeout->tv_sec + timeout->tv_usec / 1000000,
                           timeout->tv_usec % 1000000 * 1000};
    timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    const int result = select_all(n, in, out, other, &time, nullptr);
    KeepErrno keep;
    clock_gettime(CLOCK_MONOTONIC, &end);
    const long long left = (time.tv_sec - (end.tv_sec - begin.tv_sec)) * 1000000ll +
                           (time.tv_nsec - (end.tv_nsec - begin.tv_nsec)) / 1000;
    *timeout = {left <= 0 ? 0 : left / 1000000, left <= 0 ? 0 : left % 1000000};
    return result;
}

NTB_EXPORT(int, pselect, int n, fd_set *in, fd_set *out, fd_set *other, const timespec *timeout,
           const sigset_t *mask)
{
    count(Call::pselect);
    return is_tracked(n, in, out, other) ? select_all(n, in, out, other, timeout, mask)
                                         : real().pselect(n, in, out, other, timeout, mask);
}

NTB_EXPORT(int, epoll_ctl, int fd, int operation, int member, epoll_event *event)
{
    count(Call::epoll_ctl);
    if (state.table.hidden(member)) [[unlikely]]
        return answer(-EBADF);
    // What stands for nothing is the kernel's alone. If it becomes a connection with a ring, its
    // sets are asked for it then.
    if (state.table.find(member) == nullptr) [[likely]] {
        if (operation == EPOLL_CTL_ADD)
            state.table.note_added(member);
        if (!Set::any_shared()) {
            const int result = real().epoll_ctl(fd, operation, member, event);
            if (result == 0 && state.table.find(member) != nullptr) [[unlikely]]
                look_again(fd, operation, member, event);
            return result;
        }
    }
    const Held held(fd, Object::Kind::Set);
    Set *set = held.set();
    if (set == nullptr || (event == nullptr && operation != EPOLL_CTL_DEL))
        return real().epoll_ctl(fd, operation, member, event);
    Source *source = source_of(member);
    const Held inner(member, Object::Kind::Set);
    if (inner.set() != nullptr && operation == EPOLL_CTL_ADD)
        nest(inner.set());
    const int result = set->control(operation, member, source, inner.set(), event);
    // It may have got a ring beside this, and was then looked for before it was a member.
    if (result == 0 && source == nullptr && operation == EPOLL_CTL_ADD &&
        state.table.find(member) != nullptr)
        if (Source *late = source_of(member); late != nullptr && !set->upgrade(member, late, true))
            leave(member);
    hide_wake();
    return answer(result);
}

NTB_EXPORT(int, epoll_wait, int set, epoll_event *events, int n, int timeout)
{
    return wait_in_set(Call::epoll_wait, set, events, n, timeout, nullptr,
                       [=] { return real().epoll_wait(set, events, n, timeout); });
}

NTB_EXPORT(int, epoll_pwait, int set, epoll_event *events, int n, int timeout, const sigset_t *mask)
{
    return wait_in_set(Call::epoll_pwait, set, events, n, timeout, mask,
                       [=] { return real().epoll_pwait(set, events, n, timeout, mask); });
}

NTB_EXPORT(int, epoll_pwait2, int set, epoll_event *events, int n, const timespec *timeout,
           const sigset_t *mask)
{
    return wait_in_set(Call::epoll_pwait2, set, events, n, timeout, mask,
                       [=] { return real().epoll_pwait2(set, events, n, timeout, mask); });
}

} // namespace ntb::socket::preload
