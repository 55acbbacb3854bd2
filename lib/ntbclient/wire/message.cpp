// SPDX-License-Identifier: BSD-3-Clause
#include "wire/message.hpp"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace ntbc
{

namespace
{
template <int fds>
union Control {
    cmsghdr header; // for its alignment
    char bytes[CMSG_SPACE(sizeof(int) * fds)];
};

void take_fds(msghdr *header, Parcel *out)
{
    for (cmsghdr *part = CMSG_FIRSTHDR(header); part != nullptr; part = CMSG_NXTHDR(header, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count && out->count < fds_received_max; i++)
            memcpy(&out->fds[out->count++], CMSG_DATA(part) + i * sizeof(int), sizeof(int));
    }
}
} // namespace

Parcel::~Parcel()
{
    clear();
}

void Parcel::clear()
{
    for (int i = 0; i < count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    count = 0;
    message = {};
}

int Parcel::take_fd(int index)
{
    return index < count ? std::exchange(fds[index], -1) : -1;
}

int message_send(int socket, const Message &message, const int *fds, int count)
{
    iovec part = {const_cast<Message *>(&message), sizeof(message)};
    Control<fds_max> control = {};
    msghdr header = {};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (count > 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(sizeof(int) * static_cast<size_t>(count));
        cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int) * static_cast<size_t>(count));
        memcpy(CMSG_DATA(rights), fds, sizeof(int) * static_cast<size_t>(count));
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

bool message_of(const void *bytes, size_t count, Message *out)
{
    if (count != sizeof(*out))
        return false;
    memcpy(out, bytes, sizeof(*out));
    return out->magic == message_magic && out->version == message_version &&
           out->key_bytes <= key_bytes_max;
}

Received message_receive(int socket, Parcel *out)
{
    out->clear();
    // One byte more than a message has: a longer one shows as too long.
    struct {
        Message message;
        char excess;
    } buffer = {};
    iovec part = {&buffer, sizeof(Message) + 1};
    Control<fds_received_max> control;
    msghdr header = {};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.bytes;
    header.msg_controllen = sizeof(control.bytes);
    ssize_t got;
    do
        got = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == EAGAIN ? Received::nothing : Received::closed;
    take_fds(&header, out); // an empty message may have some, too
    if (got == 0)
        return Received::closed;
    out->message = buffer.message;
    if (got < 12 || buffer.message.magic != message_magic ||
        buffer.message.version != message_version)
        return Received::foreign;
    if (got != sizeof(Message) || buffer.message.key_bytes > key_bytes_max || out->count > fds_max)
        return Received::malformed;
    return (header.msg_flags & MSG_CTRUNC) == 0 ? Received::message : Received::starved;
}

} // namespace ntbc
