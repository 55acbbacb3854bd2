// SPDX-License-Identifier: BSD-3-Clause
// Ends and resets of connections, and of what carries them.
#include "connections.hpp"

#include <filesystem>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/wait.h>

using namespace ntb::socket;
using namespace ntb::socket::test;

namespace
{

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

// A forking server's: no control connection ends with the child.
TEST_P(Connections, AChildThatDiesWithItsParentsConnectionResetsIt)
{
    claim();
    upgrade(0);
    side[0].put("not taken");
    int arrived[2];
    ASSERT_EQ(pipe(arrived), 0);
    at[1]->before_fork();
    const pid_t child = fork();
    if (child == 0) {
        at[1]->after_fork_in_child();
        if (write(arrived[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    at[1]->after_fork_in_parent(child);
    char byte;
    ASSERT_EQ(read(arrived[0], &byte, 1), 1);
    close(1);
    EXPECT_EQ(side[0].connection->look(tcp.fd[0]) & EPOLLERR, 0u);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(await([&] { return (side[0].connection->look(tcp.fd[0]) & EPOLLERR) != 0; }));
    EXPECT_EQ(side[0].send("x"), -ECONNRESET);
    EXPECT_EQ(side[0].send("x"), -EPIPE);
    ::close(arrived[0]);
    ::close(arrived[1]);
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

// Or each exec() of a program that goes on with it would wait.
TEST_P(Connections, OneThatIsBrokenOffHasNothingToGoBack)
{
    claim();
    upgrade(0);
    side[0].put("unread");
    await_bytes(1, 6);
    EXPECT_FALSE(side[1].connection->leave(tcp.fd[1]));
    side[1].connection->abort(tcp.fd[1]);
    EXPECT_TRUE(side[1].connection->leave(tcp.fd[1]));
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

// It looks at nothing else, and its peer takes nothing.
TEST_P(Connections, AWriterThatOnlyCallsAgainHearsOfItsDaemonsEnd)
{
    claim();
    upgrade(0);
    near.stop();
    ssize_t said = 0;
    EXPECT_TRUE(await([&] {
        said = side[0].send(pattern(ring_bytes, 3));
        return said < 0 && said != -EAGAIN;
    }));
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

// Nobody has looked at the daemon's end in between.
TEST_P(Connections, AClaimFindsTheDaemonThatWasStartedAgain)
{
    claim();
    near.stop();
    near.start();
    Tcp later;
    Side one = {nullptr, later.fd[0]};
    EXPECT_TRUE(await([&] {
        one.connection = Connection::claim(*at[0], later.fd[0], false);
        return one.connection != nullptr;
    }));
    if (one.connection != nullptr)
        one.connection->close(one.fd, true);
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
            })) << "round "
                << round << ", unmatched "
                << at[0]->figures().unmatched + at[1]->figures().unmatched << ", unseen "
                << at[0]->figures().unseen << ", resets " << at[0]->figures().resets;
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

// Whatever the daemon does meanwhile: this one never takes what it is shown.
class Claims : public testing::Test
{
protected:
    Claims()
    {
        at = Attachment::create(path.c_str());
        Connection *const one = Connection::claim(*at, tcp.fd[0], false);
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
    const std::string path = folder.path + "/deaf.sock";
    const int listener = ntbd::test::listen_at(path);
    Attachment *at = nullptr;
    Tcp tcp;
    Side here, there;
};

TEST_F(Claims, StayTcpAtADaemonOfAnotherVersion)
{
    const int daemon = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    ASSERT_GE(daemon, 0);
    ntbc::Message answer;
    answer.type = ntbc::Type::answer;
    answer.version++;
    EXPECT_EQ(::send(daemon, &answer, sizeof(answer), 0), static_cast<ssize_t>(sizeof(answer)));
    EXPECT_TRUE(here.connection->upgraded());
    EXPECT_TRUE(await([this] {
        here.connection->look(here.fd);
        return !here.connection->upgraded();
    }));
    EXPECT_EQ(at->figures().failed, 1u);
    EXPECT_EQ(there.get(5), "first");
    there.put("answer");
    EXPECT_EQ(here.get(6), "answer");
    ::close(daemon);
    close();
}

TEST_F(Claims, WaitForTheirMirrorsAsLongAsTheAttachmentSays)
{
    Attachment *const patient = attach(path);
    Connection *const second = Connection::claim(*patient, tcp.fd[1], true);
    ASSERT_NE(second, nullptr);
    std::vector<std::uint32_t> said;
    for (int i = 0; i < 2; i++) {
        const int daemon = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        ASSERT_GE(daemon, 0);
        ntbc::Parcel parcel;
        while (ntbc::message_receive(daemon, &parcel) == ntbc::Received::message)
            if (parcel.message.type == ntbc::Type::claim)
                said.push_back(parcel.message.timeout_ms);
        ::close(daemon);
    }
    EXPECT_EQ(said, (std::vector<std::uint32_t>{2000, ntbd::test::long_ms}));
    second->close(tcp.fd[1], true);
    close();
}

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

} // namespace
