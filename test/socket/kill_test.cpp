// SPDX-License-Identifier: BSD-3-Clause
// Processes that are killed: sender, receiver, one of several holders, the daemon of both or that
// of either; or the link between the two, which share memory or carry what is stored. Every byte is
// checked: who is left gets a prefix of the stream, its end only where it got all that was
// accepted, and never waits for ever; and daemons that are left keep nothing of it.
#include "tcp.hpp"

#include <csignal>
#include <cstring>
#include <functional>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

using namespace ntb::socket;
using namespace ntb::socket::test;
using ntbd::test::Daemon;
using ntbd::test::Folder;

namespace
{

constexpr std::size_t ring_bytes = 16384; // of which 4096 are used until it is full again and again
constexpr std::size_t stream_bytes = 300000;
constexpr int out_of_time = 99;

/// What the processes of a run report to each other.
struct Board {
    std::atomic<bool> daemon_ready[2];
    std::atomic<bool> is_introduced[2];
    std::atomic<bool> cut;            ///< the link: both daemons are to hear that it is lost
    std::atomic<bool> ended[2];       ///< that daemon, where both are of one process
    std::atomic<std::size_t> kept[2]; ///< claims of the daemon
    ntbd::Introduction introductions[2];
    std::atomic<std::uint64_t> accepted; ///< by send
    std::atomic<std::uint64_t> received;
    std::atomic<bool> by_ring;      ///< the last bytes that were received
    std::atomic<int> sender_said;   ///< 0: all was accepted
    std::atomic<int> receiver_said; ///< 0: end of file
    std::atomic<bool> wrong;
    std::atomic<bool> is_struck;
    std::atomic<std::uint32_t> calls[2]; ///< of the end
};

enum Victim { Sender, Receiver, TheDaemon, ThePeersDaemon, TheLink, BothDaemons };

struct Plan {
    Victim victim;
    std::uint32_t at_call;  ///< dies before this call; 0: at any time
    bool goes_back = false; ///< to TCP, from the sender's call back_at on
    bool by_ring = false;   ///< calls count from the first one that finds a ring
};
constexpr std::uint32_t back_at = 40;
constexpr std::uint32_t at_close = ~0u; ///< the last call
// The first is between claim and match.
constexpr std::uint32_t calls[] = {1, 2, 3, 4, 5, 9, 30, 100, 1000, at_close};
constexpr std::uint32_t calls_back[] = {back_at, 41, 42, 43, 45, 50, 70, at_close};
constexpr std::uint32_t calls_by_ring[] = {1, 2, 3, 5, 20, 100, at_close};

class Killed : public testing::Test
{
protected:
    Killed()
        : board(*new (mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Board)
    {
    }
    ~Killed() override
    {
        for (pid_t *one : {&daemons[0], &daemons[1], &end[0], &end[1]})
            finish(*one);
        munmap(&board, sizeof(Board));
    }
    static pid_t start(const std::function<int()> &life)
    {
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);
            _exit(life());
        }
        return child;
    }
    static void finish(pid_t &one)
    {
        if (one > 0) {
            kill(one, SIGKILL);
            waitpid(one, nullptr, 0);
        }
        one = 0;
    }
    /// Of both ends, or one of each, joined.
    void start_daemons()
    {
        if (carried) {
            start_carriers();
            return;
        }
        const int n = apart ? 2 : 1;
        for (int i = 0; i < n; i++)
            board.daemon_ready[i] = board.is_introduced[i] = false;
        board.cut = false;
        for (int i = 0; i < n; i++)
            daemons[i] = start([this, i] {
                Daemon one(socket_of(i));
                one.config.ring_bytes = ring_bytes;
                one.start();
                if (apart)
                    meet(one, i);
                board.daemon_ready[i] = true;
                for (bool is_cut = false;; usleep(100)) {
                    board.kept[i] = kept_by(one);
                    if (!is_cut && board.cut)
                        one.mailbox().put({ntbd::LinkNews::Kind::lost, {}, {}});
                    is_cut = board.cut;
                }
                return 0;
            });
        for (int i = 0; i < n; i++) {
            ASSERT_TRUE(await([&] { return board.daemon_ready[i].load(); }));
        }
    }
    /// Both in one process, so that a cable of it joins them.
    void start_carriers()
    {
        board.daemon_ready[0] = board.cut = board.ended[0] = board.ended[1] = false;
        daemons[0] = start([this] {
            ntbd::test::Cable cable;
            Daemon near(socket_of(0)), far(socket_of(1));
            Daemon *const both[] = {&near, &far};
            plug(cable, near, far);
            for (Daemon *one : both) {
                one->config.ring_bytes = ring_bytes;
                one->start();
            }
            join(near, far);
            board.daemon_ready[0] = true;
            for (;; usleep(100)) {
                for (int i = 0; i < 2; i++) {
                    if (board.ended[i])
                        both[i]->stop();
                    else
                        board.kept[i] = kept_by(*both[i]);
                }
                if (board.cut.exchange(false))
                    near.bridge->cut();
            }
            return 0;
        });
        ASSERT_TRUE(await([&] { return board.daemon_ready[0].load(); }));
    }
    static std::size_t kept_by(const Daemon &one)
    {
        const ntbd::Broker::Figures figures = one.now().figures;
        return figures.claimed + figures.connecting + figures.carried;
    }
    /// As links do between hosts.
    void meet(Daemon &one, int i)
    {
        EXPECT_TRUE(ntbd::introduce_self(one.config.socket, ntbd::CarrierChoice::automatic,
                                         &board.introductions[i]));
        board.is_introduced[i] = true;
        EXPECT_TRUE(await([&] { return board.is_introduced[1 - i].load(); }));
        ntbd::Peer peer;
        EXPECT_TRUE(ntbd::introduction_of(&board.introductions[1 - i],
                                          sizeof(board.introductions[1 - i]), &peer));
        one.mailbox().put({ntbd::LinkNews::Kind::introducing, board.introductions[i], {}});
        one.mailbox().put({ntbd::LinkNews::Kind::introduced, {}, peer});
        EXPECT_TRUE(await([&] { return one.now().peer; }));
    }
    std::string socket_of(int which) const
    {
        return folder.path + (apart && which == 1 ? "/peer.sock" : "/ntbd.sock");
    }
    static bool is_daemon(Victim victim) { return victim >= TheDaemon; }
    void strike(Victim victim)
    {
        board.is_struck = true;
        if (victim == TheLink)
            board.cut = true;
        else if (victim == BothDaemons)
            kill(daemons[0], SIGKILL);
        else if (is_daemon(victim) && carried)
            board.ended[victim - TheDaemon] = true;
        else
            kill(is_daemon(victim) ? daemons[victim - TheDaemon] : end[victim], SIGKILL);
    }
    void step(const Plan &plan, int which, bool has_ring = false, bool is_closing = false)
    {
        if (plan.by_ring && !has_ring && board.calls[which] == 0)
            return;
        const bool is_now =
            plan.at_call == at_close ? is_closing : board.calls[which] + 1 >= plan.at_call;
        board.calls[which]++;
        if (plan.at_call == 0 || !is_now)
            return;
        if (static_cast<int>(plan.victim) == which) {
            board.is_struck = true;
            raise(SIGKILL);
        } else if (is_daemon(plan.victim) && which == 0)
            strike(plan.victim); // again, it may be dead
    }
    static void rest(int fd, short events)
    {
        pollfd one = {fd, events, 0};
        poll(&one, 1, 1);
    }
    Side side_of(const Tcp &tcp, int which, const Plan &plan = {Sender, 0})
    {
        Attachment *at = attach(socket_of(which));
        const Side side = {Connection::claim(*at, tcp.fd[which], which == 1), tcp.fd[which]};
        step(plan, which); // shown to the daemon, not matched yet
        for (int i = 0; i < 200 && side.connection != nullptr && at->figures().matched == 0; i++) {
            at->process();
            rest(at->descriptor(), POLLIN);
        }
        return side;
    }
    int send_all(Tcp &tcp, const Plan &plan)
    {
        Tcp::shut(tcp.fd[1]);
        const Side side = side_of(tcp, 0, plan);
        const std::string stream = pattern(stream_bytes, 1);
        int said = 0;
        bool is_back = !plan.goes_back || side.connection == nullptr;
        const auto has_ring = [&] {
            return side.connection != nullptr && side.connection->has_ring();
        };
        for (std::size_t at = 0, n = 1; at < stream.size() && said == 0;) {
            // It may take many bytes to get a ring.
            if (plan.by_ring && board.calls[0] == 0 && !board.is_struck && !has_ring()) {
                n = 1;
                if (board.received < at) {
                    sched_yield();
                    continue;
                }
            }
            step(plan, 0, has_ring());
            if (!is_back && board.calls[0] >= back_at)
                is_back = side.connection->leave(side.fd);
            const ssize_t sent = side.send(stream.substr(at, n));
            if (sent == -EAGAIN) {
                sched_yield();
                continue;
            }
            said = sent < 0 ? static_cast<int>(sent) : 0;
            at += sent > 0 ? static_cast<std::size_t>(sent) : 0;
            board.accepted = at;
            n = n * 5 % 3001 + 1;
        }
        board.sender_said = said;
        step(plan, 0, has_ring(), true);
        if (side.connection != nullptr)
            side.connection->close(side.fd, true);
        return 0;
    }
    int receive_all(Tcp &tcp, const Plan &plan)
    {
        Tcp::shut(tcp.fd[0]);
        const Side side = side_of(tcp, 1, plan);
        const std::string stream = pattern(stream_bytes, 1);
        for (std::size_t at = 0;;) {
            char bytes[2000];
            step(plan, 1, side.connection != nullptr && side.connection->has_ring());
            const ssize_t got = side.receive(bytes, sizeof(bytes));
            if (got == -EAGAIN) {
                sched_yield();
                continue;
            }
            if (got <= 0) {
                board.receiver_said = static_cast<int>(got);
                break;
            }
            if (stream.compare(at, static_cast<std::size_t>(got), bytes,
                               static_cast<std::size_t>(got)) != 0)
                board.wrong = true;
            at += static_cast<std::size_t>(got);
            board.received = at;
            board.by_ring = side.connection != nullptr && side.connection->has_ring();
        }
        step(plan, 1, false, true);
        if (side.connection != nullptr)
            side.connection->close(side.fd, true);
        return 0;
    }
    void run(
        const Plan &plan, const std::function<void()> &meanwhile = [] {})
    {
        board.sender_said = board.receiver_said = out_of_time;
        board.accepted = board.received = 0;
        board.wrong = board.by_ring = board.is_struck = false;
        board.calls[0] = board.calls[1] = 0;
        if (daemons[0] <= 0)
            start_daemons();
        Tcp tcp;
        end[0] = start([&] { return send_all(tcp, plan); });
        end[1] = start([&] { return receive_all(tcp, plan); });
        for (int &one : tcp.fd)
            Tcp::shut(one);
        meanwhile();
        for (pid_t &one : end) {
            int status = 0;
            EXPECT_EQ(waitpid(one, &status, 0), one);
            EXPECT_TRUE(status == 0 || WTERMSIG(status) == SIGKILL)
                << (WTERMSIG(status) == SIGALRM ? "it waits for ever" : "it crashed");
            one = 0;
        }
        EXPECT_FALSE(board.wrong);
        broken += board.sender_said < 0 || board.receiver_said < 0;
        if (is_daemon(plan.victim)) {
            for (pid_t &one : daemons)
                finish(one);
        } else {
            EXPECT_TRUE(await([&] { return board.kept[0] + board.kept[1] == 0; }))
                << board.kept[0] << " and " << board.kept[1] << " are left";
        }
        if (plan.victim != Receiver) {
            EXPECT_NE(board.receiver_said, out_of_time);
            if (board.receiver_said == 0) {
                EXPECT_GE(board.received.load(), board.accepted.load());
            }
        }
    }
    /// A short stream may be over before its ends have agreed on the ring: rarely.
    void nobody()
    {
        for (int n = 0; n == 0 || (n < 50 && !board.by_ring); n++) {
            run({Sender, 1u << 31});
            EXPECT_EQ(board.receiver_said, 0);
            EXPECT_EQ(board.received, stream_bytes);
        }
        EXPECT_TRUE(board.by_ring);
    }
    void before_a_call(Victim victim)
    {
        for (const std::uint32_t call : calls)
            before(victim, call, false);
        for (const std::uint32_t call : calls_back)
            before(victim, call, true);
    }
    /// Each call of one that has a ring, and of one that goes back from it.
    void before_a_call_by_ring(Victim victim)
    {
        before_a_call(victim);
        for (const std::uint32_t call : calls_by_ring)
            before(victim, call, false, true);
        for (const std::uint32_t call : calls_back)
            before(victim, call, true, true);
    }
    void before(Victim victim, std::uint32_t call, bool goes_back, bool by_ring = false)
    {
        SCOPED_TRACE(testing::Message()
                     << "victim " << victim << ", call " << call
                     << (goes_back ? ", back to TCP" : "") << (by_ring ? ", by ring" : ""));
        // The stream may be over before it had a ring.
        for (int n = 0; n == 0 || (n < 50 && by_ring && !board.is_struck); n++)
            run({victim, call, goes_back, by_ring});
        EXPECT_TRUE(board.is_struck || !by_ring);
        if (victim != Sender) {
            EXPECT_NE(board.sender_said, out_of_time);
        }
    }
    /// Each victim up to the last one in turn.
    void at_any_time(unsigned rounds, Victim last)
    {
        for (unsigned round = 0; round < rounds; round++) {
            const auto victim = static_cast<Victim>(round % (last + 1u));
            SCOPED_TRACE(round);
            run({victim, 0, round / (last + 1u) % 3 == 2}, [&] {
                usleep(static_cast<useconds_t>(pace(round)));
                strike(victim);
            });
        }
    }
    static int pace(unsigned n)
    {
        return static_cast<int>(n * 2654435761u >> 20) % 6000; // microseconds
    }

    Folder folder;
    bool apart = false;   ///< each end has a daemon of its own
    bool carried = false; ///< and these share no memory
    unsigned broken = 0;  ///< runs that ended by an error
    Board &board;
    pid_t daemons[2] = {};
    pid_t end[2] = {};
};

TEST_F(Killed, TheSenderBeforeACall)
{
    before_a_call(Sender);
}

TEST_F(Killed, TheReceiverBeforeACall)
{
    before_a_call(Receiver);
}

TEST_F(Killed, TheDaemonBeforeACall)
{
    before_a_call(TheDaemon);
}

TEST_F(Killed, AnyOfThemAtAnyTime)
{
    at_any_time(90, TheDaemon);
}

class KilledBetweenHosts : public Killed
{
protected:
    KilledBetweenHosts() { apart = true; }
};

TEST_F(KilledBetweenHosts, EitherDaemonBeforeACall)
{
    before_a_call(TheDaemon);
    before_a_call(ThePeersDaemon);
}

TEST_F(KilledBetweenHosts, TheLinkBeforeACall)
{
    before_a_call(TheLink);
    EXPECT_GT(broken, 0u) << "it was lost in the middle of a ring (F1)";
}

TEST_F(KilledBetweenHosts, AnyOfThemAtAnyTime)
{
    at_any_time(50, TheLink);
}

TEST_F(KilledBetweenHosts, NobodyAndAllArrives)
{
    nobody();
}

class KilledBetweenCarriers : public Killed
{
protected:
    KilledBetweenCarriers() { apart = carried = true; }
};

TEST_F(KilledBetweenCarriers, TheSenderBeforeACall)
{
    before_a_call_by_ring(Sender);
}

TEST_F(KilledBetweenCarriers, TheReceiverBeforeACall)
{
    before_a_call_by_ring(Receiver);
}

TEST_F(KilledBetweenCarriers, EitherDaemonBeforeACall)
{
    before_a_call_by_ring(TheDaemon);
    before_a_call_by_ring(ThePeersDaemon);
    EXPECT_GT(broken, 0u) << "it was lost in the middle of a ring (F1)";
}

TEST_F(KilledBetweenCarriers, BothDaemonsBeforeACall)
{
    before_a_call_by_ring(BothDaemons);
    EXPECT_GT(broken, 0u) << "it was lost in the middle of a ring (F1)";
}

TEST_F(KilledBetweenCarriers, TheLinkBeforeACall)
{
    before_a_call_by_ring(TheLink);
    EXPECT_GT(broken, 0u) << "it was lost in the middle of a ring (F1)";
}

TEST_F(KilledBetweenCarriers, AnyOfThemAtAnyTime)
{
    at_any_time(60, BothDaemons);
}

TEST_F(KilledBetweenCarriers, NobodyAndAllArrives)
{
    nobody();
}

// Numbers, sent by a child until it is killed and then by its parent. The one that was being sent
// may come twice: the parent does not know whether it was. None is missing, none is torn.
TEST_F(Killed, OneOfTwoHoldersWhileItSends)
{
    constexpr std::uint64_t numbers = 20000;
    start_daemons();
    for (unsigned round = 0; round < 30; round++) {
        SCOPED_TRACE(round);
        board.accepted = 0;
        board.receiver_said = out_of_time;
        board.wrong = false;
        Tcp tcp;
        end[0] = start([&] {
            Tcp::shut(tcp.fd[1]);
            Attachment *at = attach(socket_of(0));
            const Side side = {Connection::claim(*at, tcp.fd[0], false), tcp.fd[0]};
            while (at->figures().matched == 0) {
                at->process();
                rest(at->descriptor(), POLLIN);
            }
            const auto send_from = [&](std::uint64_t number) {
                for (; number < numbers; number++) {
                    const std::string bytes(reinterpret_cast<const char *>(&number), 8);
                    while (side.send(bytes) == -EAGAIN)
                        sched_yield();
                    board.accepted = number + 1;
                }
            };
            at->before_fork();
            const pid_t child = fork();
            if (child == 0) {
                at->after_fork_in_child();
                send_from(0);
                side.connection->close(side.fd, true);
                _exit(0);
            }
            at->after_fork_in_parent(child);
            usleep(static_cast<useconds_t>(pace(round)) / 2);
            kill(child, SIGKILL);
            waitpid(child, nullptr, 0);
            send_from(board.accepted);
            side.connection->close(side.fd, true);
            return 0;
        });
        end[1] = start([&] {
            Tcp::shut(tcp.fd[0]);
            const Side side = side_of(tcp, 1);
            std::uint64_t expected = 0;
            int twice = 0;
            for (;;) {
                std::uint64_t number;
                const std::string got = side.get(8);
                if (got.size() < 8) {
                    board.receiver_said = got.empty() && expected == numbers ? 0 : 1;
                    break;
                }
                std::memcpy(&number, got.data(), 8);
                if (number + 1 == expected && twice++ == 0)
                    continue;
                if (number != expected++)
                    board.wrong = true;
            }
            side.connection->close(side.fd, true);
            return 0;
        });
        for (int &one : tcp.fd)
            Tcp::shut(one);
        for (pid_t &one : end) {
            int status = 0;
            EXPECT_EQ(waitpid(one, &status, 0), one);
            EXPECT_EQ(status, 0);
            one = 0;
        }
        EXPECT_FALSE(board.wrong);
        EXPECT_EQ(board.receiver_said, 0);
    }
}

TEST_F(Killed, NobodyAndAllArrives)
{
    nobody();
}

} // namespace
