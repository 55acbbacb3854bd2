// SPDX-License-Identifier: BSD-3-Clause
// Statements of doc/semantics.md that no other test has for its subject.
#include <algorithm>

#include "channels.hpp"

namespace
{

class Semantics : public Channels
{
protected:
    void TearDown() override
    {
        EXPECT_EQ(ntbmsg_poll_set_destroy(set_), 0);
        Channels::TearDown();
    }

    /// A channel from near to far whose near end is in a poll set.
    void join_in_set()
    {
        ASSERT_NO_FATAL_FAILURE(bring_up());
        ASSERT_EQ(ntbmsg_poll_set_create(near_worker_, &set_), 0);
        ntbmsg_channel_options options = channel_options();
        options.set = set_;
        ASSERT_NO_FATAL_FAILURE(join(from_, to_, options));
    }

    /// The far host goes, and near's worker has noticed.
    void lose_far()
    {
        ASSERT_EQ(ntbmsg_endpoint_close(far_), 0);
        far_ = nullptr;
        far_worker_ = nullptr;
        ASSERT_TRUE(await_event(near_, NTBMSG_EVENT_LOST));
        ntbmsg_worker_poll(near_worker_);
    }

    /// Whatever the set of near's end reports now, all kinds together.
    uint32_t told()
    {
        uint32_t events = 0;
        ntbmsg_ready ready;
        while (ntbmsg_poll_set_poll(set_, &ready, 1) == 1)
            events |= ready.events;
        return events;
    }

    ntbmsg_channel *from_ = nullptr;
    ntbmsg_channel *to_ = nullptr;
    ntbmsg_poll_set *set_ = nullptr;
};

// Semantics: send-1
TEST_F(Semantics, WhatTheCallTookIsWhatArrives)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    ASSERT_NO_FATAL_FAILURE(join(from_, to_));
    for (const size_t bytes : {size_t{40}, size_t{1500}}) {
        rte_mbuf *sent = message(near_, bytes, 'a');
        ASSERT_NE(sent, nullptr);
        rte_pktmbuf_refcnt_update(sent, 1);
        int taken = 0;
        ASSERT_TRUE(await([&] {
            taken = ntbmsg_channel_send_burst(from_, &sent, nullptr, 1);
            return taken != 0;
        }));
        ASSERT_EQ(taken, 1);
        ASSERT_TRUE(await([&] { return rte_mbuf_refcnt_read(sent) == 1; }));
        std::memset(rte_pktmbuf_mtod(sent, char *), 'b', bytes);
        rte_pktmbuf_free(sent);
        rte_mbuf *got = receive_one(to_);
        ASSERT_NE(got, nullptr);
        ASSERT_EQ(got->pkt_len, bytes);
        const char *data = rte_pktmbuf_mtod(got, const char *);
        EXPECT_TRUE(std::all_of(data, data + bytes, [](char c) { return c == 'a'; })) << bytes;
        rte_pktmbuf_free(got);
    }
    give_back({from_, to_});
}

// Semantics: send-2
TEST_F(Semantics, UnconfirmedFallsWithTheReceiveAndNotBefore)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    ntbmsg_channel_options options = channel_options();
    options.credit_messages = 4;
    ASSERT_NO_FATAL_FAILURE(join(from_, to_, options, options));
    for (int i = 0; i < 4; ++i)
        ASSERT_EQ(send_one(near_, from_, 8, i), 1);
    settle();
    EXPECT_EQ(info(from_).unconfirmed, 4U) << "arrived, and not received";
    for (int i = 0; i < 4; ++i) {
        rte_mbuf *got = receive_one(to_);
        ASSERT_NE(got, nullptr);
        rte_pktmbuf_free(got);
    }
    EXPECT_TRUE(await([&] { return info(from_).unconfirmed == 0; }));
    give_back({from_, to_});
}

// Semantics: send-3
TEST_F(Semantics, AShortCountLeavesTheRestAlone)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    ntbmsg_channel_options options = channel_options();
    options.credit_messages = 4;
    ASSERT_NO_FATAL_FAILURE(join(from_, to_, options, options));
    rte_mbuf *burst[6];
    for (int i = 0; i < 6; ++i) {
        burst[i] = message(near_, 30, i);
        ASSERT_NE(burst[i], nullptr);
    }
    ASSERT_EQ(ntbmsg_channel_send_burst(from_, burst, nullptr, 6), 4);
    for (int i = 4; i < 6; ++i) {
        EXPECT_EQ(rte_mbuf_refcnt_read(burst[i]), 1);
        EXPECT_EQ(burst[i]->pkt_len, 30U);
        EXPECT_EQ(*rte_pktmbuf_mtod(burst[i], uint8_t *), i);
    }
    unsigned sent = 4;
    for (int i = 0; i < 6; ++i) {
        rte_mbuf *got = receive_one(to_);
        ASSERT_NE(got, nullptr);
        EXPECT_EQ(*rte_pktmbuf_mtod(got, uint8_t *), i);
        rte_pktmbuf_free(got);
        if (i == 3) {
            ASSERT_TRUE(await([&] {
                if (sent < 6)
                    sent += static_cast<unsigned>(
                        std::max(0, ntbmsg_channel_send_burst(from_, burst + sent, nullptr,
                                                              static_cast<uint16_t>(6 - sent))));
                return sent == 6;
            }));
        }
    }
    EXPECT_EQ(sent, 6U);
    give_back({from_, to_});
}

// Semantics: send-4
TEST_F(Semantics, TooLongIsRefusedAndNothingHappens)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    ASSERT_NO_FATAL_FAILURE(join(from_, to_));
    const uint32_t longest = info(from_).max_message;
    const unsigned before = rte_mempool_avail_count(ntbmsg_endpoint_pool(near_));
    EXPECT_EQ(send_one(near_, from_, longest + 1, 1), -EMSGSIZE);
    EXPECT_EQ(rte_mempool_avail_count(ntbmsg_endpoint_pool(near_)), before);
    EXPECT_EQ(info(from_).tx_messages, 0U);
    EXPECT_TRUE(await([&] { return send_one(near_, from_, longest, 2) == 1; }));
    rte_mbuf *got = receive_one(to_);
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(got->pkt_len, longest);
    rte_pktmbuf_free(got);
    give_back({from_, to_});
}

// Semantics: send-5
TEST_F(Semantics, NoBytesAreAMessage)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    ASSERT_NO_FATAL_FAILURE(join(from_, to_));
    ASSERT_EQ(send_one(near_, from_, 0, 0, 5), 1);
    EXPECT_EQ(info(from_).unconfirmed, 1U);
    uint32_t imm = 0;
    rte_mbuf *got = receive_one(to_, &imm);
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(got->pkt_len, 0U);
    EXPECT_EQ(imm, 5U);
    EXPECT_EQ(info(to_).rx_messages, 1U);
    rte_pktmbuf_free(got);
    give_back({from_, to_});
}

// Semantics: lost-1
TEST_F(Semantics, ALossIsReportedOnce)
{
    ASSERT_NO_FATAL_FAILURE(join_in_set());
    EXPECT_EQ(told(), NTBMSG_ANSWERED | NTBMSG_WRITABLE);
    ASSERT_NO_FATAL_FAILURE(lose_far());
    EXPECT_NE(told() & NTBMSG_ENDED, 0U);
    EXPECT_EQ(told(), 0U);
    EXPECT_EQ(send_one(near_, from_, 8, 0), -ECONNRESET);
    give_back({from_});
}

// Semantics: lost-2
TEST_F(Semantics, WhatHadComeBeforeALossCanBeReceived)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    ASSERT_NO_FATAL_FAILURE(join(from_, to_));
    for (int i = 0; i < 3; ++i)
        ASSERT_EQ(send_one(far_, to_, 20, i), 1);
    settle();
    ASSERT_NO_FATAL_FAILURE(lose_far());
    ASSERT_EQ(ntbmsg_channel_state_get(from_), NTBMSG_CHANNEL_LOST);
    rte_mbuf *got = nullptr;
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(ntbmsg_channel_recv_burst(from_, &got, nullptr, 1), 1);
        EXPECT_EQ(*rte_pktmbuf_mtod(got, uint8_t *), i);
        rte_pktmbuf_free(got);
    }
    EXPECT_EQ(ntbmsg_channel_recv_burst(from_, &got, nullptr, 1), -ECONNRESET);
    give_back({from_});
}

// Semantics: lost-3
TEST_F(Semantics, ALossKeepsTheCountOfWhatIsUnknown)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    ASSERT_NO_FATAL_FAILURE(join(from_, to_));
    for (int i = 0; i < 5; ++i)
        ASSERT_EQ(send_one(near_, from_, 20, i), 1);
    ASSERT_NO_FATAL_FAILURE(lose_far());
    EXPECT_EQ(info(from_).unconfirmed, 5U);
    for (int i = 0; i < 100; ++i)
        ntbmsg_worker_poll(near_worker_);
    EXPECT_EQ(info(from_).unconfirmed, 5U);
    give_back({from_});
}

// Semantics: lost-4
TEST_F(Semantics, ALossReturnsEveryMbuf)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    ASSERT_NO_FATAL_FAILURE(join(from_, to_));
    const unsigned before = rte_mempool_avail_count(ntbmsg_endpoint_pool(near_));
    for (int i = 0; i < 20; ++i)
        ASSERT_GE(send_one(near_, from_, i % 2 == 0 ? 20 : 1500, i), 0);
    ASSERT_NO_FATAL_FAILURE(lose_far());
    give_back({from_});
    EXPECT_EQ(rte_mempool_avail_count(ntbmsg_endpoint_pool(near_)), before);
    EXPECT_EQ(ntbmsg_endpoint_close(near_), 0) << "something is held";
    near_ = nullptr;
}

} // namespace
