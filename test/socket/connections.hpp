// SPDX-License-Identifier: BSD-3-Clause
// Connections over loopback, with daemons: both ends at one, and at two that are joined.
#ifndef TEST_SOCKET_CONNECTIONS_HPP
#define TEST_SOCKET_CONNECTIONS_HPP

#include "tcp.hpp"

#include <cstring>

namespace ntb::socket::test
{

using ntbd::test::Daemon;
using ntbd::test::Folder;

/// How the two ends are joined.
enum class Hosts {
    One,     ///< at one daemon
    Direct,  ///< at two, whose clients share memory
    Carried, ///< through two
};

class Connections : public testing::TestWithParam<Hosts>
{
protected:
    bool is_apart() const { return GetParam() != Hosts::One; }
    /// Then what an end has done is known to the other after a while.
    bool is_carried() const { return GetParam() == Hosts::Carried; }
    void SetUp() override
    {
        if (is_carried())
            plug(cable, near, far);
        near.config.ring_bytes = 8 * ring_bytes;
        far.config.ring_bytes = 8 * ring_bytes;
        near.start();
        if (is_apart()) {
            far.start();
            ntbd::test::join(near, far);
        }
        at[0] = attach(near.config.socket);
        at[1] = attach((is_apart() ? far : near).config.socket);
        ASSERT_NE(at[0], nullptr);
        ASSERT_NE(at[1], nullptr);
    }
    void TearDown() override
    {
        for (int i = 0; i < 2; i++)
            close(i);
    }
    void close(int i)
    {
        if (side[i].connection != nullptr)
            side[i].connection->close(side[i].fd, true);
        side[i].connection = nullptr;
        Tcp::shut(tcp.fd[i]);
    }
    void claim()
    {
        for (int i = 0; i < 2; i++)
            side[i] = {Connection::claim(*at[i], tcp.fd[i], i == 1), tcp.fd[i]};
        ASSERT_NE(side[0].connection, nullptr);
        ASSERT_NE(side[1].connection, nullptr);
        ASSERT_TRUE(await([&] {
            at[0]->process();
            at[1]->process();
            return at[0]->figures().matched == 1 && at[1]->figures().matched == 1;
        }));
    }
    /// Until the direction goes by a ring.
    void upgrade(int from)
    {
        const Side &a = side[from];
        const Side &b = side[1 - from];
        const auto by_ring = [&] {
            at[from]->settle();
            return at[from]->figures().ring_sent;
        };
        const std::uint64_t before = by_ring();
        for (const char *text : {"first", "second"}) {
            a.put(text);
            EXPECT_EQ(b.get(strlen(text)), text);
        }
        while (is_carried() && by_ring() == before) {
            a.put("x");
            ASSERT_EQ(b.get(1), "x");
        }
        ASSERT_TRUE(a.connection->has_ring());
        ASSERT_TRUE(b.connection->has_ring());
    }

    /// What goes through daemons may be overtaken by what the kernel says.
    void await_bytes(int at_end, ssize_t bytes)
    {
        const Side &one = side[at_end];
        ASSERT_TRUE(await([&] { return one.connection->readable_bytes(one.fd) == bytes; }));
    }

    ntbd::Broker::Figures far_figures() { return (is_apart() ? far : near).now().figures; }

    static constexpr std::uint32_t ring_bytes = 16384; ///< of 8 times that, at first
    Folder folder;
    ntbd::test::Cable cable;
    Daemon near{folder.path + "/near.sock"};
    Daemon far{folder.path + "/far.sock"};
    Attachment *at[2] = {};
    Tcp tcp;
    Side side[2];
};

} // namespace ntb::socket::test

#endif
