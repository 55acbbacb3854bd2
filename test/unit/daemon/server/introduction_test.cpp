// SPDX-License-Identifier: BSD-3-Clause
#include "server/introduction.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <ntbclient.h>
#include <set>

using namespace ntbd;

namespace
{
TEST(Introductions, SayWhoOneIs)
{
    Introduction one;
    Introduction other;
    Peer peer;
    ASSERT_TRUE(introduce_self("/run/a.sock", CarrierChoice::automatic, &one));
    ASSERT_TRUE(introduce_self("/run/b.sock", CarrierChoice::automatic, &other));
    EXPECT_EQ(one.machine, other.machine);
    EXPECT_NE(one.token, other.token);
    ASSERT_TRUE(introduction_of(&one, sizeof(one), &peer));
    EXPECT_EQ(peer.path, "/run/a.sock");
    EXPECT_EQ(peer.token, one.token);
    EXPECT_TRUE(is_same_token(peer.token.data(), one.token));
    EXPECT_FALSE(is_same_token(peer.token.data(), other.token));
    EXPECT_FALSE(
        introduce_self(std::string(introduction_path_bytes, 'x'), CarrierChoice::automatic, &one));
}

TEST(HostNumber, IsOfTheSocketsPathAndStays)
{
    const uint16_t number = host_number("/run/a.sock");
    EXPECT_EQ(host_number("/run/a.sock"), number);
    std::set<uint16_t> others;
    for (int i = 0; i < 100; i++) {
        const uint16_t other = host_number("/run/" + std::to_string(i) + ".sock");
        EXPECT_GE(other, 1);
        EXPECT_LE(other, NTBCLIENT_MAX_HOST);
        others.insert(other);
    }
    EXPECT_GT(others.size(), 90u);
}

TEST(Introductions, AreCheckedBeforeTheyAreUsed)
{
    Introduction one;
    Peer peer;
    ASSERT_TRUE(introduce_self("/run/a.sock", CarrierChoice::automatic, &one));
    EXPECT_FALSE(introduction_of(&one, sizeof(one) - 1, &peer));
    EXPECT_FALSE(introduction_of(&one, sizeof(one) + 1, &peer));
    Introduction wrong = one;
    wrong.magic++;
    EXPECT_FALSE(introduction_of(&wrong, sizeof(wrong), &peer));
    wrong = one;
    wrong.version++;
    EXPECT_FALSE(introduction_of(&wrong, sizeof(wrong), &peer));
    wrong = one;
    wrong.carrier = 3;
    EXPECT_FALSE(introduction_of(&wrong, sizeof(wrong), &peer));
    for (const uint32_t host : {0u, uint32_t{NTBCLIENT_MAX_HOST} + 1, 0x10001u}) {
        wrong = one;
        wrong.host = host;
        EXPECT_FALSE(introduction_of(&wrong, sizeof(wrong), &peer)) << host;
    }
    wrong = one;
    memset(wrong.path, 'x', sizeof(wrong.path)); // without an end
    EXPECT_FALSE(introduction_of(&wrong, sizeof(wrong), &peer));
}

TEST(Introductions, AgreeOnACarrier)
{
    constexpr auto any = CarrierChoice::automatic;
    constexpr auto direct = CarrierChoice::direct;
    constexpr auto daemon = CarrierChoice::daemon;
    struct {
        CarrierChoice one, other;
        std::optional<Carriage> on_one_machine, on_two;
    } const cases[] = {
        {any, any, Carriage::direct, Carriage::daemon},
        {any, direct, Carriage::direct, {}},
        {any, daemon, Carriage::daemon, Carriage::daemon},
        {direct, direct, Carriage::direct, {}},
        {direct, daemon, {}, {}},
        {daemon, daemon, Carriage::daemon, Carriage::daemon},
    };
    for (const auto &each : cases) {
        Introduction own[2];
        Peer peer[2];
        ASSERT_TRUE(introduce_self("/a", each.one, &own[0]));
        ASSERT_TRUE(introduce_self("/b", each.other, &own[1]));
        for (const bool is_one : {true, false}) {
            own[1].machine[0] = static_cast<uint8_t>(own[0].machine[0] ^ (is_one ? 0 : 1));
            for (int i = 0; i < 2; i++)
                ASSERT_TRUE(introduction_of(&own[i], sizeof(own[i]), &peer[i]));
            EXPECT_EQ(agree(own[0], peer[1]), is_one ? each.on_one_machine : each.on_two);
            EXPECT_EQ(agree(own[1], peer[0]), is_one ? each.on_one_machine : each.on_two);
        }
    }
}
} // namespace
