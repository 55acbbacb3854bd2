// SPDX-License-Identifier: BSD-3-Clause
#include "preload/options.hpp"

#include "kernel/system.hpp"

#include <algorithm>
#include <fcntl.h>
#include <iterator>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace ntb::socket::preload
{

namespace
{
struct Option {
    int level, name;
    int usual; ///< larger ones are for the kernel
};
constexpr Option options[] = {
    {SOL_SOCKET, SO_RCVLOWAT, 1},
    {SOL_SOCKET, SO_PEEK_OFF, -1},
    {SOL_SOCKET, SO_TIMESTAMP_OLD, 0},
    {SOL_SOCKET, SO_TIMESTAMPNS_OLD, 0},
    {SOL_SOCKET, SO_TIMESTAMPING_OLD, 0},
    {SOL_SOCKET, SO_TIMESTAMP_NEW, 0},
    {SOL_SOCKET, SO_TIMESTAMPNS_NEW, 0},
    {SOL_SOCKET, SO_TIMESTAMPING_NEW, 0},
    {SOL_SOCKET, SO_ZEROCOPY, 0},
    {IPPROTO_IP, IP_RECVERR, 0},
    {IPPROTO_IPV6, IPV6_RECVERR, 0},
    {IPPROTO_TCP, TCP_INQ, 0},
    {IPPROTO_TCP, TCP_REPAIR, 0},
    {IPPROTO_TCP, TCP_USER_TIMEOUT, 0},
    {IPPROTO_TCP, TCP_ULP, 0}, // a name such as "tls", which is more than that as a number
};
} // namespace

bool is_for_the_kernel(int level, int name, int value)
{
    return std::any_of(std::begin(options), std::end(options), [=](const Option &one) {
        return one.level == level && one.name == name && value > one.usual;
    });
}

bool has_what_is_for_the_kernel(int fd)
{
    const auto is_set = [fd](const Option &one) {
        int value = one.usual;
        socklen_t length = sizeof(value);
        return kernel::call(SYS_getsockopt, fd, one.level, one.name, &value, &length) == 0 &&
               length > 0 && value > one.usual;
    };
    const long flags = kernel::call(SYS_fcntl, fd, F_GETFL);
    return (flags >= 0 && (flags & O_ASYNC) != 0) ||
           std::any_of(std::begin(options), std::end(options), is_set);
}

} // namespace ntb::socket::preload
