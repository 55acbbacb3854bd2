// SPDX-License-Identifier: BSD-3-Clause
#include "kernel/shadow.hpp"

#include "kernel/system.hpp"

#include <atomic>
#include <cstddef>

#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

namespace ntb::socket::kernel
{

namespace
{

constexpr int tries = 4;

// tcpi_state
constexpr int time_wait = 6;
constexpr int closed = 7;
constexpr int close_wait = 8;
constexpr int last_ack = 9;
constexpr int closing = 11;

bool info_of(int fd, tcp_info &info)
{
    socklen_t bytes = sizeof(info);
    info = {};
    return call(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
           bytes >= offsetof(tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received);
}

std::optional<std::uint64_t> queue_of(int fd, unsigned long request)
{
    int bytes = 0;
    if (call(SYS_ioctl, fd, request, &bytes) != 0)
        return {};
    return static_cast<std::uint64_t>(bytes);
}

msghdr header_of(const iovec *parts, int n)
{
    msghdr header = {};
    header.msg_iov = const_cast<iovec *>(parts);
    header.msg_iovlen = static_cast<std::size_t>(n);
    return header;
}

} // namespace

// Two questions with packets in between: asked until the first has the same answer twice.
std::optional<std::uint64_t> bytes_written(int fd, bool connected, std::uint64_t expected)
{
    tcp_info before;
    tcp_info after;
    if (!info_of(fd, before))
        return {};
    // One answer, but where a segment was counted and not sent.
    if (before.tcpi_bytes_sent - before.tcpi_bytes_retrans + before.tcpi_notsent_bytes == expected)
        return expected;
    for (int i = 0; i < tries; i++) {
        const auto queued = queue_of(fd, SIOCOUTQ);
        if (!queued || !info_of(fd, after))
            return {};
        if (before.tcpi_bytes_acked == after.tcpi_bytes_acked)
            return after.tcpi_bytes_acked + *queued - (connected ? 1 : 0);
        before = after;
    }
    return {};
}

std::optional<std::uint64_t> bytes_taken(int fd, std::uint64_t expected)
{
    tcp_info before;
    tcp_info after;
    if (!info_of(fd, before))
        return {};
    for (int i = 0; i < tries; i++) {
        const auto queued = queue_of(fd, SIOCINQ);
        if (!queued || !info_of(fd, after))
            return {};
        if (before.tcpi_bytes_received == after.tcpi_bytes_received) {
            const std::uint64_t taken = after.tcpi_bytes_received - *queued;
            const int state = after.tcpi_state;
            const bool fin = state == time_wait || state == close_wait || state == last_ack ||
                             state == closing || (state == closed && taken == expected + 1);
            return fin ? taken - 1 : taken;
        }
        before = after;
    }
    return {};
}

ssize_t send(int fd, const iovec *parts, int n, int flags)
{
    flags |= MSG_DONTWAIT;
    if (n == 1)
        return call(SYS_sendto, fd, parts->iov_base, parts->iov_len, flags, nullptr, 0);
    const msghdr header = header_of(parts, n);
    return call(SYS_sendmsg, fd, &header, flags);
}

ssize_t receive(int fd, const iovec *parts, int n, int flags)
{
    flags |= MSG_DONTWAIT;
    if (n == 1)
        return call(SYS_recvfrom, fd, parts->iov_base, parts->iov_len, flags, nullptr, nullptr);
    msghdr header = header_of(parts, n);
    return call(SYS_recvmsg, fd, &header, flags);
}

ssize_t splice(int fd, int pipe, std::size_t most)
{
    return call(SYS_splice, fd, nullptr, pipe, nullptr, most, SPLICE_F_NONBLOCK);
}

std::uint64_t bytes_queued(int fd)
{
    return queue_of(fd, SIOCINQ).value_or(0);
}

bool is_at_mark(int fd)
{
    return queue_of(fd, SIOCATMARK).value_or(0) != 0;
}

std::uint32_t events_of(int fd, std::uint32_t events)
{
    pollfd one = {fd, static_cast<short>(events), 0};
    const timespec at_once = {0, 0};
    if (call(SYS_ppoll, &one, 1, &at_once, nullptr, 0) <= 0)
        return 0;
    return static_cast<std::uint16_t>(one.revents);
}

// One that has ended is always hung up as well. So is one that both ends have shut down, which is
// not closed before all is acknowledged. SO_ERROR would take the error from the program.
bool is_reset(int fd, std::uint32_t events)
{
    constexpr std::uint32_t both = POLLERR | POLLHUP;
    tcp_info info;
    return (events & both) == both && (!info_of(fd, info) || info.tcpi_state == closed);
}

bool is_time(std::uint64_t &last)
{
    const std::uint64_t now = tick();
    const bool passed = now != last;
    // Others read it without the lock of who asks.
    std::atomic_ref(last).store(now, std::memory_order_relaxed);
    return passed;
}

std::uint64_t cookie_of(int fd)
{
    std::uint64_t cookie = 0;
    socklen_t bytes = sizeof(cookie);
    return call(SYS_getsockopt, fd, SOL_SOCKET, SO_COOKIE, &cookie, &bytes) == 0 ? cookie : 0;
}

void disconnect(int fd)
{
    const sockaddr none = {AF_UNSPEC, {}};
    call(SYS_connect, fd, &none, sizeof(none));
}

bool has_fin(int fd)
{
    tcp_info info;
    if (!info_of(fd, info))
        return false;
    switch (info.tcpi_state) {
    case time_wait:
    case closed:
    case close_wait:
    case last_ack:
    case closing:
        return true;
    default:
        return false;
    }
}

bool closes_hard(int fd)
{
    linger how = {0, 0};
    socklen_t bytes = sizeof(how);
    return call(SYS_getsockopt, fd, SOL_SOCKET, SO_LINGER, &how, &bytes) == 0 && how.l_onoff != 0 &&
           how.l_linger == 0;
}

void end(int fd)
{
    if (closes_hard(fd) || bytes_queued(fd) > 0)
        disconnect(fd);
    else
        call(SYS_shutdown, fd, SHUT_RDWR);
}

void close_hard(int fd)
{
    const linger how = {1, 0};
    call(SYS_setsockopt, fd, SOL_SOCKET, SO_LINGER, &how, sizeof(how));
}

} // namespace ntb::socket::kernel
