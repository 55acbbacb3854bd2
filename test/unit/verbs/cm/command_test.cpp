// SPDX-License-Identifier: BSD-3-Clause
// Commands that are shorter or longer than this version's, or lie about it.
#include "cm/command.hpp"

#include <gtest/gtest.h>
#include <memory>

using namespace ntb::verbs::cm;

namespace
{

struct Written {
    rdma_ucm_cmd_hdr header;
    rdma_ucm_listen listen;
};

TEST(CmCommand, AStructIsTakenAsItWasWritten)
{
    const Written written = {{RDMA_USER_CM_CMD_LISTEN, sizeof(rdma_ucm_listen), 0}, {3, 4}};
    Command command;
    ASSERT_EQ(command.read(&written, sizeof(written)), 0);
    EXPECT_EQ(command.number(), std::uint32_t{RDMA_USER_CM_CMD_LISTEN});
    rdma_ucm_listen listen;
    ASSERT_EQ(command.get(listen), 0);
    EXPECT_EQ(listen.id, 3u);
    EXPECT_EQ(listen.backlog, 4u);
}

// On the heap and exactly as long, so that a sanitizer sees a read behind it.
TEST(CmCommand, WhatIsShorterThanItSaysIsRefused)
{
    const rdma_ucm_cmd_hdr header = {RDMA_USER_CM_CMD_LISTEN, sizeof(rdma_ucm_listen), 0};
    Command command;
    EXPECT_EQ(command.read(nullptr, 100), -EINVAL);
    for (std::size_t size = 0; size < sizeof(Written); ++size) {
        const auto bytes = std::make_unique<std::byte[]>(size);
        std::memcpy(bytes.get(), &header, std::min(size, sizeof(header)));
        EXPECT_EQ(command.read(bytes.get(), size), -EINVAL) << size;
    }
    const rdma_ucm_cmd_hdr empty = {RDMA_USER_CM_CMD_LISTEN, 0, 0};
    ASSERT_EQ(command.read(&empty, sizeof(empty)), 0);
    rdma_ucm_listen listen;
    EXPECT_EQ(command.get(listen), -EINVAL);
}

TEST(CmCommand, AnEarlierVersionLacksFieldsAndALaterHasMore)
{
    const rdma_ucm_cmd_hdr header = {RDMA_USER_CM_CMD_LISTEN, 4, 0};
    std::byte bytes[sizeof(header) + 4];
    std::memcpy(bytes, &header, sizeof(header));
    std::memset(bytes + sizeof(header), 1, 4);
    Command command;
    ASSERT_EQ(command.read(bytes, sizeof(bytes)), 0);
    rdma_ucm_listen listen = {9, 9};
    ASSERT_EQ(command.get(listen, 4), 0);
    EXPECT_EQ(listen.id, 0x01010101u);
    EXPECT_EQ(listen.backlog, 0u);
    const Written longer = {{RDMA_USER_CM_CMD_LISTEN, sizeof(rdma_ucm_listen), 0}, {3, 4}};
    ASSERT_EQ(command.read(&longer, sizeof(longer)), 0);
    std::uint32_t first;
    ASSERT_EQ(command.get(first), 0);
    EXPECT_EQ(first, 3u);
}

TEST(CmCommand, AnAnswerGoesIntoTheRoomThatThereIs)
{
    const auto command_with = [](std::uint16_t room) {
        const rdma_ucm_cmd_hdr header = {RDMA_USER_CM_CMD_GET_EVENT, 0, room};
        Command command;
        EXPECT_EQ(command.read(&header, sizeof(header)), 0);
        return command;
    };
    std::uint32_t room[3] = {7, 7, 7};
    const std::uint64_t place = reinterpret_cast<std::uintptr_t>(room);
    const std::uint64_t answer = 0x0000000200000001;
    EXPECT_EQ(command_with(8).answer(place, answer), 0);
    EXPECT_EQ(room[0] + room[1], 3u);
    EXPECT_EQ(room[2], 7u);
    room[1] = 7;
    EXPECT_EQ(command_with(4).answer(place, answer, 4), 0);
    EXPECT_EQ(room[1], 7u);
    EXPECT_EQ(command_with(3).answer(place, answer, 4), -ENOSPC);
    EXPECT_EQ(command_with(8).answer(0, answer), -EFAULT);
}

} // namespace
