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

TEST(Units, QuantilesOfTimes)
{
    app::Histogram times;
    for (int i = 0; i < 4; ++i)
        times.record(2000);
    const std::string text = app::quantiles_text(times, 1e9);
    EXPECT_EQ(text.rfind("p50 2.0", 0), 0u) << text;
    EXPECT_NE(text.find("p99.9 2.0"), std::string::npos) << text;
    EXPECT_NE(text.find("max 2.0"), std::string::npos) << text;
}
