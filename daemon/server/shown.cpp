// SPDX-License-Identifier: BSD-3-Clause
#include "server/shown.hpp"

#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

// Not in the headers of every system that has it.
#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

namespace ntbd
{

namespace
{
template <typename T>
bool option_of(int fd, int level, int option, T *out)
{
    socklen_t bytes = sizeof(*out);
    return getsockopt(fd, level, option, out, &bytes) == 0;
}

// 16 bytes of address and two of port; an address of IPv4 as it looks to a socket of IPv6.
std::string name_of(const sockaddr_storage &address)
{
    uint8_t name[18] = {};
    if (address.ss_family == AF_INET) {
        sockaddr_in four;
        memcpy(&four, &address, sizeof(four));
        name[10] = name[11] = 0xFF;
        memcpy(name + 12, &four.sin_addr, 4);
        memcpy(name + 16, &four.sin_port, 2);
    } else {
        sockaddr_in6 six;
        memcpy(&six, &address, sizeof(six));
        memcpy(name, &six.sin6_addr, 16);
        memcpy(name + 16, &six.sin6_port, 2);
    }
    return {reinterpret_cast<const char *>(name), sizeof(name)};
}

int check(int fd, uint64_t own)
{
    int domain = 0;
    int protocol = 0;
    if (fd < 0)
        return -EMFILE;
    if (!option_of(fd, SOL_SOCKET, SO_DOMAIN, &domain))
        return -ENOTSOCK;
    if ((domain != AF_INET && domain != AF_INET6) ||
        !option_of(fd, SOL_SOCKET, SO_PROTOCOL, &protocol) || protocol != IPPROTO_TCP)
        return -EPROTONOSUPPORT;
    tcp_info info = {};
    if (!option_of(fd, IPPROTO_TCP, TCP_INFO, &info) || info.tcpi_state != TCP_ESTABLISHED)
        return -ENOTCONN;
    uint64_t space = 0;
    if (own != 0 && (!option_of(fd, SOL_SOCKET, SO_NETNS_COOKIE, &space) || space != own))
        return -EXDEV;
    return 0;
}
} // namespace

uint64_t own_namespace()
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint64_t space = 0;
    if (fd < 0 || !option_of(fd, SOL_SOCKET, SO_NETNS_COOKIE, &space))
        space = 0;
    if (fd >= 0)
        close(fd);
    return space;
}

Shown inspect(int fd, uint64_t own)
{
    Shown shown;
    sockaddr_storage local = {};
    sockaddr_storage remote = {};
    socklen_t bytes = sizeof(local);
    shown.status = check(fd, own);
    if (shown.status != 0)
        return shown;
    if (!option_of(fd, SOL_SOCKET, SO_COOKIE, &shown.cookie) ||
        getsockname(fd, reinterpret_cast<sockaddr *>(&local), &bytes) != 0 ||
        (bytes = sizeof(remote),
         getpeername(fd, reinterpret_cast<sockaddr *>(&remote), &bytes) != 0)) {
        shown.status = -ENOTCONN;
        return shown;
    }
    shown.local = name_of(local);
    shown.remote = name_of(remote);
    return shown;
}

} // namespace ntbd
