// SPDX-License-Identifier: BSD-3-Clause
#include "kernel/lock.hpp"

#include <csignal>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace ntb::socket;

namespace
{

struct Shared {
    Lock lock;
    int counter;
};

class Locks : public testing::Test
{
protected:
    Locks()
        : shared(*new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared{})
    {
    }
    ~Locks() override { munmap(&shared, sizeof(Shared)); }

    Shared &shared;
};

TEST_F(Locks, OneHolderAtATime)
{
    const auto count = [this] {
        for (int i = 0; i < 20000; i++) {
            EXPECT_EQ(shared.lock.take(), Lock::Taken::Clean);
            shared.counter++;
            shared.lock.give();
        }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back(count);
    for (std::thread &one : threads)
        one.join();
    EXPECT_EQ(shared.counter, 60000);
}

TEST_F(Locks, AThreadHasAnotherNumberInAChild)
{
    const std::uint32_t here = thread_id();
    EXPECT_EQ(here, static_cast<std::uint32_t>(gettid()));
    const pid_t child = fork();
    if (child == 0)
        _exit(thread_id() == static_cast<std::uint32_t>(gettid()) && thread_id() != here ? 0 : 1);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(thread_id(), here);
}

TEST_F(Locks, AHolderThatWasKilledIsReplaced)
{
    const pid_t child = fork();
    if (child == 0) {
        shared.lock.take();
        raise(SIGKILL);
    }
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    EXPECT_EQ(shared.lock.take(), Lock::Taken::Repair);
    shared.lock.give();
    EXPECT_EQ(shared.lock.take(), Lock::Taken::Clean);
    shared.lock.give();
}

TEST_F(Locks, WhoLeftByALongJumpTakesItAgain)
{
    shared.lock.take();
    EXPECT_EQ(shared.lock.take(), Lock::Taken::Repair);
    shared.lock.give();
    shared.lock.give(); // of the call that was left: nothing any more
    EXPECT_EQ(shared.lock.take(), Lock::Taken::Clean);
    shared.lock.give();
}

TEST_F(Locks, TheDaemonWaitsForNobody)
{
    shared.lock.take();
    EXPECT_FALSE(shared.lock.try_take_as_daemon());
    shared.lock.give();
    ASSERT_TRUE(shared.lock.try_take_as_daemon());
    std::thread waiter([this] {
        EXPECT_EQ(shared.lock.take(), Lock::Taken::Clean);
        shared.counter = 1;
        shared.lock.give();
    });
    shared.lock.give_as_daemon();
    waiter.join();
    EXPECT_EQ(shared.counter, 1);
}

TEST_F(Locks, OfADaemonThatIsGone)
{
    ASSERT_TRUE(shared.lock.try_take_as_daemon());
    EXPECT_EQ(shared.lock.take(), Lock::Taken::Repair);
    shared.lock.give();
    EXPECT_TRUE(shared.lock.try_take_as_daemon());
}

// It may wake up in the middle of what it took the lock for, when the lock is another's.
TEST_F(Locks, OfADaemonThatIsLateIsInDoubt)
{
    ASSERT_TRUE(shared.lock.try_take_as_daemon(true));
    EXPECT_FALSE(shared.lock.try_take_as_daemon());
    EXPECT_EQ(shared.lock.take(), Lock::Taken::Doubt);
    shared.lock.give_as_daemon(); // no longer its own
    EXPECT_FALSE(shared.lock.try_take_as_daemon());
    shared.lock.give();
    EXPECT_TRUE(shared.lock.try_take_as_daemon(true));
    shared.lock.give_as_daemon();
    EXPECT_EQ(shared.lock.take(), Lock::Taken::Clean);
}

} // namespace
