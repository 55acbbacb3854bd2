// SPDX-License-Identifier: BSD-3-Clause
// Frames: sizes, queues, buffers and pools that end.
#include "ports.hpp"

#include <vector>

#include "log_capture.hpp"

namespace test
{

namespace
{

TEST_F(Ports, FramesOfAllSizesArriveInTheApplicationsPool)
{
    make();
    start({.scatter = true}, {.scatter = true});
    for (const uint32_t bytes : {14u, 60u, 64u, 767u, 768u, 769u, 1024u, 1025u, 1518u, 2048u, 2049u,
                                 9018u, 65535u, 65553u})
        pass(*near, *far, 0, bytes, bytes);
    for (const int segment : {1, 17, 60, 2048})
        pass(*far, *near, 0, 200, static_cast<uint32_t>(segment), static_cast<uint16_t>(segment));
    EXPECT_EQ(near->stats().opackets, 14u);
    EXPECT_EQ(far->stats().ipackets, 14u);
    EXPECT_EQ(near->stats().obytes, far->stats().ibytes);
    EXPECT_EQ(near->stats().ipackets, 4u);
    EXPECT_EQ(near->stats().ibytes, 800u);
}

TEST_F(Ports, AFrameFillsLargeMbufs)
{
    make();
    start({.room = 9216}, {.room = 9216});
    rte_mbuf *frame = exchange(*near, *far, 0, make_frame(sender.get(), 9018, 5));
    ASSERT_NE(frame, nullptr);
    EXPECT_EQ(frame->nb_segs, 1);
    EXPECT_EQ(same_bytes(frame, 5), 9018u);
    rte_pktmbuf_free(frame);
}

TEST_F(Ports, ZeroCopyDeliversLongFramesWhereTheyLie)
{
    make("", ",zero_copy=1");
    start({}, {});
    rte_mbuf *frame = exchange(*near, *far, 0, make_frame(sender.get(), 1518, 3));
    ASSERT_NE(frame, nullptr);
    EXPECT_NE(frame->pool, far->pool());
    EXPECT_EQ(frame->port, far->id());
    EXPECT_EQ(same_bytes(frame, 3), 1518u);
    rte_pktmbuf_free(frame);
    pass(*near, *far, 0, 64, 4); // in the ring: the application's pool
}

TEST_F(Ports, EachQueueDeliversToTheSameNumber)
{
    make();
    start({.rx = 3, .tx = 3}, {.rx = 3, .tx = 3});
    for (uint16_t q = 0; q < 3; ++q)
        pass(*near, *far, q, 100u + q, q);
    for (uint16_t q = 0; q < 3; ++q) {
        EXPECT_EQ(far->stats().q_ipackets[q], 1u) << q;
        EXPECT_EQ(far->stats().q_ibytes[q], 100u + q) << q;
        EXPECT_EQ(near->stats().q_opackets[q], 1u) << q;
    }
    EXPECT_EQ(far->xstat("rx_q1_messages"), 1u);
}

TEST_F(Ports, MoreQueuesThanThePeerHasWorkAsFarAsItHasThem)
{
    make();
    const test::LogCapture log;
    const uint32_t level = rte_log_get_global_level();
    rte_log_set_global_level(RTE_LOG_WARNING);
    start({.rx = 4, .tx = 4}, {});
    EXPECT_TRUE(await([&] {
        return log.text().find("the peer has 1 queues: of 4, those from 1 on send nothing") !=
               std::string::npos;
    })) << log.text();
    rte_log_set_global_level(level);
    one_each_way(7);
    rte_mbuf *frame = make_frame(sender.get(), 100, 1);
    EXPECT_EQ(rte_eth_tx_burst(near->id(), 3, &frame, 1), 0);
    rte_pktmbuf_free(frame);
}

TEST_F(Ports, AFrameThatThePeerCannotTakeIsDroppedAndCounted)
{
    make();
    start({.scatter = true}, {}); // the far side receives into one mbuf of 2048 bytes
    rte_mbuf *frames[] = {make_frame(sender.get(), 2049, 1), make_frame(sender.get(), 64, 2)};
    ASSERT_TRUE(await([&] { return rte_eth_tx_burst(near->id(), 0, frames, 2) == 2; }));
    rte_mbuf *frame = receive(*far, 0);
    ASSERT_NE(frame, nullptr);
    EXPECT_EQ(frame->pkt_len, 64u);
    rte_pktmbuf_free(frame);
    EXPECT_EQ(near->stats().opackets, 1u);
    EXPECT_GE(near->stats().oerrors, 1u);
    EXPECT_EQ(near->xstat("tx_dropped"), 1u);
}

TEST_F(Ports, AnEmptyPoolLosesFramesAndCountsThem)
{
    make();
    start({}, {.mbufs = 15});
    one_each_way(1); // the far side's window buffers are available
    std::vector<rte_mbuf *> held;
    for (rte_mbuf *m = rte_pktmbuf_alloc(far->pool()); m != nullptr;
         m = rte_pktmbuf_alloc(far->pool()))
        held.push_back(m);
    ASSERT_TRUE(send(*near, 0, make_frame(sender.get(), 1518, 1)));
    ASSERT_TRUE(await([&] {
        rte_mbuf *none = nullptr;
        EXPECT_EQ(rte_eth_rx_burst(far->id(), 0, &none, 1), 0);
        return far->stats().rx_nombuf == 1;
    }));
    EXPECT_EQ(far->stats().ipackets, 1u);
    rte_pktmbuf_free_bulk(held.data(), static_cast<unsigned>(held.size()));
    one_each_way(3);
    EXPECT_EQ(rte_eth_stats_reset(far->id()), 0);
    EXPECT_EQ(far->stats().rx_nombuf, 0u);
    EXPECT_EQ(far->stats().ipackets, 0u);
}

/// More long frames in one burst than are freed at once, among short ones; the pool ends in it.
TEST_F(Ports, ABurstOfShortAndLongFramesKeepsItsOrder)
{
    constexpr uint16_t count = 80;
    make();
    start({}, {.mbufs = 127});
    one_each_way(1); // the far side's window buffers are available
    for (const unsigned left : {127u, 127u, 60u}) {
        std::vector<rte_mbuf *> held;
        while (rte_mempool_avail_count(far->pool()) > left)
            held.push_back(rte_pktmbuf_alloc(far->pool()));
        const uint64_t lost = far->stats().rx_nombuf;
        for (uint32_t i = 0; i < count; ++i)
            ASSERT_TRUE(send(*near, 0, make_frame(sender.get(), i % 3 == 0 ? 100 : 1518, i)));
        std::vector<rte_mbuf *> frames(count);
        uint32_t seed = 0;
        uint32_t arrived = 0;
        ASSERT_TRUE(await([&] {
            const uint16_t n = rte_eth_rx_burst(far->id(), 0, frames.data(), count);
            for (uint16_t i = 0; i < n; ++i, ++seed, ++arrived) {
                while (seed < count && same_bytes(frames[i], seed) != frames[i]->pkt_len)
                    ++seed; // it was lost
                EXPECT_LT(seed, count);
                EXPECT_EQ(frames[i]->pkt_len, seed % 3 == 0 ? 100u : 1518u);
                EXPECT_EQ(frames[i]->port, far->id());
                EXPECT_EQ(frames[i]->pool, far->pool());
                rte_pktmbuf_free(frames[i]);
            }
            return arrived + far->stats().rx_nombuf - lost >= count;
        })) << arrived;
        rte_pktmbuf_free_bulk(held.data(), static_cast<unsigned>(held.size()));
        if (left == 127) {
            EXPECT_EQ(arrived, count);
        }
    }
}

TEST_F(Ports, APoolOfAFewMbufsReceivesOneByOne)
{
    make();
    start({.mbufs = 3}, {});
    for (uint32_t seed = 0; seed < 50; ++seed)
        pass(*far, *near, 0, seed % 2 == 0 ? 64 : 1518, seed);
    EXPECT_EQ(near->stats().ipackets, 50u);
}

} // namespace

} // namespace test
