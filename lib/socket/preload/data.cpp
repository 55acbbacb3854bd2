// SPDX-License-Identifier: BSD-3-Clause
// The calls that move bytes, end a direction, and ask what is there.
#include "preload/transfer.hpp"

#include <cstdarg>
#include <sys/ioctl.h>

namespace ntb::socket::preload
{

namespace
{
ssize_t no_name(int fd, ssize_t got, const sockaddr *from, socklen_t *length)
{
    if (got >= 0 && from != nullptr && length != nullptr && state.table.find(fd) != nullptr)
        *length = 0;
    return got;
}

// Calls with arguments of their own.
struct Checked : OneCall {
    size_t room;
};
struct From : OneCall {
    sockaddr *from;
    socklen_t *length;
};
struct CheckedFrom : OneCall {
    size_t room;
    sockaddr *from;
    socklen_t *length;
};
struct To : OneCall {
    const sockaddr *to;
    socklen_t length;
};

constexpr OneCall read_call = {
    {Call::read, Way::In},
    [](int fd, void *at, size_t size, int, const OneCall &) { return real().read(fd, at, size); }};
constexpr OneCall recv_call = {{Call::recv, Way::In},
                               [](int fd, void *at, size_t size, int flags, const OneCall &) {
                                   return real().recv(fd, at, size, flags);
                               }};
constexpr OneCall write_call = {
    {Call::write, Way::Out},
    [](int fd, void *at, size_t size, int, const OneCall &) { return real().write(fd, at, size); }};
constexpr OneCall send_call = {{Call::send, Way::Out},
                               [](int fd, void *at, size_t size, int flags, const OneCall &) {
                                   return real().send(fd, at, size, flags);
                               }};

template <typename Own>
const Own &own(const OneCall &self)
{
    return static_cast<const Own &>(self);
}
} // namespace

NTB_EXPORT(ssize_t, read, int fd, void *to, size_t size)
{
    return data(read_call, fd, to, size, 0);
}

NTB_EXPORT(ssize_t, __read_chk, int fd, void *to, size_t size, size_t room)
{
    const Checked call = {{{Call::__read_chk, Way::In},
                           [](int of, void *at, size_t n, int, const OneCall &self) {
                               return real().__read_chk(of, at, n, own<Checked>(self).room);
                           }},
                          room};
    return data(call, fd, to, size, 0);
}

NTB_EXPORT(ssize_t, readv, int fd, const iovec *parts, int n)
{
    return data(Call::readv, fd, Way::In, parts, n, 0, [=] { return real().readv(fd, parts, n); });
}

NTB_EXPORT(ssize_t, recv, int fd, void *to, size_t size, int flags)
{
    return data(recv_call, fd, to, size, flags);
}

NTB_EXPORT(ssize_t, __recv_chk, int fd, void *to, size_t size, size_t room, int flags)
{
    const Checked call = {{{Call::__recv_chk, Way::In},
                           [](int of, void *at, size_t n, int how, const OneCall &self) {
                               return real().__recv_chk(of, at, n, own<Checked>(self).room, how);
                           }},
                          room};
    return data(call, fd, to, size, flags);
}

NTB_EXPORT(ssize_t, recvfrom, int fd, void *to, size_t size, int flags, sockaddr *from,
           socklen_t *length)
{
    const From call = {{{Call::recvfrom, Way::In},
                        [](int of, void *at, size_t n, int how, const OneCall &self) {
                            const From &given = own<From>(self);
                            return real().recvfrom(of, at, n, how, given.from, given.length);
                        }},
                       from,
                       length};
    return no_name(fd, data(call, fd, to, size, flags), from, length);
}

NTB_EXPORT(ssize_t, __recvfrom_chk, int fd, void *to, size_t size, size_t room, int flags,
           sockaddr *from, socklen_t *length)
{
    const CheckedFrom call = {{{Call::__recvfrom_chk, Way::In},
                               [](int of, void *at, size_t n, int how, const OneCall &self) {
                                   const CheckedFrom &given = own<CheckedFrom>(self);
                                   return real().__recvfrom_chk(of, at, n, given.room, how,
                                                                given.from, given.length);
                               }},
                              room,
                              from,
                              length};
    return no_name(fd, data(call, fd, to, size, flags), from, length);
}

NTB_EXPORT(ssize_t, write, int fd, const void *from, size_t size)
{
    return data(write_call, fd, from, size, 0);
}

NTB_EXPORT(ssize_t, writev, int fd, const iovec *parts, int n)
{
    return data(Call::writev, fd, Way::Out, parts, n, 0,
                [=] { return real().writev(fd, parts, n); });
}

NTB_EXPORT(ssize_t, send, int fd, const void *from, size_t size, int flags)
{
    return data(send_call, fd, from, size, flags);
}

NTB_EXPORT(ssize_t, sendto, int fd, const void *from, size_t size, int flags, const sockaddr *to,
           socklen_t length)
{
    const To call = {{{Call::sendto, Way::Out},
                      [](int of, void *at, size_t n, int how, const OneCall &self) {
                          const To &given = own<To>(self);
                          const ssize_t sent =
                              real().sendto(of, at, n, how, given.to, given.length);
                          if ((how & MSG_FASTOPEN) != 0 && sent >= 0)
                              count(Reason::fast_open);
                          return sent;
                      }},
                     to,
                     length};
    return data(call, fd, from, size, flags);
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

// The C library's asks the kernel by a call of its own.
NTB_EXPORT(int, sockatmark, int fd)
{
    int is = 0;
    return ioctl_of(fd, SIOCATMARK, &is) < 0 ? -1 : is;
}

} // namespace ntb::socket::preload
