// SPDX-License-Identifier: BSD-3-Clause
// Every compiled variant of the hot path that this CPU can run, through the face of the queue.
#include <array>
#include <cerrno>
#include <cstring>

#include <gtest/gtest.h>

#include "every_ops.hpp"
#include "pair.hpp"
#include "traffic.hpp"

namespace test_queue
{

using namespace plx;
using namespace plx::queue;

namespace
{

class Burst : public OfOps
{
protected:
    /// Sends one message and receives it.
    static void pass_one(Pair &pair, uint32_t n, uint32_t id, unsigned segments = 1)
    {
        std::vector<rte_mbuf *> in{pair.message(n, id, segments)};
        ASSERT_EQ(pair.send(in), 1) << "length " << n;
        auto out = pair.receive(2);
        ASSERT_EQ(out.size(), 1u) << "length " << n;
        EXPECT_TRUE(Pair::matches(out[0], n, id)) << "length " << n;
        rte_pktmbuf_free(out[0]);
    }
};

TEST_P(Burst, EveryLengthArrivesAsItWas)
{
    Pair pair(ops());
    pair.receive(1); // posts the buffers
    for (uint32_t n = 0; n <= 1100; n++)
        pass_one(pair, n, n);
    EXPECT_EQ(tx_stats(pair.tx_half).messages, 1101u);
    EXPECT_EQ(tx_stats(pair.tx_half).inline_messages, 1025u);
    EXPECT_EQ(rx_stats(pair.rx_half).bytes, 1100u * 1101 / 2);
    EXPECT_EQ(rx_stats(pair.rx_half).long_messages, 76u);
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
    EXPECT_TRUE(pair.guards_intact());
}

TEST_P(Burst, ChainsAreGatheredAndLongMessagesArriveAsChains)
{
    Pair pair(ops());
    pair.receive(1);
    for (uint32_t n : {3u, 48u, 49u, 500u, 1024u, 1025u, 1536u, 3000u, 5120u})
        for (unsigned segments : {1u, 2u, 3u, 7u})
            if (n / segments <= 2000)
                pass_one(pair, n, n + segments, segments);
    std::vector<rte_mbuf *> in{pair.message(1537, 9)};
    ASSERT_EQ(pair.send(in), 1);
    auto out = pair.receive(1);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0]->nb_segs, 4); // buffers of 512
    EXPECT_EQ(out[0]->data_len, 512);
    rte_pktmbuf_free(out[0]);
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(Burst, StateOfAnInlineMbuf)
{
    Pair pair(ops());
    std::vector<rte_mbuf *> in{pair.message(20, 1)};
    in[0]->ol_flags = 1;
    in[0]->packet_type = 5;
    ASSERT_EQ(pair.send(in), 1);
    auto out = pair.receive(1);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0]->data_off, RTE_PKTMBUF_HEADROOM);
    EXPECT_EQ(out[0]->port, 3);
    EXPECT_EQ(out[0]->nb_segs, 1);
    EXPECT_EQ(out[0]->ol_flags, 0u);
    EXPECT_EQ(out[0]->packet_type, 0u);
    EXPECT_EQ(rte_mbuf_refcnt_read(out[0]), 1);
    EXPECT_EQ(out[0]->pool, pair.inline_pool);
    rte_pktmbuf_free(out[0]);
}

TEST_P(Burst, StateOfAPostedMbuf)
{
    Pair pair(ops());
    pair.receive(1);
    std::vector<rte_mbuf *> in{pair.message(1100, 1)};
    ASSERT_EQ(pair.send(in), 1);
    auto out = pair.receive(1);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0]->ol_flags, RTE_MBUF_F_EXTERNAL);
    EXPECT_EQ(out[0]->port, 3);
    EXPECT_EQ(out[0]->data_off, RTE_PKTMBUF_HEADROOM);
    EXPECT_EQ(out[0]->pool, pair.window_pool);
    EXPECT_EQ(rte_mbuf_refcnt_read(out[0]), 1);
    rte_pktmbuf_free(out[0]);
}

TEST_P(Burst, NothingBehindAShortMessageLeaves)
{
    Pair pair(ops());
    rte_mbuf *m = pair.message(48, 1);
    m->data_len = 5;
    m->pkt_len = 5; // 43 bytes of the buffer stay private
    ASSERT_EQ(pair.tx(&m, nullptr, 1), 1);
    for (size_t i = wire::head_payload_offset + 5; i < wire::line_bytes; i++)
        EXPECT_EQ(pair.rx_setup.ring[i], std::byte{0});
}

TEST_P(Burst, NothingOfAMessageLeavesWithTheNext)
{
    Pair pair(ops());
    rte_mbuf *m = pair.message(1000, 1);
    ASSERT_EQ(pair.tx(&m, nullptr, 1), 1);
    const uint64_t second = pair.tx_half->head;
    m = pair.message(wire::head_payload_bytes + 1, 2);
    ASSERT_EQ(pair.tx(&m, nullptr, 1), 1);
    const std::byte *rest = pair.rx_setup.ring + (second + 1) * wire::line_bytes;
    for (size_t i = wire::cont_payload_offset + 1; i < wire::line_bytes; i++)
        EXPECT_EQ(rest[i], std::byte{0}) << i;
}

TEST_P(Burst, AMessageAtTheVeryEndOfItsBuffer)
{
    Pair pair(ops());
    rte_mbuf *m = rte_pktmbuf_alloc(pair.sent_pool);
    m->data_off = static_cast<uint16_t>(m->buf_len - 5);
    m->data_len = 5;
    m->pkt_len = 5;
    for (uint32_t i = 0; i < 5; i++)
        *rte_pktmbuf_mtod_offset(m, std::byte *, i) = pattern(8, i);
    ASSERT_EQ(pair.tx(&m, nullptr, 1), 1);
    auto out = pair.receive(1);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_TRUE(Pair::matches(out[0], 5, 8));
    rte_pktmbuf_free(out[0]);
}

TEST_P(Burst, MetadataAndFlagsTravel)
{
    Pair pair(ops());
    pair.receive(1);
    std::vector<rte_mbuf *> in;
    std::vector<Meta> meta, back(4);
    for (uint32_t i = 0; i < 4; i++) {
        in.push_back(pair.message(std::array{0u, 48u, 300u, 2000u}[i], i));
        meta.push_back({uint64_t{0x1122334455667788} * (i + 1), 0xffffffc0u | (i * 21), 9});
    }
    ASSERT_EQ(pair.send(in, meta.data()), 4);
    auto out = pair.receive(4, back.data());
    ASSERT_EQ(out.size(), 4u);
    for (uint32_t i = 0; i < 4; i++) {
        EXPECT_EQ(back[i].data, meta[i].data);
        EXPECT_EQ(back[i].flags, meta[i].flags & 0x3f);
        EXPECT_EQ(back[i].reserved, 0u);
        rte_pktmbuf_free(out[i]);
    }
}

TEST_P(Burst, RandomTrafficWrapsTheRing)
{
    Pair pair(ops());
    random_traffic(pair, 1500, 6000, 1);
    EXPECT_GT(pair.tx_half->head, 20u * pair.options.ring_lines);
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
    EXPECT_TRUE(pair.guards_intact());
    EXPECT_EQ(tx_stats(pair.tx_half).unconfirmed, 0u);
}

/// Every length at every place before the end of the ring, alone and in a burst.
TEST_P(Burst, NoMessageStraddlesTheEndOfTheRing)
{
    constexpr uint32_t lines = 64, longest = wire::inline_bytes_max;
    for (uint32_t n : {0u, 49u, 105u, 500u, longest}) {
        Pair pair(ops(), {.ring_lines = lines});
        const uint32_t needs = wire::inline_lines(n);
        for (uint32_t left = 1; left <= wire::pad_lines_max + 1; left++) {
            while (pair.tx_half->ring.left(pair.tx_half->head) != left)
                pass_one(pair, 8, left);
            pair.receive(1); // credits
            const uint64_t head = pair.tx_half->head;
            std::vector<rte_mbuf *> in{pair.message(n, left), pair.message(8, 99)};
            ASSERT_EQ(pair.send(in), 2);
            const uint32_t pads = needs > left ? left : 0;
            EXPECT_EQ(pair.tx_half->head, head + pads + needs + 1) << n << " before " << left;
            auto out = pair.receive(4);
            ASSERT_EQ(out.size(), 2u);
            EXPECT_TRUE(Pair::matches(out[0], n, left));
            EXPECT_TRUE(Pair::matches(out[1], 8, 99));
            rte_pktmbuf_free_bulk(out.data(), 2);
        }
        pair.receive(1);
        pair.close();
        EXPECT_TRUE(pair.nothing_leaked());
        EXPECT_EQ(tx_stats(pair.tx_half).unconfirmed, 0u);
    }
}

TEST_P(Burst, PadsGoOnlyWhereTheirMessageCanFollow)
{
    Pair pair(ops(), {.ring_lines = 64});
    std::vector<rte_mbuf *> in;
    for (uint32_t i = 0; i < 62; i++)
        in.push_back(pair.message(8, i));
    ASSERT_EQ(pair.send(in), 62);
    rte_mbuf *m = pair.message(wire::inline_bytes_max, 99);
    EXPECT_EQ(pair.tx(&m, nullptr, 1), 0);
    EXPECT_EQ(pair.tx_half->head, 62u) << "no room for it, so no pads either";
    auto out = pair.receive(62);
    ASSERT_EQ(out.size(), 62u);
    rte_pktmbuf_free_bulk(out.data(), 62);
    EXPECT_EQ(pair.tx(&m, nullptr, 1), 1);
    out = pair.receive(2);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_TRUE(Pair::matches(out[0], wire::inline_bytes_max, 99));
    rte_pktmbuf_free(out[0]);
    EXPECT_EQ(pair.rx_half->tail, 64u + wire::inline_lines(wire::inline_bytes_max));
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(Burst, CountersWrap)
{
    Pair pair(ops(), {.start = (uint64_t{1} << 32) - 3 * 256});
    random_traffic(pair, 200, 6000, 2);
    EXPECT_GT(pair.tx_half->head, uint64_t{1} << 32);
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(Burst, WhatIsUnconfirmedIsCountedAcrossTheWrap)
{
    Pair pair(ops());
    pair.tx_half->sent_before = pair.tx_half->stats.messages - (UINT32_MAX - 1);
    pair.rx_half->received_before = pair.rx_half->stats.messages - (UINT32_MAX - 1);
    pair.tx_half->head = pair.rx_half->tail = uint64_t{1} << 33;
    pair.tx_half->credited = pair.rx_half->returned = 0;
    prepare_ring(pair.rx_setup.ring, pair.options.ring_lines,
                 pair.rx_setup.ring_base +
                     static_cast<uint32_t>((uint64_t{1} << 33) / pair.options.ring_lines));
    std::vector<rte_mbuf *> mbufs;
    for (uint32_t i = 0; i < 4; i++)
        mbufs.push_back(pair.message(8, i));
    ASSERT_EQ(pair.send(mbufs), 4);
    const std::vector<rte_mbuf *> got = pair.receive(1);
    ASSERT_EQ(got.size(), 1u);
    rte_pktmbuf_free(got[0]);
    pair.receive(0); // nothing to take: the credit goes back
    pair.close();
    EXPECT_EQ(tx_stats(pair.tx_half).unconfirmed, 3u);
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(Burst, ALyingCreditLeavesUnconfirmedWhatTheRingHeld)
{
    Pair pair(ops());
    random_traffic(pair, 1500, 2000, 3);
    ASSERT_GT(plx::queue::messages_of(*pair.tx_half), pair.options.ring_lines);
    const uint64_t lie = uint64_t{pair.rx_setup.peer_back_base} |
                         uint64_t{plx::queue::messages_of(*pair.tx_half) + 1} << 32;
    std::memcpy(pair.rx_setup.peer_credit + 8, &lie, sizeof(lie));
    pair.close();
    EXPECT_EQ(tx_stats(pair.tx_half).unconfirmed, pair.options.ring_lines);
}

TEST_P(Burst, TagsWrap)
{
    // A base whose tags run through 2^32 within the test.
    PairOptions options{.ring_lines = 64, .inline_max = 300};
    const uint32_t base = wire::ring_base(options.seed, 0);
    options.start = (uint64_t{0xffffffff - base} - 2) * options.ring_lines;
    Pair pair(ops(), options);
    random_traffic(pair, 200, 300, 3);
    EXPECT_GT(pair.tx_half->head, (uint64_t{1} << 32) * options.ring_lines - uint64_t{base} * 64);
}

TEST_P(Burst, EveryCacheHintIsHarmless)
{
    for (CacheHint hint : {CacheHint::clwb, CacheHint::clflushopt, CacheHint::cldemote}) {
        if (!cache_hint_supported(hint))
            continue;
        Pair pair(ops(), {.hint = hint});
        random_traffic(pair, 100, 3000, 4);
    }
}

/// What the hint does is time; what shows here is when it is given.
TEST_P(Burst, NonTemporalStoresAreHarmless)
{
    Pair pair(ops(), {.stores = Stores::non_temporal});
    random_traffic(pair, 300, 6000, 5);
    EXPECT_GT(tx_stats(pair.tx_half).cpu_messages, 100u);
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
    EXPECT_TRUE(pair.guards_intact());
}

TEST_P(Burst, LinesOfAnAnswerAreAskedForOnlyWhereOneIsLikely)
{
    Pair pair(ops()), back(ops());
    rx_answered_by(pair.rx_half, back.tx_half);
    const bool own_lines = std::string(ops().name).substr(0, 6) == "plain/";
    pass_one(pair, 8, 1);
    EXPECT_EQ(pair.rx_half->answers_at, 0u) << "nothing was ever sent back";
    pass_one(back, 100, 2);
    pass_one(pair, 8, 3);
    EXPECT_EQ(pair.rx_half->answers_at, own_lines ? back.tx_half->head : 0);
    rx_answered_by(pair.rx_half, nullptr);
    pass_one(back, 100, 4);
    pass_one(pair, 8, 5);
    EXPECT_NE(pair.rx_half->answers_at, back.tx_half->head) << "another thread's half";
    pair.reopen(9);
    EXPECT_EQ(pair.rx_half->answers, nullptr);
}

TEST_P(Burst, CreditsBoundWhatIsOutstanding)
{
    Pair pair(ops(), {.ring_lines = 64});
    std::vector<rte_mbuf *> in;
    for (uint32_t i = 0; i < 100; i++)
        in.push_back(pair.message(10, i));
    ASSERT_EQ(pair.send(in), 64);
    in.erase(in.begin(), in.begin() + 64);
    EXPECT_EQ(pair.send(in), 0);
    EXPECT_EQ(tx_stats(pair.tx_half).full, 2u);
    auto out = pair.receive(64);
    ASSERT_EQ(out.size(), 64u);
    EXPECT_TRUE(Pair::matches(out[63], 10, 63));
    EXPECT_EQ(pair.send(in), 36);
    for (rte_mbuf *m : out)
        rte_pktmbuf_free(m);
    pair.close();
    EXPECT_EQ(tx_stats(pair.tx_half).unconfirmed, 36u);
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(Burst, NoPostedBuffersIsBackPressure)
{
    Pair pair(ops(), {.buffers_target = 14});
    std::vector<rte_mbuf *> in{pair.message(2000, 1), pair.message(6000, 2, 3)};
    EXPECT_EQ(pair.send(in), 0); // no receive buffer yet
    pair.receive(1);
    EXPECT_EQ(pair.send(in), 1); // 4 of 14 buffers, then 12 more
    std::vector<rte_mbuf *> rest{in[1]};
    EXPECT_EQ(pair.send(rest), 0);
    auto out = pair.receive(4);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_TRUE(Pair::matches(out[0], 2000, 1));
    rte_pktmbuf_free_bulk(out.data(), 1);
    rte_pktmbuf_free(in[1]);
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(Burst, EmptyInlinePoolLeavesMessagesInTheRing)
{
    Pair pair(ops(), {.inline_mbufs = 10});
    std::vector<rte_mbuf *> in;
    for (uint32_t i = 0; i < 15; i++)
        in.push_back(pair.message(100, i));
    ASSERT_EQ(pair.send(in), 15);
    auto first = pair.receive(32);
    EXPECT_EQ(first.size(), 10u);
    EXPECT_EQ(pair.receive(32).size(), 0u);
    EXPECT_EQ(rx_stats(pair.rx_half).nombuf, 2u);
    for (rte_mbuf *m : first)
        rte_pktmbuf_free(m);
    auto second = pair.receive(32);
    ASSERT_EQ(second.size(), 5u);
    for (uint32_t i = 0; i < 5; i++) {
        EXPECT_TRUE(Pair::matches(second[i], 100, 10 + i));
        rte_pktmbuf_free(second[i]);
    }
}

TEST_P(Burst, APollIsIdleOnlyIfThereIsNothingToDo)
{
    Pair pair(ops());
    const auto idle = [&] { return rx_idle(*rx_watch(pair.rx_half)); };
    EXPECT_FALSE(idle()) << "receive buffers are to be made available";
    EXPECT_TRUE(pair.receive(1).empty());
    EXPECT_TRUE(idle());
    std::vector<rte_mbuf *> in{pair.message(8, 1)}, held(pair.options.buffers);
    ASSERT_EQ(pair.send(in), 1);
    EXPECT_FALSE(idle()) << "a message";
    rte_pktmbuf_free_bulk(pair.receive(1).data(), 1);
    EXPECT_FALSE(idle()) << "a credit is to be returned";
    pair.receive(1);
    EXPECT_TRUE(idle());
    EXPECT_EQ(pair.rx_half->returned, 1u);

    const unsigned left = rte_mempool_avail_count(pair.window_pool);
    ASSERT_EQ(rte_pktmbuf_alloc_bulk(pair.window_pool, held.data(), left), 0);
    in[0] = pair.message(pair.options.buf_bytes * 14, 2, 14);
    ASSERT_EQ(pair.send(in), 1);
    const auto out = pair.receive(1);
    ASSERT_EQ(out.size(), 1u);
    pair.receive(1);
    EXPECT_FALSE(idle()) << "receive buffers are missing";
    rte_pktmbuf_free(out[0]);
    pair.receive(1);
    EXPECT_TRUE(idle());
    rte_pktmbuf_free_bulk(held.data(), left);

    const uint64_t bad = pair.rx_half->watch.tag | uint64_t{3} << 56 | uint64_t{1} << 32;
    std::memcpy(pair.rx_half->ring.line(pair.rx_half->tail), &bad, sizeof(bad));
    rte_mbuf *m = nullptr;
    EXPECT_EQ(pair.rx(&m, nullptr, 1), -EPROTO);
    std::memset(pair.rx_half->ring.line(pair.rx_half->tail), 0, sizeof(bad));
    EXPECT_EQ(pair.rx(&m, nullptr, 1), -EPROTO) << "whatever the peer writes after it";
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(Burst, APollAsksForTheLinesOfAMessageAsTheLastLoneOne)
{
    Pair pair(ops(), {.ring_lines = 64});
    const auto more_after = [&](std::vector<uint32_t> lengths) {
        std::vector<rte_mbuf *> in;
        for (uint32_t n : lengths)
            in.push_back(pair.message(n, n));
        EXPECT_EQ(pair.send(in), static_cast<int>(lengths.size()));
        auto out = pair.receive(32);
        EXPECT_EQ(out.size(), lengths.size());
        rte_pktmbuf_free_bulk(out.data(), static_cast<unsigned>(out.size()));
        EXPECT_EQ(rx_watch(pair.rx_half)->more, 0u) << "while a credit is to be returned";
        EXPECT_TRUE(pair.receive(1).empty());
        EXPECT_TRUE(rx_idle(*rx_watch(pair.rx_half)));
        return rx_watch(pair.rx_half)->more;
    };
    EXPECT_TRUE(pair.receive(1).empty());
    EXPECT_EQ(more_after({256}), 3u);
    EXPECT_EQ(more_after({104}), 0u) << "two lines";
    EXPECT_EQ(more_after({105}), 1u);
    EXPECT_EQ(more_after({105, 105}), 0u) << "not alone";
    EXPECT_EQ(more_after({256}), 3u);
    EXPECT_EQ(more_after({2000}), 0u) << "in receive buffers";
    while (pair.rx_half->ring.left(pair.rx_half->tail) != 5 + 4)
        EXPECT_EQ(more_after({8}), 0u);
    EXPECT_EQ(more_after({256}), 0u) << "four lines are left: the next one begins elsewhere";
    EXPECT_EQ(more_after({256}), 3u);
    EXPECT_EQ(pair.tx_half->ring.left(pair.tx_half->head), 64u - 5);
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(Burst, SpareMbufsAreNotLostToOtherMessages)
{
    Pair pair(ops(), {.inline_mbufs = 10});
    std::vector<rte_mbuf *> got, in{pair.message(8, 0)};
    ASSERT_EQ(pair.send(in), 1);
    got = pair.receive(1);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(rx_spares(pair.rx_half), 9u) << "fewer than usual: the pool has no more";
    in.clear();
    for (uint32_t i = 1; i < 12; i++)
        in.push_back(pair.message(100, i));
    ASSERT_EQ(pair.send(in), 11);
    const auto rest = pair.receive(32);
    EXPECT_EQ(rest.size(), 9u);
    got.insert(got.end(), rest.begin(), rest.end());
    for (uint32_t i = 0; i < got.size(); i++)
        EXPECT_TRUE(Pair::matches(got[i], i == 0 ? 8 : 100, i));
    EXPECT_TRUE(pair.receive(1).empty());
    rte_pktmbuf_free_bulk(got.data(), static_cast<unsigned>(got.size()));
    for (int i = 0; i < 2; i++)
        rte_pktmbuf_free_bulk(pair.receive(1).data(), 1);
    pair.close();
    EXPECT_EQ(rx_spares(pair.rx_half), 0u);
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(Burst, AShortWindowPoolStillMakesProgress)
{
    Pair pair(ops(), {.buffers = 9, .max_message = 4000});
    for (uint32_t id = 0; id < 50; id++) {
        pair.receive(1);
        pass_one(pair, 1100 + id * 15, id);
    }
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(Burst, APoolThatRanDryDoesNotUseUpThePostedRing)
{
    Pair pair(ops(), {.max_message = 22016}); // 43 buffers: what 56 always leave
    std::vector<rte_mbuf *> held(pair.options.buffers);
    ASSERT_EQ(rte_pktmbuf_alloc_bulk(pair.window_pool, held.data(), pair.options.buffers), 0);
    for (rte_mbuf *m : held) { // the application gives them back one by one
        rte_pktmbuf_free(m);
        pair.receive(1);
    }
    pass_one(pair, 22016, 1, 11);
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(Burst, AShortLineBehindAFullOneLeavesRoomForTheLongest)
{
    Pair pair(ops(), {.max_message = 22016}); // 43 buffers
    std::vector<rte_mbuf *> held(pair.options.buffers);
    ASSERT_EQ(rte_pktmbuf_alloc_bulk(pair.window_pool, held.data(), pair.options.buffers), 0);
    for (size_t i = 0; i < held.size(); i++) {
        rte_pktmbuf_free(held[i]);
        if (i >= 13) // a full line, then one by one
            pair.receive(1);
    }
    for (uint32_t id = 0; id < 4; id++)
        pass_one(pair, 1100, id); // most of the full line
    pass_one(pair, 22016, 9, 11);
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(Burst, WhatCannotBeSentStaysWithTheCaller)
{
    Pair pair(ops(), {.max_message = 3000});
    pair.receive(1);
    std::vector<rte_mbuf *> in{pair.message(10, 1), nullptr, pair.message(3001, 2, 2),
                               pair.message(60, 3, 2), pair.message(20, 4)};
    EXPECT_EQ(pair.send(in), 1);
    EXPECT_EQ(pair.tx(&in[1], nullptr, 4), -EINVAL);
    EXPECT_EQ(pair.tx(&in[2], nullptr, 3), -EMSGSIZE);
    in[3]->pkt_len++;
    EXPECT_EQ(pair.tx(&in[3], nullptr, 2), -EINVAL);
    in[3]->pkt_len--;
    in[3]->nb_segs++;
    EXPECT_EQ(pair.tx(&in[3], nullptr, 2), -EINVAL);
    in[3]->nb_segs--;
    in[4]->pkt_len++;
    EXPECT_EQ(pair.tx(&in[3], nullptr, 2), 1);
    EXPECT_EQ(pair.tx(&in[4], nullptr, 1), -EINVAL);
    in[4]->pkt_len--;
    EXPECT_EQ(tx_stats(pair.tx_half).errors, 7u);
    EXPECT_EQ(tx_stats(pair.tx_half).messages, 2u);
    auto out = pair.receive(8);
    EXPECT_EQ(out.size(), 2u);
    for (rte_mbuf *m : {out[0], out[1], in[2], in[4]})
        rte_pktmbuf_free(m);
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(Burst, NothingLongerThanThePeerTakesGoesInsideTheRingEither)
{
    Pair pair(ops(), {.inline_max = 768, .max_message = 500});
    pair.receive(1);
    for (unsigned i = 0; i < 3 * pair.options.ring_lines; i++) { // wherever in the ring
        rte_mbuf *m = pair.message(501, i);
        ASSERT_EQ(pair.tx(&m, nullptr, 1), -EMSGSIZE) << i;
        rte_pktmbuf_free(m);
        pass_one(pair, i % 2 == 0 ? 500 : 1, i);
    }
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(Burst, OneSegmentThatNamesAnotherIsABrokenChain)
{
    Pair pair(ops());
    rte_mbuf *m = pair.message(60, 1, 2), *next = m->next;
    m->nb_segs = 1; // cut short, by half
    m->pkt_len = m->data_len;
    rte_mbuf_refcnt_update(m, 1); // not the usual mbuf, so it is looked at closely
    EXPECT_EQ(pair.tx(&m, nullptr, 1), -EINVAL);
    rte_mbuf_refcnt_update(m, -1);
    m->next = nullptr;
    rte_pktmbuf_free(m);
    rte_pktmbuf_free(next);
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(Burst, AMessageNoPostedRingCouldHoldIsTooLong)
{
    Pair pair(ops(), {.buffer_ring_lines = 2, .buffers_target = 14, .max_message = 20000});
    std::vector<rte_mbuf *> in{pair.message(14 * 512 + 1, 1, 4)};
    EXPECT_EQ(pair.send(in), -EMSGSIZE);
    rte_pktmbuf_free(in[0]);
}

TEST_P(Burst, ClonesSharedAndMixedPoolsAreFreedRightly)
{
    Pair pair(ops());
    pair.receive(1);
    rte_mbuf *original = pair.message(30, 1);
    rte_mbuf *clone = rte_pktmbuf_clone(original, pair.sent_pool);
    rte_mbuf *shared = pair.message(40, 2);
    rte_mbuf_refcnt_update(shared, 1);
    rte_mbuf *foreign = rte_pktmbuf_alloc(pair.window_pool);
    rte_pktmbuf_append(foreign, 12);
    std::vector<rte_mbuf *> in{clone, shared, foreign, pair.message(50, 3)};
    ASSERT_EQ(pair.send(in), 4);
    EXPECT_EQ(rte_mbuf_refcnt_read(original), 1);
    EXPECT_EQ(rte_mbuf_refcnt_read(shared), 1);
    auto out = pair.receive(8);
    ASSERT_EQ(out.size(), 4u);
    EXPECT_TRUE(Pair::matches(out[0], 30, 1));
    EXPECT_TRUE(Pair::matches(out[1], 40, 2));
    EXPECT_TRUE(Pair::matches(out[3], 50, 3));
    for (rte_mbuf *m : {out[0], out[1], out[2], out[3], original, shared})
        rte_pktmbuf_free(m);
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(Burst, ANewEpochStartsCleanAndOldLinesAreInvalid)
{
    Pair pair(ops());
    pair.receive(1);
    std::vector<rte_mbuf *> in{pair.message(10, 1), pair.message(2000, 2), pair.message(10, 3)};
    ASSERT_EQ(pair.send(in), 3);
    std::array<std::byte, 64> late;
    std::memcpy(late.data(), pair.rx_setup.ring, late.size());
    pair.reopen(8);
    EXPECT_EQ(tx_stats(pair.tx_half).unconfirmed, 3u);
    EXPECT_EQ(pair.receive(4).size(), 0u);
    std::memcpy(pair.rx_setup.ring, late.data(), late.size());
    EXPECT_EQ(pair.receive(4).size(), 0u);
    pass_one(pair, 2000, 4);
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(Burst, AClosedQueueDoesNothing)
{
    Pair pair(ops());
    pair.close();
    pair.close();
    std::vector<rte_mbuf *> in{pair.message(10, 1)};
    EXPECT_EQ(pair.send(in), 0);
    EXPECT_EQ(pair.receive(1).size(), 0u);
    rte_pktmbuf_free(in[0]);
}

INSTANTIATE_TEST_SUITE_P(Variants, Burst, testing::ValuesIn(all_ops), ops_name);

} // namespace

} // namespace test_queue
