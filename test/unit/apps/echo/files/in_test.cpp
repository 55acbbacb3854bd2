// SPDX-License-Identifier: BSD-3-Clause
// What a peer can do to the folder that files are received into.
#include "files/in.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <rte_mbuf.h>

#include "crc32c.hpp"

namespace
{

namespace fs = std::filesystem;
using echo::file::In;
using echo::file::Kind;
using echo::file::Message;

/// A message in memory of the test's own: a header, which no one looks at, and data in two pieces.
class Data
{
public:
    Data(uint64_t offset, const std::string &text) : text_(echo::file::header_bytes, 'h')
    {
        text_ += text;
        message_.number = offset;
        message_.data_bytes = text.size();
        const size_t first = echo::file::header_bytes + text.size() / 2;
        lay(head_, 0, first);
        lay(tail_, first, text_.size() - first);
        head_.next = &tail_;
        head_.pkt_len = static_cast<uint32_t>(text_.size());
    }
    int write(In &in) { return in.write(message_, &head_); }

private:
    void lay(rte_mbuf &mbuf, size_t at, size_t bytes)
    {
        std::memset(static_cast<void *>(&mbuf), 0, sizeof(mbuf));
        mbuf.buf_addr = text_.data() + at;
        mbuf.data_len = static_cast<uint16_t>(bytes);
    }
    std::string text_;
    Message message_{Kind::data};
    rte_mbuf head_, tail_;
};

class EchoFileIn : public testing::Test
{
protected:
    void SetUp() override
    {
        std::string pattern = (fs::temp_directory_path() / "ntbmsg-file-in-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        outside_ = pattern;
        folder_ = outside_ / "in";
        fs::create_directory(folder_);
        root_ = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ASSERT_GE(root_, 0);
    }
    void TearDown() override
    {
        close(root_);
        fs::remove_all(outside_);
    }

    static Message offer(const std::string &name, uint64_t bytes)
    {
        return {Kind::offer, S_IFREG | 0640, 1, bytes, 1'000'000'005, name};
    }
    static Message end(const std::string &text)
    {
        return {Kind::end, app::crc32c(text.data(), text.size()), 1, text.size()};
    }
    int receive(const std::string &name, const std::string &text)
    {
        In in;
        int error = in.open(root_, offer(name, text.size()));
        if (error == 0 && !text.empty())
            error = Data(0, text).write(in);
        return error != 0 ? error : in.finish(end(text));
    }
    static std::string content(const fs::path &path)
    {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    size_t entries() const
    {
        return static_cast<size_t>(
            std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
    }
    static void read_all(In &in)
    {
        int error = 0;
        while (in.reading())
            in.read_some(error);
        EXPECT_EQ(error, 0);
    }

    fs::path outside_, folder_;
    int root_ = -1;
};

TEST_F(EchoFileIn, AFileGetsItsPlaceTimeAndPermissions)
{
    ASSERT_EQ(receive("a/b/name", "some bytes"), 0);
    EXPECT_EQ(content(folder_ / "a/b/name"), "some bytes");
    struct stat status = {};
    ASSERT_EQ(stat((folder_ / "a/b/name").c_str(), &status), 0);
    EXPECT_EQ(status.st_mtim.tv_sec, 1);
    EXPECT_EQ(status.st_mtim.tv_nsec, 5);
    EXPECT_EQ(status.st_mode & ~0640U & 07777U, 0U);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "a/b"), fs::directory_iterator()), 1);
    EXPECT_EQ(receive("empty", ""), 0);
    EXPECT_EQ(fs::file_size(folder_ / "empty"), 0U);
}

TEST_F(EchoFileIn, AnOlderFileIsReplacedAtTheEndOnly)
{
    std::ofstream(folder_ / "name") << "old";
    In in;
    ASSERT_EQ(in.open(root_, offer("name", 4)), 0);
    ASSERT_EQ(Data(0, "new!").write(in), 0);
    EXPECT_EQ(content(folder_ / "name"), "old");
    ASSERT_EQ(in.finish(end("new!")), 0);
    EXPECT_EQ(content(folder_ / "name"), "new!");
}

TEST_F(EchoFileIn, WhatIsNotWhatWasSentIsThrownAway)
{
    In in;
    ASSERT_EQ(in.open(root_, offer("name", 4)), 0);
    ASSERT_EQ(Data(0, "abcd").write(in), 0);
    Message wrong = end("abcd");
    wrong.value ^= 1;
    EXPECT_EQ(in.finish(wrong), EBADMSG);
    EXPECT_EQ(entries(), 0U);
    ASSERT_EQ(in.open(root_, offer("name", 4)), 0);
    ASSERT_EQ(Data(0, "ab").write(in), 0);
    EXPECT_EQ(in.finish(end("ab")), EBADMSG) << "less than was offered";
    EXPECT_EQ(entries(), 0U);
}

TEST_F(EchoFileIn, DataThatDoNotFollowAreRefused)
{
    In in;
    ASSERT_EQ(in.open(root_, offer("name", 4)), 0);
    EXPECT_EQ(Data(1, "b").write(in), EPROTO) << "a gap";
    EXPECT_EQ(Data(0, "abcde").write(in), EPROTO) << "more than was offered";
    ASSERT_EQ(Data(0, "ab").write(in), 0);
    EXPECT_EQ(Data(0, "ab").write(in), EPROTO) << "again from the start";
    EXPECT_EQ(Data(3, "d").write(in), EPROTO);
    EXPECT_EQ(Data(2, "cde").write(in), EPROTO);
    EXPECT_EQ(Data(2, "cd").write(in), 0);
    EXPECT_EQ(in.finish(end("abcd")), 0);
}

TEST_F(EchoFileIn, AnInterruptedFileGoesOn)
{
    {
        In in;
        ASSERT_EQ(in.open(root_, offer("name", 6)), 0);
        ASSERT_EQ(Data(0, "abc").write(in), 0);
    }
    In in;
    ASSERT_EQ(in.open(root_, offer("name", 6)), 0);
    EXPECT_TRUE(in.reading());
    read_all(in);
    EXPECT_EQ(in.have(), 3U);
    EXPECT_EQ(in.crc(), app::crc32c("abc", 3));
    ASSERT_EQ(Data(3, "def").write(in), 0);
    ASSERT_EQ(in.finish(end("abcdef")), 0);
    EXPECT_EQ(content(folder_ / "name"), "abcdef");
    EXPECT_EQ(entries(), 1U);
}

TEST_F(EchoFileIn, AnotherBeginningStartsAnew)
{
    {
        In in;
        ASSERT_EQ(in.open(root_, offer("name", 6)), 0);
        ASSERT_EQ(Data(0, "xxxx").write(in), 0);
    }
    In in;
    ASSERT_EQ(in.open(root_, offer("name", 6)), 0);
    read_all(in);
    ASSERT_EQ(Data(0, "abcdef").write(in), 0);
    ASSERT_EQ(in.finish(end("abcdef")), 0);
    EXPECT_EQ(content(folder_ / "name"), "abcdef");
}

TEST_F(EchoFileIn, AFileThatIsThereNeedNoDataAndTakesOthers)
{
    ASSERT_EQ(receive("name", "abcdef"), 0);
    In in;
    ASSERT_EQ(in.open(root_, offer("name", 6)), 0);
    read_all(in);
    EXPECT_EQ(in.have(), 6U);
    ASSERT_EQ(in.finish(end("abcdef")), 0);
    EXPECT_EQ(content(folder_ / "name"), "abcdef");
    // The same size and time, other bytes.
    ASSERT_EQ(in.open(root_, offer("name", 6)), 0);
    read_all(in);
    ASSERT_EQ(Data(0, "ghi").write(in), 0);
    EXPECT_EQ(content(folder_ / "name"), "abcdef") << "not before it is whole";
    ASSERT_EQ(Data(3, "jkl").write(in), 0);
    ASSERT_EQ(in.finish(end("ghijkl")), 0);
    EXPECT_EQ(content(folder_ / "name"), "ghijkl");
    EXPECT_EQ(entries(), 1U);
}

TEST_F(EchoFileIn, LinksLeadNowhere)
{
    fs::create_directory(outside_ / "secret");
    std::ofstream(outside_ / "secret/file") << "untouched";
    fs::create_directory_symlink(outside_ / "secret", folder_ / "way");
    EXPECT_NE(receive("way/file", "abc"), 0);
    EXPECT_NE(receive("way/new", "abc"), 0);
    EXPECT_NE(echo::file::make_folder(root_, "way"), 0);
    EXPECT_NE(echo::file::make_folder(root_, "way/folder"), 0);
    // A link in the place of the file is replaced, not followed.
    fs::create_symlink(outside_ / "secret/file", folder_ / "name");
    EXPECT_EQ(receive("name", "abc"), 0);
    EXPECT_FALSE(fs::is_symlink(folder_ / "name"));
    EXPECT_EQ(content(outside_ / "secret/file"), "untouched");
    EXPECT_EQ(std::distance(fs::directory_iterator(outside_ / "secret"), fs::directory_iterator()),
              1);
}

TEST_F(EchoFileIn, ALinkInThePlaceOfThePartialFileIsRefused)
{
    std::ofstream(outside_ / "victim") << "untouched";
    const Message one = offer("name", 3);
    fs::create_symlink(outside_ / "victim", folder_ / echo::file::part_name(one));
    In in;
    EXPECT_NE(in.open(root_, one), 0);
    fs::remove(folder_ / echo::file::part_name(one));
    fs::create_hard_link(outside_ / "victim", folder_ / echo::file::part_name(one));
    EXPECT_EQ(in.open(root_, one), EEXIST);
    EXPECT_EQ(content(outside_ / "victim"), "untouched");
}

TEST_F(EchoFileIn, WhatIsInTheWayIsNamed)
{
    std::ofstream(folder_ / "file") << "x";
    fs::create_directory(folder_ / "folder");
    EXPECT_EQ(receive("file/below", "abc"), ENOTDIR);
    EXPECT_EQ(receive("folder", "abc"), EISDIR);
    EXPECT_EQ(echo::file::make_folder(root_, "folder"), 0) << "it is there";
    EXPECT_EQ(echo::file::make_folder(root_, "file"), ENOTDIR);
    In one, two;
    ASSERT_EQ(one.open(root_, offer("name", 3)), 0);
    EXPECT_EQ(two.open(root_, offer("name", 3)), EBUSY);
}

} // namespace
