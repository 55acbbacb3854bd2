// SPDX-License-Identifier: BSD-3-Clause
// Waiting for connections: events, bells, dozes, signs.
#include "connections.hpp"

#include <atomic>
#include <thread>
#include <utility>

#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

using namespace ntb::socket;
using namespace ntb::socket::test;

namespace
{

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

} // namespace
