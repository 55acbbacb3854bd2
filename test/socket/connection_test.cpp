// SPDX-License-Identifier: BSD-3-Clause
// Connections over loopback, with daemons: both ends at one, and at two that are joined.
#include "tcp.hpp"

#include <csignal>
#include <sys/epoll.h>
#include <sys/wait.h>

using namespace ntb::socket;
using namespace ntb::socket::test;
using ntbd::test::Daemon;
using ntbd::test::Folder;

namespace
{

class Connections : public testing::TestWithParam<bool>
{
protected:
    void SetUp() override
    {
        near.config.ring_bytes = ring_bytes;
        far.config.ring_bytes = ring_bytes;
        near.start();
        if (GetParam()) {
            far.start();
            ntbd::test::join(near, far);
        }
        at[0] = Attachment::create(near.config.socket.c_str());
        at[1] = Attachment::create((GetParam() ? far : near).config.socket.c_str());
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
        for (const char *text : {"first", "second"}) {
            a.put(text);
            EXPECT_EQ(b.get(strlen(text)), text);
        }
        ASSERT_TRUE(a.connection->has_ring());
        ASSERT_TRUE(b.connection->has_ring());
    }

    static constexpr std::uint32_t ring_bytes = 16384;
    Folder folder;
    Daemon near{folder.path + "/near.sock"};
    Daemon far{folder.path + "/far.sock"};
    Attachment *at[2] = {};
    Tcp tcp;
    Side side[2];
};

TEST_P(Connections, GoByTheRingFromTheSecondWrite)
{
    claim();
    side[0].put("by tcp");
    EXPECT_EQ(side[1].get(6), "by tcp");
    side[0].put("by ring");
    char none;
    EXPECT_EQ(recv(tcp.fd[1], &none, 1, MSG_DONTWAIT), -1); // the kernel has nothing
    EXPECT_EQ(side[1].get(7), "by ring");
}

TEST_P(Connections, EveryByteArrivesBothWays)
{
    claim();
    for (unsigned round = 0; round < 40; round++) {
        const std::string there = pattern(1 + round * 997 % 15000, round);
        const std::string back = pattern(1 + round * 331 % 9000, round + 1000);
        side[0].put(there);
        side[1].put(back);
        EXPECT_EQ(side[1].get(there.size()), there);
        EXPECT_EQ(side[0].get(back.size()), back);
    }
    EXPECT_TRUE(side[0].connection->has_ring());
    EXPECT_EQ(at[0]->figures().unseen, 0u);
}

TEST_P(Connections, TheEndComesBehindTheBytesOfTheRing)
{
    claim();
    upgrade(0);
    side[0].put("last");
    EXPECT_EQ(side[0].connection->shutdown(tcp.fd[0], SHUT_WR), 0);
    EXPECT_EQ(side[1].get(4), "last");
    EXPECT_EQ(side[1].outcome(), 0);
    EXPECT_EQ(side[1].outcome(), 0);
    // The other direction is not touched.
    side[1].put("still");
    EXPECT_EQ(side[0].get(5), "still");
    EXPECT_EQ(side[0].send("no more"), -EPIPE);
}

TEST_P(Connections, CloseIsAnEnd)
{
    claim();
    upgrade(0);
    side[0].put("last");
    close(0);
    EXPECT_EQ(side[1].get(4), "last");
    EXPECT_EQ(side[1].outcome(), 0);
}

INSTANTIATE_TEST_SUITE_P(Hosts, Connections, testing::Bool(),
                         [](const auto &one) { return one.param ? "TwoDaemons" : "OneDaemon"; });

} // namespace
