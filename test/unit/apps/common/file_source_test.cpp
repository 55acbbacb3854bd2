// SPDX-License-Identifier: BSD-3-Clause
#include "file_source.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

namespace
{

using Got = app::FileSource::Got;

class Source : public testing::Test
{
protected:
    void SetUp() override
    {
        path_ = testing::TempDir() + "ntbmsg-source-XXXXXX";
        const int fd = mkstemp(path_.data());
        ASSERT_GE(fd, 0);
        ::close(fd);
    }
    void TearDown() override { std::remove(path_.c_str()); }

    void fill(const std::string &text)
    {
        std::FILE *file = std::fopen(path_.c_str(), "wb");
        ASSERT_NE(file, nullptr);
        ASSERT_EQ(std::fwrite(text.data(), 1, text.size(), file), text.size());
        ASSERT_EQ(std::fclose(file), 0);
    }

    /// The next piece of at most 4 bytes as text; "." at the end, "-" when there is none now.
    std::string next()
    {
        std::array<std::byte, 4> room;
        size_t bytes = 0;
        switch (source_.next(room, bytes)) {
        case Got::piece:
            return std::string(reinterpret_cast<const char *>(room.data()), bytes);
        case Got::not_yet:
            return "-";
        case Got::end:
            return ".";
        case Got::failed:
            return source_.error();
        }
        return "?";
    }

    std::string path_;
    app::FileSource source_;
};

TEST_F(Source, CutsAFileIntoPiecesAndStartsOver)
{
    fill("abcdefghij");
    ASSERT_EQ(source_.open(path_), "");
    EXPECT_EQ(source_.size(), 10U);
    for (int pass = 0; pass < 2; ++pass) {
        EXPECT_EQ(next(), "abcd");
        EXPECT_EQ(next(), "efgh");
        EXPECT_EQ(next(), "ij");
        EXPECT_EQ(next(), ".");
        EXPECT_EQ(next(), ".");
        EXPECT_TRUE(source_.rewind());
    }
}

TEST_F(Source, ReadsLargeFilesInBlocks)
{
    // Sparse: past what is kept in memory, without writing it.
    const off_t large = (off_t{64} << 20) + 10;
    fill("head");
    ASSERT_EQ(truncate(path_.c_str(), large), 0);
    ASSERT_EQ(source_.open(path_), "");
    std::vector<std::byte> room(1'000'003);
    for (int pass = 0; pass < 2; ++pass) {
        uint64_t total = 0;
        size_t bytes = 0;
        bool first = true;
        while (source_.next(room, bytes) == Got::piece) {
            if (first) {
                EXPECT_EQ(std::memcmp(room.data(), "head", 5), 0);
            }
            first = false;
            total += bytes;
        }
        EXPECT_EQ(total, static_cast<uint64_t>(large));
        EXPECT_TRUE(source_.rewind());
    }
}

TEST_F(Source, SaysWhatIsWrong)
{
    EXPECT_NE(source_.open(path_).find("is empty"), std::string::npos);
    EXPECT_NE(app::FileSource().open("/").find("is a folder"), std::string::npos);
    EXPECT_NE(app::FileSource().open("/no/such/file").find("No such file"), std::string::npos);
}

/// Standard input as the pipe it usually is.
class Pipe : public Source
{
protected:
    void SetUp() override
    {
        Source::SetUp();
        saved_ = dup(STDIN_FILENO);
        ASSERT_EQ(pipe(ends_), 0);
        ASSERT_EQ(dup2(ends_[0], STDIN_FILENO), STDIN_FILENO);
        ASSERT_EQ(source_.open("-"), "");
    }
    void TearDown() override
    {
        dup2(saved_, STDIN_FILENO);
        ::close(saved_);
        ::close(ends_[0]);
        say_no_more();
        Source::TearDown();
    }
    void say(const char *text)
    {
        ASSERT_EQ(write(ends_[1], text, std::strlen(text)),
                  static_cast<ssize_t>(std::strlen(text)));
    }
    void say_no_more()
    {
        if (ends_[1] >= 0)
            ::close(ends_[1]);
        ends_[1] = -1;
    }

    int ends_[2] = {-1, -1};
    int saved_ = -1;
};

TEST_F(Pipe, NeverWaits)
{
    EXPECT_EQ(next(), "-");
    say("ab");
    EXPECT_EQ(next(), "-"); // half a piece: the rest may come
    say("cdefg");
    EXPECT_EQ(next(), "abcd");
    EXPECT_EQ(next(), "-");
    say_no_more();
    EXPECT_EQ(next(), "efg");
    EXPECT_EQ(next(), ".");
    EXPECT_FALSE(source_.rewind());
    EXPECT_EQ(source_.size(), 0U);
}

} // namespace
