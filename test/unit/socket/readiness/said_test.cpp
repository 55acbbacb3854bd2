// SPDX-License-Identifier: BSD-3-Clause
// What a program last said of the members of a set, as its children read it.
#include "readiness/said.hpp"

#include <atomic>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

using namespace ntb::socket;

namespace
{

struct SaidTest : testing::Test {
    // As in the memory that processes share: zeroed.
    std::unique_ptr<Said> said{new Said{}};
    Said::Word word = {};
};

TEST_F(SaidTest, KnowsNothingAtFirst)
{
    EXPECT_FALSE(said->any());
    EXPECT_FALSE(said->find(0, 0, word));
    EXPECT_FALSE(said->find(3, 1, word));
}

TEST_F(SaidTest, KeepsTheLastWord)
{
    said->say(3, 1, {1, 0x100000007, false, true});
    said->say(3, 1, {5, 0x200000008, true, false});
    EXPECT_TRUE(said->any());
    ASSERT_TRUE(said->find(3, 1, word));
    EXPECT_EQ(word.events, 5u);
    EXPECT_EQ(word.data, 0x200000008u);
    EXPECT_TRUE(word.off);
    EXPECT_FALSE(word.removed);
    EXPECT_FALSE(said->find(2, 1, word));
}

TEST_F(SaidTest, IsOfOneUseOfALink)
{
    said->say(3, 0xffff, {1, 7, false, false});
    EXPECT_FALSE(said->find(3, 0, word));
    EXPECT_TRUE(said->find(3, 0xffff, word));
    said->say(3, 0, {1, 8, false, false});
    EXPECT_FALSE(said->find(3, 0xffff, word));
    ASSERT_TRUE(said->find(3, 0, word));
    EXPECT_EQ(word.data, 8u);
}

TEST_F(SaidTest, HasNoRoomForHigherLinks)
{
    said->say(Said::most - 1, 1, {1, 7, false, false});
    said->say(Said::most, 1, {1, 8, false, false});
    EXPECT_TRUE(said->find(Said::most - 1, 1, word));
    EXPECT_FALSE(said->find(Said::most, 1, word));
}

TEST_F(SaidTest, ForgetsAllAndSaysMore)
{
    for (int era = 0; era < 20000; era++) { // more than the numbers of its eras
        said->say(3, 1, {1, 7, false, false});
        ASSERT_TRUE(said->find(3, 1, word)) << era;
        said->forget();
        ASSERT_FALSE(said->find(3, 1, word)) << era;
        ASSERT_FALSE(said->any());
    }
}

TEST_F(SaidTest, ShowsNoHalfOfAWord)
{
    std::atomic<bool> stops = false;
    std::thread writer([&] {
        for (std::uint32_t i = 1; !stops; i++)
            said->say(3, 1, {i, i, false, false});
    });
    for (int found = 0; found < 20000;) {
        Said::Word seen = {};
        if (!said->find(3, 1, seen))
            continue;
        found++;
        ASSERT_EQ(seen.events, seen.data);
    }
    stops = true;
    writer.join();
}

} // namespace
