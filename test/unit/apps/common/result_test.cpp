// SPDX-License-Identifier: BSD-3-Clause
#include "result.hpp"

#include <gtest/gtest.h>

namespace
{

app::ResultPoint point_of(std::vector<app::Flow> flows)
{
    app::ResultPoint point;
    point.mode = "rate";
    point.operation = "queue";
    point.flows = std::move(flows);
    point.complete = true;
    return point;
}

TEST(Result, RatesOfAllFlowsAddUp)
{
    const auto rate = app::rate_of(
        point_of({{"out", 1000, 64000, 0.5}, {"in", 100, 6400, 0.1}, {"none", 0, 0, 0}}));
    EXPECT_EQ(rate.messages, 1100U);
    EXPECT_EQ(rate.bytes, 70400U);
    EXPECT_DOUBLE_EQ(rate.messages_per_second, 3000);
    EXPECT_DOUBLE_EQ(rate.bytes_per_second, 192000);
}

app::ResultPoint load_of(double offered, uint64_t achieved)
{
    app::ResultPoint point = point_of({{"echo", achieved, achieved * 64, 1}});
    point.mode = "load";
    point.offered_rate = offered;
    return point;
}

TEST(Result, APointWhosePollerLackedItsCpuIsMarked)
{
    app::ResultPoint point = point_of({{"out", 1000, 64000, 1}});
    point.cpu_share = 0.98;
    app::judge(point);
    EXPECT_EQ(point.disturbed, "");
    point.cpu_share = 0.71;
    app::judge(point);
    EXPECT_EQ(point.disturbed, "a polling thread had its CPU for 71 % of the time");
    EXPECT_TRUE(point.complete) << "what there was is right";
    point.cpu_share = 0.968;
    app::judge(point);
    EXPECT_EQ(point.disturbed, "a polling thread had its CPU for 96 % of the time")
        << "97 would be enough";
    point.cpu_share = 0.71;
    app::judge(point);
    app::Result result;
    result.points = {point};
    EXPECT_NE(app::to_json(result).find("\"disturbed\": \"a polling thread"), std::string::npos);
    EXPECT_NE(app::to_json(result).find("\"cpu_share\": 0.71"), std::string::npos);
    EXPECT_NE(app::to_csv(result).find(",0.71,a polling thread"), std::string::npos);
}

TEST(Result, APointWhoseCoresWereMovedIsMarked)
{
    app::ResultPoint point = point_of({{"out", 1000, 64000, 1}});
    point.probe_before_ns = 120;
    point.probe_after_ns = 125;
    app::judge(point);
    EXPECT_EQ(point.disturbed, "");
    point.probe_after_ns = 540;
    app::judge(point);
    EXPECT_NE(point.disturbed.find("120 ns there and back before and 540 ns after"),
              std::string::npos);
    point.probe_after_ns = 0; // not taken
    app::judge(point);
    EXPECT_EQ(point.disturbed, "");
}

TEST(Result, AnOfferedRateThatWasNotMetIsNotComplete)
{
    app::ResultPoint met = load_of(1e6, 999000);
    app::judge(met);
    EXPECT_TRUE(met.complete);
    EXPECT_TRUE(met.rate_met);
    app::ResultPoint short_of = load_of(1e6, 1690);
    app::judge(short_of);
    EXPECT_FALSE(short_of.complete);
    EXPECT_FALSE(short_of.rate_met);
    EXPECT_EQ(short_of.error, "the offered rate was not met: 1.69 kmsg/s of 1.00 Mmsg/s");
    app::ResultPoint ended = load_of(1e6, 10);
    ended.complete = false;
    ended.error = "ended by a signal";
    app::judge(ended);
    EXPECT_EQ(ended.error, "ended by a signal");
}

} // namespace
