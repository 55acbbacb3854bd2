// SPDX-License-Identifier: BSD-3-Clause
#include "server/introduction.hpp"

#include <cstring>
#include <gtest/gtest.h>

using namespace ntbd;

namespace
{
TEST(Introductions, SayWhoOneIs)
{
    Introduction one;
    Introduction other;
    Peer peer;
    ASSERT_TRUE(introduce_self("/run/a.sock", &one));
    ASSERT_TRUE(introduce_self("/run/b.sock", &other));
    EXPECT_EQ(one.machine, other.machine);
    EXPECT_NE(one.token, other.token);
    ASSERT_TRUE(introduction_of(&one, sizeof(one), &peer));
    EXPECT_EQ(peer.path, "/run/a.sock");
    EXPECT_EQ(peer.token, one.token);
    EXPECT_TRUE(is_same_token(peer.token.data(), one.token));
    EXPECT_FALSE(is_same_token(peer.token.data(), other.token));
    EXPECT_FALSE(introduce_self(std::string(introduction_path_bytes, 'x'), &one));
}

TEST(Introductions, AreCheckedBeforeTheyAreUsed)
{
    Introduction one;
    Peer peer;
    ASSERT_TRUE(introduce_self("/run/a.sock", &one));
    EXPECT_FALSE(introduction_of(&one, sizeof(one) - 1, &peer));
    EXPECT_FALSE(introduction_of(&one, sizeof(one) + 1, &peer));
    Introduction wrong = one;
    wrong.magic++;
    EXPECT_FALSE(introduction_of(&wrong, sizeof(wrong), &peer));
    wrong = one;
    wrong.version++;
    EXPECT_FALSE(introduction_of(&wrong, sizeof(wrong), &peer));
    wrong = one;
    memset(wrong.path, 'x', sizeof(wrong.path)); // without an end
    EXPECT_FALSE(introduction_of(&wrong, sizeof(wrong), &peer));
}
} // namespace
