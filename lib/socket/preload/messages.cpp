// SPDX-License-Identifier: BSD-3-Clause
// The calls that move messages, and with them descriptors.
#include "preload/transfer.hpp"

namespace ntb::socket::preload
{

namespace
{
int parts_of(const msghdr *message)
{
    return message->msg_iovlen > IOV_MAX ? -1 : static_cast<int>(message->msg_iovlen);
}

template <typename Each>
void for_descriptors(const msghdr *message, Each each)
{
    if (message->msg_control == nullptr || message->msg_controllen < sizeof(cmsghdr))
        return;
    auto *words = const_cast<msghdr *>(message);
    for (cmsghdr *one = CMSG_FIRSTHDR(words); one != nullptr; one = CMSG_NXTHDR(words, one)) {
        if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS)
            continue;
        const auto *fds = reinterpret_cast<const int *>(CMSG_DATA(one));
        for (std::size_t i = 0; i < (one->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++)
            each(fds[i]);
    }
}

// Descriptors that go with a message: who gets them may know nothing of rings.
void leaves(const msghdr *message)
{
    if (state.figures != nullptr)
        for_descriptors(message, [](int fd) { hand_on(fd); });
}

// What the kernel says beside the bytes of TCP.
void finish_message(msghdr *message)
{
    if (message->msg_name != nullptr)
        message->msg_namelen = 0;
    message->msg_controllen = 0;
    message->msg_flags = 0;
}

// Descriptors that came with a message.
void arrived(const msghdr *message)
{
    for_descriptors(message, [](int fd) { born(fd); });
}

// recvmmsg() and sendmmsg(): one after the other, an error is the result if it is the first.
template <typename Step, typename Kernel>
int messages(Call call, int fd, Way way, mmsghdr *all, unsigned n, Step step, Kernel kernel)
{
    if (state.table.find(fd) == nullptr || all == nullptr) [[likely]]
        return kernel();
    Held held(fd, Object::Kind::Connection);
    if (held.body() == nullptr)
        return kernel();
    count(call);
    Turn turn(held, fd);
    if (turn.connection() == nullptr) {
        turn.to_kernel();
        const int done = kernel();
        for (int i = 0; i < done; i++)
            count_bytes(way, all[i].msg_len);
        return done;
    }
    unsigned done = 0;
    ssize_t result = 0;
    {
        KeepErrno keep;
        for (; done < n; done++) {
            const msghdr &one = all[done].msg_hdr;
            result = one.msg_iov == nullptr && one.msg_iovlen > 0
                         ? -EFAULT
                         : check(one.msg_iov, parts_of(&one), false);
            if (result == 0)
                result = step(held, all[done].msg_hdr, done);
            if (result < 0)
                break;
            all[done].msg_len = static_cast<unsigned>(result);
            count_bytes(way, result);
            // Behind a part: what it had kept is given up, and the number is of something else.
            if (held.body() == nullptr) {
                done++;
                break;
            }
        }
    }
    return done > 0 ? static_cast<int>(done) : static_cast<int>(answer(result));
}
} // namespace

NTB_EXPORT(ssize_t, recvmsg, int fd, msghdr *message, int flags)
{
    bool by_kernel = false;
    const auto kernel = [&] {
        by_kernel = true;
        return real().recvmsg(fd, message, flags);
    };
    const ssize_t got =
        state.table.find(fd) == nullptr || message == nullptr
            ? kernel()
            : data(Call::recvmsg, fd, Way::In, message->msg_iov, parts_of(message), flags, kernel);
    if (got >= 0 && !by_kernel)
        finish_message(message);
    else if (got >= 0 && state.figures != nullptr)
        arrived(message);
    return got;
}

NTB_EXPORT(int, recvmmsg, int fd, mmsghdr *all, unsigned n, int flags, timespec *timeout)
{
    const auto step = [=](Held &held, msghdr &one, unsigned done) {
        const bool waits = done == 0 || (flags & MSG_WAITFORONE) == 0;
        const ssize_t got = transfer(held, fd, Way::In, one.msg_iov, parts_of(&one),
                                     (flags & ~MSG_WAITFORONE) | (waits ? 0 : MSG_DONTWAIT));
        if (got >= 0)
            finish_message(&one);
        return got;
    };
    const int got = messages(Call::recvmmsg, fd, Way::In, all, n, step,
                             [=] { return real().recvmmsg(fd, all, n, flags, timeout); });
    if (state.figures != nullptr)
        for (int i = 0; i < got; i++)
            arrived(&all[i].msg_hdr);
    return got;
}

NTB_EXPORT(ssize_t, sendmsg, int fd, const msghdr *message, int flags)
{
    const auto kernel = [=] { return real().sendmsg(fd, message, flags); };
    if (state.table.find(fd) == nullptr || message == nullptr) {
        if (message != nullptr)
            leaves(message);
        return kernel();
    }
    return data(Call::sendmsg, fd, Way::Out, message->msg_iov, parts_of(message), flags, kernel);
}

NTB_EXPORT(int, sendmmsg, int fd, mmsghdr *all, unsigned n, int flags)
{
    if (state.table.find(fd) == nullptr && all != nullptr && state.figures != nullptr)
        for (unsigned i = 0; i < n && i < IOV_MAX; i++)
            leaves(&all[i].msg_hdr);
    const auto step = [=](Held &held, const msghdr &one, unsigned) {
        return transfer(held, fd, Way::Out, one.msg_iov, parts_of(&one), flags);
    };
    return messages(Call::sendmmsg, fd, Way::Out, all, n, step,
                    [=] { return real().sendmmsg(fd, all, n, flags); });
}

} // namespace ntb::socket::preload
