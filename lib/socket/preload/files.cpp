// SPDX-License-Identifier: BSD-3-Clause
// The calls that are for files, and move bytes of a connection too.
#include "kernel/memory.hpp"
#include "kernel/system.hpp"
#include "preload/transfer.hpp"

#include <fcntl.h>

namespace ntb::socket::preload
{

namespace
{
// sendfile() to a connection, from a file that can be read at an offset.
ssize_t send_file(Held &held, int to, int from, off_t *offset, size_t size)
{
    // A thread may have a stack of some pages.
    constexpr std::size_t small = 4096, most = 65536;
    kernel::Array<char, small> bytes(size > small ? std::min(size, most) : small);
    if (bytes.data() == nullptr)
        return -ENOMEM;
    off_t at = offset != nullptr ? *offset : kernel::call(SYS_lseek, from, 0, SEEK_CUR);
    if (at < 0) // a pipe, of which the kernel says this
        return at == -ESPIPE ? -EINVAL : static_cast<ssize_t>(at);
    std::size_t sent = 0;
    ssize_t result = 0;
    while (sent < size) {
        result = kernel::call(SYS_pread64, from, bytes.data(), std::min(most, size - sent), at);
        if (result == -EISDIR) // what sendfile() says of a folder
            result = -EINVAL;
        if (result <= 0)
            break;
        const iovec part = {bytes.data(), static_cast<std::size_t>(result)};
        const ssize_t taken = transfer(held, to, Way::Out, &part, 1, 0);
        if (taken < 0) {
            result = taken;
            break;
        }
        sent += static_cast<std::size_t>(taken);
        at += taken;
        if (taken < result)
            break;
    }
    if (sent == 0)
        return result;
    if (offset != nullptr)
        *offset = at;
    else
        kernel::call(SYS_lseek, from, at, SEEK_SET);
    return static_cast<ssize_t>(sent);
}

// Parts of preadv2() and its kin, or -1: the kernel refuses the call, and says why.
int by_ring(int n, off_t offset, int flags)
{
    constexpr int known = RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT | RWF_APPEND;
    return offset == -1 && (flags & ~known) == 0 ? n : -1;
}

// Whether the kernel would move bytes to a pipe, and not refuse that.
bool takes_pages(int pipe, long how, const off_t *from_at, const off_t *to_at, size_t size,
                 unsigned flags)
{
    constexpr unsigned known = SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT;
    return how >= 0 && (how & O_ACCMODE) != O_RDONLY && from_at == nullptr && to_at == nullptr &&
           size > 0 && (flags & ~known) == 0 && kernel::call(SYS_fcntl, pipe, F_GETPIPE_SZ) > 0;
}

template <typename Kernel>
ssize_t file_data(Call call, int to, int from, off_t *offset, size_t size, Kernel kernel)
{
    if (state.table.find(to) == nullptr) [[likely]]
        return kernel();
    Held held(to, Object::Kind::Connection);
    if (held.body() == nullptr)
        return kernel();
    count(call);
    Turn turn(held, to);
    ssize_t result = -ESTALE;
    if (turn.connection() != nullptr) {
        KeepErrno keep;
        result = send_file(held, to, from, offset, size);
    }
    return finish_call(turn, Way::Out, result, kernel);
}
} // namespace

NTB_EXPORT(ssize_t, preadv2, int fd, const iovec *parts, int n, off_t offset, int flags)
{
    return data(Call::preadv2, fd, Way::In, parts, by_ring(n, offset, flags),
                (flags & RWF_NOWAIT) != 0 ? MSG_DONTWAIT : 0,
                [=] { return real().preadv2(fd, parts, n, offset, flags); });
}

NTB_EXPORT(ssize_t, preadv64v2, int fd, const iovec *parts, int n, off_t offset, int flags)
{
    return data(Call::preadv64v2, fd, Way::In, parts, by_ring(n, offset, flags),
                (flags & RWF_NOWAIT) != 0 ? MSG_DONTWAIT : 0,
                [=] { return real().preadv64v2(fd, parts, n, offset, flags); });
}

NTB_EXPORT(ssize_t, pwritev2, int fd, const iovec *parts, int n, off_t offset, int flags)
{
    return data(Call::pwritev2, fd, Way::Out, parts, by_ring(n, offset, flags),
                (flags & RWF_NOWAIT) != 0 ? MSG_DONTWAIT : 0,
                [=] { return real().pwritev2(fd, parts, n, offset, flags); });
}

NTB_EXPORT(ssize_t, pwritev64v2, int fd, const iovec *parts, int n, off_t offset, int flags)
{
    return data(Call::pwritev64v2, fd, Way::Out, parts, by_ring(n, offset, flags),
                (flags & RWF_NOWAIT) != 0 ? MSG_DONTWAIT : 0,
                [=] { return real().pwritev64v2(fd, parts, n, offset, flags); });
}

NTB_EXPORT(ssize_t, sendfile, int to, int from, off_t *offset, size_t size)
{
    return file_data(Call::sendfile, to, from, offset, size,
                     [=] { return real().sendfile(to, from, offset, size); });
}

NTB_EXPORT(ssize_t, sendfile64, int to, int from, off_t *offset, size_t size)
{
    return file_data(Call::sendfile64, to, from, offset, size,
                     [=] { return real().sendfile64(to, from, offset, size); });
}

NTB_EXPORT(ssize_t, splice, int from, off_t *from_at, int to, off_t *to_at, size_t size,
           unsigned flags)
{
    const auto kernel = [=] { return real().splice(from, from_at, to, to_at, size, flags); };
    const Way way = state.table.find(to) != nullptr ? Way::Out : Way::In;
    const int fd = way == Way::Out ? to : from;
    if (state.table.find(fd) == nullptr) [[likely]]
        return kernel();
    Held held(fd, Object::Kind::Connection);
    if (held.body() == nullptr)
        return kernel();
    count(Call::splice);
    Turn turn(held, fd);
    ssize_t result = -ESTALE;
    if (turn.connection() != nullptr) {
        KeepErrno keep;
        const int pipe = way == Way::Out ? from : to;
        // What a pipe has cannot be looked at before it is taken. The kernel takes as much as it
        // has room for: the connection sends by TCP from then on. What it receives stays.
        if (way == Way::Out) {
            if (kernel::call(SYS_fcntl, pipe, F_GETPIPE_SZ) > 0)
                held.body()->leave(fd, false, true);
        } else if (const long how = kernel::call(SYS_fcntl, pipe, F_GETFL);
                   takes_pages(pipe, how, from_at, to_at, size, flags)) {
            result = splice_to_pipe(held, fd, pipe, size,
                                    (flags & SPLICE_F_NONBLOCK) == 0 && (how & O_NONBLOCK) == 0);
        }
    }
    return finish_call(turn, way, result, kernel);
}

} // namespace ntb::socket::preload
