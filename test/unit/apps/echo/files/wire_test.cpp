// SPDX-License-Identifier: BSD-3-Clause
#include "files/wire.hpp"

#include <cstring>
#include <random>
#include <sys/stat.h>
#include <vector>

#include <gtest/gtest.h>

namespace
{

using echo::file::header_bytes;
using echo::file::Kind;
using echo::file::Message;

/// As the sender puts it together; data_bytes of zeros behind data.
std::vector<std::byte> bytes_of(const Message &message)
{
    std::vector<std::byte> bytes(header_bytes + message.name.size() + message.data_bytes);
    echo::file::encode(message, std::span<std::byte, header_bytes>(bytes.data(), header_bytes));
    std::memcpy(bytes.data() + header_bytes, message.name.data(), message.name.size());
    return bytes;
}

std::optional<Message> decode(const std::vector<std::byte> &bytes)
{
    return echo::file::decode(bytes, bytes.size());
}

Message offer(uint32_t mode = S_IFREG | 0644, uint64_t size = 17)
{
    return {Kind::offer, mode, 5, size, -7, "folder/name"};
}

TEST(EchoFileWire, WhatIsEncodedIsDecoded)
{
    Message data{Kind::data, 0, 5, 1000};
    data.data_bytes = 3;
    for (const Message &sent :
         {offer(), offer(S_IFDIR | 0755, 0), Message{Kind::accept, 0xdeadbeef, 5, 12}, data,
          Message{Kind::end, 1, 5, INT64_MAX}, Message{Kind::done, 1, 5, 0},
          Message{Kind::abort, 28, ~uint64_t{0}}}) {
        const auto got = decode(bytes_of(sent));
        ASSERT_TRUE(got.has_value()) << static_cast<int>(sent.kind);
        EXPECT_EQ(got->kind, sent.kind);
        EXPECT_EQ(got->value, sent.value);
        EXPECT_EQ(got->transfer, sent.transfer);
        EXPECT_EQ(got->number, sent.number);
        EXPECT_EQ(got->time_ns, sent.time_ns);
        EXPECT_EQ(got->name, sent.name);
        EXPECT_EQ(got->data_bytes, sent.data_bytes);
    }
}

TEST(EchoFileWire, CutShortOrMadeLongerIsRefused)
{
    for (const Message &sent : {offer(), Message{Kind::accept, 1, 5, 12}, Message{Kind::end, 1, 5},
                                Message{Kind::done, 1, 5}, Message{Kind::abort, 28, 5}}) {
        std::vector<std::byte> bytes = bytes_of(sent);
        for (size_t n = 0; n < bytes.size(); ++n)
            EXPECT_FALSE(decode({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(n)})) << n;
        bytes.push_back(std::byte{0});
        EXPECT_FALSE(decode(bytes)) << static_cast<int>(sent.kind);
    }
    EXPECT_FALSE(decode(bytes_of({Kind::data, 0, 5, 0}))) << "data without data";
}

TEST(EchoFileWire, ImpossibleFieldsAreRefused)
{
    EXPECT_FALSE(decode(bytes_of({Kind{0}})));
    EXPECT_FALSE(decode(bytes_of({Kind{7}})));
    EXPECT_FALSE(decode(bytes_of({Kind::abort, 0, 5}))) << "no error";
    EXPECT_FALSE(decode(bytes_of({Kind::abort, 4096, 5}))) << "no errno";
    EXPECT_FALSE(decode(bytes_of({Kind::accept, 0, 5, uint64_t{1} << 63})));
    EXPECT_FALSE(decode(bytes_of(offer(S_IFREG | 0644, uint64_t{1} << 63))));
    EXPECT_FALSE(decode(bytes_of(offer(S_IFLNK | 0777)))) << "a symbolic link";
    EXPECT_FALSE(decode(bytes_of(offer(S_IFIFO | 0644))));
    EXPECT_FALSE(decode(bytes_of(offer(S_IFDIR | 0755, 1)))) << "a folder with bytes";
    Message nameless = offer();
    nameless.name.clear();
    EXPECT_FALSE(decode(bytes_of(nameless)));
    Message data{Kind::data, 0, 5, INT64_MAX - 1};
    data.data_bytes = 2;
    EXPECT_FALSE(decode(bytes_of(data))) << "data beyond the largest file";
    auto version = bytes_of({Kind::end, 1, 5});
    version[1] = std::byte{2};
    EXPECT_FALSE(decode(version));
}

TEST(EchoFileWire, AnOfferThatIsLongerThanWhatWasCopiedOfItIsRefused)
{
    const auto bytes = bytes_of(offer());
    EXPECT_FALSE(echo::file::decode(bytes, bytes.size() + 1));
    EXPECT_FALSE(echo::file::decode(bytes, bytes.size() - 1));
}

TEST(EchoFileWire, NoiseIsNeverMoreThanItIs)
{
    std::mt19937 random(20);
    for (int i = 0; i < 200'000; ++i) {
        std::vector<std::byte> bytes(random() % 80);
        for (std::byte &b : bytes)
            b = static_cast<std::byte>(random());
        if (bytes.size() > 2) { // likely enough to get through
            bytes[0] = static_cast<std::byte>(random() % 8);
            bytes[1] = std::byte{1};
        }
        const auto got = decode(bytes);
        if (!got)
            continue;
        EXPECT_LE(header_bytes + got->name.size() + got->data_bytes, bytes.size()) << i;
        EXPECT_LE(got->number + got->data_bytes, uint64_t{INT64_MAX}) << i;
    }
}

TEST(EchoFileWire, NamesStayInside)
{
    for (const char *good : {"a", "a/b", "a/b/c.txt", "...", "..a", "a..", ".hidden", "with blanks",
                             "new\nline", "\xff\xfe", "-rf", "a/.../b", "~", "C:\\windows"})
        EXPECT_TRUE(echo::file::name_is_safe(good)) << good;
    for (const char *bad : {"", "/", "/etc/passwd", "..", ".", "../a", "a/..", "a/../b",
                            "a/../../b", "./a", "a/.", "a/./b", "a//b", "a/", "//a",
                            ".ntbmsg-part-0", "a/.ntbmsg-part-0123456789abcdef", ".ntbmsg-part-/a"})
        EXPECT_FALSE(echo::file::name_is_safe(bad)) << bad;
    EXPECT_FALSE(echo::file::name_is_safe({"a\0b", 3}));
    EXPECT_FALSE(echo::file::name_is_safe({"a/\0", 3}));
    EXPECT_TRUE(echo::file::name_is_safe(std::string(255, 'x')));
    EXPECT_FALSE(echo::file::name_is_safe(std::string(256, 'x')));
    std::string deep = "a";
    while (deep.size() + 2 <= echo::file::most_name_bytes)
        deep += "/a";
    EXPECT_TRUE(echo::file::name_is_safe(deep));
    EXPECT_FALSE(echo::file::name_is_safe(deep + "/a"));
}

TEST(EchoFileWire, PartialFilesAreToldApart)
{
    const Message one = offer();
    Message size = one, time = one, name = one;
    ++size.number;
    ++time.time_ns;
    name.name += "x";
    EXPECT_EQ(echo::file::part_name(one), echo::file::part_name(offer()));
    for (const Message &other : {size, time, name})
        EXPECT_NE(echo::file::part_name(one), echo::file::part_name(other));
    EXPECT_FALSE(echo::file::name_is_safe(echo::file::part_name(one)));
}

TEST(EchoFileWire, NamesDoNotCommandATerminal)
{
    EXPECT_EQ(echo::file::printable("a\x1b[2Jb\nc\x7f"), "a?[2Jb?c?");
    EXPECT_EQ(echo::file::printable(std::string(300, 'x')).size(), 203U);
}

} // namespace
