// SPDX-License-Identifier: BSD-3-Clause
// The calls by which connections are made.
#include "preload/state.hpp"

namespace ntb::socket::preload
{

namespace
{
int accepted(int fd)
{
    if (fd >= 0) {
        born(fd);
        made(Role::Accept, fd, nullptr, 0);
    }
    return fd;
}
} // namespace

NTB_EXPORT(int, connect, int fd, const sockaddr *to, socklen_t length)
{
    const int status = real().connect(fd, to, length);
    // Only here does the kernel have the program's address: one that it cannot read is EFAULT
    // there, and a crash here.
    if (status == 0 || errno == EINPROGRESS)
        made(Role::Connect, fd, to, length);
    return status;
}

NTB_EXPORT(int, accept, int fd, sockaddr *from, socklen_t *length)
{
    return accepted(real().accept(fd, from, length));
}

NTB_EXPORT(int, accept4, int fd, sockaddr *from, socklen_t *length, int flags)
{
    return accepted(real().accept4(fd, from, length, flags));
}

} // namespace ntb::socket::preload
