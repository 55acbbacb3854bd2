// SPDX-License-Identifier: BSD-3-Clause
// Bursts built in rooms that are plain memory.
#include "built_bursts.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace
{

constexpr uint32_t room_bytes = 8;

/// A peer with a number of receive buffers. What is committed is text.
class Peer
{
public:
    int reserve(ntbmsg_room *rooms, uint16_t n)
    {
        EXPECT_EQ(reserved_, 0u) << "what was reserved before was not given back";
        wanted.push_back(n);
        if (answer < 0)
            return answer;
        reserved_ = std::min<uint32_t>(n, free);
        for (uint32_t i = 0; i < reserved_; ++i)
            rooms[i] = {&memory_[(first_ + i) * room_bytes], room_bytes, 0};
        return static_cast<int>(reserved_);
    }
    int commit(const uint32_t *lengths, uint16_t n)
    {
        if (commit_answer < 0)
            return commit_answer;
        for (uint16_t i = 0; i < n; ++i) {
            got.emplace_back(reinterpret_cast<const char *>(&memory_[first_ * room_bytes]),
                             lengths[i]);
            const uint32_t used = (lengths[i] + room_bytes - 1) / room_bytes;
            EXPECT_LE(used, reserved_);
            reserved_ -= used;
            first_ += used;
            free -= used;
        }
        return n;
    }
    void abort() { reserved_ = 0; }
    uint32_t reserved() const { return reserved_; }

    uint32_t free = 100;
    int answer = 0, commit_answer = 0;
    std::vector<std::string> got;
    std::vector<uint16_t> wanted;

private:
    std::array<std::byte, 100 * room_bytes> memory_;
    uint32_t first_ = 0, reserved_ = 0;
};

class BuiltBursts : public testing::Test
{
protected:
    app::Built send(const std::vector<std::string> &messages)
    {
        std::vector<uint32_t> lengths;
        for (const std::string &message : messages)
            lengths.push_back(static_cast<uint32_t>(message.size()));
        std::vector<uint32_t> stored(messages.size());
        const app::Built built =
            bursts_.send(peer_, lengths, [&](uint16_t i, std::byte *to, uint32_t n, uint32_t at) {
                EXPECT_EQ(at, stored[i]) << "not one part after the other";
                std::memcpy(to, messages[i].data() + at, n);
                stored[i] += n;
            });
        EXPECT_EQ(peer_.reserved(), 0u) << "rooms are held between two calls";
        return built;
    }
    void expect_sent(const std::vector<std::string> &messages)
    {
        const app::Built built = send(messages);
        EXPECT_EQ(built.sent, static_cast<int>(messages.size()));
        EXPECT_FALSE(built.beyond);
    }

    Peer peer_;
    app::BuiltBursts bursts_;
};

TEST_F(BuiltBursts, EachMessageBeginsWithARoomOfItsOwn)
{
    const std::vector<std::string> sent = {"one", "12345678", "c"};
    expect_sent(sent);
    EXPECT_EQ(peer_.got, sent);
    EXPECT_EQ(peer_.free, 97u);
}

TEST_F(BuiltBursts, HowLargeRoomsAreIsLearnt)
{
    const std::vector<std::string> sent = {"123456789", "12345678", std::string(40, 'x')};
    EXPECT_EQ(send(sent).sent, 2); // three rooms, and none for the last
    expect_sent(sent);
    EXPECT_EQ(peer_.wanted, (std::vector<uint16_t>{3, 8}));
}

TEST_F(BuiltBursts, AFirstMessageOfManyRoomsIsAskedForAnew)
{
    const std::string sent(40, 'x');
    const app::Built built = send({sent});
    EXPECT_EQ(built.sent, 0);
    EXPECT_FALSE(built.beyond) << "one room was asked for, not the five";
    expect_sent({sent});
    EXPECT_EQ(peer_.got.at(0), sent);
}

TEST_F(BuiltBursts, WhatDoesNotFitWaits)
{
    expect_sent({"x"});
    peer_.free = 4;
    EXPECT_EQ(send({"a", "b", std::string(24, 'c'), "d"}).sent, 2);
    EXPECT_EQ(peer_.free, 2u) << "what was left of the rooms came back";
    EXPECT_EQ(peer_.got, (std::vector<std::string>{"x", "a", "b"}));
}

TEST_F(BuiltBursts, NoRoomIsNoError)
{
    peer_.free = 0;
    const app::Built built = send({"x"});
    EXPECT_EQ(built.sent, 0);
    EXPECT_FALSE(built.beyond) << "there will be some";
}

TEST_F(BuiltBursts, AMessageBeyondTheRoomsIsSaidToBe)
{
    expect_sent({"x"});
    peer_.free = 4;
    const app::Built built = send({std::string(33, 'c'), "d"});
    EXPECT_EQ(built.sent, 0);
    EXPECT_TRUE(built.beyond);
    EXPECT_EQ(peer_.got.size(), 1u);
}

TEST_F(BuiltBursts, SoIsOneBeyondAllRoomsThatThereMayBe)
{
    expect_sent({"x"});
    const app::Built built =
        send({std::string(app::BuiltBursts::most_rooms * room_bytes + 1, 'c')});
    EXPECT_EQ(built.sent, 0);
    EXPECT_TRUE(built.beyond);
    EXPECT_EQ(peer_.wanted.back(), app::BuiltBursts::most_rooms);
}

TEST_F(BuiltBursts, WithoutAPeerNothingIsHeld)
{
    peer_.answer = -ENOTCONN;
    EXPECT_EQ(send({"x"}).sent, -ENOTCONN);
    peer_.answer = 0;
    expect_sent({"y"});
}

/// The connection ends while messages are built.
TEST_F(BuiltBursts, WhatIsNotCommittedIsGivenBack)
{
    for (const int error : {-ECONNRESET, -EMSGSIZE}) {
        peer_.commit_answer = error;
        EXPECT_EQ(send({"x", "y"}).sent, error);
    }
    EXPECT_EQ(peer_.free, 100u);
    peer_.commit_answer = 0;
    expect_sent({"z"});
    EXPECT_EQ(peer_.got, (std::vector<std::string>{"z"}));
}

} // namespace
