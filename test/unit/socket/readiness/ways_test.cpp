// SPDX-License-Identifier: BSD-3-Clause
#include "readiness/ways.hpp"

#include <gtest/gtest.h>

using ntb::socket::Ways;
using Way = Ways::Way;

namespace
{

/// Sleeps that take as long as their way.
class Sleeps : public testing::Test
{
protected:
    /// @return how many were by a word
    std::uint32_t sleep(std::uint32_t times)
    {
        std::uint32_t words = 0;
        for (std::uint32_t i = 0; i < times; i++) {
            const Way way = ways.next();
            words += way == Way::Word;
            ways.took(way, way == Way::Word ? word_ns : bell_ns);
        }
        return words;
    }
    /// Of many.
    static constexpr std::uint32_t n = 20 * (Ways::trial + Ways::between);
    static constexpr std::uint32_t tried = 21 * Ways::trial / 2;

    Ways ways;
    std::uint64_t word_ns = 5000, bell_ns = 7000;
};

TEST_F(Sleeps, AreByTheFasterWay)
{
    EXPECT_GE(sleep(n), n - tried);
    word_ns = 14000;
    sleep(2 * Ways::between);
    EXPECT_LE(sleep(n), tried);
}

TEST_F(Sleeps, AreByTheOtherWaySoonWhereOneBecomesSlow)
{
    sleep(2 * Ways::between);
    word_ns = 14000;
    // Two blocks at most, and the trial.
    sleep(512);
    EXPECT_EQ(sleep(256), 0u);
}

TEST_F(Sleeps, StayAsTheyAreWhereBothAreMuchTheSame)
{
    word_ns = 6500;
    EXPECT_LE(sleep(n), tried);
    word_ns = 5000;
    sleep(2 * Ways::between);
    word_ns = 7500;
    EXPECT_GE(sleep(n), n - tried);
}

// As where a wake-up by one of them is lost in what others have on that processor.
TEST_F(Sleeps, AreCountedHoweverLongTheyTake)
{
    word_ns = 1000000000;
    EXPECT_LE(sleep(n), tried);
    bell_ns = 1000000000;
    sleep(2 * Ways::between);
    word_ns = 5000;
    EXPECT_GE(sleep(n), n - 2 * Ways::between);
}

// What another thread began before this one ended a trial.
TEST_F(Sleeps, OfTheOtherWayAreNotCounted)
{
    for (std::uint32_t i = 0; i < 10 * Ways::trial; i++) {
        const Way other = ways.next() == Way::Word ? Way::Bell : Way::Word;
        ways.took(other, 1);
        ASSERT_NE(ways.next(), other);
    }
}

} // namespace
