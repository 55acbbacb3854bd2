// SPDX-License-Identifier: BSD-3-Clause
// The calls by which connections are made.
#include "kernel/shadow.hpp"
#include "preload/options.hpp"
#include "preload/sets.hpp"
#include "preload/upgrade.hpp"

#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>

namespace ntb::socket::preload
{

namespace
{
int accepted(int fd)
{
    if (fd >= 0) {
        born(fd);
        made(Role::Accept, fd, nullptr, 0, false);
    }
    return fd;
}
} // namespace

NTB_EXPORT(int, connect, int fd, const sockaddr *to, socklen_t length)
{
    // A new life of the same socket, such as after AF_UNSPEC. It is broken off, by the kernel too
    // before what follows could say an end to it: the peer is to see a reset.
    if (state.table.find(fd) != nullptr && to != nullptr && length >= sizeof(sa_family_t) &&
        to->sa_family == AF_UNSPEC) {
        if (const Held held(fd, Object::Kind::Connection); held.body() != nullptr) {
            left_in_sets(fd, held.body());
            if (Connection *one = held.body()->claimed(); one != nullptr)
                one->abort(fd);
            kernel::disconnect(fd);
        }
        closing(fd);
        if (state.has_sets.load(std::memory_order_relaxed))
            state.table.note_added(fd);
    }
    const int status = real().connect(fd, to, length);
    // Only here does the kernel have the program's address: one that it cannot read is EFAULT
    // there, and a crash here.
    if (status == 0 || errno == EINPROGRESS)
        made(Role::Connect, fd, to, length, status != 0);
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

// What rings do not serve: they are left before the kernel does.
NTB_EXPORT(int, setsockopt, int fd, int level, int name, const void *value, socklen_t length)
{
    if (state.table.find(fd) == nullptr) [[likely]]
        return real().setsockopt(fd, level, name, value, length);
    int word = 0;
    if (value != nullptr && length >= sizeof(word))
        memcpy(&word, value, sizeof(word));
    if (is_for_the_kernel(level, name, word))
        leave_to_kernel(fd);
    const int status = real().setsockopt(fd, level, name, value, length);
    if (level == SOL_SOCKET)
        forget_waiting(fd);
    return status;
}

// By this programs ask whether a connect() has succeeded.
NTB_EXPORT(int, getsockopt, int fd, int level, int name, void *value, socklen_t *length)
{
    const int status = real().getsockopt(fd, level, name, value, length);
    if (level == SOL_SOCKET && name == SO_ERROR && state.table.find(fd) != nullptr) {
        KeepErrno keep;
        const Held held(fd, Object::Kind::Connection);
        Body *body = held.body();
        if (body != nullptr && body->is_connecting())
            source_of(fd);
        int error = 0;
        if (status == 0 && value != nullptr && *length >= sizeof(error))
            memcpy(&error, value, sizeof(error));
        if (Connection *one = body == nullptr ? nullptr : body->claimed(); one != nullptr)
            one->reported(error);
    }
    return status;
}

} // namespace ntb::socket::preload
