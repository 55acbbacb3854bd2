// SPDX-License-Identifier: BSD-3-Clause
#include "readiness/deadline.hpp"

#include <gtest/gtest.h>

using namespace ntb::socket;

namespace
{

TEST(Deadlines, Never)
{
    timespec room;
    EXPECT_FALSE(Deadline(nullptr).passed());
    EXPECT_EQ(Deadline(nullptr).left(room), nullptr);
    // Longer than the clock's numbers.
    const timespec longest = {INT64_MAX, 999999999};
    EXPECT_TRUE(Deadline(&longest).never());
}

TEST(Deadlines, AtOnce)
{
    const timespec none = {0, 0};
    timespec room;
    EXPECT_TRUE(Deadline(&none).at_once());
    EXPECT_TRUE(Deadline(&none).passed());
    ASSERT_NE(Deadline(&none).left(room), nullptr);
    EXPECT_EQ(room.tv_sec + room.tv_nsec, 0);
}

TEST(Deadlines, Later)
{
    const timespec hour = {3600, 500}, soon = {0, 1};
    timespec room;
    const Deadline later(&hour);
    EXPECT_FALSE(later.passed() || later.at_once() || later.never());
    ASSERT_NE(later.left(room), nullptr);
    EXPECT_TRUE(is_valid(room));
    EXPECT_TRUE(room.tv_sec < 3600 || room.tv_nsec <= 500);
    const Deadline over(&soon);
    while (!over.passed())
        ;
    EXPECT_EQ(over.left(room)->tv_nsec, 0);
}

TEST(Deadlines, KnowWhatTheKernelTakes)
{
    EXPECT_TRUE(is_valid({0, 0}));
    EXPECT_TRUE(is_valid({5, 999999999}));
    EXPECT_FALSE(is_valid({-1, 0}));
    EXPECT_FALSE(is_valid({0, -1}));
    EXPECT_FALSE(is_valid({0, 1000000000}));
}

} // namespace
