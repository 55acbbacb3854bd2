// SPDX-License-Identifier: BSD-3-Clause
// The client library with daemons: waiting, deaths, quotas.
#include "client_process.hpp"
#include "clients.hpp"

#include <poll.h>
#include <unistd.h>

using namespace ntbd;
using namespace ntbd::test;

namespace
{

// What a call took in for others keeps the descriptor readable, so that who sleeps on it sees it.
TEST_P(Clients, AreWokenForWhatOtherCallsTookIn)
{
    Client a(one);
    Client b(far());
    const auto is_readable = [&] {
        pollfd fd = {ntbclient_fd(b), POLLIN, 0};
        return poll(&fd, 1, 0) == 1;
    };
    ntbclient_listener *listeners[2];
    ASSERT_EQ(ntbclient_listen(b, "one", &options, &listeners[0]), 0);
    ASSERT_EQ(ntbclient_listen(b, "other", &options, &listeners[1]), 0);
    ntbclient_conn *from, *to;
    int which = 0;
    const auto connects = [&] {
        ASSERT_EQ(ntbclient_process(b), 0);
        EXPECT_FALSE(is_readable());
        ASSERT_EQ(ntbclient_connect(a, "one", &options, &from), 0);
        ASSERT_EQ(ntbclient_wait(from, NTBCLIENT_WRITABLE, long_ms), int{NTBCLIENT_WRITABLE});
        EXPECT_TRUE(await(is_readable)) << which++;
    };
    const auto is_told = [&] {
        EXPECT_TRUE(is_readable()) << which;
        EXPECT_EQ(ntbclient_accept(listeners[0], &to), 0);
        EXPECT_TRUE(is_readable()) << which;
        EXPECT_EQ(ntbclient_process(b), 0);
        EXPECT_FALSE(is_readable()) << which;
        ntbclient_close(to);
        ntbclient_close(from);
    };
    connects();
    EXPECT_EQ(ntbclient_accept(listeners[1], &to), -EAGAIN);
    is_told();
    connects();
    ntbclient_conn *wait;
    options.wait = 1;
    EXPECT_EQ(ntbclient_connect(b, "third", &options, &wait), 0);
    is_told();
    ntbclient_close(wait);
    options.wait = 0;
    connects();
    ntbclient_listener *fourth;
    EXPECT_EQ(ntbclient_listen(b, "fourth", &options, &fourth), 0);
    is_told();
    // For a listener what comes for itself is no news.
    connects();
    EXPECT_EQ(ntbclient_accept(listeners[0], &to), 0);
    EXPECT_FALSE(is_readable());
    ntbclient_close(to);
    ntbclient_close(from);
    for (ntbclient_listener *listener : {listeners[0], listeners[1], fourth})
        ntbclient_listener_close(listener);
}

TEST_P(Clients, RunOutOfTime)
{
    Client a(one);
    options.wait = 1;
    options.timeout_ms = 1;
    ntbclient_conn *conn;
    ASSERT_EQ(ntbclient_connect(a, "never", &options, &conn), 0);
    expect_error(conn, -ETIMEDOUT);
    ntbclient_close(conn);
}

TEST_P(Clients, AreRefusedWhereTooManyWait)
{
    Client a(one);
    Client b(far());
    options.backlog = 1;
    ntbclient_listener *listener;
    ASSERT_EQ(ntbclient_listen(b, "narrow", &options, &listener), 0);
    ntbclient_conn *conns[3];
    ASSERT_EQ(ntbclient_connect(a, "narrow", &options, &conns[0]), 0);
    ASSERT_EQ(ntbclient_connect(a, "narrow", &options, &conns[1]), 0);
    expect_error(conns[1], -ECONNREFUSED);
    ntbclient_conn *to;
    EXPECT_TRUE(await([&] { return ntbclient_accept(listener, &to) == 0; }));
    ntbclient_close(to); // in any case behind the word that it was taken
    EXPECT_TRUE(await([&] {
        EXPECT_EQ(ntbclient_connect(a, "narrow", &options, &conns[2]), 0);
        const bool open = ntbclient_wait(conns[2], NTBCLIENT_WRITABLE, long_ms) != 0 &&
                          info_of(conns[2]).state == NTBCLIENT_OPEN;
        if (!open)
            ntbclient_close(conns[2]);
        return open;
    }));
    // Closed with one that waits: that one is reset.
    ntbclient_listener_close(listener);
    expect_error(conns[2], -ECONNRESET);
    for (ntbclient_conn *conn : conns)
        ntbclient_close(conn);
}

TEST_P(Clients, ListenToNamesOfTheirOwn)
{
    Client a(far());
    ntbclient_listener *listener;
    ntbclient_listener *second;
    ASSERT_EQ(ntbclient_listen(a, "name", &options, &listener), 0);
    EXPECT_EQ(ntbclient_listen(a, "name", &options, &second), -EADDRINUSE);
    const std::string own = "~" + std::to_string(getuid()) + "/name";
    const std::string others = "~" + std::to_string(getuid() + 1) + "/name";
    EXPECT_EQ(ntbclient_listen(a, others.c_str(), &options, &second), -EACCES);
    EXPECT_EQ(ntbclient_listen(a, "~", &options, &second), -EACCES);
    ASSERT_EQ(ntbclient_listen(a, own.c_str(), &options, &second), 0);
    ntbclient_listener_close(second);
    ntbclient_listener_close(listener);
    ASSERT_EQ(ntbclient_listen(a, "name", &options, &listener), 0);
    ntbclient_listener_close(listener);
}

TEST_P(Clients, SleepUntilBytesCome)
{
    Pair pair(one, far(), options);
    for (int i = 0; i < 100; i++) {
        std::thread sender([&, before = info_of(pair.to).sleeps] {
            EXPECT_TRUE(await([&] { return info_of(pair.to).sleeps > before; }));
            EXPECT_EQ(ntbclient_send(pair.from, "x", 1, 0), 1);
        });
        EXPECT_EQ(ntbclient_wait(pair.to, NTBCLIENT_READABLE, long_ms), int{NTBCLIENT_READABLE});
        sender.join();
        char got[8];
        EXPECT_EQ(ntbclient_recv(pair.to, got, 8, 0), 1);
    }
    ntbclient_close(pair.from);
    ntbclient_close(pair.to);
}

TEST_P(Clients, SleepUntilThereIsRoom)
{
    Pair pair(one, far(), options);
    const std::vector<char> bytes(16384, 'x');
    ssize_t sent = ntbclient_send(pair.from, bytes.data(), bytes.size(), 0);
    ASSERT_EQ(sent, 16384);
    // Through the daemons more is under way before both rings and the pipe are full.
    if (is_carried()) {
        ASSERT_TRUE(await([&] {
            sent += std::max<ssize_t>(ntbclient_send(pair.from, bytes.data(), bytes.size(), 0), 0);
            return ntbclient_readable(pair.to) > bytes.size() * 3 / 4 && cable.is_full(1) &&
                   ntbclient_writable(pair.from) == 0;
        }));
    }
    const uint64_t before = info_of(pair.from).sleeps;
    std::thread receiver([&] {
        EXPECT_TRUE(await([&] { return info_of(pair.from).sleeps > before; }));
        for (ssize_t got = 0; got < sent;)
            got += std::max<ssize_t>(ntbclient_recv(pair.to, nullptr, 16384, 0), 0);
    });
    EXPECT_EQ(ntbclient_wait(pair.from, NTBCLIENT_WRITABLE, long_ms), int{NTBCLIENT_WRITABLE});
    receiver.join();
    ntbclient_close(pair.from);
    ntbclient_close(pair.to);
}

// Both directions of both ends, each with a thread that sleeps whenever it cannot go on.
TEST_P(Clients, SleepInTwoThreadsAtATime)
{
    constexpr size_t total = 3000000;
    Client a(one);
    Client b(far());
    ntbclient_conn *ends[2];
    connect_clients(a, b, options, &ends[0], &ends[1]);
    std::vector<std::thread> threads;
    for (ntbclient_conn *end : ends) {
        threads.emplace_back([end] {
            std::vector<char> bytes(5000);
            for (size_t sent = 0; sent < total;) {
                for (size_t i = 0; i < bytes.size(); i++)
                    bytes[i] = static_cast<char>((sent + i) * 31 >> 3);
                const ssize_t some =
                    ntbclient_send(end, bytes.data(), std::min(bytes.size(), total - sent), 0);
                if (some == -EAGAIN) {
                    ASSERT_GE(ntbclient_wait(end, NTBCLIENT_WRITABLE, long_ms), 1);
                    continue;
                }
                ASSERT_GT(some, 0);
                sent += static_cast<size_t>(some);
            }
        });
        threads.emplace_back([end] {
            std::vector<char> bytes(7000);
            for (size_t got = 0; got < total;) {
                const ssize_t some = ntbclient_recv(end, bytes.data(), bytes.size(), 0);
                if (some == -EAGAIN) {
                    ASSERT_GE(ntbclient_wait(end, NTBCLIENT_READABLE, long_ms), 1);
                    continue;
                }
                ASSERT_GT(some, 0);
                for (size_t i = 0; i < static_cast<size_t>(some); i++)
                    ASSERT_EQ(bytes[i], static_cast<char>((got + i) * 31 >> 3));
                got += static_cast<size_t>(some);
            }
        });
    }
    for (std::thread &thread : threads)
        thread.join();
    for (ntbclient_conn *end : ends)
        ntbclient_close(end);
}

TEST_P(Clients, ArmAndPollDescriptors)
{
    Pair pair(one, far(), options);
    pollfd fd = {ntbclient_conn_fd(pair.to), POLLIN, 0};
    EXPECT_EQ(ntbclient_arm(pair.to, NTBCLIENT_READABLE), 0);
    EXPECT_EQ(poll(&fd, 1, 0), 0);
    EXPECT_EQ(ntbclient_send(pair.from, "x", 1, 0), 1);
    EXPECT_EQ(poll(&fd, 1, long_ms), 1);
    if (!is_carried()) {
        EXPECT_EQ(info_of(pair.from).rings, 1u);
    }
    EXPECT_EQ(ntbclient_send(pair.from, "x", 1, 0), 1);
    if (!is_carried()) {
        EXPECT_EQ(info_of(pair.from).rings, 1u); // once for a sleep
    }
    EXPECT_TRUE(soon([&] { return ntbclient_readable(pair.to) == 2; }));
    ntbclient_disarm(pair.to, NTBCLIENT_READABLE);
    EXPECT_EQ(poll(&fd, 1, 0), 0);
    EXPECT_EQ(ntbclient_arm(pair.to, NTBCLIENT_READABLE), int{NTBCLIENT_READABLE});
    ntbclient_close(pair.from);
    ntbclient_close(pair.to);
}

const ClientTask send_and_die([](const char *socket, const ntbclient_options &options, int) {
    ntbclient *a;
    ntbclient_conn *conn;
    if (ntbclient_attach(socket, &a) == 0 && ntbclient_connect(a, "doomed", &options, &conn) == 0 &&
        ntbclient_wait(conn, NTBCLIENT_WRITABLE, long_ms) != 0 &&
        ntbclient_send(conn, "last words", 10, 0) == 10)
        kill(getpid(), SIGKILL);
});

TEST_P(Clients, LearnOfADeathBehindTheLastByte)
{
    Client b(far());
    ntbclient_listener *listener;
    ASSERT_EQ(ntbclient_listen(b, "doomed", &options, &listener), 0);
    EXPECT_TRUE(WIFSIGNALED(ClientProcess(send_and_die, one, options).wait()));
    ntbclient_conn *to;
    ASSERT_TRUE(await([&] { return ntbclient_accept(listener, &to) == 0; }));
    // By polling alone: the daemon has marked the connection.
    char got[16];
    EXPECT_TRUE(soon([&] { return ntbclient_readable(to) == 10; }));
    EXPECT_EQ(ntbclient_recv(to, got, 16, 0), 10);
    EXPECT_TRUE(await([&] { return ntbclient_recv(to, got, 16, 0) != -EAGAIN; }));
    EXPECT_EQ(ntbclient_recv(to, got, 16, 0), -ECONNRESET);
    EXPECT_EQ(ntbclient_send(to, got, 1, 0), -ECONNRESET);
    ntbclient_close(to);
    ntbclient_listener_close(listener);
    EXPECT_TRUE(
        await([&] { return one.now().figures.open == 0 && far().now().figures.open == 0; }));
    EXPECT_TRUE(await([&] { return one.now().figures.died == 1; }));
}

const ClientTask die_when_told([](const char *socket, const ntbclient_options &options,
                                  int control) {
    ntbclient *a;
    ntbclient_conn *conn;
    char byte;
    if (ntbclient_attach(socket, &a) == 0 && ntbclient_connect(a, "doomed", &options, &conn) == 0 &&
        read(control, &byte, 1) == 1)
        kill(getpid(), SIGKILL);
});

TEST_P(Clients, AreWokenByADeath)
{
    Client b(far());
    ntbclient_listener *listener;
    ASSERT_EQ(ntbclient_listen(b, "doomed", &options, &listener), 0);
    ClientProcess doomed(die_when_told, one, options);
    ntbclient_conn *to;
    ASSERT_TRUE(await([&] { return ntbclient_accept(listener, &to) == 0; }));
    std::thread killer([&] {
        EXPECT_TRUE(await([&] { return info_of(to).sleeps > 0; }));
        EXPECT_EQ(send(doomed.control, "x", 1, MSG_NOSIGNAL), 1);
    });
    EXPECT_EQ(ntbclient_wait(to, NTBCLIENT_READABLE, long_ms), int{NTBCLIENT_READABLE});
    killer.join();
    EXPECT_TRUE(WIFSIGNALED(doomed.wait()));
    char got;
    EXPECT_EQ(ntbclient_recv(to, &got, 1, 0), -ECONNRESET);
    ntbclient_close(to);
    ntbclient_listener_close(listener);
}

// fork() itself, in a process without another thread. It lives until the test lets it go.
const ClientTask go_on_in_a_child([](const char *socket, const ntbclient_options &options,
                                     int control) {
    ntbclient *a;
    ntbclient_conn *from;
    if (ntbclient_attach(socket, &a) != 0 || ntbclient_connect(a, "family", &options, &from) != 0 ||
        ntbclient_wait(from, NTBCLIENT_WRITABLE, long_ms) != int{NTBCLIENT_WRITABLE} ||
        ntbclient_send(from, "parent ", 7, 0) != 7)
        _exit(1);
    const pid_t child = fork();
    if (child == 0) {
        char got;
        const bool heard = ntbclient_wait(from, NTBCLIENT_READABLE, long_ms) == 1 &&
                           ntbclient_recv(from, &got, 1, 0) == 1;
        ntbclient_send(from, heard ? "child" : "deaf!", 5, 0);
        ntbclient_close(from);
        _exit(0);
    }
    ntbclient_release(from);
    char byte;
    const bool let_go = send(control, "r", 1, MSG_NOSIGNAL) == 1 && recv(control, &byte, 1, 0) == 1;
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0 || !let_go)
        _exit(1);
    ntbclient_detach(a);
});

// The parent lets go and the child goes on: no end is seen before the child's.
TEST_P(Clients, GoOnInAChild)
{
    Client b(far());
    ntbclient_listener *listener;
    ASSERT_EQ(ntbclient_listen(b, "family", &options, &listener), 0);
    ClientProcess parent(go_on_in_a_child, one, options);
    ntbclient_conn *to;
    ASSERT_TRUE(await([&] { return ntbclient_accept(listener, &to) == 0; }));
    char got[16];
    ASSERT_EQ(recv(parent.control, got, 1, 0), 1); // it has let go
    EXPECT_EQ(ntbclient_send(to, "?", 1, 0), 1);
    EXPECT_TRUE(await([&] { return ntbclient_recv(to, got, 16, NTBCLIENT_PEEK) == 12; }));
    EXPECT_EQ(std::string(got, 12), "parent child");
    EXPECT_EQ(ntbclient_recv(to, got, 16, 0), 12);
    EXPECT_TRUE(await([&] { return ntbclient_recv(to, got, 16, 0) != -EAGAIN; }));
    EXPECT_EQ(ntbclient_recv(to, got, 16, 0), 0);
    EXPECT_EQ(send(parent.control, "x", 1, MSG_NOSIGNAL), 1);
    EXPECT_EQ(parent.wait(), 0);
    ntbclient_close(to);
    ntbclient_listener_close(listener);
}

TEST_P(Clients, EndWithTheirDaemonAndAttachAgain)
{
    Client b(far());
    ntbclient *a;
    ASSERT_EQ(ntbclient_attach(one.config.socket.c_str(), &a), 0);
    ntbclient_conn *from;
    ntbclient_conn *to;
    connect_clients(a, b, options, &from, &to);
    std::thread sleeper([&] {
        EXPECT_EQ(ntbclient_wait(from, NTBCLIENT_READABLE, long_ms), int{NTBCLIENT_READABLE});
        char got;
        EXPECT_EQ(ntbclient_recv(from, &got, 1, 0), -ECONNRESET);
    });
    EXPECT_TRUE(await([&] { return info_of(from).sleeps > 0; }));
    one.stop();
    sleeper.join();
    expect_error(to, -ECONNRESET);
    EXPECT_EQ(ntbclient_process(a), -ECONNRESET);
    ntbclient_conn *late;
    EXPECT_EQ(ntbclient_connect(a, "late", &options, &late), -ECONNRESET);
    ntbclient_close(from);
    ntbclient_close(to);
    ntbclient_detach(a);
    one.start();
    EXPECT_EQ(ntbclient_attach(one.config.socket.c_str(), &a), 0);
    ntbclient_detach(a);
}

TEST_P(Clients, AreListedAndRevoked)
{
    Pair pair(one, far(), options);
    ASSERT_EQ(ntbclient_send(pair.from, "12345", 5, 0), 5);
    ntbclient_entry entries[32];
    entries[0].size = sizeof(entries[0]);
    ASSERT_EQ(ntbclient_list(pair.a, 0, entries, 32), is_local() ? 2 : 1);
    EXPECT_EQ(entries[0].id, info_of(pair.from).id);
    EXPECT_STREQ(entries[0].name, "make");
    EXPECT_EQ(entries[0].sent, 5u);
    EXPECT_EQ(entries[0].uid, getuid());
    EXPECT_EQ(entries[0].pid, static_cast<uint32_t>(getpid()));
    EXPECT_EQ(entries[0].state, uint32_t{NTBCLIENT_OPEN});
    EXPECT_EQ(entries[0].local, is_local() ? 1u : 0u);
    EXPECT_EQ(entries[0].carried, is_carried() ? 1u : 0u);
    const uint64_t id = entries[0].id;
    EXPECT_EQ(ntbclient_list(pair.a, id + 10, entries, 32), 0);
    EXPECT_EQ(ntbclient_revoke(pair.a, id + 10), -ENOENT);
    EXPECT_EQ(ntbclient_revoke(pair.a, id), 0);
    expect_error(pair.from, -ECONNRESET);
    // What was sent before is received as it was sent.
    char got[8];
    EXPECT_TRUE(soon([&] { return ntbclient_readable(pair.to) == 5; }));
    EXPECT_EQ(ntbclient_recv(pair.to, got, 8, 0), 5);
    EXPECT_EQ(std::string(got, 5), "12345");
    EXPECT_TRUE(await([&] { return ntbclient_recv(pair.to, got, 8, 0) == -ECONNRESET; }));
    ntbclient_close(pair.from);
    ntbclient_close(pair.to);
    EXPECT_TRUE(await([&] { return ntbclient_list(pair.a, 0, entries, 32) == 0; }));
}

TEST_P(Clients, HaveQuotas)
{
    one.reload([](Config &config) { config.quota = {2, 1, 2, uint64_t{1} << 30}; });
    // Taken over when a third client is refused.
    ASSERT_TRUE(await([&] {
        Client first(one);
        Client second(one);
        ntbclient *third;
        const int status = ntbclient_attach(one.config.socket.c_str(), &third);
        if (status == 0)
            ntbclient_detach(third);
        return status == -EDQUOT;
    }));
    Client a(one);
    ntbclient_listener *listener;
    ntbclient_listener *second;
    ASSERT_EQ(ntbclient_listen(a, "one", &options, &listener), 0);
    EXPECT_EQ(ntbclient_listen(a, "two", &options, &second), -EDQUOT);
    options.wait = 1;
    ntbclient_conn *conns[3];
    ASSERT_EQ(ntbclient_connect(a, "three", &options, &conns[0]), 0);
    ASSERT_EQ(ntbclient_connect(a, "three", &options, &conns[1]), 0);
    EXPECT_EQ(ntbclient_connect(a, "three", &options, &conns[2]), -EDQUOT);
    ntbclient_close(conns[0]);
    EXPECT_TRUE(await([&] { return ntbclient_connect(a, "three", &options, &conns[0]) == 0; }));
    ntbclient_close(conns[0]);
    ntbclient_close(conns[1]);
    ntbclient_listener_close(listener);
}

TEST_P(Clients, LeaveNothingBehind)
{
    Client a(one);
    Client b(far());
    const auto descriptors = [] {
        size_t count = 0;
        for ([[maybe_unused]] const auto &_ : std::filesystem::directory_iterator("/proc/self/fd"))
            count++;
        return count;
    };
    const auto is_clean = [&] {
        for (const Daemon *daemon : {&one, &far()}) {
            const Server::Snapshot now = daemon->now();
            if (now.figures.open != 0 || now.figures.carried != 0 || charges(now))
                return false;
        }
        return true;
    };
    ntbclient_conn *from;
    ntbclient_conn *to;
    connect_clients(a, b, options, &from, &to);
    ntbclient_close(from);
    ntbclient_close(to);
    EXPECT_TRUE(await(is_clean));
    const size_t before = descriptors();
    for (int i = 0; i < 300; i++) {
        connect_clients(a, b, options, &from, &to);
        ntbclient_close(i % 2 == 0 ? from : to);
        ntbclient_close(i % 2 == 0 ? to : from);
    }
    EXPECT_TRUE(await([&] { return is_clean() && descriptors() == before; }));
}

TEST_P(Clients, AreToldWhatIsWrong)
{
    Client a(one);
    ntbclient_conn *conn;
    ntbclient_listener *listener;
    ntbclient *client;
    EXPECT_EQ(ntbclient_attach(nullptr, &client), -EINVAL);
    EXPECT_EQ(ntbclient_attach(std::string(200, 'x').c_str(), &client), -EINVAL);
    EXPECT_EQ(ntbclient_attach((folder.path + "/nothing").c_str(), &client), -ENOENT);
    EXPECT_EQ(ntbclient_connect(nullptr, "x", &options, &conn), -EINVAL);
    EXPECT_EQ(ntbclient_connect(a, nullptr, &options, &conn), -EINVAL);
    EXPECT_EQ(ntbclient_connect(a, "", &options, &conn), -EINVAL);
    EXPECT_EQ(ntbclient_connect(a, std::string(65, 'x').c_str(), &options, &conn), -EINVAL);
    EXPECT_EQ(ntbclient_listen(a, "x", &options, nullptr), -EINVAL);
    for (uint32_t *field :
         {&options.local, &options.once, &options.wait, &options.backlog, &options.timeout_ms}) {
        const uint32_t before = *field;
        *field = ~0u;
        EXPECT_EQ(ntbclient_listen(a, "x", &options, &listener), -EINVAL);
        *field = before;
    }
    options.size = 4;
    EXPECT_EQ(ntbclient_listen(a, "x", &options, &listener), -EINVAL);
    struct {
        ntbclient_options options;
        uint64_t later;
    } newer = {options, 1};
    newer.options.size = sizeof(newer);
    EXPECT_EQ(ntbclient_listen(a, "x", &newer.options, &listener), -E2BIG);
    EXPECT_EQ(ntbclient_send(nullptr, "x", 1, 0), -EINVAL);
    EXPECT_EQ(ntbclient_recv(nullptr, &conn, 1, 0), -EINVAL);
    EXPECT_EQ(ntbclient_wait(nullptr, 1, 0), -EINVAL);
    EXPECT_EQ(ntbclient_arm(nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbclient_process(nullptr), -EINVAL);
    EXPECT_EQ(ntbclient_fd(nullptr), -EINVAL);
    EXPECT_EQ(ntbclient_info_get(nullptr, nullptr), -EINVAL);
    EXPECT_EQ(ntbclient_revoke(nullptr, 1), -EINVAL);
    ntbclient_close(nullptr);
    ntbclient_release(nullptr);
    ntbclient_reset(nullptr);
    ntbclient_disarm(nullptr, 1);
    ntbclient_detach(nullptr);
    ntbclient_listener_close(nullptr);
}

} // namespace
