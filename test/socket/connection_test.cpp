// SPDX-License-Identifier: BSD-3-Clause
// Connections over loopback, with daemons: both ends at one, and at two that are joined.
#include "tcp.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <utility>

#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

using namespace ntb::socket;
using namespace ntb::socket::test;
using ntbd::test::Daemon;
using ntbd::test::Folder;

namespace
{

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
        at[0] = Attachment::create(near.config.socket.c_str());
        at[1] = Attachment::create((is_apart() ? far : near).config.socket.c_str());
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

TEST_P(Connections, UnreadBytesInTheRingResetThePeer)
{
    claim();
    upgrade(0);
    upgrade(1);
    side[0].put("unread");
    await_bytes(1, 6);
    close(1);
    EXPECT_EQ(side[0].outcome(), -ECONNRESET);
    EXPECT_EQ(side[0].outcome(), 0);
    EXPECT_EQ(side[0].send("x"), -EPIPE);
}

// As by TCP, where what was received survives the peer's RST.
TEST_P(Connections, WhoWritesToOneThatIsGoneReadsItsAnswerFirst)
{
    claim();
    upgrade(0);
    side[0].put("not taken");
    side[1].put("answer");
    close(1);
    ssize_t said;
    EXPECT_TRUE(await([&] { return (said = side[0].send("more")) < 0; }));
    EXPECT_EQ(side[0].get(6), "answer");
    // The error is reported once, here or there.
    if (said != -ECONNRESET) {
        EXPECT_EQ(side[0].outcome(), -ECONNRESET);
    }
    EXPECT_EQ(side[0].outcome(), 0);
}

// The peer's process has died with bytes in its ring, and an answer in the kernel.
TEST_P(Connections, TheResetForOneThatDiedComesBehindItsAnswer)
{
    claim();
    upgrade(0);
    side[0].put("not taken");
    side[1].put("answer");
    ::shutdown(at[1]->descriptor(), SHUT_RDWR);
    Tcp::shut(tcp.fd[1]);
    EXPECT_TRUE(await([&] { return (side[0].connection->look(tcp.fd[0]) & EPOLLERR) != 0; }));
    EXPECT_EQ(side[0].receive(reinterpret_cast<void *>(1), 6), -EFAULT);
    EXPECT_EQ(side[0].get(6), "answer");
    EXPECT_EQ(side[0].send("x"), -ECONNRESET);
    EXPECT_EQ(side[0].send("x"), -EPIPE);
    EXPECT_EQ(side[0].outcome(), 0);
}

TEST_P(Connections, AResetComesBehindTheBytesOfTheRing)
{
    claim();
    upgrade(0);
    side[0].put("before");
    await_bytes(1, 6);
    const linger hard = {1, 0};
    setsockopt(tcp.fd[0], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(0);
    EXPECT_EQ(side[1].get(6), "before");
    EXPECT_EQ(side[1].outcome(), -ECONNRESET);
    EXPECT_EQ(side[1].outcome(), 0);
}

TEST_P(Connections, OneThatIsBrokenOffIsResetOnceAndThenAtItsEnd)
{
    claim();
    upgrade(0); // the other direction has no ring
    side[0].connection->abort(tcp.fd[0]);
    for (const Side &one : side) {
        EXPECT_EQ(one.outcome(), -ECONNRESET);
        EXPECT_EQ(one.outcome(), 0);
        EXPECT_EQ(one.outcome(), 0);
    }
}

TEST_P(Connections, WhoHasReadAResetWritesIntoNoRing)
{
    claim();
    upgrade(0);
    side[1].put("by tcp");
    EXPECT_EQ(side[0].get(6), "by tcp"); // and granted
    side[0].connection->abort(tcp.fd[0]);
    for (const Side &one : side) {
        EXPECT_EQ(one.outcome(), -ECONNRESET);
        EXPECT_EQ(one.outcome(), 0);
        EXPECT_EQ(one.send("x"), -EPIPE);
    }
}

TEST_P(Connections, TheDaemonSaysTheEndOfAShutdownThatNobodySaw)
{
    claim();
    upgrade(0);
    side[0].put("last");
    ASSERT_EQ(::shutdown(tcp.fd[0], SHUT_WR), 0);
    EXPECT_EQ(side[1].get(4), "last");
    EXPECT_EQ(side[1].outcome(), 0);
}

TEST_P(Connections, AGrantThatComesAfterTheEndIsReturned)
{
    claim();
    side[0].put("one");
    EXPECT_EQ(side[1].get(3), "one"); // and grants with the next look
    ASSERT_TRUE(await([&] {
        side[1].connection->look(tcp.fd[1]);
        return side[1].connection->has_ring();
    }));
    ASSERT_EQ(::shutdown(tcp.fd[0], SHUT_WR), 0);
    EXPECT_EQ(side[1].outcome(), 0);
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
    EXPECT_EQ(side[1].get(4), "ring");
    char urgent = 0;
    EXPECT_TRUE(await([&] { return side[1].receive(&urgent, 1, MSG_OOB) == 1; }));
    EXPECT_EQ(urgent, 'u');
    EXPECT_EQ(side[1].get(3), "tcp");
}

TEST_P(Connections, AFullRingTakesAPartAndSaysWhenThereIsRoom)
{
    if (is_carried())
        GTEST_SKIP() << "what is there at once is of memory that both share";
    claim();
    upgrade(0);
    const std::string bytes = pattern(9 * ring_bytes, 7);
    // What was taken is reported by quarters of the ring.
    const ssize_t sent = side[0].send(bytes);
    EXPECT_GE(sent, static_cast<ssize_t>(8 * ring_bytes - ring_bytes / 4));
    EXPECT_EQ(side[0].send(bytes), -EAGAIN);
    EXPECT_EQ(side[0].connection->look(tcp.fd[0]) & EPOLLOUT, 0u);
    const std::uint64_t before = side[0].connection->arrivals_out();
    side[0].connection->arm(EPOLLOUT);
    const auto all = static_cast<std::size_t>(sent);
    EXPECT_TRUE(side[1].get(all) == bytes.substr(0, all));
    pollfd bell = {side[0].connection->bell(), POLLIN, 0};
    EXPECT_EQ(poll(&bell, 1, 30000), 1);
    side[0].connection->disarm(EPOLLOUT);
    EXPECT_EQ(poll(&bell, 1, 0), 0);
    EXPECT_NE(side[0].connection->look(tcp.fd[0]) & EPOLLOUT, 0u);
    EXPECT_NE(side[0].connection->arrivals_out(), before);
}

TEST_P(Connections, WhoWaitsForRoomHearsThatTheKernelHasReset)
{
    claim();
    upgrade(0);
    while (side[0].send(pattern(ring_bytes, 3)) > 0) {
    }
    const linger hard = {1, 0};
    setsockopt(tcp.fd[1], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    Tcp::shut(tcp.fd[1]); // no one has seen it
    const std::uint32_t over = EPOLLOUT | EPOLLHUP | EPOLLERR;
    EXPECT_TRUE(await([&] { return (side[0].connection->look(tcp.fd[0]) & over) == over; }));
    EXPECT_EQ(side[0].send("x"), -ECONNRESET);
    EXPECT_EQ(side[0].send("x"), -EPIPE);
}

TEST_P(Connections, WhoSleepsIsRungOnceAndWhoPollsNever)
{
    if (is_carried())
        GTEST_SKIP() << "what is there at once is of memory that both share";
    claim();
    upgrade(0);
    const auto rings = at[0]->figures().rings;
    for (int i = 0; i < 10; i++) {
        side[0].put("polled");
        EXPECT_EQ(side[1].get(6), "polled");
    }
    EXPECT_EQ(at[0]->figures().rings, rings);
    EXPECT_EQ(side[1].connection->look(tcp.fd[1]), std::uint32_t{EPOLLOUT});
    const std::uint64_t before = side[1].connection->arrivals_in();
    side[1].connection->arm(EPOLLIN);
    EXPECT_EQ(side[1].connection->look(tcp.fd[1]) & EPOLLIN, 0u);
    side[0].put("a");
    side[0].put("b");
    EXPECT_EQ(at[0]->figures().rings, rings + 1);
    pollfd bell = {side[1].connection->bell(), POLLIN, 0};
    EXPECT_EQ(poll(&bell, 1, 30000), 1);
    EXPECT_NE(side[1].connection->arrivals_in(), before);
    side[1].connection->disarm(EPOLLIN);
    EXPECT_EQ(poll(&bell, 1, 0), 0);
    EXPECT_NE(side[1].connection->look(tcp.fd[1]) & EPOLLIN, 0u);
    EXPECT_EQ(side[1].get(2), "ab");
}

// Two that always sleep, one stream each way at a time: a wake-up that is lost is a wait for ever.
TEST_P(Connections, NoWakeUpIsLost)
{
    claim();
    constexpr std::size_t total = 20000000;
    const std::string stream = pattern(total, 3);
    const auto sleep_for = [](const Side &one, std::uint32_t events) {
        static std::atomic<unsigned> sleeps = 0;
        std::uint32_t value = 0;
        // Each third sleep, so that both kinds are there at a time.
        if (const std::uint32_t *word =
                sleeps.fetch_add(1) % 3 == 0 ? one.connection->doze(events, value) : nullptr;
            word != nullptr) {
            const timespec long_time = {30, 0};
            if ((one.connection->look(one.fd) & (events | EPOLLHUP | EPOLLERR)) == 0 &&
                syscall(SYS_futex, word, FUTEX_WAIT, value, &long_time, nullptr, 0) != 0) {
                EXPECT_EQ(errno, EAGAIN) << "it waits for ever";
            }
            one.connection->wake(events);
            return;
        }
        one.connection->arm(events);
        std::uint32_t ready = one.connection->look(one.fd);
        if ((ready & (events | EPOLLHUP | EPOLLERR)) == 0) {
            const auto kernel = one.connection->kernel_part() & (events | EPOLLRDHUP);
            pollfd all[] = {{one.connection->bell(), POLLIN, 0},
                            {one.fd, static_cast<short>(kernel), 0}};
            EXPECT_GT(::poll(all, 2, 30000), 0) << "it waits for ever";
            one.connection->kernel_said(static_cast<std::uint16_t>(all[1].revents));
        }
        one.connection->disarm(events);
    };
    const auto send_all = [&](const Side &one) {
        for (std::size_t done = 0, n = 1; done < total; n = n * 7 % 6007 + 1) {
            const ssize_t sent = one.send(stream.substr(done, n));
            ASSERT_TRUE(sent > 0 || sent == -EAGAIN) << sent;
            if (sent == -EAGAIN)
                sleep_for(one, EPOLLOUT);
            else
                done += static_cast<std::size_t>(sent);
        }
    };
    const auto receive_all = [&](const Side &one) {
        std::vector<char> bytes(5000);
        for (std::size_t done = 0; done < total;) {
            const ssize_t got = one.receive(bytes.data(), bytes.size());
            ASSERT_TRUE(got > 0 || got == -EAGAIN) << got;
            if (got == -EAGAIN) {
                sleep_for(one, EPOLLIN);
                continue;
            }
            ASSERT_EQ(stream.compare(done, static_cast<std::size_t>(got), bytes.data(),
                                     static_cast<std::size_t>(got)),
                      0);
            done += static_cast<std::size_t>(got);
        }
    };
    // All four at once: each end sleeps on one bell for both directions.
    std::thread threads[] = {std::thread(send_all, side[0]), std::thread(receive_all, side[1]),
                             std::thread(send_all, side[1]), std::thread(receive_all, side[0])};
    for (std::thread &one : threads)
        one.join();
    at[0]->settle();
    EXPECT_GT(at[0]->figures().ring_sent, 0u)
        << at[0]->figures().unseen << " " << at[1]->figures().unseen;
}

TEST_P(Connections, SignsChangeWithWhatALookShows)
{
    if (is_carried())
        GTEST_SKIP() << "what is there at once is of memory that both share";
    claim();
    EXPECT_EQ(side[1].connection->signs(EPOLLIN), 0u) << "the kernel has the bytes";
    upgrade(0);
    Connection &receiver = *side[1].connection;
    auto changes = [&receiver, before = std::uint64_t{0}]() mutable {
        const std::uint64_t now = receiver.signs(EPOLLIN);
        return std::exchange(before, now) != now;
    };
    EXPECT_TRUE(changes());
    EXPECT_FALSE(changes());
    side[0].put("x");
    EXPECT_TRUE(changes()) << "bytes";
    EXPECT_EQ(side[1].get(1), "x");
    EXPECT_FALSE(changes()) << "they were read here";
    receiver.kernel_said(EPOLLRDHUP);
    EXPECT_TRUE(changes()) << "an edge";
    EXPECT_EQ(side[0].connection->shutdown(tcp.fd[0], SHUT_WR), 0);
    EXPECT_TRUE(changes()) << "the end";
    EXPECT_EQ(side[1].outcome(), 0);
    EXPECT_EQ(receiver.signs(EPOLLIN), 0u);
}

TEST_P(Connections, WhoDozesIsWokenByBytesAndByAnEnd)
{
    claim();
    upgrade(0);
    std::uint32_t value = 0;
    for (const bool ends : {false, true}) {
        const std::uint32_t *word = side[1].connection->doze(EPOLLIN, value);
        ASSERT_NE(word, nullptr);
        EXPECT_EQ(ntbc::load(*word), value);
        if (ends)
            side[0].connection->shutdown(tcp.fd[0], SHUT_WR);
        else
            side[0].put("x");
        EXPECT_TRUE(await([&] { return ntbc::load(*word) != value; }));
        side[1].connection->wake(EPOLLIN);
    }
    EXPECT_EQ(side[1].get(1), "x");
    EXPECT_EQ(side[1].outcome(), 0);
}

TEST_P(Connections, WhoIsAskedToGoBackWakes)
{
    claim();
    upgrade(0);
    upgrade(1);
    Connection &asked = *side[1].connection;
    std::uint32_t value = 0;
    const std::uint32_t *word = asked.doze(EPOLLIN, value);
    ASSERT_NE(word, nullptr);
    const std::uint64_t signs = asked.signs(EPOLLIN);
    side[0].connection->leave(tcp.fd[0]);
    EXPECT_TRUE(await([&] { return ntbc::load(*word) != value; }));
    EXPECT_TRUE(await([&] { return asked.signs(EPOLLIN) != signs; }));
    asked.wake(EPOLLIN);
}

TEST_P(Connections, TheEventsOfAnEnd)
{
    claim();
    upgrade(0);
    upgrade(1);
    side[0].connection->shutdown(tcp.fd[0], SHUT_WR);
    const std::uint32_t half = EPOLLIN | EPOLLOUT | EPOLLRDHUP;
    EXPECT_TRUE(await([&] { return side[1].connection->look(tcp.fd[1]) == half; }));
    EXPECT_EQ(side[1].outcome(), 0);
    EXPECT_EQ(side[1].connection->look(tcp.fd[1]), half);
    side[1].connection->shutdown(tcp.fd[1], SHUT_WR);
    EXPECT_EQ(side[1].connection->look(tcp.fd[1]), half | EPOLLHUP);
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

TEST_P(Connections, ARevokedOneDeliversWhatItHasAndResets)
{
    claim();
    upgrade(0);
    side[0].put("kept");
    await_bytes(1, 4);
    ntbd::test::Client operators(near);
    ntbclient_entry entry = {};
    entry.size = sizeof(entry);
    ASSERT_EQ(ntbclient_list(operators, 0, &entry, 1), 1);
    ASSERT_EQ(ntbclient_revoke(operators, entry.id), 0);
    EXPECT_TRUE(await([&] {
        const ssize_t sent = side[0].send("x");
        return sent < 0 && sent != -EAGAIN;
    }));
    const std::string got = side[1].get(4);
    EXPECT_EQ(got.substr(0, 4), "kept");
    ssize_t said;
    char byte;
    EXPECT_TRUE(await([&] { return (said = side[1].receive(&byte, 1)) != 1 && said != -EAGAIN; }));
    EXPECT_EQ(said, -ECONNRESET);
}

TEST_P(Connections, TheDaemonsEndResetsUpgradedOnes)
{
    claim();
    upgrade(0);
    side[0].put("kept");
    await_bytes(1, 4);
    near.stop();
    EXPECT_TRUE(await([&] {
        at[0]->process();
        at[1]->process();
        return side[0].send("x") < 0;
    }));
    EXPECT_EQ(side[1].get(4).substr(0, 4), "kept");
    ssize_t said;
    char byte;
    EXPECT_TRUE(await([&] { return (said = side[1].receive(&byte, 1)) != 1 && said != -EAGAIN; }));
    EXPECT_EQ(said, -ECONNRESET);
}

TEST_P(Connections, TheDaemonsEndLeavesOthersAlone)
{
    claim();
    near.stop();
    far.stop();
    for (int i = 0; i < 3; i++) {
        at[0]->process();
        at[1]->process();
        side[0].put("still");
        EXPECT_EQ(side[1].get(5), "still");
    }
    EXPECT_FALSE(side[1].connection->has_ring());
}

TEST_P(Connections, AForkedChildSharesThemAndTheLastCloseIsTheEnd)
{
    claim();
    upgrade(0);
    at[0]->before_fork();
    const pid_t child = fork();
    if (child == 0) {
        at[0]->after_fork_in_child();
        close(1); // the accepted end is not the child's business: it does not learn of the fork
        side[0].put("of the child");
        side[0].connection->close(tcp.fd[0], true);
        _exit(0);
    }
    at[0]->after_fork_in_parent(child);
    EXPECT_EQ(side[1].get(12), "of the child");
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    side[0].put(" and of the parent");
    EXPECT_EQ(side[1].get(18), " and of the parent");
    close(0);
    EXPECT_EQ(side[1].outcome(), 0);
}

TEST_P(Connections, AChildThatOnlyHoldsThemDelaysTheEndAsOfTcp)
{
    claim();
    upgrade(0);
    int gate[2];
    ASSERT_EQ(pipe(gate), 0);
    at[0]->before_fork();
    const pid_t child = fork();
    if (child == 0) {
        at[0]->after_fork_in_child();
        ::close(tcp.fd[1]);
        char byte;
        ::close(gate[1]);
        _exit(read(gate[0], &byte, 1) == 0 ? 0 : 1);
    }
    at[0]->after_fork_in_parent(child);
    ::close(gate[0]);
    side[0].put("last");
    close(0);
    EXPECT_EQ(side[1].get(4), "last");
    char byte;
    EXPECT_EQ(side[1].receive(&byte, 1), -EAGAIN);
    ::close(gate[1]);
    EXPECT_EQ(side[1].outcome(), 0); // no one said it but the daemon
    waitpid(child, nullptr, 0);
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

// The daemon says what was taken, and wakes no one: that is the reader's, by quarters of the ring.
TEST_P(Connections, WhoWaitsForRoomIsWokenWhateverTheDaemonHasSaid)
{
    if (is_carried())
        GTEST_SKIP() << "what is there at once is of memory that both share";
    claim();
    upgrade(0);
    const auto fill = [this] {
        while (side[0].send(pattern(ring_bytes, 4)) > 0) {
        }
    };
    fill();
    side[1].get(ring_bytes + 1000); // what the ring began with is read, and said
    fill();
    side[0].connection->arm(EPOLLOUT);
    const std::size_t some = 8 * ring_bytes / 4 - 1000;
    side[1].get(some);
    EXPECT_TRUE(await([&] { return side[0].send("x") == 1; })); // it has said so
    pollfd bell = {side[0].connection->bell(), POLLIN, 0};
    EXPECT_EQ(poll(&bell, 1, 0), 0);
    side[1].get(some);
    EXPECT_EQ(poll(&bell, 1, 30000), 1);
    side[0].connection->disarm(EPOLLOUT);
}

TEST_P(Connections, ManyThatAreShortLeaveNothing)
{
    const auto descriptors = [] {
        std::size_t n = 0;
        for ([[maybe_unused]] const auto &one :
             std::filesystem::directory_iterator("/proc/self/fd"))
            n++;
        return n;
    };
    std::size_t before = 0;
    for (std::uint64_t round = 1; round <= 300; round++) {
        Tcp one;
        Side ends[2];
        for (int i = 0; i < 2; i++)
            ends[i] = {Connection::claim(*at[i], one.fd[i], i == 1), one.fd[i]};
        if (round % 3 != 0) {
            ASSERT_TRUE(await([&] {
                at[0]->process();
                at[1]->process();
                char byte;
                ends[1].receive(&byte, 1);
                return ends[0].send("x") == 1 && ends[0].connection->has_ring();
            }));
        }
        for (int i = 0; i < 2; i++)
            ends[i].connection->close(one.fd[i], true);
        if (round == 100)
            before = descriptors();
    }
    EXPECT_TRUE(await([&] {
        return near.now().figures.claimed == 0 && far_figures().claimed == 0 &&
               near.now().figures.connecting == 0 && descriptors() <= before;
    })) << descriptors()
        << " of " << before;
}

// Streams through two daemons, in the middle of which something happens. Who reads gets a prefix of
// what was accepted, its end only where that was all, and nobody waits for ever.
class Carried : public testing::Test
{
protected:
    static constexpr std::size_t total = 3000000;

    Carried()
    {
        plug(cable, near, far);
        for (Daemon *one : {&near, &far}) {
            one->config.ring_bytes = 16384;
            one->start();
        }
        join(near, far);
    }
    struct Outcome {
        ssize_t sent = 0;     ///< accepted
        ssize_t received = 0; ///< and right
        ssize_t sender_said = 0, receiver_said = 0;
        bool by_ring = false;
    };
    void send_all(const Side &one, Outcome &outcome)
    {
        const auto until = std::chrono::steady_clock::now() + ntbd::test::patience;
        for (std::size_t n = 1; outcome.sent < static_cast<ssize_t>(total); n = n * 7 % 6007 + 1) {
            const ssize_t some = one.send(stream.substr(static_cast<std::size_t>(outcome.sent), n));
            if (some == -EAGAIN && std::chrono::steady_clock::now() < until) {
                std::this_thread::yield();
                continue;
            }
            if (some < 0) {
                outcome.sender_said = some;
                return;
            }
            outcome.sent += some;
        }
        one.connection->shutdown(one.fd, SHUT_WR);
    }
    void receive_all(const Side &one, Outcome &outcome)
    {
        std::vector<char> bytes(5000);
        const auto until = std::chrono::steady_clock::now() + ntbd::test::patience;
        for (;;) {
            const ssize_t some = one.receive(bytes.data(), bytes.size());
            outcome.by_ring = outcome.by_ring || one.connection->has_ring();
            if (some == -EAGAIN && std::chrono::steady_clock::now() < until) {
                std::this_thread::yield();
                continue;
            }
            if (some <= 0) {
                outcome.receiver_said = some;
                return;
            }
            ASSERT_EQ(stream.compare(static_cast<std::size_t>(outcome.received),
                                     static_cast<std::size_t>(some), bytes.data(),
                                     static_cast<std::size_t>(some)),
                      0);
            outcome.received += some;
        }
    }
    /// @param happens  once so many bytes were received
    Outcome run(std::size_t at, const std::function<void(Side *)> &happens)
    {
        std::unique_ptr<Tcp> tcp;
        Side side[2];
        const auto close = [&] {
            for (Side &one : side)
                if (one.connection != nullptr)
                    std::exchange(one.connection, nullptr)->close(one.fd, true);
        };
        // What the devices say of the last loss may come after the daemons have met again: then
        // these have no rings, and others are tried.
        EXPECT_TRUE(await([&] {
            if (!near.now().peer || !far.now().peer)
                introduce(near, far);
            close();
            tcp = std::make_unique<Tcp>();
            Attachment *ends[] = {Attachment::create(near.config.socket.c_str()),
                                  Attachment::create(far.config.socket.c_str())};
            for (int i = 0; i < 2; i++)
                side[i] = {Connection::claim(*ends[i], tcp->fd[i], i == 1), tcp->fd[i]};
            for (int i = 0; i < 3000 && ends[0]->figures().ring_sent == 0; i++) {
                side[i % 2].put("x");
                EXPECT_EQ(side[1 - i % 2].get(1), "x");
                ends[0]->settle();
            }
            return ends[0]->figures().ring_sent > 0;
        }));
        Outcome outcome;
        std::thread sender([&] { send_all(side[0], outcome); });
        std::thread receiver([&] { receive_all(side[1], outcome); });
        EXPECT_TRUE(await([&] {
            return std::atomic_ref(outcome.received).load() >= static_cast<ssize_t>(at) ||
                   std::atomic_ref(outcome.receiver_said).load() != 0;
        }));
        happens(side);
        sender.join();
        receiver.join();
        EXPECT_TRUE(outcome.by_ring);
        EXPECT_NE(outcome.receiver_said, -EAGAIN) << "it waits for ever";
        EXPECT_NE(outcome.sender_said, -EAGAIN) << "it waits for ever";
        EXPECT_LE(outcome.received, outcome.sent);
        if (outcome.receiver_said == 0) {
            EXPECT_EQ(outcome.received, outcome.sent);
        }
        close();
        return outcome;
    }

    const std::string stream = pattern(total, 9);
    Folder folder;
    ntbd::test::Cable cable;
    Daemon near{folder.path + "/near.sock"};
    Daemon far{folder.path + "/far.sock"};
};

TEST_F(Carried, EndsOfTheirWayAtAnyTime)
{
    std::mt19937 random(3);
    for (int round = 0; round < 24; round++) {
        SCOPED_TRACE(round);
        const std::size_t at = random() % (total / 2);
        Daemon &daemon = round % 2 == 0 ? near : far;
        const bool is_cut = round % 3 == 0;
        run(at, [&](Side *) {
            if (is_cut)
                near.bridge->cut();
            else
                daemon.stop();
        });
        if (!is_cut)
            daemon.start();
    }
}

TEST_F(Carried, GoBackToTcpAtAnyTime)
{
    std::mt19937 random(4);
    for (int round = 0; round < 24; round++) {
        SCOPED_TRACE(round);
        const Outcome outcome = run(random() % (total / 2), [&](Side *side) {
            Side &one = side[round % 2], &other = side[1 - round % 2];
            EXPECT_TRUE(await([&] {
                other.connection->look(other.fd); // it answers what it is asked
                return one.connection->leave(one.fd);
            }));
        });
        EXPECT_EQ(outcome.receiver_said, 0);
        EXPECT_EQ(outcome.received, static_cast<ssize_t>(total));
    }
}

// Whatever the daemon does meanwhile: this one never takes what it is shown.
class Claims : public testing::Test
{
protected:
    Claims()
    {
        sockaddr_un address = {};
        address.sun_family = AF_UNIX;
        const std::string path = folder.path + "/deaf.sock";
        path.copy(address.sun_path, sizeof(address.sun_path) - 1);
        EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof(address)), 0);
        EXPECT_EQ(listen(listener, 1), 0);
        Connection *const one =
            Connection::claim(*Attachment::create(path.c_str()), tcp.fd[0], false);
        EXPECT_NE(one, nullptr);
        here = {one, tcp.fd[0]};
        there = {nullptr, tcp.fd[1]};
        here.put("first");
    }
    ~Claims() override { ::close(listener); }
    /// What the other end is shown right after it.
    short close()
    {
        here.connection->close(tcp.fd[0], true);
        Tcp::shut(tcp.fd[0]);
        pollfd shown = {tcp.fd[1], POLLRDHUP, 0};
        poll(&shown, 1, 0);
        return shown.revents;
    }

    const Folder folder;
    const int listener = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    Tcp tcp;
    Side here, there;
};

TEST_F(Claims, AnEndDoesNotWaitForTheDaemon)
{
    EXPECT_EQ(close(), POLLRDHUP);
    EXPECT_EQ(there.get(5), "first");
    EXPECT_EQ(there.outcome(), 0);
    // No one reads there any more, as after any close.
    EXPECT_EQ(there.send("more"), 4);
    EXPECT_TRUE(await([this] { return there.send("x") == -EPIPE; }));
}

TEST_F(Claims, AResetDoesNotWaitForTheDaemon)
{
    const linger hard = {1, 0};
    setsockopt(tcp.fd[0], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    EXPECT_NE(close() & POLLERR, 0);
    EXPECT_EQ(there.get(5), "first");
    EXPECT_EQ(there.outcome(), -ECONNRESET);
}

TEST_F(Claims, TheResetForUnreadBytesDoesNotWaitForTheDaemon)
{
    there.put("unread");
    EXPECT_NE(close() & POLLERR, 0);
    EXPECT_EQ(there.get(5), "first");
    EXPECT_EQ(there.outcome(), -ECONNRESET);
}

INSTANTIATE_TEST_SUITE_P(Hosts, Connections,
                         testing::Values(Hosts::One, Hosts::Direct, Hosts::Carried),
                         [](const auto &one) {
                             return one.param == Hosts::One      ? "OneDaemon"
                                    : one.param == Hosts::Direct ? "TwoDaemons"
                                                                 : "ThroughTwoDaemons";
                         });

} // namespace
