// SPDX-License-Identifier: BSD-3-Clause
#include "whole_file.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace
{

namespace fs = std::filesystem;

class WholeFile : public testing::Test
{
protected:
    WholeFile()
    {
        char name[] = "/tmp/ntbmsg-whole-XXXXXX";
        folder_ = mkdtemp(name);
    }
    ~WholeFile() override { fs::remove_all(folder_); }

    std::string content(const fs::path &path) const
    {
        std::ifstream file(path);
        std::stringstream text;
        text << file.rdbuf();
        return text.str();
    }

    fs::path folder_;
};

TEST_F(WholeFile, ReplacesAndLeavesNothingBeside)
{
    const fs::path path = folder_ / "result";
    EXPECT_EQ(app::write_whole(path, "first"), "");
    EXPECT_EQ(app::write_whole(path, "second"), "");
    EXPECT_EQ(content(path), "second");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(WholeFile, KeepsTheOldOneWhenItFails)
{
    const fs::path path = folder_ / "result";
    EXPECT_EQ(app::write_whole(path, "first"), "");
    fs::create_directory(folder_ / "result.part"); // in the way of the new one
    EXPECT_NE(app::write_whole(path, "second"), "");
    EXPECT_EQ(content(path), "first");
}

TEST_F(WholeFile, SaysWhatIsWrong)
{
    EXPECT_EQ(app::write_whole(folder_ / "no" / "where", "x"),
              (folder_ / "no" / "where").string() + ": No such file or directory");
    EXPECT_EQ(app::write_whole(folder_, "x"), folder_.string() + ": Is a directory");
    EXPECT_EQ(app::write_whole("/dev/full", "x"), "/dev/full: No space left on device");
    EXPECT_EQ(app::write_whole("/dev/null", "x"), "");
    EXPECT_FALSE(fs::is_regular_file("/dev/null"));
}

} // namespace
