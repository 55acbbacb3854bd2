// SPDX-License-Identifier: BSD-3-Clause
#include "readiness/set.hpp"

#include <cerrno>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sets.hpp"

using namespace ntb::socket;

namespace
{

TEST_F(Sets, RemovedMembersReportNothingAndCanBeAddedAgain)
{
    add(a, EPOLLIN);
    a.arrive();
    EXPECT_EQ(control(EPOLL_CTL_DEL, a, 0), 0);
    EXPECT_EQ(control(EPOLL_CTL_DEL, a, 0), -ENOENT);
    EXPECT_EQ(control(EPOLL_CTL_MOD, a, EPOLLIN), -ENOENT);
    EXPECT_EQ(look(), Reported{});
    EXPECT_EQ(add(a, EPOLLIN, 9), 0);
    EXPECT_EQ(look(), (Reported{{9, EPOLLIN}}));
    EXPECT_EQ(control(EPOLL_CTL_MOD, a, EPOLLIN | EPOLLEXCLUSIVE), -EINVAL);
}

TEST_F(Sets, AMemberMayBeUpgradedWhileSomebodySleeps)
{
    a.bells = false; // not matched yet: the kernel's
    EXPECT_EQ(add(a, EPOLLIN, 4), 0);
    std::thread other([this] {
        a.bells = true;
        set->upgrade(a.shadow(), &a);
        a.arrive();
    });
    EXPECT_EQ(sleep(), (Reported{{4, EPOLLIN}}));
    other.join();
    EXPECT_EQ(look(), (Reported{{4, EPOLLIN}}));
}

TEST_F(Sets, AOneShotMemberThatTheKernelHasReportedStaysOffWhenItIsUpgraded)
{
    for (FakeSource *source : {&a, &b}) {
        source->bells = false;
        add(*source, EPOLLIN | EPOLLONESHOT, source == &a ? 1 : 2);
    }
    EXPECT_EQ(write(a.peer(), "", 1), 1);
    EXPECT_EQ(look(), (Reported{{1, EPOLLIN}}));
    for (FakeSource *source : {&a, &b}) {
        source->bells = true;
        set->upgrade(source->shadow(), source);
        source->arrive();
    }
    EXPECT_EQ(look(), (Reported{{2, EPOLLIN}}));
    EXPECT_EQ(control(EPOLL_CTL_MOD, a, EPOLLIN | EPOLLONESHOT, 3), 0);
    EXPECT_EQ(look(), (Reported{{3, EPOLLIN}}));
}

TEST_F(Sets, AMemberThatWasNotToldOfIsLearnedFromTheKernel)
{
    for (FakeSource *source : {&a, &b}) {
        epoll_event event = {};
        event.events = EPOLLIN | (source == &b ? std::uint32_t{EPOLLONESHOT} : 0);
        event.data.u64 = source == &a ? 0xfedcba9876543210 : 2;
        EXPECT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, source->shadow(), &event), 0);
    }
    EXPECT_EQ(write(b.peer(), "", 1), 1);
    EXPECT_EQ(look(), (Reported{{2, EPOLLIN}}));
    for (FakeSource *source : {&a, &b}) {
        EXPECT_TRUE(set->upgrade(source->shadow(), source, true));
        source->arrive();
    }
    EXPECT_EQ(look(), (Reported{{0xfedcba9876543210, EPOLLIN}})) << "the other one is off";
    EXPECT_EQ(control(EPOLL_CTL_MOD, b, EPOLLIN, 3), 0);
    EXPECT_EQ(look(), (Reported{{0xfedcba9876543210, EPOLLIN}, {3, EPOLLIN}}));
    EXPECT_EQ(control(EPOLL_CTL_DEL, a, 0), 0);
    EXPECT_TRUE(set->upgrade(a.peer(), &a, true)) << "it is no member";
}

TEST_F(Sets, AnotherFileThatHadTheNumberIsNoMember)
{
    const int number = dup(a.shadow());
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = 4;
    EXPECT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, number, &event), 0);
    ASSERT_EQ(dup2(b.shadow(), number), number);
    b.arrive();
    EXPECT_TRUE(set->upgrade(number, &b, true)) << "the file of a is a member";
    EXPECT_EQ(look(), Reported{});
    event.data.u64 = 5;
    EXPECT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, number, &event), 0);
    EXPECT_TRUE(set->upgrade(number, &b, true));
    EXPECT_EQ(look(), (Reported{{5, EPOLLIN}}));
    // Forgotten, but for the kernel: its entry is ours.
    set->closed(number, &b, true);
    EXPECT_FALSE(set->upgrade(number, &b, true));
    close(number);
}

TEST_F(Sets, AMemberWhoseBellCannotBeHeardIsNotUpgraded)
{
    a.bells = false;
    EXPECT_EQ(add(a, EPOLLIN, 7), 0);
    a.bells = true;
    const int file = open("/dev/null", O_RDONLY | O_CLOEXEC); // the kernel's set takes none
    ASSERT_EQ(dup2(file, a.bell()), a.bell());
    close(file);
    EXPECT_FALSE(set->upgrade(a.shadow(), &a));
    EXPECT_EQ(write(a.peer(), "", 1), 1);
    EXPECT_EQ(look(), (Reported{{7, EPOLLIN}})) << "the kernel's, as before";
}

TEST_F(Sets, AnUpgradeThatFailsLeavesExclusiveAndOneShotMembersAsTheyWere)
{
    EXPECT_EQ(native(EPOLL_CTL_ADD, a.shadow(), EPOLLIN | EPOLLEXCLUSIVE, 7), 0);
    EXPECT_EQ(native(EPOLL_CTL_ADD, b.shadow(), EPOLLIN | EPOLLONESHOT, 8), 0);
    EXPECT_EQ(write(b.peer(), "", 1), 1);
    EXPECT_EQ(look(), (Reported{{8, EPOLLIN}}));
    const int file = open("/dev/null", O_RDONLY | O_CLOEXEC); // the kernel's set takes none
    for (FakeSource *source : {&a, &b}) {
        ASSERT_EQ(dup2(file, source->bell()), source->bell());
        EXPECT_FALSE(set->upgrade(source->shadow(), source));
    }
    close(file);
    EXPECT_EQ(look(), Reported{}) << "the one that was reported is off";
    EXPECT_EQ(write(a.peer(), "", 1), 1);
    EXPECT_EQ(look(), (Reported{{7, EPOLLIN}}));
    EXPECT_EQ(native(EPOLL_CTL_MOD, b.shadow(), EPOLLIN, 9), 0);
    EXPECT_EQ(look(), (Reported{{7, EPOLLIN}, {9, EPOLLIN}}));
}

TEST_F(Sets, MembersThatGoBackAreTheKernelsAsTheyWere)
{
    EXPECT_EQ(native(EPOLL_CTL_ADD, a.shadow(), EPOLLIN | EPOLLEXCLUSIVE, 7), 0);
    EXPECT_EQ(native(EPOLL_CTL_ADD, b.shadow(), EPOLLIN | EPOLLONESHOT, 8), 0);
    for (FakeSource *source : {&a, &b})
        EXPECT_TRUE(set->upgrade(source->shadow(), source));
    b.arrive();
    EXPECT_EQ(look(), (Reported{{8, EPOLLIN}}));
    for (FakeSource *source : {&a, &b}) {
        set->left(source->shadow(), source);
        EXPECT_EQ(write(source->peer(), "", 1), 1);
    }
    EXPECT_EQ(look(), (Reported{{7, EPOLLIN}})) << "the one that was reported is off";
    EXPECT_EQ(native(EPOLL_CTL_MOD, b.shadow(), EPOLLIN, 9), 0);
    EXPECT_EQ(look(), (Reported{{7, EPOLLIN}, {9, EPOLLIN}}));
}

TEST_F(Sets, AChangeThatTheKernelMadeBesideAnUpgradeIsPutRight)
{
    const auto beside = [this](int op, FakeSource &source, std::uint32_t events,
                               std::uint64_t data) {
        epoll_event event = {};
        event.events = events;
        event.data.u64 = data;
        EXPECT_EQ(epoll_ctl(epoll, op, source.shadow(), &event), 0);
        EXPECT_TRUE(set->changed_beside(op, source.shadow(), &source, &event));
    };
    EXPECT_TRUE(set->upgrade(a.shadow(), &a, true)) << "it is no member yet";
    beside(EPOLL_CTL_ADD, a, EPOLLIN, 5);
    a.arrive();
    EXPECT_EQ(look(), (Reported{{5, EPOLLIN}}));
    beside(EPOLL_CTL_MOD, a, EPOLLIN | EPOLLRDHUP, 6);
    EXPECT_EQ(look(), (Reported{{6, EPOLLIN}}));
    // The kernel's entry is ours again: what the shadow shows is the source's to say.
    a.read_all();
    EXPECT_EQ(write(a.peer(), "", 1), 1);
    EXPECT_EQ(look(), (Reported{{6, EPOLLIN}}));
    EXPECT_GT(a.said, 0u);
    beside(EPOLL_CTL_DEL, a, 0, 0);
    EXPECT_EQ(look(), Reported{});
    EXPECT_EQ(a.armed_any, 0);
    beside(EPOLL_CTL_ADD, a, EPOLLIN, 7);
    EXPECT_EQ(look(), (Reported{{7, EPOLLIN}}));
}

TEST_F(Sets, AMemberThatWasNotToldOfCanBeModified)
{
    EXPECT_EQ(control(EPOLL_CTL_MOD, a, EPOLLIN, 1), -ENOENT);
    epoll_event event = {};
    EXPECT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, a.shadow(), &event), 0);
    EXPECT_EQ(control(EPOLL_CTL_MOD, a, EPOLLIN, 2), 0);
    a.arrive();
    EXPECT_EQ(look(), (Reported{{2, EPOLLIN}}));
    a.read_all();
    EXPECT_EQ(look(), Reported{});
    EXPECT_EQ(control(EPOLL_CTL_DEL, a, 0), 0);
}

TEST_F(Sets, AMemberMayRevertWhileSomebodySleeps)
{
    add(a, EPOLLIN, 4);
    std::thread other([this] {
        await([this] { return a.armed_in > 0; });
        a.revert();
        EXPECT_EQ(write(a.peer(), "", 1), 1);
    });
    EXPECT_EQ(sleep(), (Reported{{4, EPOLLIN}}));
    other.join();
    // The kernel's entry is the program's again.
    epoll_event event;
    EXPECT_EQ(epoll_wait(epoll, &event, 1, 0), 1);
    EXPECT_EQ(event.data.u64, 4u);
    EXPECT_EQ(event.events, static_cast<std::uint32_t>(EPOLLIN));
    EXPECT_EQ(a.armed_any, 0);
    EXPECT_EQ(control(EPOLL_CTL_MOD, a, EPOLLIN | EPOLLOUT, 6), 0);
    EXPECT_EQ(look(), (Reported{{6, EPOLLIN | EPOLLOUT}}));
    EXPECT_EQ(control(EPOLL_CTL_DEL, a, 0), 0);
    EXPECT_EQ(look(), Reported{});
}

TEST_F(Sets, ForgetWhatIsClosed)
{
    auto source = std::make_unique<FakeSource>();
    add(*source, EPOLLIN);
    look();
    const int number = source->shadow();
    set->closed(number, source.get(), true);
    EXPECT_EQ(source->armed_any, 0);
    source->close_shadow();
    source.reset();
    EXPECT_EQ(look(), Reported{});
    // The number is somebody else's.
    ASSERT_EQ(dup2(a.shadow(), number), number);
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = 8;
    EXPECT_EQ(set->control(EPOLL_CTL_ADD, number, &a, nullptr, &event), 0);
    a.arrive();
    EXPECT_EQ(look(), (Reported{{8, EPOLLIN}}));
    set->closed(number, &a, true);
    close(number);
}

TEST_F(Sets, ReportAClosedNumberWhileADuplicateIsOpen)
{
    const int other = dup(a.shadow());
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = 2;
    add(a, EPOLLIN, 1);
    EXPECT_EQ(set->control(EPOLL_CTL_ADD, other, &a, nullptr, &event), 0);
    a.arrive();
    EXPECT_EQ(look(), (Reported{{1, EPOLLIN}, {2, EPOLLIN}}));
    set->closed(other, &a, false);
    close(other);
    EXPECT_EQ(look(), (Reported{{1, EPOLLIN}, {2, EPOLLIN}})) << "as the kernel does";
    a.read_all();
    std::thread peer([this] {
        await([this] { return a.armed_in == 2; });
        a.arrive();
    });
    // It may come between the looks at the two numbers.
    Reported reported = sleep();
    if (reported.size() == 1)
        reported = sleep();
    EXPECT_EQ(reported, (Reported{{1, EPOLLIN}, {2, EPOLLIN}}));
    peer.join();
    set->closed(a.shadow(), &a, true);
    EXPECT_EQ(look(), Reported{});
    EXPECT_EQ(a.armed_any, 0);
}

TEST_F(Sets, AChildIsNotItsParent)
{
    add(a, EPOLLIN, 5);
    const timespec soon = {0, 1000000};
    while (a.armed_in == 0) // its time may be over before it sleeps
        EXPECT_EQ(look(1, &soon), Reported{});
    const pid_t child = fork();
    if (child == 0) {
        set->after_fork_in_child();
        // The connection has left its rings, for both of them.
        a.revert();
        char byte = 0;
        epoll_event event;
        const bool good = write(a.peer(), &byte, 1) == 1 &&
                          set->wait(&event, 1, nullptr, nullptr) == 1 && event.data.u64 == 5;
        _exit(good ? 0 : 1);
    }
    int status;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    a.revert();
    EXPECT_EQ(sleep(), (Reported{{5, EPOLLIN}}));
}

} // namespace
