// SPDX-License-Identifier: BSD-3-Clause
#include "result.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace
{

TEST(ResultCsv, HasAsManyColumnsInEachLine)
{
    app::Result result;
    result.points.resize(2);
    result.points[0].flows = {{"out", 10, 640, 1}};
    result.points[0].mix = "pcap:a \"quoted\" name"; // no comma: quotes alone must not split it
    const std::string text = app::to_csv(result);
    const auto lines = std::count(text.begin(), text.end(), '\n');
    EXPECT_EQ(lines, 3);
    const auto commas = std::count(text.begin(), text.end(), ',');
    EXPECT_EQ(commas % lines, 0);
    EXPECT_NE(text.find("\"pcap:a \"\"quoted\"\" name\""), std::string::npos);
}

} // namespace
