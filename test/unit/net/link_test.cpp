// SPDX-License-Identifier: BSD-3-Clause
#include "link.hpp"

#include <gtest/gtest.h>

using namespace plx::net;

namespace
{

TEST(NetLink, ASpeedOfEthernetThatPcieCarries)
{
    EXPECT_EQ(link_speed(1, 4), RTE_ETH_SPEED_NUM_5G);    // 8 Gbit/s
    EXPECT_EQ(link_speed(2, 8), RTE_ETH_SPEED_NUM_25G);   // 32
    EXPECT_EQ(link_speed(3, 8), RTE_ETH_SPEED_NUM_56G);   // 63
    EXPECT_EQ(link_speed(3, 16), RTE_ETH_SPEED_NUM_100G); // 126
    EXPECT_EQ(link_speed(0, 8), RTE_ETH_SPEED_NUM_UNKNOWN);
    EXPECT_EQ(link_speed(99, 8), RTE_ETH_SPEED_NUM_UNKNOWN);
    EXPECT_EQ(link_speed(1, 0), RTE_ETH_SPEED_NUM_UNKNOWN);
}

} // namespace
