// SPDX-License-Identifier: BSD-3-Clause
#include "program.hpp"

#include <regex>
#include <vector>

#include <gtest/gtest.h>

namespace
{

std::string help_text()
{
    return "how to use it\n";
}

/// A program with the options --help and --version.
struct Case {
    bool help = false, version = false;
    std::vector<std::string> parsed;

    int run(std::vector<std::string> words)
    {
        std::vector<char *> argv;
        for (std::string &word : words)
            argv.push_back(word.data());
        argv.push_back(nullptr);
        const auto parse = [this](int argc, char **own) {
            parsed.assign(own + 1, own + argc);
            for (const std::string &word : parsed) {
                help = help || word == "--help";
                version = version || word == "--version";
            }
            return parsed.empty() ? std::string("give an option") : std::string();
        };
        const auto never = [] {
            ADD_FAILURE() << "the program ran";
            return 1;
        };
        return app::run_program(static_cast<int>(words.size()), argv.data(),
                                {"prog", parse, help, version, help_text, never});
    }
};

TEST(Program, VersionNamesProgramCommitAndDpdk)
{
    const std::regex form("prog \\d+\\.\\d+\\.\\d+ \\(\\S+\\), DPDK \\d\\d\\.\\d\\d.*");
    EXPECT_TRUE(std::regex_match(app::version_text("prog"), form)) << app::version_text("prog");
}

TEST(Program, HelpAndVersionNeedNoDashes)
{
    for (const char *word : {"--help", "--version"}) {
        for (const std::vector<std::string> &words :
             {std::vector<std::string>{"prog", word}, {"prog", "--", word}}) {
            Case c;
            testing::internal::CaptureStdout();
            EXPECT_EQ(c.run(words), 0);
            const std::string said = testing::internal::GetCapturedStdout();
            EXPECT_EQ(said, c.help ? help_text() : app::version_text("prog") + "\n");
            EXPECT_EQ(c.parsed, std::vector<std::string>{word});
        }
    }
}

TEST(Program, AWrongCommandLineIsStatusTwo)
{
    for (const std::vector<std::string> &words :
         {std::vector<std::string>{"prog"}, {"prog", "-l", "0"}, {"prog", "--"}}) {
        Case c;
        testing::internal::CaptureStderr();
        EXPECT_EQ(c.run(words), 2);
        const std::string said = testing::internal::GetCapturedStderr();
        EXPECT_EQ(said.rfind("prog: ", 0), 0u) << said;
        EXPECT_NE(said.find("(see prog --help)"), std::string::npos) << said;
    }
}

} // namespace
