// SPDX-License-Identifier: BSD-3-Clause
#include "placement.hpp"

#include <gtest/gtest.h>

using namespace bench;

TEST(Placement, ClassesMeetAtTheirBounds)
{
    EXPECT_EQ(classify(50), Class::smt);
    EXPECT_EQ(classify(89.9), Class::smt);
    EXPECT_EQ(classify(90), Class::ccx);
    EXPECT_EQ(classify(130), Class::ccx);
    EXPECT_EQ(classify(130.1), Class::other);
    EXPECT_EQ(classify(399), Class::other);
    EXPECT_EQ(classify(400), Class::far);
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
