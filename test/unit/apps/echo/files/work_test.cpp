// SPDX-License-Identifier: BSD-3-Clause
#include "files/work.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace
{

namespace fs = std::filesystem;

class EchoFileWork : public testing::Test
{
protected:
    void SetUp() override
    {
        std::string pattern = (fs::temp_directory_path() / "ntbmsg-file-work-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        top_ = pattern;
    }
    void TearDown() override { fs::remove_all(top_); }

    std::vector<std::string> names(const fs::path &path)
    {
        std::vector<echo::FileJob> jobs;
        EXPECT_EQ(echo::find_jobs(path, jobs, skipped_), "");
        std::vector<std::string> found;
        for (const echo::FileJob &job : jobs)
            found.push_back(job.name + (job.folder ? "/" : ""));
        std::ranges::sort(found);
        return found;
    }

    fs::path top_;
    uint64_t skipped_ = 0;
};

TEST_F(EchoFileWork, AFolderIsWalkedWithoutLinks)
{
    fs::create_directories(top_ / "tree/deep/er");
    fs::create_directory(top_ / "tree/empty");
    std::ofstream(top_ / "tree/file") << "x";
    std::ofstream(top_ / "tree/deep/er/file") << "y";
    fs::create_directory_symlink("/", top_ / "tree/everything");
    fs::create_symlink("file", top_ / "tree/link");
    const std::vector<std::string> wanted = {
        "tree/", "tree/deep/", "tree/deep/er/", "tree/deep/er/file", "tree/empty/", "tree/file"};
    EXPECT_EQ(names(top_ / "tree"), wanted);
    EXPECT_EQ(skipped_, 2U);
    EXPECT_EQ(names(top_ / "tree/"), wanted) << "with a slash at its end";
    EXPECT_EQ(names(top_ / "tree/deep/../."), wanted);
}

TEST_F(EchoFileWork, ALinkThatTheUserNamesIsSentUnderItsName)
{
    std::ofstream(top_ / "file") << "x";
    fs::create_symlink("file", top_ / "link");
    EXPECT_EQ(names(top_ / "link"), std::vector<std::string>{"link"});
}

TEST_F(EchoFileWork, WhatCannotBeSentIsNamed)
{
    std::vector<echo::FileJob> jobs;
    EXPECT_NE(echo::find_jobs(top_ / "absent", jobs, skipped_).find("No such file"),
              std::string::npos);
    EXPECT_NE(echo::find_jobs("/dev/null", jobs, skipped_).find("no file and no folder"),
              std::string::npos);
    EXPECT_NE(echo::find_jobs("/", jobs, skipped_), "") << "it has no name";
    EXPECT_TRUE(jobs.empty());
}

TEST_F(EchoFileWork, JobsAreTakenInOrderAndOnce)
{
    echo::FileWork work;
    EXPECT_TRUE(work.idle());
    work.add({{"/1", "1", false}, {"/2", "2", false}});
    EXPECT_FALSE(work.idle());
    auto first = work.take();
    ASSERT_TRUE(first && first->name == "1");
    work.put_back(*first);
    first = work.take();
    const auto second = work.take();
    ASSERT_TRUE(first && first->name == "1" && second && second->name == "2");
    EXPECT_FALSE(work.take());
    work.ended("");
    EXPECT_FALSE(work.idle());
    work.ended("2: bad");
    EXPECT_TRUE(work.idle());
    EXPECT_EQ(work.take_failures(), "2: bad");
    EXPECT_EQ(work.take_failures(), "");
}

TEST_F(EchoFileWork, NotesAreBounded)
{
    echo::FileWork work;
    for (int i = 0; i < 10'000; ++i)
        work.note(std::to_string(i));
    const auto notes = work.take_notes();
    EXPECT_EQ(notes.size(), 256U);
    EXPECT_EQ(notes.front(), "0");
    EXPECT_NE(notes.back().find("more happened"), std::string::npos);
    EXPECT_TRUE(work.take_notes().empty());
}

} // namespace
