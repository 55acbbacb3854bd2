// SPDX-License-Identifier: BSD-3-Clause
#include "port/door.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace ntb::verbs
{
namespace
{

// Connections that wait at a door, and that are looked at in one turn.
constexpr int backlog = 64;

/// In the abstract name space: nothing is left behind.
struct Place {
    sockaddr_un address = {};
    socklen_t bytes;

    explicit Place(const DoorName &name)
    {
        address.sun_family = AF_UNIX;
        const int length =
            snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
                     "ntb-verbs/%016" PRIx64 "%016" PRIx64, name.half[0], name.half[1]);
        bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                       static_cast<std::size_t>(length));
    }
    const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&address); }
};

constexpr int kind = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;

// Of the other end, as it was when it listened or connected.
bool find_user(int socket, uid_t &user)
{
    ucred other;
    socklen_t bytes = sizeof(other);
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &bytes) != 0)
        return false;
    user = other.uid;
    return true;
}

/// A message with a number and one descriptor.
struct Packet {
    std::uint64_t number = 0;
    iovec data = {&number, sizeof(number)};
    // Room for two: a descriptor too many is seen.
    alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
    msghdr header = {};

    Packet()
    {
        header.msg_iov = &data;
        header.msg_iovlen = 1;
        header.msg_control = control;
        header.msg_controllen = sizeof(control);
    }
};

// @return the descriptor; -1: it is not what peers send; -EAGAIN: nothing has come yet
int receive(int socket, std::uint64_t &number)
{
    Packet packet;
    const ssize_t got = recvmsg(socket, &packet.header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN)
        return -EAGAIN;
    const cmsghdr *const control = got < 0 ? nullptr : CMSG_FIRSTHDR(&packet.header);
    if (!control || control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
        return -1;
    int descriptors[2] = {-1, -1};
    const std::size_t bytes = control->cmsg_len - CMSG_LEN(0);
    memcpy(descriptors, CMSG_DATA(control),
           bytes < sizeof(descriptors) ? bytes : sizeof(descriptors));
    if (got == static_cast<ssize_t>(sizeof(number)) && bytes == sizeof(int) &&
        (packet.header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0) {
        number = packet.number;
        return descriptors[0];
    }
    for (const int descriptor : descriptors)
        if (descriptor >= 0)
            close(descriptor);
    return -1;
}

} // namespace

Door::~Door()
{
    for (std::uint32_t i = 0; i < n_guests_; ++i)
        close(guests_[i]);
    for (std::uint32_t i = 0; i < n_kept_; ++i)
        close(kept_[i].descriptor);
    if (socket_ >= 0)
        close(socket_);
}

int Door::open()
{
    DoorName drawn;
    if (getrandom(&drawn, sizeof(drawn), 0) != static_cast<ssize_t>(sizeof(drawn)))
        return -EIO;
    socket_ = socket(AF_UNIX, kind, 0);
    const Place place(drawn);
    if (socket_ < 0 || bind(socket_, place.get(), place.bytes) != 0 ||
        listen(socket_, backlog) != 0)
        return -errno;
    name_ = drawn;
    return 0;
}

// What was kept longest goes first.
bool Door::hear(int guest)
{
    Brought brought = {};
    brought.descriptor = find_user(guest, brought.user) ? receive(guest, brought.number) : -1;
    if (brought.descriptor == -EAGAIN)
        return false;
    close(guest);
    if (brought.descriptor < 0)
        return true;
    if (n_kept_ == most_kept) {
        close(kept_[0].descriptor);
        memmove(kept_, kept_ + 1, (most_kept - 1) * sizeof(kept_[0]));
        --n_kept_;
    }
    kept_[n_kept_++] = brought;
    return true;
}

// One that has come in and brought nothing yet does so before its grant is taken: it is heard then.
void Door::look()
{
    std::uint32_t still = 0;
    for (std::uint32_t i = 0; i < n_guests_; ++i)
        if (!hear(guests_[i]))
            guests_[still++] = guests_[i];
    n_guests_ = still;
    for (int i = 0; i < backlog; ++i) {
        const int guest = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (guest < 0)
            return;
        if (hear(guest))
            continue;
        if (n_guests_ == most_kept) {
            close(guests_[0]);
            memmove(guests_, guests_ + 1, (most_kept - 1) * sizeof(guests_[0]));
            --n_guests_;
        }
        guests_[n_guests_++] = guest;
    }
}

int Door::take(std::uint64_t number, uid_t user)
{
    if (socket_ < 0)
        return -1;
    look();
    for (std::uint32_t i = 0; i < n_kept_; ++i) {
        if (kept_[i].number != number || kept_[i].user != user)
            continue;
        const int descriptor = kept_[i].descriptor;
        kept_[i] = kept_[--n_kept_];
        return descriptor;
    }
    return -1;
}

bool bring(const DoorName &door, uid_t user, std::uint64_t number, int descriptor)
{
    const int guest = socket(AF_UNIX, kind, 0);
    if (guest < 0)
        return false;
    const Place place(door);
    uid_t owner = 0;
    bool done =
        connect(guest, place.get(), place.bytes) == 0 && find_user(guest, owner) && owner == user;
    if (done) {
        Packet packet;
        packet.number = number;
        packet.header.msg_controllen = CMSG_SPACE(sizeof(int));
        cmsghdr *const control = CMSG_FIRSTHDR(&packet.header);
        control->cmsg_level = SOL_SOCKET;
        control->cmsg_type = SCM_RIGHTS;
        control->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(control), &descriptor, sizeof(int));
        done = sendmsg(guest, &packet.header, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(number));
    }
    close(guest);
    return done;
}

} // namespace ntb::verbs
