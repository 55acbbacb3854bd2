// SPDX-License-Identifier: BSD-3-Clause
// The calls that wait for descriptors.
#include "kernel/memory.hpp"
#include "preload/upgrade.hpp"

#include <climits>

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

bool is_tracked(const pollfd *all, nfds_t n)
{
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

template <typename Kernel>
int wait_in_set(Call call, int fd, epoll_event *events, int n, const timespec *timeout,
                const sigset_t *mask, Kernel kernel)
{
    count(call);
    const Held held(fd, Object::Kind::Set);
    Set *set = held.set();
    if (set == nullptr)
        return kernel();
    settle_nested();
    return answer(set->wait(events, n, timeout, mask));
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
    const Held held(fd, Object::Kind::Set);
    Set *set = held.set();
    if (set == nullptr || (event == nullptr && operation != EPOLL_CTL_DEL))
        return real().epoll_ctl(fd, operation, member, event);
    Source *source = source_of(member);
    const Held inner(member, Object::Kind::Set);
    if (inner.set() != nullptr && operation == EPOLL_CTL_ADD)
        nest(inner.set());
    const int result = set->control(operation, member, source, inner.set(), event);
    hide_wake();
    return answer(result);
}

NTB_EXPORT(int, epoll_wait, int set, epoll_event *events, int n, int timeout)
{
    timespec room;
    return wait_in_set(Call::epoll_wait, set, events, n, of_ms(timeout, &room), nullptr,
                       [=] { return real().epoll_wait(set, events, n, timeout); });
}

NTB_EXPORT(int, epoll_pwait, int set, epoll_event *events, int n, int timeout, const sigset_t *mask)
{
    timespec room;
    return wait_in_set(Call::epoll_pwait, set, events, n, of_ms(timeout, &room), mask,
                       [=] { return real().epoll_pwait(set, events, n, timeout, mask); });
}

NTB_EXPORT(int, epoll_pwait2, int set, epoll_event *events, int n, const timespec *timeout,
           const sigset_t *mask)
{
    return wait_in_set(Call::epoll_pwait2, set, events, n, timeout, mask,
                       [=] { return real().epoll_pwait2(set, events, n, timeout, mask); });
}

} // namespace ntb::socket::preload
