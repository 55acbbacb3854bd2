// SPDX-License-Identifier: BSD-3-Clause
#include "traffic/packets.hpp"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>

namespace
{

class Packets : public testing::Test
{
protected:
    Packets()
    {
        char name[] = "/tmp/ntbmsg-packets-XXXXXX";
        folder_ = mkdtemp(name);
    }
    ~Packets() override { std::filesystem::remove_all(folder_); }

    std::string write(const std::string &content) const
    {
        const std::string path = folder_ / "file";
        std::ofstream(path, std::ios::binary) << content;
        return path;
    }

    std::filesystem::path folder_;
    pktgen::Packets packets_;
};

template <typename... Words>
std::string words(Words... all)
{
    std::string text;
    for (const uint32_t word : {static_cast<uint32_t>(all)...})
        text.append(reinterpret_cast<const char *>(&word), sizeof(word));
    return text;
}

const std::string header = words(0xa1b2c3d4, 0x00040002, 0, 0, 65535, 1);

std::string packet(uint32_t seconds, uint32_t us, const std::string &data)
{
    return words(seconds, us, data.size(), data.size()) + data;
}

TEST_F(Packets, AreReadInOrderWithTimesFromTheFirst)
{
    const std::string path =
        write(header + packet(5, 10, "abc") + packet(5, 12, "defg") + packet(6, 0, "h"));
    ASSERT_EQ(packets_.read(path), "");
    ASSERT_EQ(packets_.count(), 3U);
    EXPECT_EQ(packets_.sizes(), (std::vector<uint32_t>{3, 4, 1}));
    EXPECT_EQ(std::memcmp(packets_.data(1).data(), "defg", 4), 0);
    EXPECT_EQ(packets_.ns(0), 0U);
    EXPECT_EQ(packets_.ns(1), 2000U);
    EXPECT_EQ(packets_.ns(2), 999990000U);
}

TEST_F(Packets, AClockThatWentBackDoesNotTakeUsAlong)
{
    ASSERT_EQ(
        packets_.read(write(header + packet(5, 0, "a") + packet(5, 9, "b") + packet(4, 0, "c"))),
        "");
    EXPECT_EQ(packets_.ns(2), packets_.ns(1));
}

TEST_F(Packets, EmptyOnesAreLeftOut)
{
    ASSERT_EQ(packets_.read(write(header + packet(0, 0, "") + packet(0, 0, "a"))), "");
    EXPECT_EQ(packets_.count(), 1U);
}

/// Cut anywhere, a file gives its packets or an error, and never more than it holds.
TEST_F(Packets, ACutFileIsRefused)
{
    const std::string whole = header + packet(0, 0, "abc") + packet(0, 1, "def");
    const size_t one = header.size() + 16 + 3;
    for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
        pktgen::Packets packets;
        const std::string wrong = packets.read(write(whole.substr(0, bytes)));
        EXPECT_EQ(wrong.empty(), bytes == one) << bytes << ": " << wrong;
    }
}

/// Any bytes behind a good header: no crash, no packet that is not in the file.
TEST_F(Packets, NoiseDoesNoHarm)
{
    std::mt19937 random(7);
    for (unsigned round = 0; round < 200; ++round) {
        std::string noise = header;
        for (unsigned i = 0; i < 200; ++i)
            noise += static_cast<char>(random() % (round % 2 == 0 ? 256 : 4));
        pktgen::Packets packets;
        packets.read(write(noise));
        size_t bytes = 0;
        for (const uint32_t size : packets.sizes())
            bytes += size;
        EXPECT_LE(bytes, noise.size());
    }
}

TEST_F(Packets, AddStopsWhereTheRoomEnds)
{
    packets_.reserve(3, 10);
    const std::byte data[4] = {};
    EXPECT_TRUE(packets_.add(0, data));
    EXPECT_TRUE(packets_.add(1, data));
    EXPECT_FALSE(packets_.add(2, data)) << "12 bytes into 10";
    EXPECT_EQ(packets_.count(), 2U);
    packets_.clear();
    EXPECT_TRUE(packets_.add(0, data));
}

} // namespace
