// SPDX-License-Identifier: BSD-3-Clause
#include "build.hpp"

#include <gtest/gtest.h>

namespace
{

TEST(Build, IsInAnMbufUnlessTheOptionSaysOtherwise)
{
    bool in_place = true;
    EXPECT_EQ(app::parse_build("", in_place), "");
    EXPECT_FALSE(in_place);
    EXPECT_EQ(app::parse_build("in-place", in_place), "");
    EXPECT_TRUE(in_place);
    EXPECT_EQ(app::parse_build("mbuf", in_place), "");
    EXPECT_FALSE(in_place);
}

TEST(Build, OtherWordsAreRefused)
{
    bool in_place = true;
    EXPECT_EQ(app::parse_build("in", in_place), "--build in: must be mbuf or in-place");
    EXPECT_TRUE(in_place);
}

TEST(Build, NamesAreThoseOfTheOption)
{
    for (const bool wanted : {false, true}) {
        bool in_place = !wanted;
        EXPECT_EQ(app::parse_build(app::build_name(wanted), in_place), "");
        EXPECT_EQ(in_place, wanted);
    }
}

} // namespace
