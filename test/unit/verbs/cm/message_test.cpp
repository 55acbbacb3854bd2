// SPDX-License-Identifier: BSD-3-Clause
#include "cm/message.hpp"

#include <gtest/gtest.h>

using namespace ntb::verbs::cm;

namespace
{

Message request()
{
    Message message = message_of(Kind::Req);
    message.type = type_rc;
    message.lid = 7;
    message.qpn = 0xffffff;
    message.psn = 0xffffff;
    message.retry_count = message.rnr_retry_count = 7;
    message.private_bytes = 56;
    return message;
}

TEST(CmMessage, OneThatAManagerSendsIsSound)
{
    EXPECT_TRUE(is_sound(request()));
    for (const Kind kind : {Kind::Rtu, Kind::Rej, Kind::Dreq, Kind::Drep}) {
        Message message = message_of(kind);
        message.type = type_ud;
        EXPECT_TRUE(is_sound(message));
    }
}

TEST(CmMessage, WhatNoManagerSendsIsNot)
{
    const auto refuses = [](auto change) {
        Message message = request();
        change(message);
        EXPECT_FALSE(is_sound(message));
    };
    refuses([](Message &message) { message.magic++; });
    refuses([](Message &message) { message.version++; });
    refuses([](Message &message) { message.kind = Kind{0}; });
    refuses([](Message &message) { message.kind = Kind{7}; });
    refuses([](Message &message) { message.type = 1; });
    refuses([](Message &message) { message.type = 5; });
    refuses([](Message &message) { message.lid = 0; });
    refuses([](Message &message) { message.lid = 0xc000; });
    refuses([](Message &message) { message.qpn = 0x1000000; });
    refuses([](Message &message) { message.psn = 0x1000000; });
    refuses([](Message &message) { message.retry_count = 8; });
    refuses([](Message &message) { message.rnr_retry_count = 8; });
    refuses([](Message &message) { message.private_bytes = 57; });
}

TEST(CmMessage, PrivateDataAreAsLongAsThoseOfInfiniBand)
{
    EXPECT_EQ(private_room(Kind::Req, type_rc), 56u);
    EXPECT_EQ(private_room(Kind::Rep, type_rc), 196u);
    EXPECT_EQ(private_room(Kind::Rej, type_rc), 148u);
    EXPECT_EQ(private_room(Kind::Req, type_ud), 180u);
    EXPECT_EQ(private_room(Kind::Rep, type_ud), 136u);
    EXPECT_EQ(private_room(Kind::Rtu, type_rc), 0u);
    EXPECT_EQ(max_private, 196u);
}

} // namespace
