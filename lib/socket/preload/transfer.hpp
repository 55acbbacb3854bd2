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
/// One call on a connection, whose parts are as the program gave them.
/// @param call  says what waits where nothing is wanted
ssize_t move(Held &held, Call call, int fd, Way way, const iovec *parts, int n, int flags,
             bool is_one);

constexpr std::uint64_t user_space = std::uint64_t{1} << 56; // on no machine is it larger

/// What the kernel refuses of lengths before it touches a byte: above all a negative number that
/// was taken for one.
inline int check(const iovec *parts, int n, bool is_one)
{
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

/// One call on a descriptor that stands for something. Not inline: where nothing is tracked a call
/// has no use for the registers and the frame of this.
template <typename Kernel>
[[gnu::noinline]] ssize_t data_of_object(Object &found, Call call, int fd, Way way,
                                         const iovec *parts, int n, int flags, Kernel kernel,
                                         bool is_one)
{
    Held held(found, fd, Object::Kind::Connection);
    Body *const body = held.body();
    if (body == nullptr)
        return kernel();
    count(call);
    Turn turn(held, *body, fd);
    ssize_t result = -ESTALE;
    if (turn.connection() != nullptr && n >= 0 && n <= IOV_MAX &&
        (flags & (MSG_ERRQUEUE | MSG_FASTOPEN)) == 0)
        result = move(held, call, fd, way, parts, n, flags, is_one);
    return finish_call(turn, way, result, kernel);
}

/// One call on one descriptor. Where nothing is tracked it is the kernel's, after one load.
template <typename Kernel>
ssize_t data(Call call, int fd, Way way, const iovec *parts, int n, int flags, Kernel kernel)
{
    // The kernel's answer to none is EFAULT.
    Object *const found = state.table.find(fd);
    if (found == nullptr || (parts == nullptr && n > 0)) [[likely]]
        return kernel();
    return data_of_object(*found, call, fd, way, parts, n, flags, kernel, false);
}

template <typename Kernel>
ssize_t data(Call call, int fd, Way way, const void *at, size_t size, int flags, Kernel kernel)
{
    Object *const found = state.table.find(fd);
    if (found == nullptr) [[likely]]
        return kernel();
    // No call moves more at once.
    constexpr std::size_t most = 0x7ffff000;
    const iovec part = {const_cast<void *>(at), size > SSIZE_MAX ? size : std::min(size, most)};
    return data_of_object(*found, call, fd, way, &part, 1, flags, kernel, true);
}

} // namespace ntb::socket::preload

#endif
