// SPDX-License-Identifier: BSD-3-Clause
#include "prompt/grammar.hpp"

#include <gtest/gtest.h>

namespace
{

class EchoGrammar : public testing::Test
{
protected:
    echo::Command record(const char *syntax)
    {
        return {syntax, "help of " + std::string(syntax), [this](const echo::Words &words) {
                    got_ = words;
                    return answer_;
                }};
    }

    echo::Words got_;
    std::string answer_;
    echo::Grammar grammar_{{record("go"), record("go left|right"), record("set size|burst N"),
                            record("set size|burst N QUEUE"), record("say TEXT...")}};
};

TEST_F(EchoGrammar, WordsReachTheCommand)
{
    EXPECT_EQ(grammar_.run("go"), "");
    EXPECT_EQ(got_, echo::Words{"go"});
    EXPECT_EQ(grammar_.run("  go \t right "), "");
    EXPECT_EQ(got_, (echo::Words{"go", "right"}));
    EXPECT_EQ(grammar_.run("set burst 4"), "");
    EXPECT_EQ(got_, (echo::Words{"set", "burst", "4"}));
    EXPECT_EQ(grammar_.run("set burst 4 1"), "");
    EXPECT_EQ(got_, (echo::Words{"set", "burst", "4", "1"}));
}

TEST_F(EchoGrammar, TheRestOfALineIsOneWord)
{
    EXPECT_EQ(grammar_.run("say /a folder/with  blanks  "), "");
    EXPECT_EQ(got_, (echo::Words{"say", "/a folder/with  blanks"}));
    EXPECT_EQ(grammar_.run("say something # and a comment"), "");
    EXPECT_EQ(got_, (echo::Words{"say", "something"}));
}

TEST_F(EchoGrammar, EmptyLinesAndCommentsDoNothing)
{
    for (const char *line : {"", "   ", "\t", "# go", "  # go"}) {
        EXPECT_EQ(grammar_.run(line), "") << line;
        EXPECT_TRUE(got_.empty());
    }
}

TEST_F(EchoGrammar, WhatIsNoCommandIsNamed)
{
    EXPECT_EQ(grammar_.run("nonsense"), "there is no such command: nonsense");
    for (const char *line : {"go up", "go left right", "set", "set burst", "set color 1", "say"})
        EXPECT_NE(grammar_.run(line), "") << line;
    EXPECT_NE(grammar_.run("set burst " + std::string(500, '1')), "") << "a word too long";
    EXPECT_NE(grammar_.run("say " + std::string(10000, 'x')), "") << "a line too long";
    EXPECT_NE(grammar_.run(std::string("go\0 left", 8)), "") << "no text";
    EXPECT_TRUE(got_.empty());
}

TEST_F(EchoGrammar, TheCommandsOwnErrorComesBack)
{
    answer_ = "not now";
    EXPECT_EQ(grammar_.run("go"), "not now");
    answer_.clear();
    EXPECT_EQ(grammar_.run("go"), "");
}

TEST_F(EchoGrammar, HelpHasALineForEach)
{
    const std::string help = grammar_.help();
    EXPECT_NE(help.find("  set size|burst N QUEUE          help of set size|burst N QUEUE\n"),
              std::string::npos)
        << help;
    EXPECT_NE(help.find("  help "), std::string::npos);
}

} // namespace
