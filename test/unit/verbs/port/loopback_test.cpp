// SPDX-License-Identifier: BSD-3-Clause
#include "port/loopback.hpp"

#include <cerrno>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>
#include <poll.h>

#include "../../../verbs/memory_files.hpp"

namespace
{

using ntb::verbs::Loopback;
using ntb::verbs::Port;

bool put(Port &port, std::uint32_t bytes, std::uint64_t value)
{
    std::byte *message = port.reserve(bytes);
    if (!message)
        return false;
    std::memset(message, 0xee, bytes);
    std::memcpy(message, &value, sizeof(value));
    port.commit(bytes);
    return true;
}

bool rung(const Port &port)
{
    pollfd fd = {port.bell(), POLLIN, 0};
    return poll(&fd, 1, 0) == 1;
}

struct Got {
    bool any;
    std::uint32_t bytes;
    std::uint64_t value;
    bool operator==(const Got &) const = default;
};

Got get(Port &port)
{
    Port::Incoming message;
    if (!port.receive(message))
        return {false, 0, 0};
    Got got = {true, message.bytes, 0};
    std::memcpy(&got.value, message.data, sizeof(got.value));
    port.release();
    return got;
}

constexpr Got nothing = {false, 0, 0};

TEST(Loopback, SaysWhetherMoreHasComeAndWhetherItIsQuiet)
{
    const auto loopback = Loopback::create(4096);
    Port &from = loopback->end(0), &to = loopback->end(1);
    EXPECT_TRUE(to.watch().is_quiet());
    ASSERT_TRUE(put(from, 8, 1));
    ASSERT_TRUE(put(from, 8, 2));
    EXPECT_FALSE(to.watch().is_quiet());
    for (const bool more : {true, false}) {
        Port::Incoming message;
        ASSERT_TRUE(to.receive(message));
        EXPECT_EQ(message.more, more);
        to.release();
    }
    EXPECT_TRUE(to.watch().is_quiet());
    from.leave(77);
    EXPECT_EQ(to.left(), 77u);
    EXPECT_EQ(from.left(), 0u);
}

TEST(Loopback, RefusesSizesThatAreNone)
{
    EXPECT_EQ(Loopback::create(2048), nullptr);
    EXPECT_EQ(Loopback::create(5000), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST(Loopback, MessagesOfEverySizeArriveInOrderBothWays)
{
    const auto loopback = Loopback::create(4096);
    for (std::uint32_t i = 0; i < 5000; ++i) {
        const std::uint32_t bytes = 8 + i % (loopback->end(0).longest() - 7);
        ASSERT_TRUE(put(loopback->end(i % 2), bytes, i));
        ASSERT_EQ(get(loopback->end(1 - i % 2)), (Got{true, bytes, i}));
    }
    EXPECT_EQ(get(loopback->end(0)), nothing);
}

TEST(Loopback, FullSaysSoAndRoomComesWithTheRelease)
{
    const auto loopback = Loopback::create(4096);
    std::uint64_t sent = 0;
    while (put(loopback->end(0), 500, sent))
        ++sent;
    EXPECT_GE(sent, 7u);
    EXPECT_LE(sent, 8u);
    EXPECT_EQ(get(loopback->end(1)).value, 0u);
    EXPECT_TRUE(put(loopback->end(0), 500, sent));
    for (std::uint64_t i = 1; i <= sent; ++i)
        EXPECT_EQ(get(loopback->end(1)).value, i);
    EXPECT_EQ(loopback->end(0).reserve(loopback->end(0).longest() + 1), nullptr);
}

TEST(Loopback, HeldMessagesArriveWhenTheyAreLetGo)
{
    const auto loopback = Loopback::create(4096);
    ASSERT_TRUE(put(loopback->end(0), 8, 1));
    loopback->hold(0, true);
    ASSERT_TRUE(put(loopback->end(0), 8, 2));
    EXPECT_EQ(get(loopback->end(1)).value, 1u);
    EXPECT_EQ(get(loopback->end(1)), nothing);
    ASSERT_TRUE(loopback->end(1).arm(false));
    loopback->hold(0, false);
    EXPECT_TRUE(rung(loopback->end(1)));
    EXPECT_EQ(get(loopback->end(1)).value, 2u);
}

TEST(Loopback, AnEndMayBeDeclaredFullAndBothMayLoseEachOther)
{
    const auto loopback = Loopback::create(4096);
    loopback->set_full(0, true);
    EXPECT_FALSE(put(loopback->end(0), 8, 1));
    EXPECT_TRUE(put(loopback->end(1), 8, 1));
    loopback->set_full(0, false);
    EXPECT_TRUE(put(loopback->end(0), 8, 1));
    EXPECT_TRUE(loopback->end(0).alive());
    loopback->kill();
    EXPECT_FALSE(loopback->end(0).alive());
    EXPECT_FALSE(loopback->end(1).alive());
    EXPECT_FALSE(put(loopback->end(0), 8, 1));
}

TEST(Loopback, RingsOnceAndOnlyWhenArmed)
{
    const auto loopback = Loopback::create(4096);
    Port &end = loopback->end(1);
    ASSERT_TRUE(put(loopback->end(0), 8, 1));
    EXPECT_FALSE(rung(end));
    EXPECT_FALSE(end.arm(false)) << "a message is there";
    get(end);
    EXPECT_TRUE(end.arm(false));
    ASSERT_TRUE(put(loopback->end(0), 8, 2));
    EXPECT_TRUE(rung(end));
    end.disarm();
    EXPECT_FALSE(rung(end));
    ASSERT_TRUE(put(loopback->end(0), 8, 3));
    EXPECT_FALSE(rung(end));
}

TEST(Loopback, RingsForRoomOnlyWhenArmedForIt)
{
    const auto loopback = Loopback::create(4096);
    Port &end = loopback->end(0);
    EXPECT_FALSE(end.arm(true)) << "there is room";
    while (put(end, 500, 1)) {
    }
    ASSERT_TRUE(end.arm(false));
    get(loopback->end(1));
    EXPECT_FALSE(rung(end));
    ASSERT_TRUE(put(end, 500, 1));
    ASSERT_TRUE(end.arm(true));
    while (get(loopback->end(1)).any) {
    }
    EXPECT_TRUE(rung(end));
    end.disarm();
    EXPECT_FALSE(rung(end));
    EXPECT_TRUE(end.reserve(end.longest()) != nullptr);
}

TEST(Loopback, ASleeperMissesNoMessageOfAnotherThread)
{
    constexpr std::uint64_t messages = 20000;
    const auto loopback = Loopback::create(4096);
    std::thread sender([&] {
        for (std::uint64_t i = 0; i < messages;)
            i += put(loopback->end(0), static_cast<std::uint32_t>(8 + i % 300), i);
    });
    Port &end = loopback->end(1);
    for (std::uint64_t i = 0; i < messages;) {
        const Got got = get(end);
        if (got.any) {
            ASSERT_EQ(got.value, i);
            ASSERT_EQ(got.bytes, 8 + i % 300);
            ++i;
        } else if (end.arm(false)) {
            pollfd fd = {end.bell(), POLLIN, 0};
            ASSERT_EQ(poll(&fd, 1, -1), 1);
            end.disarm();
        }
    }
    sender.join();
}

TEST(Loopback, WhatOneEndGrantsTheOtherOneOpens)
{
    const auto loopback = Loopback::create(4096);
    ntb::verbs::MemoryFiles files;
    const auto own = files.create(8192);
    ASSERT_NE(own, nullptr);
    const std::uint64_t number = loopback->end(0).grant(own, true);
    ASSERT_NE(number, 0u);
    EXPECT_EQ(loopback->end(1).open(number + 1).segment, nullptr);
    EXPECT_EQ(loopback->end(1).open(0).segment, nullptr);
    EXPECT_EQ(loopback->end(0).open(number).segment, nullptr) << "is its own";
    const auto [peers, writable, later] = loopback->end(1).open(number);
    ASSERT_NE(peers, nullptr);
    EXPECT_TRUE(writable);
    EXPECT_FALSE(later);
    EXPECT_EQ(peers->bytes(), 8192u);
    EXPECT_EQ(peers->descriptor(), -1);
    peers->data()[8191] = std::byte{7};
    EXPECT_EQ(own->data()[8191], std::byte{7});
    loopback->end(1).revoke(number); // not its own
    EXPECT_NE(loopback->end(1).open(number).segment, nullptr);
    loopback->end(0).revoke(number);
    EXPECT_EQ(loopback->end(1).open(number).segment, nullptr);
    peers->data()[0] = std::byte{9};
    EXPECT_EQ(own->data()[0], std::byte{9}) << "what is mapped stays";
}

TEST(Loopback, AGrantToReadSaysSo)
{
    const auto loopback = Loopback::create(4096);
    ntb::verbs::MemoryFiles files;
    const auto own = files.create(4096);
    const auto opening = loopback->end(1).open(loopback->end(0).grant(own, false));
    const auto &peers = opening.segment;
    ASSERT_NE(peers, nullptr);
    EXPECT_FALSE(opening.writable);
    own->data()[5] = std::byte{3};
    EXPECT_EQ(peers->data()[5], std::byte{3});
}

TEST(Loopback, GrantsAreFew)
{
    const auto loopback = Loopback::create(4096);
    ntb::verbs::MemoryFiles files;
    const auto own = files.create(4096);
    std::uint64_t last = 0;
    for (int i = 0; i < 64; ++i) {
        last = loopback->end(0).grant(own, false);
        ASSERT_NE(last, 0u);
    }
    EXPECT_EQ(loopback->end(0).grant(own, false), 0u);
    loopback->end(0).revoke(last);
    EXPECT_NE(loopback->end(0).grant(own, false), 0u);
    loopback->end(0).revoke(last + 1);
    loopback->grant_nothing();
    EXPECT_EQ(loopback->end(0).grant(own, false), 0u);
}

} // namespace
