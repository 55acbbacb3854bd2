// SPDX-License-Identifier: BSD-3-Clause
#include "engine/lock.hpp"

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace
{

using ntb::verbs::BasicLock;
using ntb::verbs::Call;
using ntb::verbs::Kernel;
using ntb::verbs::Lock;
using ntb::verbs::Visit;

/// The kernel, counted. Nobody else uses it while a test does.
struct Counted {
    static inline bool has_barrier = true;
    static inline std::atomic<int> barriers{0}, waits{0};

    static bool prepare() { return has_barrier && Kernel::prepare(); }
    static void barrier()
    {
        ++barriers;
        Kernel::barrier();
    }
    static void wait(std::atomic<std::uint32_t> &word, std::uint32_t value)
    {
        ++waits;
        Kernel::wait(word, value);
    }
    static void wake(std::atomic<std::uint32_t> &word) { Kernel::wake(word); }
};
using CountedLock = BasicLock<Counted>;

class LockTest : public ::testing::Test
{
protected:
    LockTest()
    {
        Counted::has_barrier = true;
        Counted::barriers = Counted::waits = 0;
        lock.prepare();
    }
    /// @return whether the last one was the owner's
    bool call(std::uint32_t times = 1)
    {
        bool owned = false;
        for (; times != 0; --times) {
            CountedLock::Seat *const seat = lock.enter();
            owned = seat != nullptr;
            lock.leave(seat);
        }
        return owned;
    }

    CountedLock lock;
};

TEST_F(LockTest, WhoCallsAloneBecomesTheOwner)
{
    EXPECT_FALSE(call(CountedLock::calls_of_an_owner));
    EXPECT_TRUE(call());
    EXPECT_TRUE(call(1000));
    EXPECT_EQ(Counted::barriers, 0);
}

TEST_F(LockTest, AVisitOfTheOwnerItselfCostsNoBarrier)
{
    call(CountedLock::calls_of_an_owner);
    {
        const Visit visit(lock);
    }
    EXPECT_TRUE(call());
    EXPECT_EQ(Counted::barriers, 0);
}

TEST_F(LockTest, AVisitorTakesTheRightAwayOnce)
{
    call(CountedLock::calls_of_an_owner);
    for (int i = 0; i < 3; ++i)
        std::thread([this] { const Visit visit(lock); }).join();
    EXPECT_EQ(Counted::barriers, 1);
    EXPECT_FALSE(call(CountedLock::calls_of_an_owner));
    EXPECT_TRUE(call());
}

TEST_F(LockTest, VisitorsInBetweenMakeNoOwner)
{
    for (int i = 0; i < 3; ++i) {
        EXPECT_FALSE(call(CountedLock::calls_of_an_owner - 1));
        std::thread([this] { const Visit visit(lock); }).join();
    }
    EXPECT_EQ(Counted::barriers, 0);
}

TEST_F(LockTest, CallsOfTwoThreadsInTurnMakeNoOwner)
{
    for (std::uint32_t i = 0; i < CountedLock::calls_of_an_owner; ++i) {
        EXPECT_FALSE(call());
        std::thread([this] { EXPECT_FALSE(call()); }).join();
    }
    EXPECT_EQ(Counted::barriers, 0);
}

TEST_F(LockTest, ACallOfAnotherThreadTakesTheRightAway)
{
    call(CountedLock::calls_of_an_owner);
    std::thread([this] {
        EXPECT_FALSE(call(CountedLock::calls_of_an_owner));
        EXPECT_TRUE(call());
    }).join();
    EXPECT_EQ(Counted::barriers, 1);
    EXPECT_FALSE(call(CountedLock::calls_of_an_owner));
    EXPECT_TRUE(call());
    EXPECT_EQ(Counted::barriers, 2);
}

TEST_F(LockTest, AVisitorWaitsWhileTheOwnerIsInside)
{
    call(CountedLock::calls_of_an_owner);
    CountedLock::Seat *const seat = lock.enter();
    ASSERT_NE(seat, nullptr);
    bool was_here = false;
    std::thread visitor([&] {
        const Visit visit(lock);
        was_here = true;
    });
    while (Counted::waits == 0)
        std::this_thread::yield();
    EXPECT_FALSE(was_here);
    lock.leave(seat);
    visitor.join();
    EXPECT_TRUE(was_here);
}

TEST_F(LockTest, MoreThreadsThanSeatsTakeTheMutex)
{
    // They live at a time: the number of one that is gone may be given to the next.
    std::atomic<std::uint32_t> done{0};
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i <= CountedLock::most_owners; ++i) {
        threads.emplace_back([&, i] {
            call(CountedLock::calls_of_an_owner);
            EXPECT_EQ(call(), i < CountedLock::most_owners);
            for (++done; done <= CountedLock::most_owners;)
                std::this_thread::yield();
        });
        while (done <= i)
            std::this_thread::yield();
    }
    for (std::thread &thread : threads)
        thread.join();
}

TEST_F(LockTest, WithoutABarrierThereIsNoOwner)
{
    CountedLock other;
    EXPECT_FALSE(other.enter());
    other.leave(nullptr);
    Counted::has_barrier = false;
    other.prepare();
    for (std::uint32_t i = 0; i < 2 * CountedLock::calls_of_an_owner; ++i) {
        CountedLock::Seat *const seat = other.enter();
        EXPECT_EQ(seat, nullptr);
        other.leave(seat);
    }
}

// Two that call, and one that visits whenever one of them may have become the owner.
TEST(LockRace, NoTwoAreInsideAtATime)
{
    Lock lock;
    lock.prepare();
    constexpr std::uint64_t visits = 300;
    std::uint64_t count = 0; // no atomic: the lock has to keep it
    std::atomic<std::uint64_t> calls[2] = {};
    std::atomic<bool> done{false};
    const auto caller = [&](std::atomic<std::uint64_t> &own) {
        while (!done) {
            const Call call(lock);
            count = count + 1;
            own.fetch_add(1, std::memory_order_relaxed);
        }
    };
    std::thread one(caller, std::ref(calls[0]));
    std::thread two(caller, std::ref(calls[1]));
    for (std::uint64_t i = 0; i < visits; ++i) {
        const std::uint64_t enough = calls[0] + calls[1] + 2 * Lock::calls_of_an_owner;
        while (calls[0] + calls[1] < enough)
            std::this_thread::yield();
        const Visit visit(lock);
        count = count + 1;
    }
    done = true;
    one.join();
    two.join();
    EXPECT_EQ(count, calls[0] + calls[1] + visits);
}

} // namespace
