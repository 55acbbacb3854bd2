// SPDX-License-Identifier: BSD-3-Clause
#include "cable/message.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>

namespace plx::twin
{

namespace
{
constexpr size_t fds_max = 4; // what a stranger may send at once; more are closed by the kernel

// Keeps the first descriptor and closes the rest. @return how many there were
size_t take_fds(msghdr &header, int *fd)
{
    size_t count = 0;
    for (cmsghdr *c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        const size_t here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < here; i++) {
            int received;
            memcpy(&received, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            if (count++ == 0)
                *fd = received;
            else
                close(received);
        }
    }
    return count;
}

Received judge(const Message &message, ssize_t bytes, const msghdr &header, size_t fds)
{
    constexpr ssize_t head = offsetof(Message, type);
    if (bytes < head || message.magic != message_magic || message.version != message_version)
        return Received::foreign;
    if ((header.msg_flags & MSG_CTRUNC) != 0 && fds == 0)
        return Received::starved;
    const bool whole =
        bytes == sizeof(Message) && (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
    return whole && fds <= 1 ? Received::message : Received::malformed;
}

// A reset is reported before what was sent ahead of it can be read: look again behind it.
ssize_t receive(int socket, msghdr *header)
{
    const ssize_t bytes = recvmsg(socket, header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (bytes >= 0 || errno != ECONNRESET)
        return bytes;
    return recvmsg(socket, header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
}
} // namespace

bool message_send(int socket, const Message &message, int fd)
{
    iovec data{const_cast<Message *>(&message), sizeof(message)};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    if (fd >= 0) {
        header.msg_control = control;
        header.msg_controllen = sizeof(control);
        cmsghdr *c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(int));
    }
    return sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(message);
}

Received message_receive(int socket, Message *out, int *fd)
{
    iovec data{out, sizeof(*out)};
    alignas(cmsghdr) char control[CMSG_SPACE(fds_max * sizeof(int))];
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    *fd = -1;
    const ssize_t bytes = receive(socket, &header);
    if (bytes < 0)
        return errno == EAGAIN || errno == EINTR ? Received::nothing : Received::closed;
    const size_t fds = take_fds(header, fd);
    if (bytes == 0 && fds == 0)
        return Received::closed;
    const Received verdict = judge(*out, bytes, header, fds);
    if (verdict != Received::message && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    return verdict;
}

} // namespace plx::twin
