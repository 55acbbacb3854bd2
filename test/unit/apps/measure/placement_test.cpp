// SPDX-License-Identifier: BSD-3-Clause
#include "placement.hpp"

#include <gtest/gtest.h>

using namespace app;

TEST(Placement, ClassesMeetAtTheirBounds)
{
    EXPECT_EQ(classify(50), Placement::smt);
    EXPECT_EQ(classify(89.9), Placement::smt);
    EXPECT_EQ(classify(90), Placement::ccx);
    EXPECT_EQ(classify(130), Placement::ccx);
    EXPECT_EQ(classify(130.1), Placement::other);
    EXPECT_EQ(classify(399), Placement::other);
    EXPECT_EQ(classify(400), Placement::far);
}

TEST(Placement, AProbeOfAnotherClassIsAnotherPlace)
{
    EXPECT_TRUE(same_place(100, 110));
    EXPECT_FALSE(same_place(129, 131));
    EXPECT_FALSE(same_place(100, 500));
}

TEST(Placement, AProbeThatDriftsIsAnotherPlace)
{
    EXPECT_TRUE(same_place(200, 245));
    EXPECT_FALSE(same_place(200, 260));
    EXPECT_FALSE(same_place(260, 200));
}
