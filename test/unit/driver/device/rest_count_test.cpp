// SPDX-License-Identifier: BSD-3-Clause
// A rest that is read while it is counted: never back, never too much.
#include "device/rest_count.hpp"

#include <gtest/gtest.h>

namespace
{

using plx::pmd::RestCount;

/// A thread that counts bursts of messages, all of a burst first, then the long ones among them.
struct Counting {
    uint64_t all = 0, longs = 0, owed = 0; ///< owed: long ones that are not counted yet
    RestCount rest;

    void begin(unsigned messages, unsigned long_ones)
    {
        end();
        all += messages;
        owed = long_ones;
    }
    void end()
    {
        longs += owed;
        owed = 0;
    }
    bool outside() const { return owed == 0; }
    /// @param between  what the thread does after each reading of its counts
    template <class Between>
    uint64_t update(const Between &between)
    {
        return rest.update(
            [&] {
                const RestCount::Counts now{all, longs};
                between();
                return now;
            },
            [this] { return outside(); });
    }
    uint64_t update()
    {
        return update([] {});
    }
};

TEST(RestCount, IsExactWhereNothingMoves)
{
    Counting c;
    EXPECT_EQ(c.update(), 0u);
    c.begin(10, 3);
    c.end();
    EXPECT_EQ(c.update(), 7u);
    EXPECT_EQ(c.update(), 7u);
}

TEST(RestCount, StaysWhereABurstIsHalfCounted)
{
    Counting c;
    c.begin(10, 0);
    EXPECT_EQ(c.update(), 10u);
    c.begin(32, 31);
    EXPECT_EQ(c.update(), 10u) << "32 would be too many";
    c.end();
    EXPECT_EQ(c.update(), 11u);
}

TEST(RestCount, DoesNotGoBackWhereLongMessagesCameBetweenTwoLooks)
{
    Counting c;
    c.begin(100, 0);
    EXPECT_EQ(c.update(), 100u);
    // After the first reading come 50 long ones: more of them than all that was read has short
    // ones.
    bool once = true;
    EXPECT_EQ(c.update([&] {
        if (once)
            c.begin(50, 50);
        once = false;
    }),
              100u);
}

TEST(RestCount, KnowsWithoutAPauseOfABusyThread)
{
    Counting c;
    uint64_t shorts = 0, last = 0;
    for (unsigned round = 0; round < 1000; ++round) {
        const uint64_t now = c.update([&] { // never seen outside: each burst follows on the last
            c.begin(32, round % 33);
            shorts += 32 - round % 33;
        });
        EXPECT_GE(now, last);
        EXPECT_LE(now, shorts);
        last = now;
    }
    EXPECT_GT(last, 0u);
    c.end();
    EXPECT_EQ(c.update(), shorts);
}

TEST(RestCount, BeginsAgain)
{
    Counting c;
    c.begin(10, 3);
    c.end();
    EXPECT_EQ(c.update(), 7u);
    c.all = c.longs = 0;
    c.rest.reset();
    EXPECT_EQ(c.update(), 0u);
}

} // namespace
