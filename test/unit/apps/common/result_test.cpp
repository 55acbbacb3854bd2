// SPDX-License-Identifier: BSD-3-Clause
#include "result.hpp"

#include <algorithm>

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

TEST(Result, LatencyIsScaledAndKeepsEveryValue)
{
    app::Histogram histogram;
    for (const uint64_t ticks : {100u, 200u, 200u, 40000u})
        histogram.record(ticks);
    const app::Latency latency = app::latency_of(histogram, 0.5);
    EXPECT_EQ(latency.count, 4U);
    EXPECT_DOUBLE_EQ(latency.min_ns, 50);
    EXPECT_DOUBLE_EQ(latency.max_ns, 20000);
    EXPECT_DOUBLE_EQ(latency.mean_ns, 40500 / 4.0 / 2);
    EXPECT_NEAR(latency.p50_ns, 100, 2);
    uint64_t all = 0;
    double last = 0;
    for (const app::Latency::Bucket &bucket : latency.buckets) {
        EXPECT_GE(bucket.from_ns, last);
        EXPECT_GT(bucket.to_ns, bucket.from_ns);
        last = bucket.to_ns;
        all += bucket.count;
    }
    EXPECT_EQ(all, latency.count);
}

TEST(Result, CsvHasAsManyColumnsInEachLine)
{
    app::Result result;
    result.points = {point_of({{"out", 10, 640, 1}}), point_of({})};
    result.points[0].mix = "pcap:a \"quoted\" name"; // no comma: quotes alone must not split it
    const std::string text = app::to_csv(result);
    const auto lines = std::count(text.begin(), text.end(), '\n');
    EXPECT_EQ(lines, 3);
    const auto commas = std::count(text.begin(), text.end(), ',');
    EXPECT_EQ(commas % lines, 0);
    EXPECT_NE(text.find("\"pcap:a \"\"quoted\"\" name\""), std::string::npos);
}

} // namespace
