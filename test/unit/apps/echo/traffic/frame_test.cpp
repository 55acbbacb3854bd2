// SPDX-License-Identifier: BSD-3-Clause
#include "traffic/frame.hpp"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace
{

unsigned be16(const std::vector<std::byte> &frame, size_t at)
{
    return std::to_integer<unsigned>(frame[at]) << 8 | std::to_integer<unsigned>(frame[at + 1]);
}

/// RFC 1071 over a header with its checksum in it: all ones.
unsigned ip_sum(const std::vector<std::byte> &frame)
{
    unsigned sum = 0;
    for (size_t at = 14; at < 34; at += 2)
        sum += be16(frame, at);
    while (sum > 0xffff)
        sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

TEST(EchoFrame, LengthsAreThoseOfTheFrame)
{
    for (const size_t bytes :
         {echo::frame_bytes, size_t{64}, size_t{1514}, echo::most_frame_bytes}) {
        std::vector<std::byte> frame(bytes);
        echo::write_headers(frame);
        EXPECT_EQ(be16(frame, 12), 0x0800U);
        EXPECT_EQ(be16(frame, 16), bytes - 14) << "IPv4";
        EXPECT_EQ(be16(frame, 38), bytes - 34) << "UDP";
        EXPECT_EQ(ip_sum(frame), 0xffffU);
    }
}

TEST(EchoFrame, FlowsHaveSourcesOfTheirOwnAndARightChecksum)
{
    std::vector<std::byte> frame(64);
    echo::write_headers(frame);
    std::set<unsigned> sources;
    for (uint32_t flow = 0; flow < 65536; flow += 13) {
        echo::set_flow(frame.data(), flow);
        ASSERT_EQ(ip_sum(frame), 0xffffU) << flow;
        sources.insert(be16(frame, 26) << 16 | be16(frame, 28));
        EXPECT_EQ(be16(frame, 26), 0xC612U) << "within 198.18.0.0/16";
        EXPECT_GE(be16(frame, 34), 1024U);
    }
    EXPECT_EQ(sources.size(), (65536U + 12) / 13);
}

} // namespace
