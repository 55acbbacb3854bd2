// SPDX-License-Identifier: BSD-3-Clause
#include "options/plan.hpp"

#include <gtest/gtest.h>

namespace
{

pktgen::Options parsed(std::vector<std::string> words)
{
    words.insert(words.begin(), "program");
    std::vector<char *> argv;
    for (std::string &word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    pktgen::Options options;
    EXPECT_EQ(pktgen::parse(static_cast<int>(words.size()), argv.data(), options), "");
    return options;
}

std::vector<pktgen::Planned> plan_of(const std::vector<std::string> &words)
{
    return pktgen::plan_for(parsed(words), {});
}

TEST(Plan, HasEveryCombinationThatAModeKnows)
{
    // Only round trips have a number in flight, only load has rates.
    const auto plan =
        plan_of({"--mode", "latency,load,rate", "--size", "8,64", "--burst", "1,2", "--in-flight",
                 "1,4,8", "--queues", "1,2", "--rate", "1K,2K,3K,4K", "--repeat", "1"});
    EXPECT_EQ(plan.size(), 2U * 2 * 2 * (3 + 4 + 1));
}

TEST(Plan, RepeatsAllOfIt)
{
    const auto plan = plan_of({"--mode", "rate", "--size", "8,64", "--repeat", "2"});
    ASSERT_EQ(plan.size(), 4U);
    EXPECT_EQ(plan[1].point.size, 64U);
    EXPECT_EQ(plan[1].repeat, 0U);
    EXPECT_EQ(plan[2].point.size, 8U);
    EXPECT_EQ(plan[2].repeat, 1U);
}

TEST(Plan, BurstsOfLongMessagesAreShort)
{
    const auto plan = plan_of({"--mode", "rate", "--size", "64,4K,1M", "--repeat", "1"});
    ASSERT_EQ(plan.size(), 3U);
    EXPECT_EQ(plan[0].point.burst, 32U);
    EXPECT_EQ(plan[1].point.burst, 16U);
    EXPECT_EQ(plan[2].point.burst, 1U);
    EXPECT_EQ(pktgen::longest_message(plan), 1U << 20);
}

TEST(Plan, IncastTakesAllDevicesAtOnceAndOthersOneByOne)
{
    const auto plan = plan_of({"--mode", "rate,incast", "--size", "8", "--repeat", "1", "--device",
                               "a", "--device", "b"});
    ASSERT_EQ(plan.size(), 3U);
    EXPECT_EQ(plan[0].device, 0U);
    EXPECT_EQ(plan[1].device, 1U);
    EXPECT_EQ(plan[2].point.direction, pktgen::Direction::in);
}

TEST(Plan, AtomicsAreOfOneSizeAndRangesFitWhatIsExposed)
{
    const auto plan = plan_of({"--mode", "rate", "--operation", "write,fetch-add", "--size",
                               "64,16M", "--in-flight", "4096", "--repeat", "1"});
    ASSERT_EQ(plan.size(), 3U);
    EXPECT_EQ(plan[0].point.in_flight, 4096U);
    EXPECT_EQ(plan[1].point.operation, pktgen::Operation::fetch_add);
    EXPECT_EQ(plan[1].point.size, 8U);
    EXPECT_EQ(plan[2].point.size, 1U << 24);
    EXPECT_EQ(plan[2].point.in_flight, 1U);
    EXPECT_LE(plan[2].point.burst, plan[2].point.in_flight);
}

TEST(Plan, RoundTripsOfWritesAreConfirmedAndRatesAreNot)
{
    const std::vector<std::string> words = {"--mode", "latency,rate", "--operation", "write,read",
                                            "--size", "64",           "--repeat",    "1"};
    const auto plan = plan_of(words);
    ASSERT_EQ(plan.size(), 4U);
    EXPECT_TRUE(plan[0].point.confirm);
    EXPECT_FALSE(plan[1].point.confirm);
    EXPECT_FALSE(plan[2].point.confirm);
}

TEST(Plan, GoesOverCopyEnginesOneAfterTheOther)
{
    const auto plan =
        plan_of({"--mode", "rate", "--size", "8,64", "--copy", "dma,cpu", "--repeat", "1"});
    ASSERT_EQ(plan.size(), 4U);
    EXPECT_EQ(plan[1].copy, pktgen::CopyMode::dma);
    EXPECT_EQ(plan[2].copy, pktgen::CopyMode::cpu);
}

TEST(Plan, EveryPointIsOneThatAServerAccepts)
{
    for (const auto &planned : plan_of({"--mode", "latency,load,rate,bidirectional", "--size",
                                        "1-16M", "--in-flight", "1,4096", "--queues", "1,31",
                                        "--operation", "send,write,write-imm,read,atomic"})) {
        if (pktgen::is_one_sided(planned.point.operation) ||
            planned.point.size_to <= pktgen::largest_size) {
            EXPECT_EQ(pktgen::check(planned.point), "");
        }
    }
    for (const auto &planned :
         plan_of({"--mode", "latency,load,rate,throughput,bidirectional", "--size", "1-16777215"}))
        EXPECT_EQ(pktgen::check(planned.point), "");
}

} // namespace
