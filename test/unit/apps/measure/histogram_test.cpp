// SPDX-License-Identifier: BSD-3-Clause
#include "histogram.hpp"

#include <gtest/gtest.h>

namespace
{

TEST(Histogram, EmptySaysZero)
{
    const app::Histogram h;
    EXPECT_EQ(h.count(), 0U);
    EXPECT_EQ(h.quantile(0.5), 0U);
    EXPECT_EQ(h.min(), 0U);
    EXPECT_EQ(h.max(), 0U);
    EXPECT_EQ(h.mean(), 0.0);
}

TEST(Histogram, SmallValuesAreExact)
{
    app::Histogram h;
    for (uint64_t v = 1; v <= 100; ++v)
        h.record(v);
    EXPECT_EQ(h.quantile(0.5), 50U);
    EXPECT_EQ(h.quantile(0.99), 99U);
    EXPECT_EQ(h.quantile(1), 100U);
    EXPECT_EQ(h.quantile(0), 1U);
    EXPECT_EQ(h.mean(), 50.5);
}

TEST(Histogram, EveryValueIsReportedWithinOnePercent)
{
    for (unsigned bit = 0; bit < 64; ++bit) {
        for (const uint64_t below : {uint64_t{0}, uint64_t{1}, (uint64_t{1} << bit) / 3}) {
            const uint64_t value = (uint64_t{1} << bit) + below;
            app::Histogram h;
            h.record(0);
            h.record(value);
            h.record(UINT64_MAX);
            const auto reported = static_cast<double>(h.quantile(0.5));
            EXPECT_NEAR(reported, static_cast<double>(value), static_cast<double>(value) * 0.01)
                << value;
        }
    }
}

TEST(Histogram, ExtremesAreExactAndBoundTheRest)
{
    app::Histogram h;
    h.record(1'000'003);
    EXPECT_EQ(h.min(), 1'000'003U);
    EXPECT_EQ(h.max(), 1'000'003U);
    EXPECT_EQ(h.quantile(0.5), 1'000'003U);
    h.record(UINT64_MAX);
    EXPECT_EQ(h.max(), UINT64_MAX);
    EXPECT_EQ(h.quantile(1), UINT64_MAX);
}

TEST(Histogram, AddingIsRecordingOfBoth)
{
    app::Histogram one, other, both;
    for (const uint64_t value : {3u, 700u, 90000u}) {
        one.record(value);
        both.record(value);
    }
    other.add(app::Histogram());
    for (const uint64_t value : {1u, 700u}) {
        other.record(value);
        both.record(value);
    }
    one.add(other);
    EXPECT_EQ(one.count(), 5U);
    EXPECT_EQ(one.min(), 1U);
    EXPECT_EQ(one.max(), 90000U);
    EXPECT_DOUBLE_EQ(one.mean(), both.mean());
    EXPECT_EQ(one.quantile(0.5), both.quantile(0.5));
}

TEST(Histogram, QuantilesDoNotDecrease)
{
    app::Histogram h;
    uint64_t v = 1;
    for (int i = 0; i < 10'000; ++i) {
        v = v * 6364136223846793005U + 1442695040888963407U;
        h.record(v >> (v & 31));
    }
    uint64_t last = 0;
    for (const double part : {0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
        EXPECT_GE(h.quantile(part), last);
        last = h.quantile(part);
    }
}

TEST(Histogram, BucketsHoldEveryValueInOrder)
{
    app::Histogram h;
    const uint64_t values[] = {0, 127, 128, 129, 130, 4095, 4096, uint64_t{1} << 40, UINT64_MAX};
    for (const uint64_t v : values)
        h.record(v);
    size_t next = 0;
    h.for_each_bucket([&](uint64_t from, uint64_t to, uint64_t count) {
        EXPECT_LT(from, to);
        for (; count != 0; --count, ++next) {
            EXPECT_GE(values[next], from);
            EXPECT_TRUE(values[next] < to || to == UINT64_MAX);
        }
    });
    EXPECT_EQ(next, std::size(values));
}

} // namespace
