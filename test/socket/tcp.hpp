// SPDX-License-Identifier: BSD-3-Clause
// Two ends of a TCP connection of this machine, shown to daemons.
#ifndef TEST_SOCKET_TCP_HPP
#define TEST_SOCKET_TCP_HPP

#include "../daemon/hosts.hpp"
#include "connection/attachment.hpp"
#include "connection/connection.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace ntb::socket::test
{

using ntbd::test::await;

/// Claims wait for their mirrors as long as a test waits for anything: one that runs out of time,
/// because nothing ran for so long, never has a ring.
inline Attachment *attach(const std::string &path)
{
    return Attachment::create(path.c_str(), ntbd::test::long_ms);
}

/// A TCP connection from 127.0.0.1 to 127.0.0.2.
struct Tcp {
    Tcp()
    {
        const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address = {};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
        socklen_t bytes = sizeof(address);
        EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr *>(&address), bytes), 0);
        EXPECT_EQ(listen(listener, 1), 0);
        getsockname(listener, reinterpret_cast<sockaddr *>(&address), &bytes);
        fd[0] = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in own = address;
        own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        own.sin_port = 0;
        EXPECT_EQ(bind(fd[0], reinterpret_cast<sockaddr *>(&own), sizeof(own)), 0);
        EXPECT_EQ(connect(fd[0], reinterpret_cast<sockaddr *>(&address), bytes), 0);
        fd[1] = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        EXPECT_GE(fd[1], 0);
        ::close(listener);
    }
    ~Tcp()
    {
        for (int &one : fd)
            shut(one);
    }
    Tcp(const Tcp &) = delete;
    Tcp &operator=(const Tcp &) = delete;
    static void shut(int &one)
    {
        if (one >= 0)
            ::close(one);
        one = -1;
    }

    int fd[2] = {-1, -1}; ///< connected, accepted
};

/// An end of a connection in this process; without a connection it is the socket.
struct Side {
    Connection *connection = nullptr;
    int fd = -1;

    ssize_t send(const std::string &bytes, int flags = 0) const
    {
        const iovec part = {const_cast<char *>(bytes.data()), bytes.size()};
        if (connection != nullptr)
            return connection->send(fd, &part, 1, flags | MSG_NOSIGNAL);
        const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        return sent >= 0 ? sent : -errno;
    }
    ssize_t receive(void *to, std::size_t bytes, int flags = 0) const
    {
        const iovec part = {to, bytes};
        if (connection != nullptr)
            return connection->receive(fd, &part, 1, flags);
        const ssize_t got = ::recv(fd, to, bytes, MSG_DONTWAIT);
        return got >= 0 ? got : -errno;
    }
    /// Sends all, waiting where there is no room.
    void put(const std::string &bytes) const
    {
        std::size_t done = 0;
        EXPECT_TRUE(await([&] {
            const ssize_t sent = send(bytes.substr(done));
            EXPECT_TRUE(sent > 0 || sent == -EAGAIN) << sent;
            done += sent > 0 ? static_cast<std::size_t>(sent) : 0;
            return done == bytes.size();
        }));
    }
    /// Receives so many, waiting where there are none, or what comes before the end.
    std::string get(std::size_t bytes) const
    {
        std::string got(bytes, '\0');
        std::size_t done = 0;
        EXPECT_TRUE(await([&] {
            const ssize_t some = receive(got.data() + done, bytes - done);
            done += some > 0 ? static_cast<std::size_t>(some) : 0;
            return done == bytes || (some <= 0 && some != -EAGAIN);
        }));
        got.resize(done);
        return got;
    }
    /// What a receive says in the end: it is waited for.
    ssize_t outcome() const
    {
        ssize_t said = -EAGAIN;
        char byte;
        EXPECT_TRUE(await([&] { return (said = receive(&byte, 1)) != -EAGAIN; }));
        return said;
    }
};

/// Bytes that differ at each place.
inline std::string pattern(std::size_t bytes, unsigned seed)
{
    std::string made(bytes, '\0');
    std::uint32_t state = seed * 2654435761u + 1;
    for (char &c : made) {
        state = state * 1664525u + 1013904223u;
        c = static_cast<char>(state >> 24);
    }
    return made;
}

} // namespace ntb::socket::test

#endif
