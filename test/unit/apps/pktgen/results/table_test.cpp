// SPDX-License-Identifier: BSD-3-Clause
#include "results/table.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace
{

std::vector<std::string> lines_of(const std::string &text)
{
    std::vector<std::string> lines;
    for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
        lines.push_back(text.substr(at, end - at));
    return lines;
}

app::Latency latency(double ns)
{
    app::Latency made;
    made.count = 1;
    made.min_ns = made.mean_ns = made.max_ns = ns;
    made.p50_ns = made.p90_ns = made.p99_ns = made.p99_9_ns = made.p99_99_ns = ns;
    return made;
}

app::ResultPoint load()
{
    app::ResultPoint point;
    point.mode = "load";
    point.operation = "queue";
    point.placement = "far";
    point.offered_rate = 1e6;
    point.flows = {{"echo", 1690, 1690 * 64, 1}};
    point.latency = latency(1000);
    point.latency_from_intended = latency(2e9);
    point.complete = true;
    return point;
}

} // namespace

TEST(Table, OfferedAndAchievedRateStandSideBySide)
{
    const std::string head = pktgen::table_head();
    EXPECT_LT(head.find("offered"), head.find("msg/s"));
    const std::string line = lines_of(pktgen::table_line(load()))[0];
    EXPECT_LT(line.find("1.00 M/s"), line.find("1.69 kmsg/s")) << line;
}

TEST(Table, TimesFromWhenAMessageWasDueComeFirst)
{
    const auto lines = lines_of(pktgen::table_line(load()));
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0].find("load, due"), 0u);
    EXPECT_NE(lines[0].find("2.00 s"), std::string::npos) << lines[0];
    EXPECT_EQ(lines[1].find("  from sending"), 0u);
    EXPECT_NE(lines[1].find("1.00 us"), std::string::npos) << lines[1];
}

TEST(Table, WhatDisturbedAPointStandsUnderIt)
{
    app::ResultPoint point = load();
    point.cpu_share = 0.5;
    app::judge(point);
    const auto lines = lines_of(pktgen::table_line(point));
    ASSERT_EQ(lines.size(), 4u);
    EXPECT_EQ(lines[2], "  disturbed: a polling thread had its CPU for 50 % of the time");
    EXPECT_EQ(lines[3].find("  the offered rate was not met"), 0u);
}
