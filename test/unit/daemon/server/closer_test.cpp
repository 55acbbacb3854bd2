// SPDX-License-Identifier: BSD-3-Clause
#include "server/closer.hpp"

#include <condition_variable>
#include <cstring>
#include <gtest/gtest.h>
#include <mutex>
#include <poll.h>
#include <set>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace ntbd;

namespace
{
constexpr uid_t own = 50;
constexpr uid_t hostile = 100;
constexpr uid_t good = 101;
constexpr int sticks = 1000; // numbers from here on wait to be released

/// Stands in for the system. A thread of a closer may be in it after the closer's end.
struct System {
    std::mutex lock;
    std::condition_variable changes;
    bool released = false;
    std::set<int> closed;
    std::set<std::thread::id> threads;

    void close(int fd)
    {
        std::unique_lock held(lock);
        changes.wait(held, [&] { return fd < sticks || released; });
        closed.insert(fd);
        threads.insert(std::this_thread::get_id());
        changes.notify_all();
    }
    void release()
    {
        const std::lock_guard held(lock);
        released = true;
        changes.notify_all();
    }
    void await_closed(size_t count)
    {
        std::unique_lock held(lock);
        changes.wait(held, [&] { return closed.size() >= count; });
    }
    size_t count()
    {
        const std::lock_guard held(lock);
        return closed.size();
    }
    bool is_released()
    {
        const std::lock_guard held(lock);
        return released;
    }
    bool has_closed(int fd)
    {
        const std::lock_guard held(lock);
        return closed.count(fd) != 0;
    }
};

class Closers : public testing::Test
{
protected:
    std::unique_ptr<Closer> make()
    {
        return std::make_unique<Closer>(own, [to = system](int fd) { to->close(fd); });
    }
    /// Until it says that something has changed.
    static void await(const Closer &closer)
    {
        pollfd one = {closer.fd(), POLLIN, 0};
        ASSERT_EQ(poll(&one, 1, -1), 1);
    }
    static bool is_quiet(const Closer &closer)
    {
        pollfd one = {closer.fd(), POLLIN, 0};
        return poll(&one, 1, 0) == 0;
    }

    std::shared_ptr<System> system = std::make_shared<System>();
    std::unique_ptr<Closer> closer = make();
};

TEST_F(Closers, CloseOfTheTrustedAtOnce)
{
    for (const uid_t uid : {uid_t{0}, own}) {
        EXPECT_TRUE(closer->trusts(uid));
        closer->close(uid, static_cast<int>(uid), 7);
        EXPECT_TRUE(system->has_closed(static_cast<int>(uid)));
    }
    EXPECT_EQ(system->threads, std::set{std::this_thread::get_id()});
    EXPECT_FALSE(closer->trusts(good));
    EXPECT_TRUE(is_quiet(*closer));
    EXPECT_TRUE(closer->take_closed().empty());
}

TEST_F(Closers, GoOnForOthersWhileOneIsStuck)
{
    closer->close(hostile, sticks);
    for (int i = 1; i <= 200; i++)
        closer->close(good, i);
    system->await_closed(200);
    EXPECT_FALSE(system->has_closed(sticks));
    EXPECT_EQ(system->threads.count(std::this_thread::get_id()), 0u);
    system->release();
    system->await_closed(201);
}

TEST_F(Closers, SayWhatIsClosed)
{
    closer->close(good, 1, 11);
    await(*closer);
    EXPECT_EQ(closer->take_closed(), std::vector<uint64_t>{11});
    EXPECT_TRUE(system->has_closed(1));
    EXPECT_TRUE(is_quiet(*closer));
    closer->close(hostile, sticks, 12);
    closer->close(good, 2, 13);
    await(*closer);
    EXPECT_EQ(closer->take_closed(), std::vector<uint64_t>{13});
    system->release();
    await(*closer);
    EXPECT_EQ(closer->take_closed(), std::vector<uint64_t>{12});
}

// As one that asks about a socket whose user keeps its lock.
TEST_F(Closers, LookBeforeTheyClose)
{
    std::thread::id looked;
    const auto look = [&, to = system](int fd) {
        EXPECT_FALSE(to->has_closed(fd));
        looked = std::this_thread::get_id();
    };
    closer->close(own, 1, 0, look);
    EXPECT_EQ(looked, std::this_thread::get_id());
    EXPECT_TRUE(system->has_closed(1));
    closer->close(hostile, 2, 12, [to = system](int) { to->close(sticks); });
    closer->close(good, 3, 13, look);
    await(*closer);
    EXPECT_EQ(closer->take_closed(), std::vector<uint64_t>{13});
    EXPECT_NE(looked, std::this_thread::get_id());
    EXPECT_FALSE(system->has_closed(2));
    system->release();
    await(*closer);
    EXPECT_EQ(closer->take_closed(), std::vector<uint64_t>{12});
    EXPECT_TRUE(system->has_closed(2));
}

TEST_F(Closers, SayWhoIsBehind)
{
    const int most = static_cast<int>(Closer::pending_max);
    for (int i = 0; i < most; i++) {
        EXPECT_FALSE(closer->is_behind(hostile));
        closer->close(hostile, sticks + i);
    }
    EXPECT_TRUE(closer->is_behind(hostile));
    EXPECT_FALSE(closer->is_behind(good));
    EXPECT_TRUE(is_quiet(*closer));
    system->release();
    await(*closer);
    system->await_closed(Closer::pending_max);
    EXPECT_FALSE(closer->is_behind(hostile));
}

// As a TCP socket that lingers: until there is a signal.
TEST_F(Closers, InterruptWhereThereAreTooMany)
{
    Closer busy(own, [to = system](int fd) {
        if (!to->is_released())
            poll(nullptr, 0, -1);
        to->close(fd);
    });
    int pushed = 0;
    while (pushed < static_cast<int>(Closer::pending_most))
        busy.close(hostile, pushed++);
    // None is interrupted so far; a signal that comes between two closes is lost.
    EXPECT_EQ(system->count(), 0u);
    while (system->count() < 10)
        busy.close(hostile, pushed++);
    system->release();
    for (const size_t before = system->count(); system->count() == before;)
        busy.close(hostile, pushed++);
    system->await_closed(static_cast<size_t>(pushed));
}

// A thread that is about to end loses nothing.
TEST_F(Closers, BeginAgainAfterTheEndOfAThread)
{
    Closer restless(
        own, [to = system](int fd) { to->close(fd); }, std::chrono::milliseconds(0));
    for (int round = 1; round <= 500; round++) {
        restless.close(good, round, static_cast<uint64_t>(round));
        await(restless);
        EXPECT_EQ(restless.take_closed(), std::vector<uint64_t>{static_cast<uint64_t>(round)});
    }
    EXPECT_EQ(system->closed.size(), 500u);
}

TEST_F(Closers, EndWhileOneIsStuck)
{
    closer->close(hostile, sticks);
    closer->close(hostile, sticks + 1);
    closer->close(good, 1);
    system->await_closed(1);
    closer.reset();
    EXPECT_FALSE(system->has_closed(sticks));
    // Nothing is lost by the end.
    system->release();
    system->await_closed(3);
}

/// Real sockets, and a user who is behind.
class CloserOfSockets : public Closers
{
protected:
    void SetUp() override
    {
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        for (size_t i = 0; i < Closer::pending_max; i++)
            closer->close(hostile, sticks);
    }
    void TearDown() override
    {
        system->release();
        closer.reset();
        for (const int fd : ends)
            ::close(fd);
    }
    void send(size_t bytes, bool with_descriptor)
    {
        char data[16] = {};
        iovec part = {data, bytes};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
        msghdr header = {};
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        if (with_descriptor) {
            header.msg_control = control;
            header.msg_controllen = sizeof(control);
            cmsghdr *rights = CMSG_FIRSTHDR(&header);
            rights->cmsg_level = SOL_SOCKET;
            rights->cmsg_type = SCM_RIGHTS;
            rights->cmsg_len = CMSG_LEN(sizeof(int));
            memcpy(CMSG_DATA(rights), &ends[0], sizeof(int));
        }
        ASSERT_EQ(sendmsg(ends[0], &header, 0), static_cast<ssize_t>(bytes));
    }
    void expect_end()
    {
        char byte;
        EXPECT_EQ(recv(ends[0], &byte, 1, MSG_DONTWAIT), 0);
        EXPECT_EQ(::send(ends[0], &byte, 1, MSG_NOSIGNAL), -1);
    }
    /// In place of a descriptor's number: those of the test are low.
    bool is_closed() { return system->has_closed(ends[1]); }

    int ends[2];
};

TEST_F(CloserOfSockets, ClosesOneWithoutDescriptors)
{
    send(5, false);
    send(0, false);
    send(3, false);
    closer->close_socket(hostile, ends[1]);
    EXPECT_TRUE(is_closed());
    expect_end();
}

TEST_F(CloserOfSockets, QueuesOneWithADescriptorBehindOthers)
{
    send(5, false);
    send(0, false);
    send(0, true);
    closer->close_socket(hostile, ends[1]);
    EXPECT_FALSE(is_closed());
    expect_end();
    system->release();
    system->await_closed(2); // those that stuck have one number
    EXPECT_TRUE(is_closed());
}
} // namespace
