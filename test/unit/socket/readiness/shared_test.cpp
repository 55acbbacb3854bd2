// SPDX-License-Identifier: BSD-3-Clause
// A set whose kernel's set a child has as well. The child's sources are copies: what it asks of
// them its parent's do not hear.
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "sets.hpp"

using namespace ntb::socket;

namespace
{

class SharedSets : public Sets
{
protected:
    /// What a child does, to its end. Its status is what that returns.
    template <typename Act>
    int in_child(const Act &act)
    {
        set->before_fork();
        const pid_t child = fork();
        if (child == 0) {
            set->after_fork_in_child();
            _exit(act());
        }
        set->after_fork_in_parent(child > 0);
        int status = -1;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    /// What is reported of something that arrives while this sleeps.
    Reported sleep_until_arrival(FakeSource &source)
    {
        std::thread other([&source] {
            await([&source] { return source.armed_in > 0; });
            source.arrive();
        });
        const Reported found = sleep();
        other.join();
        source.read_all();
        return found;
    }
};

TEST_F(SharedSets, WhatAChildClosesStaysAMember)
{
    add(a, EPOLLIN, 4);
    EXPECT_EQ(look(), Reported{});
    EXPECT_EQ(in_child([this] {
                  set->closed(a.shadow(), &a, true);
                  a.close_shadow();
                  set->destroy();
                  return 0;
              }),
              0);
    EXPECT_EQ(sleep_until_arrival(a), (Reported{{4, EPOLLIN}}));
    EXPECT_EQ(sleep_until_arrival(a), (Reported{{4, EPOLLIN}}));
    EXPECT_TRUE(a.upgraded());
}

TEST_F(SharedSets, WhatStandsForNothingInAChildStaysAMember)
{
    add(a, EPOLLIN, 4);
    EXPECT_EQ(in_child([this] {
                  set->left(a.shadow(), &a);
                  return 0;
              }),
              0);
    EXPECT_EQ(sleep_until_arrival(a), (Reported{{4, EPOLLIN}}));
}

TEST_F(SharedSets, WhatAChildTakesOutIsNoMember)
{
    add(a, EPOLLIN, 1);
    add(b, EPOLLIN, 2);
    EXPECT_EQ(in_child([this] { return -control(EPOLL_CTL_DEL, b, 0); }), 0);
    a.arrive();
    b.arrive();
    EXPECT_EQ(look(), (Reported{{1, EPOLLIN}}));
    EXPECT_EQ(native(EPOLL_CTL_DEL, b.shadow(), 0), -ENOENT);
}

TEST_F(SharedSets, MembersThatAreChangedGoBack)
{
    add(a, EPOLLIN, 1);
    add(b, EPOLLIN, 2);
    a.goes_back = b.goes_back = true;
    EXPECT_EQ(in_child([this] { return -control(EPOLL_CTL_MOD, a, EPOLLIN, 5); }), 0);
    EXPECT_EQ(look(), Reported{});
    EXPECT_FALSE(a.upgraded() || b.upgraded());
    for (const FakeSource *source : {&a, &b})
        EXPECT_EQ(write(source->peer(), "", 1), 1);
    EXPECT_EQ(look(), (Reported{{2, EPOLLIN}, {5, EPOLLIN}}));
}

TEST_F(SharedSets, WhatAParentHasChangedMeanwhileCounts)
{
    add(a, EPOLLIN, 1);
    add(b, EPOLLIN, 2);
    a.goes_back = b.goes_back = true;
    set->before_fork();
    int pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        set->after_fork_in_child();
        _exit(read(pipes[0], &byte, 1) == 1 && look() == Reported{} ? 0 : 1);
    }
    set->after_fork_in_parent(true);
    EXPECT_EQ(control(EPOLL_CTL_MOD, a, EPOLLIN, 3), 0);
    EXPECT_EQ(control(EPOLL_CTL_DEL, b, 0), 0);
    EXPECT_EQ(write(pipes[1], "x", 1), 1);
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(look(), Reported{});
    for (const FakeSource *source : {&a, &b})
        EXPECT_EQ(write(source->peer(), "", 1), 1);
    EXPECT_EQ(look(), (Reported{{3, EPOLLIN}}));
    close(pipes[0]);
    close(pipes[1]);
}

TEST_F(SharedSets, WithoutItsChildASetIsAsItWas)
{
    add(a, EPOLLIN, 1);
    EXPECT_EQ(in_child([this] {
                  look();
                  return 0;
              }),
              0);
    EXPECT_EQ(look(), Reported{});
    EXPECT_EQ(add(b, EPOLLIN, 2), 0); // that one is the only process
    EXPECT_EQ(sleep_until_arrival(b), (Reported{{2, EPOLLIN}}));
    set->before_fork();
    set->after_fork_in_parent(false); // no child
    EXPECT_EQ(sleep_until_arrival(b), (Reported{{2, EPOLLIN}}));
    EXPECT_TRUE(b.upgraded());
}

} // namespace
