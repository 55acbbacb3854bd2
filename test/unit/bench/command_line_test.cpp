// SPDX-License-Identifier: BSD-3-Clause
#include "command_line.hpp"

#include <gtest/gtest.h>

using namespace bench;

namespace
{

std::optional<Options> parse(std::vector<std::string> words, std::string &error)
{
    words.insert(words.begin(), "ntbmsg_bench");
    std::vector<char *> arguments;
    for (std::string &word : words)
        arguments.push_back(word.data());
    return parse_options(static_cast<int>(arguments.size()), arguments.data(), error);
}

} // namespace

TEST(Options, AllFiguresWithoutOnly)
{
    std::string error;
    const auto options = parse({"--quick", "--json", "out.json"}, error);
    ASSERT_TRUE(options) << error;
    EXPECT_TRUE(options->quick);
    EXPECT_EQ(options->json, "out.json");
    EXPECT_EQ(std::count(options->selection.begin(), options->selection.end(), true),
              static_cast<long>(figure_count));
}

TEST(Options, HelpAndVersionWantNothingElse)
{
    std::string error;
    const auto version = parse({"--version"}, error);
    ASSERT_TRUE(version) << error;
    EXPECT_TRUE(version->version);
    EXPECT_FALSE(version->help);
}

TEST(Options, OnlyTakesNamesUpToTheNextOption)
{
    std::string error;
    const auto options = parse({"--only", "mem.host", "idle.cpu", "--quick"}, error);
    ASSERT_TRUE(options) << error;
    EXPECT_TRUE(options->quick);
    EXPECT_EQ(std::count(options->selection.begin(), options->selection.end(), true), 2);
}

TEST(Options, CpusAreTwo)
{
    std::string error;
    const auto options = parse({"--cpus", "2,5"}, error);
    ASSERT_TRUE(options) << error;
    EXPECT_EQ(options->cpus->first, 2u);
    EXPECT_EQ(options->cpus->second, 5u);
}

TEST(Options, WhatIsWrongIsNamed)
{
    const std::vector<std::vector<std::string>> wrong = {
        {"--nothing"},        {"--only"},        {"--only", "qp.nothing"}, {"--json"},
        {"--cpus", "1"},      {"--cpus", "1,1"}, {"--cpus", "1,2,3"},      {"--cpus", "1,99999"},
        {"--only", "--quick"}};
    for (const auto &words : wrong) {
        std::string error;
        EXPECT_FALSE(parse(words, error)) << words[0];
        EXPECT_NE(error, "") << words[0];
    }
}

TEST(Options, KillsAreBounded)
{
    std::string error;
    const auto options = parse({"--kills", "50"}, error);
    ASSERT_TRUE(options) << error;
    EXPECT_EQ(options->kills, 50u);
    for (const char *text : {"0", "1001", ""}) {
        error.clear();
        EXPECT_FALSE(parse({"--kills", text}, error)) << text;
        EXPECT_EQ(error, std::string("--kills ") + text + ": must be a number from 1 to 1000");
    }
}

TEST(Options, WhatHasNoEffectIsRefused)
{
    const std::vector<std::vector<std::string>> wrong = {{"--limits", "--only", "qp.rtt.8"},
                                                         {"--limits", "--credit", "64"},
                                                         {"--limits", "--kills", "5"},
                                                         {"--limits", "--no-huge"},
                                                         {"--only", "qp.rtt.8", "--credit", "64"},
                                                         {"--only", "chan.rtt.8", "--kills", "5"}};
    for (const auto &words : wrong) {
        std::string error;
        EXPECT_FALSE(parse(words, error)) << words[0];
        EXPECT_NE(error, "") << words[0];
    }
    const std::vector<std::vector<std::string>> right = {{"--limits", "--quick"},
                                                         {"--only", "chan.rtt.8", "--credit", "64"},
                                                         {"--only", "msg", "--credit", "64"},
                                                         {"--only", "link", "--kills", "5"}};
    for (const auto &words : right) {
        std::string error;
        EXPECT_TRUE(parse(words, error)) << error;
    }
}

TEST(Options, CreditIsBounded)
{
    std::string error;
    const auto options = parse({"--credit", "64"}, error);
    ASSERT_TRUE(options) << error;
    EXPECT_EQ(options->credit, 64u);
    for (const char *text : {"0", "1025", "64k", ""}) {
        error.clear();
        EXPECT_FALSE(parse({"--credit", text}, error)) << text;
        EXPECT_EQ(error, std::string("--credit ") + text + ": must be a number from 1 to 1024");
    }
}
