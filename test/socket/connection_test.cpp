// SPDX-License-Identifier: BSD-3-Clause
// Which way the bytes of a connection go, that all arrive, and the memory that they take.
#include "connections.hpp"

#include <cstring>
#include <fstream>

#include <sys/epoll.h>

using namespace ntb::socket;
using namespace ntb::socket::test;

namespace
{

TEST_P(Connections, GoByTheRingFromTheSecondWrite)
{
    if (is_carried())
        GTEST_SKIP() << "what is there at once is of memory that both share";
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
    for (const int from : {0, 1})
        if (is_carried())
            upgrade(from);
    for (unsigned round = 0; round < 40; round++) {
        const std::string there = pattern(1 + round * 997 % 15000, round);
        const std::string back = pattern(1 + round * 331 % 9000, round + 1000);
        side[0].put(there);
        side[1].put(back);
        EXPECT_TRUE(side[1].get(there.size()) == there);
        EXPECT_TRUE(side[0].get(back.size()) == back);
    }
    EXPECT_TRUE(side[0].connection->has_ring());
    EXPECT_EQ(at[0]->figures().unseen, 0u);
}

// Below the switch, behind it, round in the ring, in the wide one, and at the end. The pipe takes a
// part of what there is.
TEST_P(Connections, SpliceMovesEveryByteToAPipe)
{
    claim();
    if (is_carried())
        upgrade(0);
    int pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    for (unsigned round = 0; round < 60; round++) {
        const std::string sent = pattern(1 + round * 3331 % 15000, round);
        side[0].put(sent);
        std::string got(sent.size(), 0);
        std::size_t done = 0;
        EXPECT_TRUE(await([&] {
            const ssize_t moved =
                side[1].connection->splice(tcp.fd[1], pipes[1], 1 + round * 997 % 9000);
            if (moved > 0 && read(pipes[0], got.data() + done, got.size() - done) == moved)
                done += static_cast<std::size_t>(moved);
            return done == sent.size();
        }));
        EXPECT_TRUE(got == sent) << round;
    }
    EXPECT_EQ(side[1].connection->splice(tcp.fd[1], pipes[1], 1), -EAGAIN);
    EXPECT_TRUE(side[1].connection->has_ring());
    EXPECT_EQ(side[0].connection->shutdown(tcp.fd[0], SHUT_WR), 0);
    EXPECT_TRUE(await([&] { return side[1].connection->splice(tcp.fd[1], pipes[1], 1) == 0; }));
    ::close(pipes[0]);
    ::close(pipes[1]);
}

TEST_P(Connections, GoBackToTcpAndStayThere)
{
    claim();
    upgrade(0);
    side[0].put("in the ring");
    // Each has its part: the sender what it writes from now on, the receiver what lies in the ring.
    EXPECT_TRUE(await([&] {
        side[1].connection->look(tcp.fd[1]);
        return side[0].connection->leave(tcp.fd[0]);
    }));
    side[0].put(" and by tcp");
    EXPECT_EQ(side[1].get(22), "in the ring and by tcp");
    EXPECT_TRUE(await([&] {
        side[0].connection->look(tcp.fd[0]);
        return side[1].connection->leave(tcp.fd[1]);
    }));
    for (int i = 0; i < 3; i++) {
        side[0].put("native");
        char got[8];
        EXPECT_TRUE(await([&] { return recv(tcp.fd[1], got, 6, MSG_DONTWAIT) == 6; }));
    }
    EXPECT_FALSE(side[0].connection->has_ring());
    EXPECT_FALSE(side[1].connection->has_ring());
}

TEST_P(Connections, TheReceiverAsksForTcp)
{
    claim();
    upgrade(0);
    side[0].put("in the ring");
    EXPECT_FALSE(side[1].connection->leave(tcp.fd[1]));
    side[0].put(" and by tcp");
    EXPECT_EQ(side[1].get(22), "in the ring and by tcp");
    EXPECT_TRUE(await([&] {
        side[0].connection->look(tcp.fd[0]);
        return side[1].connection->leave(tcp.fd[1]);
    }));
}

TEST_P(Connections, TheDaemonGoesBackForASenderThatDoesNotRun)
{
    claim();
    upgrade(0);
    side[0].put("in the ring");
    EXPECT_FALSE(side[1].connection->leave(tcp.fd[1]));
    EXPECT_EQ(side[1].get(11), "in the ring");
    // Nobody makes a call on the sender's end.
    EXPECT_TRUE(await([&] { return side[1].connection->leave(tcp.fd[1]); }));
    side[0].put("by tcp");
    EXPECT_EQ(side[1].get(6), "by tcp");
    at[0]->settle();
    EXPECT_FALSE(side[0].connection->has_ring());
}

TEST_P(Connections, BytesThatNobodySawAreNotUpgraded)
{
    claim();
    ASSERT_EQ(::send(tcp.fd[0], "raw", 3, 0), 3);
    EXPECT_EQ(side[1].get(3), "raw");
    EXPECT_TRUE(await([&, i = 0]() mutable {
        side[0].put("seen");
        EXPECT_EQ(side[1].get(4), "seen");
        return ++i >= 20 && at[0]->figures().unseen >= 1;
    }));
    EXPECT_EQ(at[0]->figures().ring_sent, 0u);
    char raw[3];
    side[1].put("raw");
    side[1].connection->look(tcp.fd[1]);
    ASSERT_TRUE(await([&] { return recv(tcp.fd[0], raw, 3, MSG_DONTWAIT) == 3; }));
    EXPECT_TRUE(await([&] {
        side[1].put("seen");
        EXPECT_EQ(side[0].get(4), "seen");
        return at[0]->figures().unseen >= 2;
    }));
}

TEST_P(Connections, PeekTruncateAndCountWhatFollowsEachOther)
{
    if (is_carried())
        GTEST_SKIP() << "what is there at once is of memory that both share";
    claim();
    side[0].put("tcp");
    char got[32] = {};
    ASSERT_TRUE(await([&] { return side[1].receive(got, 1) == 1; }));
    side[1].connection->look(tcp.fd[1]); // grants
    side[0].put("ring");
    ASSERT_TRUE(side[0].connection->has_ring());
    EXPECT_TRUE(await([&] { return side[1].connection->readable_bytes(tcp.fd[1]) == 6; }));
    EXPECT_EQ(side[1].receive(got, 32, MSG_PEEK), 6);
    EXPECT_EQ(std::string(got, 6), "cpring");
    EXPECT_EQ(side[1].receive(got, 3, MSG_TRUNC), 3);
    EXPECT_EQ(side[1].receive(got, 32, MSG_PEEK), 3);
    EXPECT_EQ(std::string(got, 3), "ing");
    EXPECT_EQ(side[1].connection->readable_bytes(tcp.fd[1]), 3);
    EXPECT_EQ(side[1].receive(got, 32), 3);
    EXPECT_EQ(side[1].receive(got, 32), -EAGAIN);
}

TEST_P(Connections, UrgentDataGoByTcp)
{
    claim();
    upgrade(0);
    side[0].put("ring");
    EXPECT_EQ(side[0].send("u", MSG_OOB), 1);
    side[0].put("tcp");
    // Announced before what precedes them is read, and no read goes across them.
    EXPECT_TRUE(await([&] { return (side[1].connection->look(tcp.fd[1]) & EPOLLPRI) != 0; }));
    EXPECT_FALSE(side[1].connection->is_at_mark(tcp.fd[1]));
    char got[16] = {};
    EXPECT_EQ(side[1].receive(got, sizeof(got)), 4);
    EXPECT_EQ(std::string(got, 4), "ring");
    EXPECT_TRUE(side[1].connection->is_at_mark(tcp.fd[1]));
    char urgent = 0;
    EXPECT_TRUE(await([&] { return side[1].receive(&urgent, 1, MSG_OOB) == 1; }));
    EXPECT_EQ(urgent, 'u');
    EXPECT_EQ(side[1].get(3), "tcp");
}

TEST_P(Connections, TheDaemonListsThemWithTheirStatesAndBytes)
{
    claim();
    upgrade(0);
    side[0].put("by ring");
    EXPECT_EQ(side[1].get(7), "by ring");
    ntbd::test::Client one(near);
    ntbclient_entry entry = {};
    entry.size = sizeof(entry);
    ASSERT_EQ(ntbclient_list(one, 0, &entry, 1), 1);
    sockaddr_in names[2];
    for (int i = 0; i < 2; i++) {
        socklen_t bytes = sizeof(names[i]);
        getsockname(tcp.fd[i], reinterpret_cast<sockaddr *>(&names[i]), &bytes);
        EXPECT_EQ(entry.port[i], ntohs(names[i].sin_port));
        EXPECT_EQ(memcmp(entry.address[i] + 12, &names[i].sin_addr, 4), 0);
    }
    EXPECT_EQ(entry.claimed, 1u);
    EXPECT_EQ(entry.end, 0u);
    EXPECT_EQ(entry.state, std::uint32_t{NTBCLIENT_OPEN});
    EXPECT_EQ(entry.sending, std::uint32_t{NTBCLIENT_BY_RING});
    EXPECT_EQ(entry.receiving, std::uint32_t{NTBCLIENT_BY_TCP});
    if (!is_carried()) {
        EXPECT_EQ(entry.sent_by_tcp, strlen("first"));
        EXPECT_EQ(entry.sent, strlen("secondby ring"));
    }
    EXPECT_EQ(entry.carried, is_carried() ? 1u : 0u);
    EXPECT_EQ(entry.ring_bytes, 8 * ring_bytes);
}

// Bytes of the rings' memory that are there, by one of the mappings of it.
std::size_t resident()
{
    std::ifstream file("/proc/self/smaps");
    std::size_t most = 0;
    bool is_ours = false;
    for (std::string line; std::getline(file, line);) {
        if (line.find('-') < line.find(' ') && line.find(':') > line.find(' '))
            is_ours = line.find("ntbd-connection") != std::string::npos;
        else if (is_ours && line.rfind("Rss:", 0) == 0)
            most = std::max(most, std::stoul(line.substr(4)) * 1024);
    }
    return most;
}

TEST_P(Connections, OneThatIsIdleGivesItsRingsMemoryBack)
{
    claim();
    upgrade(0);
    upgrade(1);
    for (unsigned round = 0; round < 2; round++) {
        for (int from = 0; from < 2; from++) {
            const std::string sent =
                pattern(2 * ring_bytes - 1000, round * 2 + static_cast<unsigned>(from));
            for (std::size_t i = 0; i < sent.size(); i += 1000) {
                const std::string some = sent.substr(i, 1000);
                side[from].put(some);
                ASSERT_EQ(side[1 - from].get(some.size()), some);
            }
        }
        EXPECT_GE(resident(), 2 * ring_bytes);
        EXPECT_TRUE(await([] { return resident() <= 4096; })) << resident();
    }
}

// A program that sends before anybody reads gets as far as the whole ring allows, and what is read
// across both parts is one stream.
TEST_P(Connections, AStreamGoesOnInTheWholeRing)
{
    claim();
    upgrade(0);
    for (unsigned round = 0; round < 3; round++) {
        SCOPED_TRACE(round);
        const std::string sent = pattern(5 * ring_bytes + round, round);
        if (is_carried())
            side[0].put(sent);
        else
            ASSERT_EQ(side[0].send(sent), static_cast<ssize_t>(sent.size()));
        await_bytes(1, static_cast<ssize_t>(sent.size()));
        std::string peeked(2 * ring_bytes, '\0');
        EXPECT_EQ(side[1].receive(peeked.data(), peeked.size(), MSG_PEEK),
                  static_cast<ssize_t>(peeked.size()));
        EXPECT_TRUE(peeked == sent.substr(0, peeked.size()));
        EXPECT_GE(resident(), 5 * ring_bytes);
        const std::size_t part = round == 0 ? ring_bytes - 3000 : 100 + round;
        EXPECT_TRUE(side[1].get(part) == sent.substr(0, part));
        // With bytes of both parts in it, idle pages go and no others.
        EXPECT_TRUE(await([] { return resident() <= 5 * ring_bytes + 4 * 4096; })) << resident();
        EXPECT_TRUE(side[1].get(sent.size() - part) == sent.substr(part));
        EXPECT_TRUE(await([] { return resident() <= 4096; })) << resident();
    }
}

// What is not taken stays, however long it lies there.
TEST_P(Connections, UnreadBytesOutlastAnIdleTime)
{
    claim();
    upgrade(0);
    const std::string early = pattern(ring_bytes / 2, 1), late = pattern(100, 2);
    side[0].put(early);
    ASSERT_EQ(side[1].get(early.size()), early);
    side[0].put(late);
    EXPECT_TRUE(await([] { return resident() <= 3 * 4096; })) << resident();
    EXPECT_EQ(side[1].get(late.size()), late);
}

INSTANTIATE_TEST_SUITE_P(Hosts, Connections,
                         testing::Values(Hosts::One, Hosts::Direct, Hosts::Carried),
                         [](const auto &one) {
                             return one.param == Hosts::One      ? "OneDaemon"
                                    : one.param == Hosts::Direct ? "TwoDaemons"
                                                                 : "ThroughTwoDaemons";
                         });

} // namespace
