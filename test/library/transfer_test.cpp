// SPDX-License-Identifier: BSD-3-Clause
// Bursts on channels: order, credit, back-pressure, poll sets, a reader that stops.
#include "channels.hpp"

namespace
{

using Transfer = Channels;

int receive_all(ntbmsg_channel *channel, uint32_t &next)
{
    rte_mbuf *got[32];
    uint32_t imm[32];
    const int n = ntbmsg_channel_recv_burst(channel, got, imm, 32);
    for (int i = 0; i < n; ++i) {
        EXPECT_EQ(imm[i], next++);
        rte_pktmbuf_free(got[i]);
    }
    return n;
}

// Semantics: order-1
TEST_F(Transfer, OrderIsKeptOnManyChannelsAtOnce)
{
    bring_up();
    constexpr int channels = 5;
    constexpr uint32_t total = 3000;
    ntbmsg_channel *near[channels] = {}, *far[channels] = {};
    for (int i = 0; i < channels; ++i)
        ASSERT_NO_FATAL_FAILURE(join(near[i], far[i]));
    uint32_t sent[channels] = {}, received[channels] = {};
    const auto done = [&] {
        return std::all_of(received, received + channels, [](uint32_t n) { return n == total; });
    };
    for (const uint64_t end = now_ms() + patience_ms; !done() && now_ms() < end;) {
        for (int i = 0; i < channels; ++i) {
            const size_t bytes = sent[i] % 97 == 0 ? 3000 : sent[i] % 120;
            if (sent[i] < total && send_one(near_, near[i], bytes, 1, sent[i]) == 1)
                ++sent[i];
            ASSERT_GE(receive_all(far[i], received[i]), 0);
        }
        ntbmsg_worker_poll(near_worker_);
    }
    EXPECT_TRUE(done());
    EXPECT_EQ(stats(near_).bad_peer + stats(far_).bad_peer, 0U);
    for (int i = 0; i < channels; ++i)
        give_back({near[i], far[i]});
}

TEST_F(Transfer, BurstsLargerThanAnyRingGoInParts)
{
    bring_up();
    ntbmsg_channel_options options = channel_options();
    options.credit_messages = 512;
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far, options, options));
    rte_mbuf *mbufs[300];
    uint32_t imm[300];
    for (uint32_t i = 0; i < 300; ++i) {
        mbufs[i] = message(near_, i % 60, 1);
        ASSERT_NE(mbufs[i], nullptr);
        imm[i] = i;
    }
    uint32_t sent = 0, received = 0;
    ASSERT_TRUE(await([&] {
        const int n = ntbmsg_channel_send_burst(near, mbufs + sent, imm + sent,
                                                static_cast<uint16_t>(300 - sent));
        EXPECT_GE(n, 0);
        sent += static_cast<uint32_t>(n);
        EXPECT_GE(receive_all(far, received), 0);
        return received == 300;
    }));
    EXPECT_EQ(info(near).tx_messages, 300U);
    give_back({near, far});
}

// Semantics: receive-3
TEST_F(Transfer, CreditInMessagesBoundsWhatIsNotReceived)
{
    bring_up();
    ntbmsg_channel_options options = channel_options();
    options.credit_messages = 10;
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far, channel_options(), options));
    EXPECT_EQ(info(near).credit_messages, 10U);
    for (uint32_t i = 0; i < 10; ++i)
        ASSERT_EQ(send_one(near_, near, 8, 0, i), 1);
    EXPECT_EQ(send_one(near_, near, 8, 0), 0);
    settle();
    EXPECT_EQ(send_one(near_, near, 8, 0), 0);
    EXPECT_EQ(info(near).tx_full, 2U);
    EXPECT_EQ(info(near).unconfirmed, 10U);
    uint32_t received = 0;
    ASSERT_TRUE(await([&] { return receive_all(far, received) >= 0 && received == 10; }));
    settle();
    EXPECT_EQ(info(near).unconfirmed, 0U);
    EXPECT_EQ(send_one(near_, near, 8, 0), 1);
    give_back({near, far});
}

// Semantics: receive-3
TEST_F(Transfer, CreditInBuffersBoundsLongMessagesAndLetsShortOnesPass)
{
    bring_up();
    ntbmsg_channel_options options = channel_options();
    options.credit_bytes = 8192; // 4 buffers of 2048
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far, channel_options(), options));
    EXPECT_EQ(info(near).credit_bytes, 8192U);
    EXPECT_EQ(info(near).max_message, 8192U);
    EXPECT_EQ(send_one(near_, near, 8193, 0), -EMSGSIZE);
    settle(); // the receiver posts its buffers when it polls
    ASSERT_EQ(send_one(near_, near, 6000, 0), 1);
    EXPECT_EQ(send_one(near_, near, 4096, 0), 0);
    ASSERT_EQ(send_one(near_, near, 100, 0), 1);
    ASSERT_EQ(send_one(near_, near, 2048, 0), 1);
    EXPECT_EQ(send_one(near_, near, 2048, 0), 0);
    for (int i = 0; i < 3; ++i) {
        rte_mbuf *got = receive_one(far);
        ASSERT_NE(got, nullptr);
        rte_pktmbuf_free(got);
    }
    settle();
    ASSERT_TRUE(await([&] { return send_one(near_, near, 8192, 0) == 1; }));
    rte_mbuf *got = receive_one(far);
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(got->pkt_len, 8192U);
    rte_pktmbuf_free(got);
    give_back({near, far});
}

// A message of middle size that goes alone comes in a receive buffer, which it does not count for.
TEST_F(Transfer, AShortMessageThatWaitsKeepsNoReceiveBuffer)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    const uint32_t granted = info(near).credit_bytes;
    const auto in_receive_buffer = [](const rte_mbuf *m) {
        return (m->ol_flags & RTE_MBUF_F_EXTERNAL) != 0;
    };
    ASSERT_EQ(send_one(near_, near, 1000, 1), 1);
    rte_mbuf *taken = nullptr; // by the call itself
    for (const uint64_t end = now_ms() + patience_ms; taken == nullptr && now_ms() < end;)
        ntbmsg_channel_recv_burst(far, &taken, nullptr, 1);
    ASSERT_NE(taken, nullptr);
    EXPECT_TRUE(in_receive_buffer(taken));
    rte_pktmbuf_free(taken);
    for (const size_t bytes : {size_t{1000}, size_t{1025}}) {
        for (int i = 0; i < 8; ++i)
            ASSERT_EQ(send_one(near_, near, bytes, i), 1);
        settle(); // the worker takes them, and they wait
        for (int i = 0; i < 8; ++i) {
            rte_mbuf *m = receive_one(far);
            ASSERT_NE(m, nullptr);
            EXPECT_EQ(m->pkt_len, bytes);
            EXPECT_EQ(*rte_pktmbuf_mtod_offset(m, uint8_t *, bytes - 1), i);
            EXPECT_EQ(in_receive_buffer(m), bytes > 1024) << bytes;
            rte_pktmbuf_free(m);
        }
    }
    settle();
    EXPECT_EQ(info(near).credit_bytes, granted) << "nothing is lost, and nothing gained";
    give_back({near, far});
}

// Semantics: order-3
TEST_F(Transfer, AReaderThatStopsStopsItsOwnChannelOnly)
{
    bring_up();
    ntbmsg_channel *stuck_near = nullptr, *stuck_far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(stuck_near, stuck_far));
    ntbmsg_channel *near[6] = {}, *far[6] = {};
    for (int i = 0; i < 6; ++i)
        ASSERT_NO_FATAL_FAILURE(join(near[i], far[i]));
    settle();
    // Long and short, until nothing more goes; then the others run for long.
    while (send_one(near_, stuck_near, 4000, 0) == 1)
        settle();
    while (send_one(near_, stuck_near, 16, 0) == 1)
        settle();
    uint32_t received[6] = {};
    for (int round = 0; round < 2000; ++round) {
        for (int i = 0; i < 6; ++i) {
            const size_t bytes = round % 10 == 0 ? 3000 : 50;
            const auto number = static_cast<uint32_t>(round);
            ASSERT_TRUE(await([&] { return send_one(near_, near[i], bytes, 1, number) == 1; }));
            ASSERT_TRUE(await([&] { return receive_all(far[i], received[i]) == 1; }));
        }
        EXPECT_EQ(send_one(near_, stuck_near, 16, 0), 0);
    }
    EXPECT_EQ(stats(far_).rx_nombuf, 0U);
    EXPECT_EQ(info(stuck_near).unconfirmed, info(stuck_near).tx_messages);
    // It goes on when it is read.
    rte_mbuf *got = nullptr;
    while (ntbmsg_channel_recv_burst(stuck_far, &got, nullptr, 1) == 1)
        rte_pktmbuf_free(got);
    EXPECT_EQ(info(stuck_far).rx_messages, info(stuck_near).tx_messages);
    ASSERT_TRUE(await([&] { return send_one(near_, stuck_near, 4000, 0) == 1; }));
    give_back({stuck_near, stuck_far});
    for (int i = 0; i < 6; ++i)
        give_back({near[i], far[i]});
}

class PollSet : public Channels
{
protected:
    void bring_up_sets()
    {
        ASSERT_NO_FATAL_FAILURE(bring_up());
        ASSERT_EQ(ntbmsg_poll_set_create(near_worker_, &near_set_), 0);
        ASSERT_EQ(ntbmsg_poll_set_create(far_worker_, &far_set_), 0);
    }
    void TearDown() override
    {
        EXPECT_EQ(ntbmsg_poll_set_destroy(near_set_), 0);
        EXPECT_EQ(ntbmsg_poll_set_destroy(far_set_), 0);
        Channels::TearDown();
    }
    ntbmsg_channel_options in_set(ntbmsg_poll_set *set, void *user = nullptr)
    {
        ntbmsg_channel_options options = channel_options();
        options.set = set;
        options.user = user;
        return options;
    }
    /// The next channel that @p set reports; both sides turn.
    ntbmsg_ready await_ready(ntbmsg_poll_set *set)
    {
        ntbmsg_ready ready{};
        await([&] { return ntbmsg_poll_set_poll(set, &ready, 1) == 1; });
        return ready;
    }
    /// @p set reports nothing however often it is asked.
    bool is_silent(ntbmsg_poll_set *set)
    {
        settle();
        ntbmsg_ready ready[4];
        for (int i = 0; i < 10; ++i) {
            if (ntbmsg_poll_set_poll(set, ready, 4) != 0)
                return false;
        }
        return true;
    }
    ntbmsg_poll_set *near_set_ = nullptr;
    ntbmsg_poll_set *far_set_ = nullptr;
};

// Semantics: receive-4
TEST_F(PollSet, ReportsRepliesMessagesAndTheEndOnce)
{
    bring_up_sets();
    int mark = 0;
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far, in_set(near_set_, &mark), in_set(far_set_)));
    ntbmsg_ready ready = await_ready(near_set_);
    EXPECT_EQ(ready.channel, near);
    EXPECT_EQ(ready.user, &mark);
    EXPECT_EQ(ready.events, NTBMSG_ANSWERED | NTBMSG_WRITABLE);
    EXPECT_TRUE(is_silent(near_set_));
    EXPECT_TRUE(is_silent(far_set_));

    for (int i = 0; i < 3; ++i)
        ASSERT_EQ(send_one(near_, near, 8, 0, static_cast<uint32_t>(i)), 1);
    ready = await_ready(far_set_);
    EXPECT_EQ(ready.channel, far);
    EXPECT_EQ(ready.events, NTBMSG_READABLE);
    rte_mbuf *got = nullptr;
    ASSERT_EQ(ntbmsg_channel_recv_burst(far, &got, nullptr, 1), 1);
    rte_pktmbuf_free(got);
    ready = await_ready(far_set_); // two were left
    EXPECT_EQ(ready.events, NTBMSG_READABLE);
    uint32_t next = 1;
    EXPECT_EQ(receive_all(far, next), 2);
    EXPECT_TRUE(is_silent(far_set_));

    EXPECT_EQ(ntbmsg_poll_set_destroy(far_set_), -EBUSY);
    ASSERT_EQ(ntbmsg_channel_close(near), 0);
    ready = await_ready(far_set_);
    EXPECT_EQ(ready.events, NTBMSG_PEER_SHUT | NTBMSG_READABLE);
    ASSERT_EQ(ntbmsg_channel_close(far), 0);
    EXPECT_TRUE(is_silent(far_set_));
}

TEST_F(PollSet, ReportsWhenSendingCanGoOn)
{
    bring_up_sets();
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far, in_set(near_set_), in_set(far_set_)));
    await_ready(near_set_);
    uint32_t sent = 0, received = 0;
    while (send_one(near_, near, 8, 0, sent) == 1)
        ++sent;
    EXPECT_EQ(sent, 64U);
    EXPECT_TRUE(is_silent(near_set_));
    ASSERT_TRUE(await([&] { return receive_all(far, received) >= 0 && received == sent; }));
    const ntbmsg_ready ready = await_ready(near_set_);
    EXPECT_EQ(ready.events, NTBMSG_WRITABLE);
    EXPECT_EQ(send_one(near_, near, 8, 0, sent), 1);
    give_back({near, far});
}

TEST_F(PollSet, ChannelsTakeTurns)
{
    bring_up_sets();
    constexpr int channels = 10;
    ntbmsg_channel *near[channels] = {}, *far[channels] = {};
    for (int i = 0; i < channels; ++i)
        ASSERT_NO_FATAL_FAILURE(join(near[i], far[i], in_set(near_set_), in_set(far_set_)));
    for (int i = 0; i < channels; ++i) {
        ASSERT_EQ(send_one(near_, near[i], 8, 0), 1);
        ASSERT_EQ(send_one(near_, near[i], 8, 0), 1);
    }
    settle();
    ntbmsg_ready ready[channels];
    for (int round = 0; round < 2; ++round) {
        ASSERT_EQ(ntbmsg_poll_set_poll(far_set_, ready, channels), channels);
        for (int i = 0; i < channels; ++i) {
            EXPECT_EQ(ready[i].channel, far[i]);
            rte_mbuf *got = nullptr;
            ASSERT_EQ(ntbmsg_channel_recv_burst(far[i], &got, nullptr, 1), 1);
            rte_pktmbuf_free(got);
        }
    }
    EXPECT_EQ(ntbmsg_poll_set_poll(far_set_, ready, channels), 0);
    for (int i = 0; i < channels; ++i)
        give_back({near[i], far[i]});
}

TEST_F(PollSet, WrongArgumentsAreRefused)
{
    bring_up_sets();
    ntbmsg_ready ready;
    ntbmsg_channel *near = nullptr;
    EXPECT_EQ(ntbmsg_poll_set_create(near_worker_, nullptr), -EINVAL);
    EXPECT_EQ(ntbmsg_poll_set_poll(nullptr, &ready, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_poll_set_poll(near_set_, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_poll_set_destroy(nullptr), 0);
    const ntbmsg_channel_options options = in_set(far_set_);
    EXPECT_EQ(ntbmsg_channel_connect(near_worker_, port, &options, &near), -EINVAL);
}

} // namespace
