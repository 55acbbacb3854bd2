// SPDX-License-Identifier: BSD-3-Clause
// Messages between two endpoints, and what their statistics say.
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "cabled.hpp"

namespace
{

using Burst = Cabled;

bool all_bytes_are(const rte_mbuf *mbuf, int fill)
{
    for (; mbuf != nullptr; mbuf = mbuf->next) {
        const auto *data = rte_pktmbuf_mtod(mbuf, const uint8_t *);
        if (!std::all_of(data, data + mbuf->data_len, [=](uint8_t b) { return b == fill; }))
            return false;
    }
    return true;
}

TEST_F(Burst, CarriesMessagesOfEverySize)
{
    connect();
    int fill = 0;
    uint64_t bytes = 0;
    const size_t sizes[] = {0, 1, 8, 48, 49, 64, 104, 105, 1024, 1025, 2048, 2049, 10000};
    for (const size_t size : sizes) {
        const ntbmsg_meta sent_meta{0x0123456789abcdef + size, 0x2a, 0};
        rte_mbuf *sent = message(near_, size, ++fill);
        ASSERT_EQ(ntbmsg_queue_send_burst(near_, 0, &sent, &sent_meta, 1), 1) << size;
        ntbmsg_meta meta{};
        rte_mbuf *got = receive(far_, 0, &meta);
        ASSERT_NE(got, nullptr) << size;
        EXPECT_EQ(got->pkt_len, size);
        EXPECT_TRUE(all_bytes_are(got, fill)) << size;
        EXPECT_EQ(meta.data, sent_meta.data);
        EXPECT_EQ(meta.flags, sent_meta.flags);
        rte_pktmbuf_free(got);
        bytes += size;
    }
    EXPECT_EQ(stats(near_).tx_messages, std::size(sizes));
    EXPECT_EQ(stats(near_).tx_bytes, bytes);
    EXPECT_EQ(stats(far_).rx_messages, std::size(sizes));
    EXPECT_EQ(stats(far_).rx_bytes, bytes);
}

TEST_F(Burst, QueuesDoNotMix)
{
    ntbmsg_endpoint_options options = small_options();
    options.queues = 3;
    connect(options);
    for (uint16_t q = 0; q < 3; ++q) {
        rte_mbuf *sent = message(near_, 20, q + 1);
        ASSERT_EQ(ntbmsg_queue_send_burst(near_, q, &sent, nullptr, 1), 1);
    }
    for (int q = 2; q >= 0; --q) {
        rte_mbuf *got = receive(far_, static_cast<uint16_t>(q));
        ASSERT_NE(got, nullptr);
        EXPECT_TRUE(all_bytes_are(got, q + 1));
        rte_pktmbuf_free(got);
    }
}

TEST_F(Burst, OrderIsKeptWhileTheRingRunsFull)
{
    connect();
    constexpr uint64_t total = 5000;
    uint64_t sent = 0, received = 0;
    rte_mbuf *waiting = nullptr;
    for (const uint64_t end = now_ms() + patience_ms; received < total && now_ms() < end;) {
        while (sent < total) {
            if (waiting == nullptr)
                waiting = message(near_, 60, 5);
            const ntbmsg_meta meta{sent, 0, 0};
            if (waiting == nullptr || ntbmsg_queue_send_burst(near_, 0, &waiting, &meta, 1) != 1)
                break; // the ring is full
            waiting = nullptr;
            ++sent;
        }
        rte_mbuf *got[32];
        ntbmsg_meta meta[32];
        const int n = ntbmsg_queue_recv_burst(far_, 0, got, meta, 32);
        for (int i = 0; i < n; ++i) {
            ASSERT_EQ(meta[i].data, received++);
            rte_pktmbuf_free(got[i]);
        }
    }
    rte_pktmbuf_free(waiting);
    EXPECT_EQ(received, total);
    EXPECT_GT(stats(near_).tx_full, 0U);
}

TEST_F(Burst, WithoutAPeerNothingGoesAndNothingComes)
{
    open(near_device, near_);
    rte_mbuf *mbuf = message(near_, 8, 0);
    EXPECT_EQ(ntbmsg_queue_send_burst(near_, 0, &mbuf, nullptr, 1), -ENOTCONN);
    rte_pktmbuf_free(mbuf);
    EXPECT_EQ(ntbmsg_queue_recv_burst(near_, 0, &mbuf, nullptr, 1), 0);
}

TEST_F(Burst, WrongArgumentsAreRefused)
{
    connect();
    rte_mbuf *mbuf = message(near_, 8, 0);
    EXPECT_EQ(ntbmsg_queue_send_burst(near_, 1, &mbuf, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_queue_send_burst(nullptr, 0, &mbuf, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_queue_send_burst(near_, 0, nullptr, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_queue_send_burst(near_, 0, &mbuf, nullptr, 0), 0);
    rte_mbuf *none = nullptr;
    EXPECT_EQ(ntbmsg_queue_send_burst(near_, 0, &none, nullptr, 1), -EINVAL);
    rte_pktmbuf_free(mbuf);
    EXPECT_EQ(ntbmsg_queue_recv_burst(near_, 1, &mbuf, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_queue_recv_burst(nullptr, 0, &mbuf, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_queue_recv_burst(near_, 0, nullptr, nullptr, 1), -EINVAL);
}

TEST_F(Burst, ABadMbufEndsTheBurstBeforeItself)
{
    connect();
    rte_mbuf *mbufs[3] = {message(near_, 8, 1), nullptr, message(near_, 8, 3)};
    EXPECT_EQ(ntbmsg_queue_send_burst(near_, 0, mbufs, nullptr, 3), 1);
    rte_pktmbuf_free(mbufs[2]);
    rte_mbuf *got = receive(far_);
    ASSERT_NE(got, nullptr);
    EXPECT_TRUE(all_bytes_are(got, 1));
    rte_pktmbuf_free(got);
}

TEST_F(Burst, AMessageThePeerDoesNotTakeIsRefused)
{
    ntbmsg_endpoint_options options = small_options();
    options.max_message = 3000;
    connect(options);
    rte_mbuf *mbuf = message(near_, 3001, 0);
    EXPECT_EQ(ntbmsg_queue_send_burst(near_, 0, &mbuf, nullptr, 1), -EMSGSIZE);
    rte_pktmbuf_free(mbuf);
    EXPECT_GT(stats(near_).tx_errors, 0U);
    ASSERT_EQ(send(near_, far_, message(near_, 3000, 0)), 1);
    mbuf = receive(far_);
    ASSERT_NE(mbuf, nullptr);
    rte_pktmbuf_free(mbuf);
}

TEST_F(Burst, WhatThePeerNeverConfirmedIsCounted)
{
    connect();
    for (int i = 0; i < 5; ++i) {
        rte_mbuf *mbuf = message(near_, 30, i);
        ASSERT_EQ(ntbmsg_queue_send_burst(near_, 0, &mbuf, nullptr, 1), 1);
    }
    close(far_); // it has received nothing
    ASSERT_TRUE(await_event(near_, NTBMSG_EVENT_LOST));
    // Counted once the peer is fenced, shortly after it was reported lost.
    const uint64_t end = now_ms() + patience_ms;
    while (stats(near_).tx_unconfirmed == 0 && now_ms() < end)
        continue;
    EXPECT_EQ(stats(near_).tx_unconfirmed, 5U);
}

TEST_F(Burst, StatisticsOfAnotherLibraryAreRefused)
{
    connect();
    ntbmsg_endpoint_stats s{};
    s.size = offsetof(ntbmsg_endpoint_stats, links);
    EXPECT_EQ(ntbmsg_endpoint_stats_get(near_, &s), -EINVAL);
    EXPECT_EQ(ntbmsg_endpoint_stats_get(near_, nullptr), -EINVAL);
    EXPECT_EQ(ntbmsg_endpoint_stats_get(nullptr, &s), -EINVAL);
}

TEST_F(Burst, StatisticsAreAsLongAsTheCallerKnowsThem)
{
    connect();
    struct {
        ntbmsg_endpoint_stats known;
        uint64_t more[2];
    } s;
    std::memset(&s, 0xff, sizeof(s));
    s.known.size = offsetof(ntbmsg_endpoint_stats, rx_dropped);
    ASSERT_EQ(ntbmsg_endpoint_stats_get(near_, &s.known), 0);
    EXPECT_EQ(s.known.size, offsetof(ntbmsg_endpoint_stats, rx_dropped));
    EXPECT_EQ(s.known.links, 1U);
    EXPECT_EQ(s.known.rx_dropped, UINT64_MAX) << "behind the end";
    s.known.size = sizeof(s);
    ASSERT_EQ(ntbmsg_endpoint_stats_get(near_, &s.known), 0);
    EXPECT_EQ(s.known.rx_dropped, 0U);
    EXPECT_EQ(s.more[1], 0U) << "not known";
}

TEST_F(Burst, CallsWithoutALookUpAreOfTheirQueue)
{
    ntbmsg_endpoint_options options = small_options();
    options.queues = 2;
    connect(options);
    ntbmsg_queue_burst near{}, far{};
    EXPECT_EQ(ntbmsg_queue_burst_get(near_, 1, nullptr), -EINVAL);
    EXPECT_EQ(ntbmsg_queue_burst_get(near_, 2, &near), -EINVAL);
    ASSERT_EQ(ntbmsg_queue_burst_get(near_, 1, &near), 0);
    ASSERT_EQ(ntbmsg_queue_burst_get(far_, 1, &far), 0);
    const ntbmsg_meta meta{77, 0x2a, 0};
    rte_mbuf *got = nullptr;
    for (int round = 0; round < 2; ++round) {
        // Beside those that look, in one order.
        for (const bool looks : {false, true}) {
            rte_mbuf *sent = message(near_, 100, looks);
            ASSERT_EQ(looks ? ntbmsg_queue_send_burst(near_, 1, &sent, &meta, 1)
                            : ntbmsg_queue_burst_send(&near, &sent, &meta, 1),
                      1);
        }
        for (const bool looked : {false, true}) {
            ntbmsg_meta with{};
            int n = 0;
            for (const uint64_t end = now_ms() + patience_ms; n == 0 && now_ms() < end;)
                n = ntbmsg_queue_burst_recv(&far, &got, &with, 1);
            ASSERT_EQ(n, 1);
            EXPECT_TRUE(all_bytes_are(got, looked));
            EXPECT_EQ(with.data, meta.data);
            EXPECT_EQ(with.flags, meta.flags);
            rte_pktmbuf_free(got);
        }
        EXPECT_EQ(ntbmsg_queue_recv_burst(far_, 0, &got, nullptr, 1), 0) << "of the other queue";
        EXPECT_EQ(ntbmsg_queue_burst_recv(&far, &got, nullptr, 1), 0);
        if (round == 1)
            break;
        // The near end stays open, and its calls are good for the next peer.
        ASSERT_NO_FATAL_FAILURE(close(far_));
        ASSERT_TRUE(await_event(near_, NTBMSG_EVENT_LOST));
        rte_mbuf *none = message(near_, 8, 0);
        EXPECT_EQ(ntbmsg_queue_burst_send(&near, &none, nullptr, 1), -ENOTCONN);
        EXPECT_EQ(ntbmsg_queue_burst_recv(&near, &got, nullptr, 1), 0);
        rte_pktmbuf_free(none);
        ASSERT_NO_FATAL_FAILURE(open(far_device, far_, options));
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(near_, patience_ms), 0);
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(far_, patience_ms), 0);
        ASSERT_EQ(ntbmsg_queue_burst_get(far_, 1, &far), 0);
    }
}

} // namespace
