// SPDX-License-Identifier: BSD-3-Clause
#include "round_trip/report.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace
{

std::string printed(const echo::Report &report)
{
    char *text = nullptr;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    if (file == nullptr)
        return {};
    echo::print(report, echo::Options{}, file);
    std::fclose(file);
    const std::string said(text, bytes);
    std::free(text);
    return said;
}

/// Figures of a thread that shared its CPU are the scheduler's.
TEST(EchoReport, SaysWhenTheThreadDidNotHaveItsCpu)
{
    echo::Report report;
    report.messages = 1;
    report.cpu_share = 0.97;
    EXPECT_EQ(printed(report).find("disturbed"), std::string::npos) << printed(report);
    report.cpu_share = 0.9699;
    EXPECT_NE(printed(report).find("had its CPU for 96 % of the time"), std::string::npos)
        << printed(report);
}

} // namespace
