// SPDX-License-Identifier: BSD-3-Clause
#ifndef TEST_DAEMON_RAW_HPP
#define TEST_DAEMON_RAW_HPP

#include "hosts.hpp"

#include "wire/message.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <poll.h>

namespace ntbd::test
{

using ntbc::Message;
using ntbc::Parcel;
using ntbc::Received;
using ntbc::Type;

// A client without the library.
class Raw
{
public:
    explicit Raw(const Daemon &daemon) : fd(connect_to_daemon(daemon.config.socket))
    {
        EXPECT_GE(fd, 0);
    }
    ~Raw() { close(fd); }

    Received receive(Parcel *parcel)
    {
        pollfd one = {fd, POLLIN, 0};
        EXPECT_EQ(poll(&one, 1, 30000), 1);
        return message_receive(fd, parcel);
    }
    void send(const Message &m, const int *fds = nullptr, int count = 0)
    {
        EXPECT_EQ(message_send(fd, m, fds, count), 0);
    }
    void hello()
    {
        Message m;
        m.type = Type::hello;
        Parcel parcel;
        send(m);
        ASSERT_EQ(receive(&parcel), Received::message);
        ASSERT_EQ(parcel.message.status, 0);
    }
    // A connection of this client to itself.
    void connect(Parcel *end)
    {
        Message m;
        m.type = Type::listen;
        m.flags = ntbc::flag_local;
        m.backlog = 8;
        m.timeout_ms = 1000;
        m.key_bytes = 3;
        memcpy(m.key, "raw", 3);
        send(m);
        m.type = Type::connect;
        send(m);
        while (end->message.type != Type::connected)
            ASSERT_EQ(receive(end), Received::message);
    }
    void expect_dropped()
    {
        Parcel parcel;
        EXPECT_EQ(receive(&parcel), Received::closed);
    }

    int fd;
};

} // namespace ntbd::test

#endif
