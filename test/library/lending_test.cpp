// SPDX-License-Identifier: BSD-3-Clause
// Credit that follows the traffic: it grows where a sender uses all it has, and comes back from
// channels that do not use theirs.
#include "channels.hpp"

namespace
{

class Lending : public Channels
{
protected:
    /// What 64 returns of credit, or what is counted as idle with few channels, take.
    static constexpr uint32_t plenty = 20000;

    struct Pair {
        ntbmsg_channel *near, *far;
        uint32_t sent, received;
    };

    void TearDown() override
    {
        for (const Pair &pair : pairs_)
            give_back({pair.near, pair.far});
        Channels::TearDown();
    }
    static ntbmsg_endpoint_options pool_of(uint32_t rx_mbufs, uint32_t channels = 64)
    {
        ntbmsg_endpoint_options options = worker_options();
        options.rx_mbufs = rx_mbufs;
        options.channels = channels;
        options.tx_mbufs = 4096;
        options.ring_lines = 4096;
        return options;
    }
    void join_some(size_t count, const ntbmsg_channel_options &options = channel_options())
    {
        for (size_t i = 0; i < count; ++i) {
            Pair pair{};
            ASSERT_NO_FATAL_FAILURE(join(pair.near, pair.far, options, options));
            pairs_.push_back(pair);
        }
    }
    /// Sends what credit allows of @p total messages, and receives what has arrived.
    void move(Pair &pair, uint32_t total, size_t bytes = 8)
    {
        while (pair.sent < total && send_one(near_, pair.near, bytes, 1, pair.sent) == 1)
            ++pair.sent;
        ntbmsg_worker_poll(near_worker_);
        while (receive(pair) > 0) {
        }
    }
    static int receive(Pair &pair)
    {
        rte_mbuf *got[32];
        uint32_t imm[32];
        const int n = ntbmsg_channel_recv_burst(pair.far, got, imm, 32);
        EXPECT_GE(n, 0);
        for (int i = 0; i < n; ++i) {
            EXPECT_EQ(imm[i], pair.received++);
            rte_pktmbuf_free(got[i]);
        }
        return n;
    }
    /// All pairs of [first, last) in turn, until each has received as many more.
    [[nodiscard]] bool move_all(size_t first, size_t last, uint32_t more, size_t bytes = 8)
    {
        std::vector<uint32_t> goals;
        for (size_t i = first; i < last; ++i)
            goals.push_back(pairs_[i].sent + more);
        for (const uint64_t end = now_ms() + patience_ms; now_ms() < end && !HasFailure();) {
            bool done = true;
            for (size_t i = first; i < last; ++i) {
                move(pairs_[i], goals[i - first], bytes);
                done &= pairs_[i].received == goals[i - first];
            }
            if (done)
                return true;
        }
        return false;
    }
    /// What all channels have been granted, and the worker has left, is what there was.
    void expect_all_back(uint32_t rx_mbufs)
    {
        for (const Pair &pair : pairs_)
            give_back({pair.near, pair.far});
        pairs_.clear();
        settle();
        ntbmsg_channel_options all = channel_options();
        all.credit_messages = 65535;
        ASSERT_NO_FATAL_FAILURE(join_some(1, all));
        EXPECT_EQ(info(pairs_[0].near).granted_messages, rx_mbufs);
        EXPECT_EQ(info(pairs_[0].far).granted_messages, rx_mbufs);
    }
    uint32_t credit(size_t i) const { return info(pairs_[i].near).credit_messages; }

    std::vector<Pair> pairs_;
};

TEST_F(Lending, AChannelAloneGetsWhatFillsThePipe)
{
    ASSERT_NO_FATAL_FAILURE(bring_up(pool_of(8192)));
    ASSERT_NO_FATAL_FAILURE(join_some(1));
    EXPECT_EQ(credit(0), 64U);
    ASSERT_TRUE(move_all(0, 1, plenty));
    EXPECT_EQ(credit(0), 4096U);
    EXPECT_EQ(info(pairs_[0].far).granted_messages, 4096U);
    EXPECT_EQ(info(pairs_[0].far).credit_messages, 64U) << "of the direction that was silent";
    EXPECT_EQ(stats(near_).bad_peer + stats(far_).bad_peer, 0U);
    ASSERT_NO_FATAL_FAILURE(expect_all_back(8192));
}

// Two have grown to half of what may be lent, each of the rest.
TEST_F(Lending, OneThatComesLaterGetsWhatOthersHaveGrownTo)
{
    ASSERT_NO_FATAL_FAILURE(bring_up(pool_of(8192)));
    ASSERT_NO_FATAL_FAILURE(join_some(2));
    ASSERT_TRUE(move_all(0, 2, plenty));
    EXPECT_GT(credit(0) + credit(1), 6000U);
    ASSERT_NO_FATAL_FAILURE(join_some(1));
    EXPECT_GE(credit(2), 2U);
    ASSERT_TRUE(move_all(2, 3, 2 * plenty));
    EXPECT_GE(credit(2), 2048U) << "the others are idle";
    EXPECT_LE(credit(0), 2048U);
    ASSERT_TRUE(move_all(0, 3, plenty)) << "those who lent get some back";
    EXPECT_EQ(stats(near_).bad_peer + stats(far_).bad_peer, 0U);
    ASSERT_NO_FATAL_FAILURE(expect_all_back(8192));
}

// Semantics: receive-3
TEST_F(Lending, AReaderThatStopsGrantsNoMore)
{
    ASSERT_NO_FATAL_FAILURE(bring_up(pool_of(8192)));
    ASSERT_NO_FATAL_FAILURE(join_some(1));
    uint32_t sent = 0;
    for (int i = 0; i < 1000; ++i) {
        if (send_one(near_, pairs_[0].near, 8, 1, sent) == 1)
            ++sent;
        turn();
    }
    EXPECT_EQ(sent, 64U);
    EXPECT_EQ(credit(0), 64U);
    pairs_[0].sent = sent;
    ASSERT_TRUE(move_all(0, 1, plenty));
    EXPECT_EQ(credit(0), 4096U) << "it reads again";
}

TEST_F(Lending, WhatTheApplicationAskedForStays)
{
    ASSERT_NO_FATAL_FAILURE(bring_up(pool_of(8192)));
    ntbmsg_channel_options options = channel_options();
    options.credit_messages = 64;
    options.credit_bytes = 16384;
    ASSERT_NO_FATAL_FAILURE(join_some(1, options));
    ASSERT_TRUE(move_all(0, 1, plenty));
    ASSERT_TRUE(move_all(0, 1, 1000, 3000));
    EXPECT_EQ(credit(0), 64U);
    EXPECT_EQ(info(pairs_[0].near).credit_bytes, 16384U);
}

TEST_F(Lending, ReceiveBuffersGrowAndTheLongestMessageStays)
{
    ASSERT_NO_FATAL_FAILURE(bring_up(pool_of(8192)));
    ASSERT_NO_FATAL_FAILURE(join_some(1));
    const ntbmsg_channel_info before = info(pairs_[0].near);
    ASSERT_TRUE(move_all(0, 1, 2000, 6000));
    const ntbmsg_channel_info after = info(pairs_[0].near);
    EXPECT_GT(after.credit_bytes, before.credit_bytes);
    EXPECT_EQ(after.max_message, before.max_message);
    EXPECT_EQ(stats(near_).bad_peer + stats(far_).bad_peer, 0U);
}

TEST_F(Lending, NoneOfAHundredStarves)
{
    constexpr uint32_t pool = 1024;
    ASSERT_NO_FATAL_FAILURE(bring_up(pool_of(pool, 128)));
    ASSERT_NO_FATAL_FAILURE(join_some(100));
    ASSERT_TRUE(move_all(0, 1, 1000)) << "the first one grows";
    ASSERT_TRUE(move_all(0, 100, 500));
    uint32_t granted = 0;
    for (size_t i = 0; i < 100; ++i) {
        EXPECT_GE(credit(i), 2U) << i;
        granted += credit(i);
    }
    EXPECT_LE(granted, pool);
    EXPECT_EQ(stats(near_).bad_peer + stats(far_).bad_peer, 0U);
    ASSERT_NO_FATAL_FAILURE(expect_all_back(pool));
}

TEST_F(Lending, NoneOfAThousandStarves)
{
    ASSERT_NO_FATAL_FAILURE(bring_up(pool_of(0, 1024)));
    ASSERT_NO_FATAL_FAILURE(join_some(1000));
    ASSERT_TRUE(move_all(0, 1000, 200));
    uint32_t granted = 0;
    for (size_t i = 0; i < 1000; ++i)
        granted += credit(i);
    EXPECT_LE(granted, 16384U);
    EXPECT_EQ(stats(near_).bad_peer + stats(far_).bad_peer, 0U);
    ASSERT_NO_FATAL_FAILURE(expect_all_back(16384));
}

TEST_F(Lending, IdleOnesLendAndGetBack)
{
    constexpr uint32_t pool = 1024;
    ASSERT_NO_FATAL_FAILURE(bring_up(pool_of(pool)));
    ASSERT_NO_FATAL_FAILURE(join_some(14));
    uint32_t idle = 0;
    for (size_t i = 1; i < 14; ++i)
        idle += credit(i);
    EXPECT_GT(idle, pool / 2);
    ASSERT_TRUE(move_all(0, 1, plenty));
    EXPECT_GT(credit(0), pool / 4) << "more than there was without the idle ones";
    uint32_t lent = 0;
    for (size_t i = 1; i < 14; ++i) {
        EXPECT_GE(credit(i), 2U) << i;
        lent += credit(i);
    }
    EXPECT_LT(lent, idle);
    const uint32_t before = credit(5), first = credit(0);
    // How soon depends on when credits return, which a pause of the reader moves.
    unsigned rounds = 0;
    do
        ASSERT_TRUE(move_all(1, 14, 4000)) << "each goes on with what it has";
    while (credit(5) <= before && ++rounds < 20);
    EXPECT_GT(credit(5), before);
    EXPECT_LT(credit(0), first) << "now it is the idle one";
    ASSERT_NO_FATAL_FAILURE(expect_all_back(pool));
}

TEST_F(Lending, ABusyOneGivesAPartToOneThatHasMuchLess)
{
    constexpr uint32_t pool = 1024;
    ASSERT_NO_FATAL_FAILURE(bring_up(pool_of(pool, 16)));
    ASSERT_NO_FATAL_FAILURE(join_some(2));
    ASSERT_TRUE(move_all(0, 1, plenty));
    const uint32_t alone = credit(0);
    EXPECT_GT(alone, 4 * credit(1));
    ASSERT_TRUE(move_all(0, 2, plenty));
    EXPECT_LT(credit(0), alone);
    EXPECT_GE(credit(1), credit(0) / 4);
    ASSERT_NO_FATAL_FAILURE(expect_all_back(pool));
}

TEST_F(Lending, ALossAndAClosedChannelReturnAllOfIt)
{
    constexpr uint32_t pool = 1024;
    ASSERT_NO_FATAL_FAILURE(bring_up(pool_of(pool)));
    for (int round = 0; round < 20; ++round) {
        ASSERT_NO_FATAL_FAILURE(join_some(10));
        ASSERT_TRUE(move_all(0, 1, 2000 + static_cast<uint32_t>(round)));
        // In the middle of whatever is asked for, granted and given back.
        for (int i = 0; i < round; ++i)
            move(pairs_[static_cast<size_t>(i) % 10], 100000);
        for (Pair &pair : pairs_) {
            EXPECT_EQ(ntbmsg_channel_reset(round % 2 != 0 ? pair.near : pair.far, 1), 0);
            give_back({pair.near, pair.far});
        }
        pairs_.clear();
        settle();
    }
    ASSERT_NO_FATAL_FAILURE(expect_all_back(pool));
    give_back({pairs_[0].near, pairs_[0].far});
    pairs_.clear();
    settle();
    ASSERT_NO_FATAL_FAILURE(join_some(10));
    ASSERT_TRUE(move_all(0, 2, 3000));
    for (const Pair &pair : pairs_)
        give_back({pair.far});
    ASSERT_NO_FATAL_FAILURE(close(far_));
    ASSERT_TRUE(await_event(near_, NTBMSG_EVENT_LOST));
    for (const Pair &pair : pairs_)
        give_back({pair.near});
    pairs_.clear();
    ASSERT_NO_FATAL_FAILURE(open(far_device, far_, pool_of(pool)));
    ASSERT_EQ(ntbmsg_endpoint_wait_connected(far_, patience_ms), 0);
    ASSERT_EQ(ntbmsg_endpoint_wait_connected(near_, patience_ms), 0);
    far_worker_ = ntbmsg_endpoint_worker(far_, 0);
    ASSERT_NO_FATAL_FAILURE(expect_all_back(pool));
}

TEST_F(Lending, ShuttingDownWhileCreditMovesLosesNoMessage)
{
    ASSERT_NO_FATAL_FAILURE(bring_up(pool_of(1024)));
    for (uint32_t messages = 60; messages < 400; messages += 7) {
        ASSERT_NO_FATAL_FAILURE(join_some(1));
        Pair &pair = pairs_.back();
        while (pair.sent < messages)
            move(pair, messages);
        ASSERT_EQ(ntbmsg_channel_shutdown(pair.near), 0);
        ASSERT_TRUE(await([&] {
            rte_mbuf *got = nullptr;
            const int n = ntbmsg_channel_recv_burst(pair.far, &got, nullptr, 1);
            if (n == 1) {
                ++pair.received;
                rte_pktmbuf_free(got);
            }
            return n == -ESHUTDOWN;
        }));
        EXPECT_EQ(pair.received, messages);
        give_back({pair.near, pair.far});
        pairs_.clear();
    }
    EXPECT_EQ(stats(near_).bad_peer + stats(far_).bad_peer, 0U);
    ASSERT_NO_FATAL_FAILURE(expect_all_back(1024));
}

} // namespace
