// SPDX-License-Identifier: BSD-3-Clause
#include "units.hpp"

#include <gtest/gtest.h>

TEST(Units, ThreeDigitsAndAPrefix)
{
    EXPECT_EQ(app::with_unit(0, "B"), "0.00 B");
    EXPECT_EQ(app::with_unit(1500, "B"), "1.50 kB");
    EXPECT_EQ(app::with_unit(999'400'000, "B/s"), "999 MB/s");
    EXPECT_EQ(app::with_unit(999'600'000, "B/s"), "1.00 GB/s");
}

TEST(Units, OnlySecondsHaveParts)
{
    EXPECT_EQ(app::with_unit(0.000'001'5, "s"), "1.50 us");
    EXPECT_EQ(app::with_unit(0.36, "msg/s"), "0.36 msg/s");
}
