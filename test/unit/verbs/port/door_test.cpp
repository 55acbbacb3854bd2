// SPDX-License-Identifier: BSD-3-Clause
#include "port/door.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/memory_files.hpp"

namespace
{

using namespace ntb::verbs;

class DoorTest : public testing::Test
{
protected:
    void SetUp() override { ASSERT_EQ(door.open(), 0); }
    int descriptor() const { return segment->descriptor(); }
    static bool is_same(int one, int other)
    {
        struct stat first, second;
        return fstat(one, &first) == 0 && fstat(other, &second) == 0 &&
               first.st_ino == second.st_ino;
    }

    const uid_t me = getuid();
    MemoryFiles files;
    std::unique_ptr<Segment> segment = files.create(4096);
    Door door;
};

TEST_F(DoorTest, WhatIsBroughtIsTakenOnce)
{
    EXPECT_EQ(door.take(1, me), -1);
    ASSERT_TRUE(bring(door.name(), me, 1, descriptor()));
    ASSERT_TRUE(bring(door.name(), me, 2, STDIN_FILENO));
    const int taken = door.take(1, me);
    ASSERT_GE(taken, 0);
    EXPECT_TRUE(is_same(taken, descriptor()));
    close(taken);
    EXPECT_EQ(door.take(1, me), -1);
    const int other = door.take(2, me);
    EXPECT_GE(other, 0);
    close(other);
}

TEST_F(DoorTest, IsOfItsUserAlone)
{
    EXPECT_FALSE(bring(door.name(), me + 1, 1, descriptor())) << "the door is not that user's";
    EXPECT_EQ(door.take(1, me), -1);
    ASSERT_TRUE(bring(door.name(), me, 1, descriptor()));
    EXPECT_EQ(door.take(1, me + 1), -1) << "it came from this one";
}

TEST_F(DoorTest, NobodyIsBehindOneThatIsNotThere)
{
    EXPECT_FALSE(bring({{1, 2}}, me, 1, descriptor()));
    EXPECT_FALSE(bring({}, me, 1, descriptor()));
    Door closed;
    EXPECT_EQ(closed.take(1, me), -1);
}

TEST_F(DoorTest, WhoFillsItMakesOthersFail)
{
    int brought = 0;
    while (brought < 1000 && bring(door.name(), me, 7, descriptor()))
        ++brought;
    EXPECT_LT(brought, 1000);
    EXPECT_EQ(door.take(1, me), -1);
    ASSERT_TRUE(bring(door.name(), me, 1, descriptor())) << "there is room again";
    const int taken = door.take(1, me);
    EXPECT_GE(taken, 0);
    close(taken);
}

} // namespace
