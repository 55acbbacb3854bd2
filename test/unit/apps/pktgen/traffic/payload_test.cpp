// SPDX-License-Identifier: BSD-3-Clause
#include "traffic/payload.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace
{

constexpr uint64_t value = 0x8877665544332211;

/// The sum that a receiver finds is the one that the sender foretells, for every length.
TEST(Payload, WhatIsReadIsWhatWasForetold)
{
    for (size_t bytes = 1; bytes <= 300; ++bytes) {
        std::vector<std::byte> data(bytes + 8, std::byte{0xee});
        pktgen::fill_words(data.data(), bytes, value);
        EXPECT_EQ(data[bytes], std::byte{0xee}) << "written beyond " << bytes;
        EXPECT_EQ(pktgen::sum_lines(data.data(), bytes), pktgen::expected_sum(bytes, value))
            << bytes;
    }
}

/// A line that changed on the way changes the sum.
TEST(Payload, EveryLineCounts)
{
    constexpr size_t bytes = 300;
    for (size_t at = 0; at < bytes; at += pktgen::line_bytes) {
        std::vector<std::byte> data(bytes);
        pktgen::fill_words(data.data(), bytes, value);
        data[at] ^= std::byte{1};
        EXPECT_NE(pktgen::sum_lines(data.data(), bytes), pktgen::expected_sum(bytes, value));
    }
}

/// Cut at lines, as segments are, the sums of the pieces are the sum of the whole.
TEST(Payload, SegmentsDoNotMatter)
{
    constexpr size_t bytes = 1000, cut = 512;
    std::vector<std::byte> data(bytes);
    pktgen::fill_words(data.data(), bytes, value);
    EXPECT_EQ(pktgen::sum_lines(data.data(), cut) + pktgen::sum_lines(&data[cut], bytes - cut),
              pktgen::expected_sum(bytes, value));
}

TEST(Payload, StampHoldsCrcAndNumber)
{
    EXPECT_EQ(pktgen::stamp_of(0xabcd1234, 0x1'00000007), 0xabcd1234'00000007U);
}

} // namespace
