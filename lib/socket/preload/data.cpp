// SPDX-License-Identifier: BSD-3-Clause
// The calls that move bytes.
#include "preload/state.hpp"

#include <cstdarg>

namespace ntb::socket::preload
{

namespace
{
enum class Way { In, Out };

// One call on one descriptor. Where nothing is tracked it is the kernel's, after one load.
template <typename Kernel>
auto data(Call call, int fd, Way way, Kernel kernel)
{
    if (state.table.find(fd) == nullptr) [[likely]]
        return kernel();
    const auto result = kernel();
    if (state.verbose) {
        KeepErrno keep;
        count(call);
        if (result > 0)
            (way == Way::In ? state.figures->tcp_received : state.figures->tcp_sent)
                .fetch_add(static_cast<std::uint64_t>(result), std::memory_order_relaxed);
    }
    return result;
}

// Descriptors that came with a message.
void arrived(const msghdr *message)
{
    if (message->msg_control == nullptr || message->msg_controllen < sizeof(cmsghdr))
        return;
    auto *words = const_cast<msghdr *>(message);
    for (cmsghdr *one = CMSG_FIRSTHDR(words); one != nullptr; one = CMSG_NXTHDR(words, one)) {
        if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS)
            continue;
        const std::size_t bytes = one->cmsg_len - CMSG_LEN(0);
        const auto *fds = reinterpret_cast<const int *>(CMSG_DATA(one));
        for (std::size_t i = 0; i < bytes / sizeof(int); i++)
            born(fds[i]);
    }
}

// recvmmsg() and sendmmsg() answer with messages, not with bytes.
std::uint64_t bytes_of(const mmsghdr *messages, int n)
{
    std::uint64_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += messages[i].msg_len;
    return bytes;
}

template <typename Kernel>
int messages(Call call, int fd, Way way, const mmsghdr *all, Kernel kernel)
{
    const int n = kernel();
    if (state.verbose && state.table.find(fd) != nullptr) [[unlikely]] {
        KeepErrno keep;
        count(call);
        (way == Way::In ? state.figures->tcp_received : state.figures->tcp_sent)
            .fetch_add(bytes_of(all, n), std::memory_order_relaxed);
    }
    return n;
}
} // namespace

NTB_EXPORT(ssize_t, read, int fd, void *to, size_t size)
{
    return data(Call::read, fd, Way::In, [=] { return real().read(fd, to, size); });
}

NTB_EXPORT(ssize_t, __read_chk, int fd, void *to, size_t size, size_t room)
{
    return data(Call::__read_chk, fd, Way::In,
                [=] { return real().__read_chk(fd, to, size, room); });
}

NTB_EXPORT(ssize_t, readv, int fd, const iovec *parts, int n)
{
    return data(Call::readv, fd, Way::In, [=] { return real().readv(fd, parts, n); });
}

NTB_EXPORT(ssize_t, recv, int fd, void *to, size_t size, int flags)
{
    return data(Call::recv, fd, Way::In, [=] { return real().recv(fd, to, size, flags); });
}

NTB_EXPORT(ssize_t, __recv_chk, int fd, void *to, size_t size, size_t room, int flags)
{
    return data(Call::__recv_chk, fd, Way::In,
                [=] { return real().__recv_chk(fd, to, size, room, flags); });
}

NTB_EXPORT(ssize_t, recvfrom, int fd, void *to, size_t size, int flags, sockaddr *from,
           socklen_t *length)
{
    return data(Call::recvfrom, fd, Way::In,
                [=] { return real().recvfrom(fd, to, size, flags, from, length); });
}

NTB_EXPORT(ssize_t, __recvfrom_chk, int fd, void *to, size_t size, size_t room, int flags,
           sockaddr *from, socklen_t *length)
{
    return data(Call::__recvfrom_chk, fd, Way::In,
                [=] { return real().__recvfrom_chk(fd, to, size, room, flags, from, length); });
}

NTB_EXPORT(ssize_t, recvmsg, int fd, msghdr *message, int flags)
{
    const ssize_t result =
        data(Call::recvmsg, fd, Way::In, [=] { return real().recvmsg(fd, message, flags); });
    if (result >= 0)
        arrived(message);
    return result;
}

NTB_EXPORT(int, recvmmsg, int fd, mmsghdr *all, unsigned n, int flags, timespec *timeout)
{
    const int got = messages(Call::recvmmsg, fd, Way::In, all,
                             [=] { return real().recvmmsg(fd, all, n, flags, timeout); });
    for (int i = 0; i < got; i++)
        arrived(&all[i].msg_hdr);
    return got;
}

NTB_EXPORT(ssize_t, write, int fd, const void *from, size_t size)
{
    return data(Call::write, fd, Way::Out, [=] { return real().write(fd, from, size); });
}

NTB_EXPORT(ssize_t, writev, int fd, const iovec *parts, int n)
{
    return data(Call::writev, fd, Way::Out, [=] { return real().writev(fd, parts, n); });
}

NTB_EXPORT(ssize_t, send, int fd, const void *from, size_t size, int flags)
{
    return data(Call::send, fd, Way::Out, [=] { return real().send(fd, from, size, flags); });
}

NTB_EXPORT(ssize_t, sendto, int fd, const void *from, size_t size, int flags, const sockaddr *to,
           socklen_t length)
{
    return data(Call::sendto, fd, Way::Out, [=] {
        const ssize_t sent = real().sendto(fd, from, size, flags, to, length);
        if ((flags & MSG_FASTOPEN) != 0 && sent >= 0)
            count(Reason::fast_open);
        return sent;
    });
}

NTB_EXPORT(ssize_t, sendmsg, int fd, const msghdr *message, int flags)
{
    return data(Call::sendmsg, fd, Way::Out, [=] { return real().sendmsg(fd, message, flags); });
}

NTB_EXPORT(int, sendmmsg, int fd, mmsghdr *all, unsigned n, int flags)
{
    return messages(Call::sendmmsg, fd, Way::Out, all,
                    [=] { return real().sendmmsg(fd, all, n, flags); });
}

NTB_EXPORT(ssize_t, preadv2, int fd, const iovec *parts, int n, off_t offset, int flags)
{
    return data(Call::preadv2, fd, Way::In,
                [=] { return real().preadv2(fd, parts, n, offset, flags); });
}

NTB_EXPORT(ssize_t, preadv64v2, int fd, const iovec *parts, int n, off_t offset, int flags)
{
    return data(Call::preadv64v2, fd, Way::In,
                [=] { return real().preadv64v2(fd, parts, n, offset, flags); });
}

NTB_EXPORT(ssize_t, pwritev2, int fd, const iovec *parts, int n, off_t offset, int flags)
{
    return data(Call::pwritev2, fd, Way::Out,
                [=] { return real().pwritev2(fd, parts, n, offset, flags); });
}

NTB_EXPORT(ssize_t, pwritev64v2, int fd, const iovec *parts, int n, off_t offset, int flags)
{
    return data(Call::pwritev64v2, fd, Way::Out,
                [=] { return real().pwritev64v2(fd, parts, n, offset, flags); });
}

NTB_EXPORT(ssize_t, sendfile, int to, int from, off_t *offset, size_t size)
{
    return data(Call::sendfile, to, Way::Out,
                [=] { return real().sendfile(to, from, offset, size); });
}

NTB_EXPORT(ssize_t, sendfile64, int to, int from, off_t *offset, size_t size)
{
    return data(Call::sendfile64, to, Way::Out,
                [=] { return real().sendfile64(to, from, offset, size); });
}

NTB_EXPORT(ssize_t, splice, int from, off_t *from_at, int to, off_t *to_at, size_t size,
           unsigned flags)
{
    const bool sends = state.table.find(to) != nullptr;
    return data(Call::splice, sends ? to : from, sends ? Way::Out : Way::In,
                [=] { return real().splice(from, from_at, to, to_at, size, flags); });
}

NTB_EXPORT(int, shutdown, int fd, int how)
{
    if (state.table.find(fd) != nullptr)
        count(Call::shutdown);
    return real().shutdown(fd, how);
}

NTB_EXPORT(int, ioctl, int fd, unsigned long request, ...)
{
    va_list words;
    va_start(words, request);
    void *argument = va_arg(words, void *);
    va_end(words);
    if (state.table.find(fd) != nullptr)
        count(Call::ioctl);
    return real().ioctl(fd, request, argument);
}

} // namespace ntb::socket::preload
