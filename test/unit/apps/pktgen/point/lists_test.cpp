// SPDX-License-Identifier: BSD-3-Clause
#include "point/lists.hpp"

#include <gtest/gtest.h>

namespace
{

using Values = std::vector<uint64_t>;

Values list(const std::string &text)
{
    Values values;
    const std::string wrong = pktgen::parse_list(text, 1, 1 << 30, values);
    return wrong.empty() ? values : Values{};
}

TEST(Lists, NumbersPowersAndSteps)
{
    EXPECT_EQ(list("8"), (Values{8}));
    EXPECT_EQ(list("8,64,1K"), (Values{8, 64, 1024}));
    EXPECT_EQ(list("8-64"), (Values{8, 16, 32, 64}));
    EXPECT_EQ(list("8-100"), (Values{8, 16, 32, 64, 100}));
    EXPECT_EQ(list("8-8"), (Values{8}));
    EXPECT_EQ(list("1-7:3"), (Values{1, 4, 7}));
    EXPECT_EQ(list("1-2,1518"), (Values{1, 2, 1518}));
}

TEST(Lists, WhatIsNoListIsRefused)
{
    for (const char *text :
         {"", ",", "8,", "-8", "8-", "9-8", "0-8", "1-8:0", "8x", "8KK", " 8", "+8", "0", "2G",
          "1-1K:1,1", "99999999999999999999", "16777216G", "1-18446744073709551615:1"})
        EXPECT_TRUE(list(text).empty()) << text;
}

TEST(Lists, WhatIsWrongLeavesWordsBehind)
{
    Values values;
    EXPECT_EQ(pktgen::parse_list("300", 1, 256, values),
              "must be a list (8,64 or 8-1K or 1-4:1) of at most 1000 numbers from 1 to 256");
}

TEST(Lists, AmountsKnowTwoKinds)
{
    uint64_t value = 0;
    EXPECT_TRUE(pktgen::parse_amount("2M", 1000, value));
    EXPECT_EQ(value, 2000000U);
    EXPECT_TRUE(pktgen::parse_amount("2m", 1024, value));
    EXPECT_EQ(value, 2U << 20);
    EXPECT_FALSE(pktgen::parse_amount("18446744073709551615K", 1000, value));
}

} // namespace
