// SPDX-License-Identifier: BSD-3-Clause
#include "options/command_line.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "modes/modes.hpp"

namespace
{

std::string parse(std::vector<std::string> words, echo::Options &options)
{
    words.insert(words.begin(), "ntbmsg-echo");
    std::vector<char *> argv;
    for (std::string &word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    return echo::parse(static_cast<int>(words.size()), argv.data(), options);
}

TEST(EchoOptions, TheHarnessHasThreeWaysIn)
{
    for (const std::vector<std::string> &words :
         {std::vector<std::string>{"-i"},
          {"--interactive"},
          {"--cmdline-file", "x"},
          {"--forward-mode", "ping"},
          {"-i", "--cmdline-file", "x", "--forward-mode", "rxonly"}}) {
        echo::Options options;
        EXPECT_EQ(parse(words, options), "") << words[0];
        EXPECT_TRUE(options.harness());
    }
}

TEST(EchoOptions, EachChannelIsGrantedItsPartAndTheLongestMessage)
{
    const struct {
        std::vector<std::string> words;
        uint32_t credit;
        uint32_t buffers; ///< 0: as the device chooses
    } table[] = {
        {{"-i", "--channels", "1"}, 1 << 20, 0},
        {{"-i", "--channels", "32"}, 1 << 17, 0},
        {{"-i", "--channels", "32", "--size", "70000"}, 1 << 17, 0},
        {{"-i", "--channels", "300", "--size", "70000"},
         70000 / 2048 * 2048 + 2048,
         2048 + 300 * 35},
        {{"-i", "--channels", "300", "--max-message", "3000"}, 6 * 2048, 0},
    };
    for (const auto &row : table) {
        echo::Options options;
        ASSERT_EQ(parse(row.words, options), "");
        EXPECT_EQ(echo::channel_credit_bytes(options), row.credit) << row.words[2];
        EXPECT_EQ(echo::endpoint_options(options).buffers, row.buffers) << row.words[2];
    }
}

TEST(EchoOptions, RolesExcludeEachOther)
{
    for (const std::vector<std::string> &words : {std::vector<std::string>{},
                                                  {"-i", "--serve"},
                                                  {"-i", "--send", "x"},
                                                  {"--serve", "--send", "x"}}) {
        echo::Options options;
        EXPECT_NE(parse(words, options), "");
    }
}

TEST(EchoOptions, WhatHasNoEffectIsRefused)
{
    const struct {
        std::vector<std::string> words;
        const char *error;
    } table[] = {
        {{"--serve", "--quiet"}, "--quiet goes with --send"},
        {{"-i", "--quiet"}, "--quiet goes with --send"},
        {{"--serve", "--json", "x"}, "--json goes with --send"},
        {{"--send", "x", "--channels", "1"}, "--channels goes with --interactive"},
        {{"--forward-mode", "echo", "--auto-start"}, "--auto-start goes with --interactive"},
        {{"--send", "x", "--build", "mbuf"}, "--build goes with --serve and mode echo"},
        {{"--forward-mode", "ping", "--build", "in-place"}, "--build has no effect in mode ping"},
        {{"--serve", "--build", "there"}, "--build there: must be mbuf or in-place"},
        {{"--forward-mode", "echo", "--size", "8"}, "--size has no effect in mode echo"},
        {{"--forward-mode", "rxonly", "--count", "8"}, "--count has no effect in mode rxonly"},
        {{"--forward-mode", "file", "--count", "8"}, "--count has no effect in mode file"},
        {{"--forward-mode", "txonly", "--in-flight", "8"},
         "--in-flight has no effect in mode txonly"},
        {{"--forward-mode", "ping", "--flows", "8"}, "--flows has no effect in mode ping"},
        {{"--forward-mode", "ping", "--dir", "x"}, "--dir has no effect in mode ping"},
        {{"--forward-mode", "ping", "--tx-first"}, "--tx-first has no effect in mode ping"},
    };
    for (const auto &row : table) {
        echo::Options options;
        EXPECT_EQ(parse(row.words, options), row.error);
    }
}

TEST(EchoOptions, WithCommandsAnotherModeMayUseThem)
{
    echo::Options options;
    EXPECT_EQ(parse({"-i", "--forward-mode", "echo", "--size", "8", "--flows", "2", "--in-flight",
                     "3", "--dir", "x", "--tx-first", "--count", "4"},
                    options),
              "");
}

TEST(EchoOptions, AnswersAreBuiltInPlaceWhereThatIsSaid)
{
    for (const std::vector<std::string> &who :
         {std::vector<std::string>{"--serve"}, {"--forward-mode", "echo"}, {"-i"}}) {
        for (const char *where : {"", "mbuf", "in-place"}) {
            std::vector<std::string> words = who;
            if (*where != 0)
                words.insert(words.end(), {"--build", where});
            echo::Options options;
            EXPECT_EQ(parse(words, options), "");
            EXPECT_EQ(options.in_place, std::string(where) == "in-place");
        }
    }
}

TEST(EchoOptions, VersionNeedsNothingElse)
{
    echo::Options options;
    EXPECT_EQ(parse({"--version"}, options), "");
    EXPECT_TRUE(options.version);
}

TEST(EchoOptions, EachModeIsDescribed)
{
    const std::string help = echo::help_text();
    for (const echo::Mode &mode : echo::modes()) {
        echo::Options options;
        EXPECT_EQ(parse({"--forward-mode", mode.name}, options), "") << mode.name;
        EXPECT_NE(help.find(std::string("\n  ") + mode.name + " "), std::string::npos) << mode.name;
        EXPECT_TRUE(mode.default_size >= mode.least_size && mode.default_size <= mode.most_size);
    }
}

} // namespace
