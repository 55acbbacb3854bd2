// SPDX-License-Identifier: BSD-3-Clause
// How a call moves bytes: what those that do have in common.
#ifndef NTB_SOCKET_PRELOAD_TRANSFER_HPP
#define NTB_SOCKET_PRELOAD_TRANSFER_HPP

#include "preload/upgrade.hpp"

#include <algorithm>
#include <climits>

namespace ntb::socket::preload
{

enum class Way : std::uint8_t { In, Out };

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
/// As splice() from the connection to a pipe, once it is known that it is one.
ssize_t splice_to_pipe(Held &held, int fd, int pipe, std::size_t size, bool waits_for_room);
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

/// The kernel's own call with what the program gave, for who does not know which one it is. The
/// function has to outlive this.
class KernelCall
{
public:
    template <typename Function>
    explicit KernelCall(const Function &function)
        : function_(&function),
          make_([](const void *at) -> ssize_t { return (*static_cast<const Function *>(at))(); })
    {
    }
    ssize_t operator()() const { return make_(function_); }

private:
    const void *function_;
    ssize_t (*make_)(const void *);
};

/// What a call says. @param result  -ESTALE: it is the kernel's to make
template <typename Kernel>
ssize_t finish_call(Turn &turn, Way way, ssize_t result, const Kernel &kernel)
{
    if (result == -ESTALE) [[unlikely]] {
        turn.to_kernel();
        result = kernel();
    } else {
        result = answer(result);
    }
    count_bytes(way, result);
    return result;
}

/// What calls that move bytes differ in, beside what they are given.
struct Kind {
    Call call;
    Way way;
};

/// A call that moves bytes at one place, and the real one. One that is given more than these
/// arguments has a kind of its own, with that behind this.
struct OneCall {
    Kind kind;
    ssize_t (*kernel)(int fd, void *at, size_t size, int flags, const OneCall &self);
};

/// One call on a descriptor that stands for something. The arguments have the order that the
/// program's have: so nothing but two registers changes on the way.
ssize_t data_of_object(int fd, void *at, size_t size, int flags, const OneCall &call,
                       Object &found);
ssize_t data_of_object(Object &found, Kind kind, int fd, const iovec *parts, int n, int flags,
                       const KernelCall &kernel);

/// One call on one descriptor. Where nothing is tracked it is the kernel's, after one load; and
/// nothing but that is done here, as it would be for all calls.
inline ssize_t data(const OneCall &call, int fd, const void *at, size_t size, int flags)
{
    Object *const found = state.table.find(fd);
    void *const place = const_cast<void *>(at);
    if (found == nullptr) [[likely]]
        return call.kernel(fd, place, size, flags, call);
    return data_of_object(fd, place, size, flags, call, *found);
}

template <typename Kernel>
ssize_t data(Call call, int fd, Way way, const iovec *parts, int n, int flags, Kernel kernel)
{
    // The kernel's answer to none is EFAULT.
    Object *const found = state.table.find(fd);
    if (found == nullptr || (parts == nullptr && n > 0)) [[likely]]
        return kernel();
    const Kernel kept = kernel; // which needs a place in memory, but in front of this none
    return data_of_object(*found, {call, way}, fd, parts, n, flags, KernelCall(kept));
}

} // namespace ntb::socket::preload

#endif
