// SPDX-License-Identifier: BSD-3-Clause
// What a host says of itself to be met: torn, lost, refused, and sizes that no one can trust.
#include "../link_hosts.hpp"

#include <rte_hash_crc.h>

#include <cstddef>

namespace
{

using namespace plx;
using namespace plx::test;

TEST_F(LinkTest, TornHelloIsNotYet)
{
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    b.link.tick();
    a.inbox.seed ^= 1;
    a.link.tick();
    EXPECT_EQ(a.link.state(), LinkState::waiting);
    EXPECT_FALSE(a.saw(LinkEvent::refused));
    run(4);
    expect_joined();
}

TEST_F(LinkTest, LostAckIsRepeated)
{
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    a.link.tick(); // hello(a)
    b.link.tick(); // hello(b, ack a)
    a.lose_stores = true;
    a.link.tick(); // connected; its ack is lost
    ASSERT_EQ(a.link.state(), LinkState::connected);
    a.lose_stores = false;
    run(6);
    expect_joined();
}

struct Bad {
    const char *name;
    void (*spoil)(wire::Hello &);
};

class RefusedHello : public LinkTest, public testing::WithParamInterface<Bad>
{
};

TEST_P(RefusedHello, IsAnsweredInWordsAndHealsWhenReplaced)
{
    ASSERT_EQ(a.start(), 0);
    wire::Hello hello = sizes();
    hello.state = wire::HelloState::up;
    hello.epoch = 77;
    hello.seq = 1;
    hello.seed = 99;
    pmd::seal(hello);
    GetParam().spoil(hello);
    hello.crc = ~rte_hash_crc(&hello, offsetof(wire::Hello, crc), ~0u);
    a.inbox = hello;
    a.link.tick();
    EXPECT_EQ(a.link.state(), LinkState::refused);
    EXPECT_TRUE(a.saw(LinkEvent::refused));
    EXPECT_STRNE(a.link.why(), "");
    EXPECT_FALSE(a.open);
    a.link.tick();
    EXPECT_EQ(a.events.size(), 1u) << "reported once";
    ASSERT_EQ(b.start(), 0);
    run(4);
    expect_joined();
}

const Bad bad_hellos[] = {
    {"Version", [](wire::Hello &h) { h.major = wire::version_major + 1; }},
    {"Bytes", [](wire::Hello &h) { h.bytes = 128; }},
    {"Epoch", [](wire::Hello &h) { h.epoch = 0; }},
    {"State", [](wire::Hello &h) { h.state = static_cast<wire::HelloState>(9); }},
    {"BlockTooSmall", [](wire::Hello &h) { h.block_bytes = 4096; }},
    {"BlockNotPowerOfTwo", [](wire::Hello &h) { h.block_bytes += 4096; }},
    {"BlockBeyondWindow", [](wire::Hello &h) { h.block_bytes = window_bytes * 2; }},
    {"NoQueues", [](wire::Hello &h) { h.qp_count = 0; }},
    {"TooManyQueues", [](wire::Hello &h) { h.qp_count = 65; }},
    {"HugeQueues", [](wire::Hello &h) { h.qp_count = ~0u; }},
    {"MoreForChannelsThanThereAre", [](wire::Hello &h) { h.channel_qps = 3; }},
    {"HugelyManyForChannels", [](wire::Hello &h) { h.channel_qps = ~0u; }},
    {"FewerBareQueues", [](wire::Hello &h) { h.channel_qps = 1; }},
    {"RingNotPowerOfTwo", [](wire::Hello &h) { h.ring_lines = 1000; }},
    {"RingTooSmall", [](wire::Hello &h) { h.ring_lines = 32; }},
    {"RingTooLarge", [](wire::Hello &h) { h.ring_lines = 1u << 31; }},
    {"PostedTooSmall", [](wire::Hello &h) { h.buffer_ring_lines = 1; }},
    {"PostedTooLarge", [](wire::Hello &h) { h.buffer_ring_lines = 8192; }},
    {"BufNotLines", [](wire::Hello &h) { h.buf_bytes = 100; }},
    {"BufZero", [](wire::Hello &h) { h.buf_bytes = 0; }},
    {"BufHuge", [](wire::Hello &h) { h.buf_bytes = 1u << 31; }},
    {"BuffersOverRings", [](wire::Hello &h) { h.buf_begin = 0; }},
    {"BuffersBehindBlock", [](wire::Hello &h) { h.buf_end = ~0u; }},
    {"BuffersBackwards", [](wire::Hello &h) { h.buf_end = h.buf_begin - 1; }},
    {"MessageTooLong", [](wire::Hello &h) { h.max_message = ~0u; }},
    {"NoHeartbeat", [](wire::Hello &h) { h.heartbeat_us = 0; }},
};
INSTANTIATE_TEST_SUITE_P(Field, RefusedHello, testing::ValuesIn(bad_hellos),
                         [](const auto &bad) { return std::string(bad.param.name); });

TEST_F(LinkTest, EveryTruncationOfSizesStaysInsideTheWindow)
{
    std::mt19937_64 random(7);
    for (int i = 0; i < 200'000; ++i) {
        wire::Hello h = sizes();
        h.state = wire::HelloState::up;
        h.epoch = 5;
        uint32_t *const fields[] = {&h.qp_count,  &h.ring_lines, &h.buffer_ring_lines, &h.buf_bytes,
                                    &h.buf_begin, &h.buf_end,    &h.max_message};
        uint32_t *field = fields[random() % std::size(fields)];
        *field = random() % 2 != 0 ? 1u << (random() % 32) : static_cast<uint32_t>(random());
        h.block_bytes = uint64_t{1} << (random() % 40);
        pmd::seal(h);
        const char *why = nullptr;
        if (pmd::judge(h, window_bytes, &why) != pmd::Verdict::acceptable)
            continue;
        ASSERT_LE(h.block_bytes, window_bytes);
        const uint64_t last = wire::ring_offset(h.qp_count - 1, h.ring_lines, h.buffer_ring_lines) +
                              uint64_t{h.ring_lines} * wire::line_bytes;
        ASSERT_LE(last, h.block_bytes);
        ASSERT_LE(uint64_t{h.buf_end} * wire::line_bytes, h.block_bytes);
    }
}

// Queue pairs are connected by number.
TEST_F(LinkTest, WithoutTheSameBareQueuesBothRefuseAndSayTheNumbers)
{
    wire::Hello with_channels = sizes();
    with_channels.channel_qps = 2;
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(with_channels), 0);
    run(6);
    EXPECT_EQ(a.link.state(), LinkState::refused);
    EXPECT_EQ(b.link.state(), LinkState::refused);
    EXPECT_STREQ(a.link.why(),
                 "queues and workers do not fit: this side has 2 and 0, the peer 0 and 2");
    EXPECT_STREQ(b.link.why(),
                 "queues and workers do not fit: this side has 0 and 2, the peer 2 and 0");
    EXPECT_EQ(a.events, std::vector<LinkEvent>{LinkEvent::refused});
    EXPECT_EQ(b.events, std::vector<LinkEvent>{LinkEvent::refused});
    b.die();
    b.born();
    run(6);
    expect_joined();
}

TEST_F(LinkTest, MinorZeroSaysNothingOfChannelsAndIsNotCompared)
{
    wire::Hello own = sizes();
    own.channel_qps = 2;
    ASSERT_EQ(a.start(own), 0);
    wire::Hello hello = sizes();
    hello.state = wire::HelloState::up;
    hello.epoch = 77;
    hello.seq = 1;
    pmd::seal(hello);
    hello.minor = 0;
    hello.crc = ~rte_hash_crc(&hello, offsetof(wire::Hello, crc), ~0u);
    a.inbox = hello;
    a.link.tick();
    EXPECT_EQ(a.link.state(), LinkState::waiting);
    EXPECT_EQ(a.events, std::vector<LinkEvent>{});
}

TEST_F(LinkTest, APeerThatDoesNotFitAndStopsIsNotRefusedAnyMore)
{
    wire::Hello with_channels = sizes();
    with_channels.channel_qps = 2;
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(with_channels), 0);
    run(6);
    ASSERT_EQ(a.link.state(), LinkState::refused);
    b.link.stop();
    a.link.tick();
    EXPECT_EQ(a.link.state(), LinkState::waiting);
    EXPECT_STREQ(a.link.why(), "the peer has stopped");
}

TEST_F(LinkTest, WithTheSameBareQueuesTheRestMayDiffer)
{
    wire::Hello more = sizes();
    more.qp_count = 4;
    more.channel_qps = 2;
    more.buf_begin = static_cast<uint32_t>(
        wire::queue_area_end(more.qp_count, more.ring_lines, more.buffer_ring_lines) /
        wire::line_bytes);
    more.buf_end = more.buf_begin + 4096 * 33;
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(more), 0);
    run(4);
    expect_joined();
}

TEST_F(LinkTest, PeerThatRefusesUsIsReportedOnce)
{
    ASSERT_EQ(a.start(), 0);
    b.window = true;
    a.link.tick();
    wire::Hello hello = sizes();
    hello.state = wire::HelloState::refused;
    hello.epoch = 3;
    hello.ack = b.inbox.epoch;
    pmd::seal(hello);
    a.inbox = hello;
    run(3);
    EXPECT_EQ(a.link.state(), LinkState::refused);
    EXPECT_EQ(a.events, std::vector<LinkEvent>{LinkEvent::refused});
}

TEST_F(LinkTest, ARefusalOfMinorZeroNamesNobody)
{
    ASSERT_EQ(a.start(), 0);
    wire::Hello hello = sizes();
    hello.state = wire::HelloState::refused;
    hello.epoch = 3;
    pmd::seal(hello);
    hello.minor = 0;
    hello.crc = ~rte_hash_crc(&hello, offsetof(wire::Hello, crc), ~0u);
    a.inbox = hello;
    a.link.tick();
    EXPECT_EQ(a.link.state(), LinkState::refused);
}

TEST_F(LinkTest, WhatWasSaidToARefusedPeerIsNoRefusalOfTheNextOne)
{
    wire::Hello unfit = sizes();
    unfit.channel_qps = 2;
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(unfit), 0);
    run(4);
    ASSERT_TRUE(b.saw(LinkEvent::refused));
    b.die();
    b.events.clear();
    b.born();
    a.link.tick(); // it has not heard of the next one yet
    ASSERT_EQ(b.inbox.state, wire::HelloState::refused);
    run(4);
    expect_joined();
    EXPECT_EQ(b.events, std::vector<LinkEvent>{LinkEvent::connected});
}

TEST_F(LinkTest, WhoIsConnectedIsNotEndedByARefusalOfAnother)
{
    try_connect();
    expect_joined();
    wire::Hello hello = a.inbox;
    hello.state = wire::HelloState::refused;
    hello.ack ^= 1;
    pmd::seal(hello);
    a.inbox = hello;
    a.link.tick();
    EXPECT_EQ(a.link.state(), LinkState::connected);
    hello.ack ^= 1;
    pmd::seal(hello);
    a.inbox = hello;
    a.link.tick();
    EXPECT_NE(a.link.state(), LinkState::connected);
}

} // namespace
