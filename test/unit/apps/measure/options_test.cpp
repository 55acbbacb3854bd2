// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace
{

class Parser : public testing::Test
{
protected:
    std::string parse(std::vector<std::string> words)
    {
        words.insert(words.begin(), "program");
        std::vector<char *> argv;
        for (std::string &word : words)
            argv.push_back(word.data());
        argv.push_back(nullptr);
        return app::parse_options(static_cast<int>(words.size()), argv.data(), table_);
    }

    bool flag_ = false;
    std::string text_;
    uint64_t number_ = 0;
    double seconds_ = 0;
    std::vector<std::string> words_;
    std::vector<app::Option> table_ = {
        {"flag", nullptr, &flag_, "a flag", 'f'},
        {"text", "WORD", &text_, "a text\nin two lines"},
        {"number", "N", app::Number{&number_, 1, uint64_t{1} << 40}, "a number"},
        {"seconds", "S", &seconds_, "a time"},
        {"words", "NAME...", app::Words{&words_}, "names"},
    };
};

TEST_F(Parser, TakesEveryKind)
{
    EXPECT_EQ(parse({"--flag", "--text", "a b", "--number=17", "--seconds", "0.25"}), "");
    EXPECT_TRUE(flag_);
    EXPECT_EQ(text_, "a b");
    EXPECT_EQ(number_, 17U);
    EXPECT_EQ(seconds_, 0.25);
}

TEST_F(Parser, WordsEndWithTheNextOption)
{
    EXPECT_EQ(parse({"--words", "a", "b", "-f", "--words", "c"}), "");
    EXPECT_EQ(words_, (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_TRUE(flag_);
    EXPECT_EQ(parse({"--words", "--flag"}), "--words needs a value");
}

TEST_F(Parser, UnitsMultiply)
{
    EXPECT_EQ(parse({"--number", "3K"}), "");
    EXPECT_EQ(number_, 3072U);
    EXPECT_EQ(parse({"--number", "2m"}), "");
    EXPECT_EQ(number_, 2U << 20);
    EXPECT_EQ(parse({"--number", "1G"}), "");
    EXPECT_EQ(number_, 1U << 30);
}

TEST_F(Parser, WrongNumbersAreRefusedAndStoreNothing)
{
    for (const char *wrong : {"", "0", "-1", "+1", " 1", "1 ", "1KK", "1T", "0x10", "1.5", "two",
                              "1099511627777", "18446744073709551616", "17179869184G"}) {
        EXPECT_NE(parse({"--number", wrong}), "") << wrong;
        EXPECT_EQ(number_, 0U) << wrong;
    }
}

TEST_F(Parser, WrongTimesAreRefused)
{
    for (const char *wrong : {"", "0", "-1", "nan", "inf", "1s", "1e9"})
        EXPECT_NE(parse({"--seconds", wrong}), "") << wrong;
}

TEST_F(Parser, WhatIsNotInTheTableIsNamed)
{
    EXPECT_EQ(parse({"--other"}), "unknown option --other");
    EXPECT_EQ(parse({"-x"}), "unknown option -x");
    EXPECT_EQ(parse({"--text"}), "--text needs a value");
    EXPECT_EQ(parse({"word"}), "what is \"word\"?");
    EXPECT_NE(parse({"--flag=1"}), "");
}

TEST_F(Parser, HelpHasARowPerOptionWithItsLinesAligned)
{
    const std::string text = app::describe_options(table_);
    EXPECT_NE(text.find("  -f, --flag          a flag\n"), std::string::npos) << text;
    EXPECT_NE(text.find("  --text WORD         a text\n                      in two lines\n"),
              std::string::npos)
        << text;
}

} // namespace
