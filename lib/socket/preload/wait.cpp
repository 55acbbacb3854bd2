// SPDX-License-Identifier: BSD-3-Clause
// The calls that wait for descriptors.
#include "preload/state.hpp"

namespace ntb::socket::preload
{

NTB_EXPORT(int, poll, pollfd *all, nfds_t n, int timeout)
{
    count(Call::poll);
    return real().poll(all, n, timeout);
}

NTB_EXPORT(int, __poll_chk, pollfd *all, nfds_t n, int timeout, size_t room)
{
    count(Call::__poll_chk);
    return real().__poll_chk(all, n, timeout, room);
}

NTB_EXPORT(int, ppoll, pollfd *all, nfds_t n, const timespec *timeout, const sigset_t *mask)
{
    count(Call::ppoll);
    return real().ppoll(all, n, timeout, mask);
}

NTB_EXPORT(int, __ppoll_chk, pollfd *all, nfds_t n, const timespec *timeout, const sigset_t *mask,
           size_t room)
{
    count(Call::__ppoll_chk);
    return real().__ppoll_chk(all, n, timeout, mask, room);
}

NTB_EXPORT(int, select, int n, fd_set *in, fd_set *out, fd_set *other, timeval *timeout)
{
    count(Call::select);
    return real().select(n, in, out, other, timeout);
}

NTB_EXPORT(int, pselect, int n, fd_set *in, fd_set *out, fd_set *other, const timespec *timeout,
           const sigset_t *mask)
{
    count(Call::pselect);
    return real().pselect(n, in, out, other, timeout, mask);
}

NTB_EXPORT(int, epoll_ctl, int set, int operation, int fd, epoll_event *event)
{
    count(Call::epoll_ctl);
    return real().epoll_ctl(set, operation, fd, event);
}

NTB_EXPORT(int, epoll_wait, int set, epoll_event *events, int n, int timeout)
{
    count(Call::epoll_wait);
    return real().epoll_wait(set, events, n, timeout);
}

NTB_EXPORT(int, epoll_pwait, int set, epoll_event *events, int n, int timeout, const sigset_t *mask)
{
    count(Call::epoll_pwait);
    return real().epoll_pwait(set, events, n, timeout, mask);
}

NTB_EXPORT(int, epoll_pwait2, int set, epoll_event *events, int n, const timespec *timeout,
           const sigset_t *mask)
{
    count(Call::epoll_pwait2);
    return real().epoll_pwait2(set, events, n, timeout, mask);
}

} // namespace ntb::socket::preload
