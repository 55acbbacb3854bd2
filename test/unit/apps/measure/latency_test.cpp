// SPDX-License-Identifier: BSD-3-Clause
#include "latency.hpp"

#include <gtest/gtest.h>

namespace
{

TEST(Latency, IsScaledAndKeepsEveryValue)
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

} // namespace
