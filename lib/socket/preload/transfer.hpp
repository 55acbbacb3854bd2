// SPDX-License-Identifier: BSD-3-Clause
// How a call moves bytes: what those that do have in common.
#ifndef NTB_SOCKET_PRELOAD_TRANSFER_HPP
#define NTB_SOCKET_PRELOAD_TRANSFER_HPP

#include "preload/upgrade.hpp"

#include <algorithm>
#include <climits>

namespace ntb::socket::preload
{

enum class Way { In, Out };

constexpr int peeks_all = MSG_PEEK | MSG_WAITALL;

inline long answer(ssize_t result)
{
    if (result >= 0)
        return result;
    errno = static_cast<int>(-result);
    return -1;
}

inline void count_bytes(Way way, ssize_t bytes)
{
    if (state.verbose && bytes > 0)
        (way == Way::In ? state.figures->received : state.figures->sent)
            .fetch_add(static_cast<std::uint64_t>(bytes), std::memory_order_relaxed);
}

/// With MSG_PEEK and MSG_WAITALL: all that is wanted, or what there is before an end, the time-out
/// or a signal.
ssize_t peek_all(Held &held, int fd, const iovec *parts, int n, int flags);
/// As the kernel's calls: sends all; receives what is there, or all with MSG_WAITALL.
ssize_t transfer(Held &held, int fd, Way way, const iovec *parts, int n, int flags);
/// Nothing is wanted: recv() waits until something is there all the same, and takes none of it.
ssize_t receive_nothing(Held &held, int fd, int flags);

inline bool is_empty(const iovec *parts, int n)
{
    return std::all_of(parts, parts + n, [](const iovec &part) { return part.iov_len == 0; });
}

/// Where read() and its kin have nothing to do they do not wait, unlike recv().
inline bool is_for_files(Call call)
{
    return call == Call::read || call == Call::__read_chk || call == Call::readv ||
           call == Call::preadv2 || call == Call::preadv64v2;
}

/// The kernel answers EFAULT to a pointer that leads nowhere. Here only that one is looked for.
inline bool has_null(const iovec *parts, int n)
{
    for (int i = 0; i < n; i++)
        if (parts[i].iov_base == nullptr && parts[i].iov_len > 0)
            return true;
    return false;
}

/// What the kernel refuses of lengths before it touches a byte: above all a negative number that
/// was taken for one.
inline int check(const iovec *parts, int n, bool is_one)
{
    constexpr std::uint64_t user_space = std::uint64_t{1} << 56; // on no machine is it larger
    for (int i = 0; i < n; i++) {
        if (parts[i].iov_len > SSIZE_MAX)
            return is_one ? -EFAULT : -EINVAL;
        if (reinterpret_cast<std::uintptr_t>(parts[i].iov_base) + parts[i].iov_len > user_space)
            return -EFAULT;
    }
    return 0;
}

/// What a call says. @param result  -ESTALE: it is the kernel's to make
template <typename Kernel>
ssize_t finish_call(Turn &turn, Way way, ssize_t result, Kernel kernel)
{
    if (result == -ESTALE) {
        turn.to_kernel();
        result = kernel();
    } else {
        result = answer(result);
    }
    count_bytes(way, result);
    return result;
}

/// One call on one descriptor. Where nothing is tracked it is the kernel's, after one load.
template <typename Kernel>
ssize_t data(Call call, int fd, Way way, const iovec *parts, int n, int flags, Kernel kernel,
             bool is_one = false)
{
    // The kernel's answer to none is EFAULT.
    if (state.table.find(fd) == nullptr || (parts == nullptr && n > 0)) [[likely]]
        return kernel();
    Held held(fd, Object::Kind::Connection);
    if (held.body() == nullptr)
        return kernel();
    count(call);
    Turn turn(held, fd);
    ssize_t result = -ESTALE;
    if (turn.connection() != nullptr && n >= 0 && n <= IOV_MAX &&
        (flags & (MSG_ERRQUEUE | MSG_FASTOPEN)) == 0) {
        KeepErrno keep;
        if (const int error = check(parts, n, is_one); error != 0)
            result = error;
        else if ((flags & MSG_TRUNC) == 0 && has_null(parts, n))
            result = -EFAULT;
        else if (way == Way::In && (flags & peeks_all) == peeks_all && !is_empty(parts, n))
            result = peek_all(held, fd, parts, n, flags);
        else if (way == Way::Out || !is_empty(parts, n))
            result = transfer(held, fd, way, parts, n, flags);
        else
            result = is_for_files(call) ? 0 : receive_nothing(held, fd, flags);
    }
    return finish_call(turn, way, result, kernel);
}

template <typename Kernel>
ssize_t data(Call call, int fd, Way way, const void *at, size_t size, int flags, Kernel kernel)
{
    // No call moves more at once.
    constexpr std::size_t most = 0x7ffff000;
    const iovec part = {const_cast<void *>(at), size > SSIZE_MAX ? size : std::min(size, most)};
    return data(call, fd, way, &part, 1, flags, kernel, true);
}

} // namespace ntb::socket::preload

#endif
