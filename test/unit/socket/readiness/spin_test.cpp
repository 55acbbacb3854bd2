// SPDX-License-Identifier: BSD-3-Clause
#include "readiness/spin.hpp"

#include <gtest/gtest.h>

using namespace ntb::socket;

namespace
{

std::uint64_t now;

class Spins : public testing::Test
{
protected:
    Spins() { now = 1000; }
    /// Laps until the window is over, a microsecond each.
    unsigned laps()
    {
        Spin spin(spinning, window);
        unsigned n = 0;
        for (; spin.lap(); n++)
            now += 1000;
        return n;
    }

    std::atomic<std::uint32_t> spinners = 0;
    Spinning spinning = {50, 2, &spinners, [] { return now; }, 16};
    Window window;
};

TEST_F(Spins, FailureHalvesTheWindow)
{
    for (const unsigned expected : {20u, 10u, 5u, 2u, 1u, 1u})
        EXPECT_EQ(laps(), expected);
    EXPECT_EQ(spinners, 0u);
}

TEST_F(Spins, SuccessWidensItUpToTheMost)
{
    for (int i = 0; i < 10; i++) {
        Spin spin(spinning, window);
        EXPECT_TRUE(spin.lap());
        spin.end(true);
        EXPECT_FALSE(spin.lap());
    }
    EXPECT_EQ(laps(), 50u);
}

TEST_F(Spins, OneThatDidNotSpinLearnsNothing)
{
    {
        Spin spin(spinning, window);
        spin.end(true);
    }
    EXPECT_EQ(window.us(), 20u);
}

TEST_F(Spins, NoMoreAtATimeThanProcessors)
{
    Window windows[3];
    Spin first(spinning, windows[0]), second(spinning, windows[1]), third(spinning, windows[2]);
    EXPECT_TRUE(first.lap());
    EXPECT_TRUE(second.lap());
    EXPECT_FALSE(third.lap());
    first.end(true);
    EXPECT_FALSE(third.lap()) << "one wait decides once";
    EXPECT_EQ(laps(), 20u);
}

TEST_F(Spins, NoneWithoutAWindow)
{
    spinning.most_us = 0;
    EXPECT_EQ(laps(), 0u);
}

TEST(ProcessSpinning, KnowsItsProcessorsAndItsClock)
{
    EXPECT_GE(process_spinning().processors, 1u);
    const std::uint64_t before = process_spinning().now_ns();
    EXPECT_GE(process_spinning().now_ns(), before);
    *process_spinning().spinners = 3;
    forget_spinners_after_fork();
    EXPECT_EQ(*process_spinning().spinners, 0u);
}

} // namespace
