// SPDX-License-Identifier: BSD-3-Clause
#include "readiness/set.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <list>

#include "readiness/deadline.hpp"
#include "sets.hpp"

using namespace ntb::socket;

namespace
{

TEST_F(Sets, AreTheKernelsWithoutUpgradedMembers)
{
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    EXPECT_EQ(native(EPOLL_CTL_MOD, pair[0], EPOLLIN), -ENOENT);
    EXPECT_EQ(native(EPOLL_CTL_ADD, pair[0], EPOLLIN, 7), 0);
    EXPECT_EQ(native(EPOLL_CTL_ADD, pair[0], EPOLLIN, 7), -EEXIST);
    EXPECT_EQ(set->control(EPOLL_CTL_ADD, pair[0], nullptr, nullptr, nullptr), -EFAULT);
    EXPECT_EQ(look(), Reported{});
    EXPECT_EQ(write(pair[1], "", 1), 1);
    EXPECT_EQ(look(), (Reported{{7, EPOLLIN}}));
    EXPECT_EQ(native(EPOLL_CTL_DEL, pair[0], 0), 0);
    EXPECT_EQ(look(), Reported{});
    epoll_event event;
    EXPECT_EQ(set->wait(&event, 0, &at_once, nullptr), -EINVAL);
    close(pair[0]);
    close(pair[1]);
}

TEST_F(Sets, LevelTriggeredReportsUntilItIsRead)
{
    EXPECT_EQ(add(a, EPOLLIN, 5), 0);
    EXPECT_EQ(add(a, EPOLLIN, 5), -EEXIST);
    EXPECT_EQ(look(), Reported{});
    a.arrive(2);
    EXPECT_EQ(look(), (Reported{{5, EPOLLIN}}));
    a.read(1);
    EXPECT_EQ(look(), (Reported{{5, EPOLLIN}}));
    a.read(1);
    EXPECT_EQ(look(), Reported{});
}

TEST_F(Sets, LookWhereThereAreNewsOrNoSignsAndElseNowAndThen)
{
    constexpr std::uint64_t times = 64;
    add(a, EPOLLIN, 1);
    b.has_signs = false;
    add(b, EPOLLIN, 2);
    EXPECT_EQ(look(), Reported{});
    const std::uint64_t before = a.looks, before_b = b.looks;
    for (std::uint64_t i = 0; i < times && b.armed_in == 0; i++)
        EXPECT_EQ(look(), Reported{});
    EXPECT_GE(b.looks - before_b, times / 8);
    EXPECT_LE(a.looks - before, (b.looks - before_b) / 2);
    a.arrive();
    EXPECT_EQ(look(), (Reported{{1, EPOLLIN}}));
    EXPECT_EQ(look(), (Reported{{1, EPOLLIN}})) << "it was not read";
    a.read_all();
    EXPECT_EQ(look(), Reported{});
}

// However the set comes to look at them, and also where one that was looked at has nothing yet when
// something comes for both.
TEST_F(Sets, ReportThoseThatHaveBytesInTheOrderInWhichTheyCame)
{
    add(a, EPOLLIN, 1);
    add(b, EPOLLIN, 2);
    for (int round = 0; round < 40; round++) {
        FakeSource &first = round % 2 ? a : b, &second = round % 2 ? b : a;
        const auto both = [&first, &second] {
            first.arrive();
            second.arrive();
        };
        FakeSource &looked_at = round % 4 < 2 ? a : b;
        if (round < 20)
            both();
        else
            looked_at.meanwhile = both;
        std::vector<std::uint64_t> reported;
        for (int looks = 0; reported.empty() && looks < 8; looks++) {
            epoll_event events[4];
            const int n = set->wait(events, 4, &at_once, nullptr);
            for (int i = 0; i < n; i++)
                reported.push_back(events[i].data.u64);
        }
        EXPECT_EQ(reported,
                  (round % 2 ? std::vector<std::uint64_t>{1, 2} : std::vector<std::uint64_t>{2, 1}))
            << round;
        a.read_all();
        b.read_all();
    }
}

// Members of the kernel's, and those whose bell alone announces them, before the others.
TEST_F(Sets, ReportWhatTheKernelHasBeforeWhatCameLater)
{
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    add(a, EPOLLIN, 1);
    add(b, EPOLLIN, 2);
    ASSERT_EQ(native(EPOLL_CTL_ADD, pair[0], EPOLLIN, 3), 0);
    const auto reported = [this] {
        epoll_event events[4];
        const int n = set->wait(events, 4, &at_once, nullptr);
        std::vector<std::uint64_t> data;
        for (int i = 0; i < n; i++)
            data.push_back(events[i].data.u64);
        return data;
    };
    using Data = std::vector<std::uint64_t>;
    for (int round = 0; round < 10; round++) {
        EXPECT_EQ(write(pair[1], "", 1), 1);
        b.arrive();
        EXPECT_EQ(reported(), (Data{3, 2})) << round;
        char byte;
        EXPECT_EQ(read(pair[0], &byte, 1), 1);
        b.read_all();
    }
    // So often that the other one is not looked at any more.
    const auto hide_the_other = [&] {
        for (int quiet = 0; a.armed_in == 0; quiet++) {
            ASSERT_LT(quiet, 1000);
            b.arrive();
            EXPECT_EQ(reported(), Data{2});
            b.read_all();
        }
        EXPECT_EQ(write(pair[1], "", 1), 1);
        while (reported() != Data{3})
            ;
    };
    hide_the_other();
    char byte;
    EXPECT_EQ(read(pair[0], &byte, 1), 1);
    a.arrive();
    b.arrive();
    EXPECT_EQ(reported(), (Data{1, 2}));
    // The bell rings for the later one.
    a.read_all();
    b.read_all();
    hide_the_other();
    b.arrive();
    a.arrive();
    EXPECT_EQ(reported(), (Data{3, 2, 1}));
    close(pair[0]);
    close(pair[1]);
}

TEST_F(Sets, EdgeTriggeredReportsEachArrivalOnce)
{
    a.out = true;
    add(a, EPOLLIN | EPOLLOUT | EPOLLET);
    EXPECT_EQ(look(), (Reported{{1, EPOLLOUT}}));
    EXPECT_EQ(look(), Reported{});
    a.arrive();
    EXPECT_EQ(look(), (Reported{{1, EPOLLIN | EPOLLOUT}}));
    EXPECT_EQ(look(), Reported{});
    a.arrive();
    EXPECT_EQ(look(), (Reported{{1, EPOLLIN | EPOLLOUT}})) << "unread bytes hide no arrival";
    a.room(false);
    a.read_all();
    EXPECT_EQ(look(), Reported{});
    a.room(true);
    EXPECT_EQ(look(), (Reported{{1, EPOLLOUT}}));
    a.end();
    EXPECT_EQ(look(), (Reported{{1, EPOLLIN | EPOLLOUT}}));
    EXPECT_EQ(look(), Reported{});
}

TEST_F(Sets, EdgeTriggeredReportsRoomByTheLookThatFindsIt)
{
    add(a, EPOLLIN | EPOLLOUT | EPOLLET);
    EXPECT_EQ(look(), Reported{});
    a.unrung_room();
    EXPECT_EQ(look(), (Reported{{1, EPOLLOUT}}));
    EXPECT_EQ(look(), Reported{});
    a.arrive();
    EXPECT_EQ(look(), (Reported{{1, EPOLLIN | EPOLLOUT}}));
}

TEST_F(Sets, EdgeTriggeredSleepsThoughItIsReadyAndReported)
{
    a.out = true;
    add(a, EPOLLIN | EPOLLOUT | EPOLLET);
    a.arrive();
    EXPECT_EQ(look(), (Reported{{1, EPOLLIN | EPOLLOUT}}));
    std::thread peer([this] {
        await([this] { return a.armed_in > 0; });
        a.arrive();
    });
    EXPECT_EQ(sleep(), (Reported{{1, EPOLLIN | EPOLLOUT}}));
    peer.join();
}

TEST_F(Sets, OneShotIsOffUntilItIsModified)
{
    add(a, EPOLLIN | EPOLLONESHOT);
    a.arrive();
    EXPECT_EQ(look(), (Reported{{1, EPOLLIN}}));
    a.arrive();
    EXPECT_EQ(look(), Reported{});
    EXPECT_EQ(a.armed_any, 0);
    EXPECT_EQ(control(EPOLL_CTL_MOD, a, EPOLLIN | EPOLLONESHOT, 2), 0);
    EXPECT_EQ(look(), (Reported{{2, EPOLLIN}}));
    EXPECT_EQ(look(), Reported{});
}

TEST_F(Sets, AreWokenByTheBell)
{
    add(a, EPOLLIN, 1);
    add(b, EPOLLIN, 2);
    for (int i = 0; i < 100; i++) {
        FakeSource &rings = i % 2 ? a : b;
        std::thread peer([&] {
            await([&] { return rings.armed_in > 0; });
            rings.arrive();
        });
        EXPECT_EQ(sleep(), (Reported{{i % 2 ? 1 : 2, EPOLLIN}}));
        peer.join();
        rings.read_all();
    }
}

TEST_F(Sets, KeepWhatTheKernelSaysOfTheShadow)
{
    add(a, EPOLLIN);
    std::thread peer([this] {
        await([this] { return a.armed_in > 0; });
        EXPECT_EQ(write(a.peer(), "", 1), 1);
    });
    EXPECT_EQ(sleep(), (Reported{{1, EPOLLIN}}));
    peer.join();
    EXPECT_EQ(look(), (Reported{{1, EPOLLIN}}));
    a.kept = 0;
    EXPECT_EQ(look(), Reported{});
}

TEST_F(Sets, ReportMembersOfTheKernelBesideUpgradedOnes)
{
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    native(EPOLL_CTL_ADD, pair[0], EPOLLIN, 3);
    add(a, EPOLLIN, 1);
    a.arrive();
    EXPECT_EQ(write(pair[1], "", 1), 1);
    bool reported = false;
    for (int i = 0; i < 32 && !reported; i++)
        reported = look().count(3) == 1;
    EXPECT_TRUE(reported) << "a member that is always ready hides the kernel's";
    a.read_all();
    EXPECT_EQ(sleep(), (Reported{{3, EPOLLIN}}));
    close(pair[0]);
    close(pair[1]);
}

TEST_F(Sets, ReportInTheOrderInWhichMembersBecameReady)
{
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    add(a, EPOLLIN, 1);
    add(b, EPOLLIN, 2);
    native(EPOLL_CTL_ADD, pair[0], EPOLLIN, 3);
    using Order = std::vector<std::uint64_t>;
    for (const Order &order : {Order{1, 2, 3}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {1, 3, 2}}) {
        while (a.armed_in == 0 || b.armed_in == 0)
            EXPECT_EQ(look(), Reported{});
        for (const std::uint64_t one : order) {
            if (one == 3) {
                EXPECT_EQ(write(pair[1], "", 1), 1);
            } else {
                (one == 1 ? a : b).arrive();
            }
        }
        epoll_event events[3];
        ASSERT_EQ(set->wait(events, 3, &at_once, nullptr), 3);
        EXPECT_EQ((Order{events[0].data.u64, events[1].data.u64, events[2].data.u64}), order);
        a.read_all();
        b.read_all();
        char byte;
        EXPECT_EQ(read(pair[0], &byte, 1), 1);
    }
    close(pair[0]);
    close(pair[1]);
}

TEST_F(Sets, LetNoMemberStarve)
{
    std::array<FakeSource, 10> sources;
    for (std::size_t i = 0; i < sources.size(); i++) {
        add(sources[i], EPOLLIN, i);
        sources[i].arrive();
    }
    std::map<std::uint64_t, int> seen;
    for (int i = 0; i < 30; i++)
        for (const auto &[data, events] : look(2))
            seen[data]++;
    for (FakeSource &source : sources)
        set->closed(source.shadow(), &source, true);
    EXPECT_EQ(seen.size(), sources.size());
    for (const auto &[data, times] : seen)
        EXPECT_GE(times, 4) << data;
}

TEST_F(Sets, OneActiveOfManyCostsLittle)
{
    constexpr int many = 300;
    std::list<FakeSource> sources(many);
    for (FakeSource &source : sources)
        add(source, EPOLLIN);
    FakeSource &active = sources.front();
    const auto looks = [&] {
        std::uint64_t all = 0;
        for (const FakeSource &source : sources)
            all += source.looks;
        return all;
    };
    // All of them are looked at some times, and then armed.
    while (std::any_of(sources.begin(), sources.end(),
                       [](const FakeSource &source) { return source.armed_in == 0; }))
        look();
    const std::uint64_t before = looks();
    for (int i = 0; i < 100; i++) {
        active.arrive();
        EXPECT_EQ(look().size(), 1u);
        active.read_all();
    }
    EXPECT_LT(looks() - before, 100u * 4);
    for (FakeSource &source : sources)
        set->closed(source.shadow(), &source, true);
}

TEST_F(Sets, WakeWhoSleepsWhenAReadyMemberIsAddedElsewhere)
{
    add(a, EPOLLIN, 1);
    b.arrive();
    std::thread other([this] {
        await([this] { return a.armed_in > 0; });
        add(b, EPOLLIN, 2);
    });
    EXPECT_EQ(sleep(), (Reported{{2, EPOLLIN}}));
    other.join();
}

TEST_F(Sets, WakeWhoSleepsInTheKernelsCall)
{
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    native(EPOLL_CTL_ADD, pair[0], EPOLLIN, 3);
    b.arrive();
    std::thread other([this] { EXPECT_EQ(add(b, EPOLLIN, 2), 0); });
    EXPECT_EQ(sleep(), (Reported{{2, EPOLLIN}}));
    other.join();
    close(pair[0]);
    close(pair[1]);
}

TEST_F(Sets, ANestedSetIsReadableWhenAMemberIsReady)
{
    const int outer_fd = epoll_create1(EPOLL_CLOEXEC);
    Set *outer = Set::create(outer_fd, nullptr);
    add(a, EPOLLIN, 1);
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = 77;
    EXPECT_EQ(outer->control(EPOLL_CTL_ADD, epoll, nullptr, set, &event), 0);
    EXPECT_EQ(outer->wait(&event, 1, &at_once, nullptr), 0);
    for (int i = 0; i < 3; i++) {
        std::thread peer([this] { a.arrive(); });
        EXPECT_EQ(outer->wait(&event, 1, nullptr, nullptr), 1);
        EXPECT_EQ(event.data.u64, 77u);
        peer.join();
        EXPECT_EQ(look(), (Reported{{1, EPOLLIN}}));
        EXPECT_EQ(outer->wait(&event, 1, &at_once, nullptr), 1) << "level triggered: still there";
        a.read_all();
        set->settle();
        EXPECT_EQ(outer->wait(&event, 1, &at_once, nullptr), 0);
    }
    outer->destroy();
    close(outer_fd);
}

// Room comes with time alone, once no look has found any.
TEST_F(Sets, LookAgainInTimeWhereAMemberIsInDoubt)
{
    constexpr timespec patience = {60, 0};
    for (const std::uint32_t edge : {0u, static_cast<std::uint32_t>(EPOLLET)}) {
        FakeSource one;
        room_after_a_sleep(one);
        one.in_doubt = true;
        EXPECT_EQ(add(one, EPOLLOUT | edge, 3), 0);
        EXPECT_EQ(look(16, &patience), (Reported{{3, EPOLLOUT}}));
        set->closed(one.shadow(), &one, true);
    }
}

// Also where no wait of it sleeps for long.
TEST_F(Sets, LookAgainInTimeAtAMemberInDoubtBesideABusyOne)
{
    constexpr timespec patience = {60, 0};
    const Deadline deadline(&patience);
    room_after_a_sleep(a);
    a.in_doubt = true;
    EXPECT_EQ(add(a, EPOLLOUT, 3), 0);
    EXPECT_EQ(add(b, EPOLLIN, 4), 0);
    Reported reported;
    while (reported.count(3) == 0 && !deadline.passed()) {
        b.arrive();
        reported = look(16, &patience);
        b.read_all();
    }
    EXPECT_EQ(reported.count(3), 1u);
}

TEST_F(Sets, TimeOutsEnd)
{
    add(a, EPOLLIN);
    const timespec soon = {0, 2000000};
    EXPECT_EQ(look(1, &soon), Reported{});
    const timespec wrong = {0, -1};
    epoll_event event;
    EXPECT_EQ(set->wait(&event, 1, &wrong, nullptr), -EINVAL);
}

// ---- signals

void handle(int)
{
    handler_runs(false);
}

class Signals : public Sets
{
protected:
    Signals()
    {
        struct sigaction action = {};
        action.sa_handler = handle;
        sigaction(SIGUSR1, &action, &old_);
    }
    ~Signals() override
    {
        ntb::process_spinning() = spinning_;
        sigaction(SIGUSR1, &old_, nullptr);
    }

private:
    struct sigaction old_;
    ntb::Spinning spinning_ = ntb::process_spinning();
};

TEST_F(Signals, EndASleep)
{
    add(a, EPOLLIN);
    const pthread_t self = pthread_self();
    std::thread other([&] {
        await([this] { return a.armed_in > 0; });
        pthread_kill(self, SIGUSR1);
    });
    epoll_event event;
    EXPECT_EQ(set->wait(&event, 1, nullptr, nullptr), -EINTR);
    other.join();
}

std::uint64_t raises_when_asked()
{
    static std::uint64_t now;
    if (++now % 3 == 0)
        raise(SIGUSR1);
    return now;
}

TEST_F(Signals, EndALookThatIsNotInTheKernel)
{
    add(a, EPOLLIN);
    ntb::process_spinning().now_ns = raises_when_asked;
    epoll_event event;
    EXPECT_EQ(set->wait(&event, 1, nullptr, nullptr), -EINTR);
    // Events go first.
    a.arrive();
    EXPECT_EQ(set->wait(&event, 1, nullptr, nullptr), 1);
}

TEST_F(Signals, AreLetInByTheMaskOfTheCallAlone)
{
    add(a, EPOLLIN);
    sigset_t blocked, own, during;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &blocked, &own);
    during = own;
    sigdelset(&during, SIGUSR1);
    raise(SIGUSR1);
    epoll_event event;
    a.arrive();
    const std::uint32_t before = handled().all;
    EXPECT_EQ(set->wait(&event, 1, nullptr, &during), 1) << "nothing to wait for";
    EXPECT_EQ(handled().all, before);
    a.read_all();
    const timespec soon = {0, 2000000};
    EXPECT_EQ(set->wait(&event, 1, &soon, nullptr), 0);
    EXPECT_EQ(set->wait(&event, 1, nullptr, &during), -EINTR);
    EXPECT_EQ(handled().all, before + 1);
    sigset_t after;
    pthread_sigmask(SIG_SETMASK, &own, &after);
    EXPECT_EQ(sigismember(&after, SIGUSR1), 1);
}

// ---- several threads

TEST_F(Sets, SeveralThreadsLeaveNothingBehind)
{
    constexpr int sources_n = 6, messages = 3000;
    for (const std::uint32_t mode : {0u, std::uint32_t{EPOLLET}, std::uint32_t{EPOLLONESHOT}}) {
        std::array<FakeSource, sources_n> sources;
        FakeSource stop;
        std::array<std::mutex, sources_n> locks;
        std::atomic<std::uint64_t> got = 0;
        const auto consume = [&] {
            for (;;) {
                epoll_event event;
                if (set->wait(&event, 1, nullptr, nullptr) != 1 || event.data.u64 == sources_n)
                    return;
                FakeSource &source = sources[event.data.u64];
                got += source.read_all();
                if (mode == EPOLLONESHOT)
                    control(EPOLL_CTL_MOD, source, EPOLLIN | mode, event.data.u64);
            }
        };
        std::thread first(consume), second(consume);
        for (std::size_t i = 0; i < sources_n; i++)
            EXPECT_EQ(add(sources[i], EPOLLIN | mode, i), 0);
        EXPECT_EQ(add(stop, EPOLLIN, sources_n), 0);
        for (int i = 0; i < messages; i++) {
            for (FakeSource &source : sources)
                source.arrive();
            // All of them are asleep now and then.
            if (i % 8 == 0)
                await([&] { return got == (static_cast<std::uint64_t>(i) + 1) * sources_n; });
        }
        await([&] { return got == std::uint64_t{messages} * sources_n; });
        stop.arrive();
        first.join();
        second.join();
        for (std::size_t i = 0; i < sources_n; i++)
            set->closed(sources[i].shadow(), &sources[i], true);
        set->closed(stop.shadow(), &stop, true);
    }
}

} // namespace
