// SPDX-License-Identifier: BSD-3-Clause
#include "point/point.hpp"

#include <gtest/gtest.h>

namespace
{

/// What a server must not take from a client, whatever it says.
TEST(Point, ValuesOutOfRangeAreRefused)
{
    pktgen::Point good;
    good.size = good.size_to = 64;
    good.run_us = 1000;
    ASSERT_EQ(pktgen::check(good), "");
    const auto refused = [&](auto change) {
        pktgen::Point point = good;
        change(point);
        return !pktgen::check(point).empty();
    };
    using pktgen::Point;
    EXPECT_TRUE(refused([](Point &p) { p.mode = static_cast<pktgen::Mode>(pktgen::mode_count); }));
    EXPECT_TRUE(refused([](Point &p) { p.direction = static_cast<pktgen::Direction>(200); }));
    EXPECT_TRUE(refused([](Point &p) { p.operation = static_cast<pktgen::Operation>(200); }));
    EXPECT_TRUE(refused([](Point &p) { p.pattern = static_cast<pktgen::Pattern>(200); }));
    EXPECT_TRUE(refused([](Point &p) { p.mix = static_cast<pktgen::MixKind>(200); }));
    EXPECT_TRUE(refused([](Point &p) { p.size = 0; }));
    EXPECT_TRUE(refused([](Point &p) { p.size = 65; }));
    EXPECT_TRUE(refused([](Point &p) { p.size_to = pktgen::largest_size + 1; }));
    EXPECT_TRUE(refused([](Point &p) { p.burst = 0; }));
    EXPECT_TRUE(refused([](Point &p) { p.burst = pktgen::largest_burst + 1; }));
    EXPECT_TRUE(refused([](Point &p) { p.in_flight = pktgen::most_in_flight + 1; }));
    EXPECT_TRUE(refused([](Point &p) { p.queues = pktgen::largest_queues + 1; }));
    EXPECT_TRUE(refused([](Point &p) { p.run_us = 0; }));
    EXPECT_TRUE(refused([](Point &p) { p.rate = -1; }));
    EXPECT_TRUE(refused([](Point &p) { p.rate = __builtin_nan(""); }));
}

TEST(Point, OneSidedOperationsThatCannotBeAreRefused)
{
    using pktgen::Operation;
    using pktgen::Point;
    const auto refused = [](Operation operation, auto change) {
        Point point;
        point.operation = operation;
        point.size = point.size_to = 8;
        point.run_us = 1000;
        EXPECT_EQ(pktgen::check(point), "");
        change(point);
        return !pktgen::check(point).empty();
    };
    EXPECT_TRUE(refused(Operation::fetch_add, [](Point &p) { p.size_to = p.size = 16; }));
    EXPECT_TRUE(refused(Operation::write, [](Point &p) {
        p.size_to = 1U << 24;
        p.in_flight = 3;
    }));
    EXPECT_TRUE(refused(Operation::write, [](Point &p) { p.size_to = (1U << 24) + 1; }));
    EXPECT_TRUE(refused(Operation::write, [](Point &p) {
        p.verify = true;
        p.size = p.size_to = 7;
    }));
    EXPECT_TRUE(refused(Operation::read, [](Point &p) {
        p.verify = true;
        p.size_to = 9;
    }));
    EXPECT_TRUE(refused(Operation::read, [](Point &p) { p.confirm = true; }));
    EXPECT_TRUE(refused(Operation::write, [](Point &p) { p.mode = pktgen::Mode::replay; }));
    EXPECT_TRUE(
        refused(Operation::write, [](Point &p) { p.queues = pktgen::largest_channels + 1; }));
}

} // namespace
