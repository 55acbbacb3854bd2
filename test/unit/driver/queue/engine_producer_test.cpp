// SPDX-License-Identifier: BSD-3-Clause
// The sending half with a copy engine: what goes by it, when mbufs come back, what fails.
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

constexpr uint32_t inline_max = 256, engine_min = 600;

PairOptions with(LateEngine &engine)
{
    return {.inline_max = inline_max, .engine = &engine, .engine_min = engine_min};
}

class ByEngineBurst : public OfOps
{
};

/// The same on the variant of this CPU only.
class CopyEngine : public testing::Test
{
protected:
    const Ops &ops() const { return *select_ops(Policy::plain); }
    static unsigned held(const Pair &pair) { return rte_mempool_in_use_count(pair.sent_pool); }
    static void expect_clean(Pair &pair)
    {
        pair.close();
        EXPECT_TRUE(pair.nothing_leaked());
        EXPECT_TRUE(pair.guards_intact());
    }
};

void pass_one(Pair &pair, uint32_t n, uint32_t id, unsigned segments)
{
    std::vector<rte_mbuf *> in{pair.message(n, id, segments)};
    const Meta meta{uint64_t{0x1122334455667788} + id, id & 0x3f, 0};
    ASSERT_EQ(pair.send(in, &meta), 1) << "length " << n;
    pair.finish_copies();
    Meta back[2];
    auto out = pair.receive(2, back);
    ASSERT_EQ(out.size(), 1u) << "length " << n;
    EXPECT_TRUE(Pair::matches(out[0], n, id)) << "length " << n;
    EXPECT_EQ(back[0].data, meta.data);
    EXPECT_EQ(back[0].flags, meta.flags);
    rte_pktmbuf_free(out[0]);
    EXPECT_EQ(rte_mempool_in_use_count(pair.sent_pool), 0u) << "length " << n;
}

TEST_P(ByEngineBurst, SizesAroundTheBoundsArriveByTheirPath)
{
    LateEngine engine;
    Pair pair(ops(), with(engine));
    pair.receive(1);
    uint32_t by_engine = 0, id = 0;
    for (uint32_t n : {0u, 48u, 255u, 256u, 257u, 511u, 512u, 513u, 599u, 600u, 601u, 1023u, 1024u,
                       1025u, 1536u, 1537u, 2000u})
        for (unsigned segments : {1u, 2u, 3u, 7u}) {
            pass_one(pair, n, id++, segments);
            by_engine += n >= engine_min;
        }
    const TxStats stats = tx_stats(pair.tx_half);
    EXPECT_EQ(stats.messages, id);
    EXPECT_EQ(stats.dma_messages, by_engine);
    EXPECT_EQ(stats.inline_messages, 4u * 4);
    EXPECT_EQ(stats.cpu_messages, 5u * 4);
    EXPECT_EQ(stats.cpu_bytes, 4u * (257 + 511 + 512 + 513 + 599));
    EXPECT_EQ(stats.dma_bytes, 4u * (600 + 601 + 1023 + 1024 + 1025 + 1536 + 1537 + 2000));
    EXPECT_EQ(stats.unconfirmed, 0u);
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
    EXPECT_TRUE(pair.guards_intact());
}

TEST_P(ByEngineBurst, RandomTrafficWrapsRingAndStaging)
{
    LateEngine engine;
    Pair pair(ops(), with(engine));
    random_traffic(pair, 300, 6000, 1);
    EXPECT_GT(pair.tx_half->head, 4u * pair.options.ring_lines);
    EXPECT_GT(tx_stats(pair.tx_half).dma_messages, 2u * held_max);
    EXPECT_EQ(tx_stats(pair.tx_half).dma_errors, 0u);
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
    EXPECT_TRUE(pair.guards_intact());
    EXPECT_EQ(tx_stats(pair.tx_half).unconfirmed, 0u);
}

INSTANTIATE_TEST_SUITE_P(Variants, ByEngineBurst, testing::ValuesIn(all_ops), ops_name);

TEST_F(CopyEngine, WhatFitsInlineStaysInline)
{
    LateEngine engine;
    PairOptions options = with(engine);
    options.engine_min = 1;
    Pair pair(ops(), options);
    pair.receive(1);
    pass_one(pair, inline_max, 1, 1);
    EXPECT_EQ(engine.given(), 0u);
    pass_one(pair, inline_max + 1, 2, 1);
    EXPECT_EQ(engine.given(), 3u); // the data, the header's body, its word
}

TEST_F(CopyEngine, AnMbufIsHeldUntilItWasRead)
{
    LateEngine engine;
    Pair pair(ops(), with(engine));
    pair.receive(1);
    std::vector<rte_mbuf *> in{pair.message(1000, 1), pair.message(10, 2), pair.message(2000, 3)};
    ASSERT_EQ(pair.send(in), 3);
    EXPECT_EQ(engine.starts(), 1u); // once a burst
    EXPECT_EQ(held(pair), 2u);
    EXPECT_EQ(pair.tx(nullptr, nullptr, 0), 0);
    EXPECT_EQ(held(pair), 2u);
    // The line of message 2 is there, but that of message 1, before it, is not.
    EXPECT_TRUE(pair.receive(4).empty());
    pair.finish_copies();
    EXPECT_EQ(held(pair), 0u);
    EXPECT_EQ(engine.starts(), 1u);
    auto out = pair.receive(4);
    ASSERT_EQ(out.size(), 3u);
    EXPECT_TRUE(Pair::matches(out[0], 1000, 1));
    EXPECT_TRUE(Pair::matches(out[1], 10, 2));
    EXPECT_TRUE(Pair::matches(out[2], 2000, 3));
    rte_pktmbuf_free_bulk(out.data(), 3);
    expect_clean(pair);
}

TEST_F(CopyEngine, ASharedMbufGivesBackItsReference)
{
    LateEngine engine;
    Pair pair(ops(), with(engine));
    pair.receive(1);
    rte_mbuf *m = pair.message(1000, 1);
    rte_mbuf_refcnt_update(m, 1);
    ASSERT_EQ(pair.tx(&m, nullptr, 1), 1);
    EXPECT_EQ(rte_mbuf_refcnt_read(m), 2);
    pair.finish_copies();
    EXPECT_EQ(rte_mbuf_refcnt_read(m), 1);
    rte_pktmbuf_free(m);
    expect_clean(pair);
}

TEST_F(CopyEngine, WithoutRoomThereIsBackPressure)
{
    LateEngine engine(8);
    Pair pair(ops(), with(engine));
    pair.receive(1);
    std::vector<rte_mbuf *> in;
    for (uint32_t i = 0; i < 4; i++)
        in.push_back(pair.message(700, i)); // 4 copies each
    EXPECT_EQ(pair.send(in), 2);
    in.erase(in.begin(), in.begin() + 2);
    EXPECT_EQ(pair.send(in), 0);
    EXPECT_EQ(tx_stats(pair.tx_half).full, 2u);
    pair.finish_copies();
    EXPECT_EQ(pair.send(in), 2);
    pair.finish_copies();
    const auto out = pair.receive(8);
    ASSERT_EQ(out.size(), 4u);
    for (uint32_t i = 0; i < 4; i++) {
        EXPECT_TRUE(Pair::matches(out[i], 700, i));
        rte_pktmbuf_free(out[i]);
    }
    expect_clean(pair);
}

TEST_F(CopyEngine, NoMoreIsHeldThanThereIsStagingFor)
{
    LateEngine engine;
    PairOptions options = with(engine);
    options.ring_lines = 1024;
    options.buffer_ring_lines = 128;
    options.buffers = 700;
    options.buffers_target = 630;
    Pair pair(ops(), options);
    pair.receive(1);
    std::vector<rte_mbuf *> in;
    for (uint32_t i = 0; i < held_max + 1; i++)
        in.push_back(pair.message(engine_min, i));
    ASSERT_EQ(pair.send(in), static_cast<int>(held_max));
    pair.finish_copies();
    EXPECT_EQ(pair.tx(&in[held_max], nullptr, 1), 1);
    pair.finish_copies();
    auto out = pair.receive(held_max + 2);
    ASSERT_EQ(out.size(), held_max + 1);
    for (uint32_t i = 0; i <= held_max; i++) {
        EXPECT_TRUE(Pair::matches(out[i], engine_min, i));
        rte_pktmbuf_free(out[i]);
    }
    expect_clean(pair);
}

TEST_F(CopyEngine, WhatTheEngineCannotDoTheCpuDoes)
{
    LateEngine engine(8);
    Pair pair(ops(), with(engine));
    pair.receive(1);
    pass_one(pair, 5 * 512, 1, 2); // 5 buffers, 2 segments: 8 copies at most
    EXPECT_EQ(tx_stats(pair.tx_half).dma_messages, 1u);
    pass_one(pair, 5 * 512, 2, 3);
    EXPECT_EQ(tx_stats(pair.tx_half).dma_messages, 1u);

    // Data that an application attached: the engine does not know of it.
    alignas(64) static std::byte data[1000];
    static rte_mbuf_ext_shared_info info{};
    info.free_cb = [](void *, void *) {};
    rte_mbuf_ext_refcnt_set(&info, 1);
    rte_mbuf *m = rte_pktmbuf_alloc(pair.sent_pool);
    rte_pktmbuf_attach_extbuf(m, data, RTE_BAD_IOVA, sizeof(data), &info);
    m->pkt_len = m->data_len = sizeof(data);
    for (uint32_t i = 0; i < sizeof(data); i++)
        data[i] = pattern(9, i);
    ASSERT_EQ(pair.tx(&m, nullptr, 1), 1);
    const auto out = pair.receive(2);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_TRUE(Pair::matches(out[0], sizeof(data), 9));
    rte_pktmbuf_free(out[0]);
    EXPECT_EQ(tx_stats(pair.tx_half).dma_messages, 1u);

    // Buffers without an IOVA, or with one that is too long for the chip.
    for (const uint64_t iova : {RTE_BAD_IOVA, RTE_BAD_IOVA + 256, uint64_t{0}, uint64_t{1} << 48}) {
        m = pair.message(800, 3);
        const rte_iova_t own = rte_mbuf_iova_get(m);
        rte_mbuf_iova_set(m, iova);
        rte_mbuf_refcnt_update(m, 1);
        ASSERT_EQ(pair.tx(&m, nullptr, 1), 1);
        rte_mbuf_iova_set(m, own);
        rte_pktmbuf_free(m);
        for (rte_mbuf *got : pair.receive(2))
            rte_pktmbuf_free(got);
    }
    EXPECT_EQ(tx_stats(pair.tx_half).dma_messages, 1u);
    expect_clean(pair);
}

TEST_F(CopyEngine, MemoryThatIsNotEalsGoesByTheCpu)
{
    LateEngine engine;
    Pair pair(ops(), with(engine));
    pair.receive(1);
    // Anonymous memory: its buffers have IOVAs that look like any other.
    rte_mempool *pool =
        rte_mempool_create_empty("anonymous", 15, sizeof(rte_mbuf) + 2048 + 128, 0,
                                 sizeof(rte_pktmbuf_pool_private), SOCKET_ID_ANY, 0);
    ASSERT_NE(pool, nullptr);
    rte_pktmbuf_pool_init(pool, nullptr);
    ASSERT_GT(rte_mempool_populate_anon(pool), 0);
    rte_mempool_obj_iter(pool, rte_pktmbuf_init, nullptr);
    rte_mbuf *m = rte_pktmbuf_alloc(pool);
    ASSERT_GT(rte_mbuf_iova_get(m), 1u << 20);
    rte_pktmbuf_append(m, 1000);
    rte_mbuf *clone = rte_pktmbuf_clone(m, pair.sent_pool); // its header is EAL's, its data are not
    rte_mbuf *chained = pair.message(900, 1);
    rte_mbuf *tail = rte_pktmbuf_alloc(pool);
    rte_pktmbuf_append(tail, 100);
    rte_pktmbuf_chain(chained, tail);
    rte_mbuf *mbufs[] = {m, clone, chained, pair.message(1000, 2)};
    ASSERT_EQ(pair.tx(mbufs, nullptr, 4), 4);
    EXPECT_EQ(tx_stats(pair.tx_half).cpu_messages, 3u);
    EXPECT_EQ(tx_stats(pair.tx_half).dma_messages, 1u);
    pair.finish_copies();
    for (rte_mbuf *got : pair.receive(8))
        rte_pktmbuf_free(got);
    EXPECT_EQ(rte_mempool_in_use_count(pool), 0u);
    rte_mempool_free(pool);
    expect_clean(pair);
}

TEST_F(CopyEngine, AClonesDataAreRead)
{
    LateEngine engine;
    Pair pair(ops(), with(engine));
    pair.receive(1);
    rte_mbuf *m = pair.message(1000, 1);
    rte_mbuf *clone = rte_pktmbuf_clone(m, pair.sent_pool);
    rte_pktmbuf_free(m); // the clone keeps the data
    ASSERT_EQ(pair.tx(&clone, nullptr, 1), 1);
    EXPECT_EQ(tx_stats(pair.tx_half).dma_messages, 1u);
    EXPECT_EQ(held(pair), 2u);
    pair.finish_copies();
    EXPECT_EQ(held(pair), 0u);
    const auto out = pair.receive(1);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_TRUE(Pair::matches(out[0], 1000, 1));
    rte_pktmbuf_free(out[0]);
    expect_clean(pair);
}

TEST_F(CopyEngine, WhatThePeerSentGoesBackFromWhereItLies)
{
    LateEngine engine;
    Pair pair(ops(), with(engine));
    pair.receive(1);
    std::vector<rte_mbuf *> in{pair.message(1200, 1)};
    ASSERT_EQ(pair.send(in), 1);
    pair.finish_copies();
    auto out = pair.receive(1); // a chain of receive buffers
    ASSERT_EQ(out.size(), 1u);
    ASSERT_EQ(out[0]->nb_segs, 3);
    ASSERT_EQ(pair.send(out), 1);
    EXPECT_EQ(tx_stats(pair.tx_half).dma_messages, 2u);
    pair.finish_copies();
    out = pair.receive(1);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_TRUE(Pair::matches(out[0], 1200, 1));
    rte_pktmbuf_free(out[0]);
    expect_clean(pair);
}

TEST_F(CopyEngine, BadMessagesAreRefusedAsWithoutOne)
{
    LateEngine engine;
    Pair pair(ops(), with(engine));
    pair.receive(1);
    rte_mbuf *long_one = pair.message(20001, 1, 11);
    EXPECT_EQ(pair.tx(&long_one, nullptr, 1), -EMSGSIZE);
    rte_mbuf *broken = pair.message(1000, 2);
    broken->pkt_len = 1001;
    rte_mbuf *mbufs[] = {pair.message(800, 3), broken};
    EXPECT_EQ(pair.tx(mbufs, nullptr, 2), 1);
    EXPECT_EQ(pair.tx(&broken, nullptr, 1), -EINVAL);
    rte_mbuf *none = nullptr;
    EXPECT_EQ(pair.tx(&none, nullptr, 1), -EINVAL);
    EXPECT_EQ(tx_stats(pair.tx_half).errors, 4u);
    broken->pkt_len = 1000;
    rte_pktmbuf_free(broken);
    rte_pktmbuf_free(long_one);
    expect_clean(pair);
}

TEST_F(CopyEngine, AFailureStopsTheQueueAndEverythingComesBack)
{
    LateEngine engine;
    Pair pair(ops(), with(engine));
    pair.receive(1);
    std::vector<rte_mbuf *> in;
    for (uint32_t i = 0; i < 6; i++)
        in.push_back(pair.message(900, i));
    ASSERT_EQ(pair.send(in), 6);
    engine.fail_at(5); // the first copy of message 1; each has 4
    engine.finish();
    rte_mbuf *next = pair.message(20, 6);
    EXPECT_EQ(pair.tx(&next, nullptr, 1), -EPROTO);
    EXPECT_EQ(pair.tx(&next, nullptr, 1), -EPROTO);
    EXPECT_EQ(tx_stats(pair.tx_half).dma_errors, 1u);
    EXPECT_EQ(held(pair), 6u); // five of them, and the one that was not taken
    const auto out = pair.receive(8);
    ASSERT_EQ(out.size(), 1u);
    EXPECT_TRUE(Pair::matches(out[0], 900, 0));
    rte_pktmbuf_free(out[0]);
    rte_pktmbuf_free(next);
    pair.receive(1); // credits
    expect_clean(pair);
    EXPECT_EQ(tx_stats(pair.tx_half).unconfirmed, 5u);
}

TEST_F(CopyEngine, AFailureIsCountedOnceByBurstsOfAFlow)
{
    LateEngine engine;
    Pair pair(ops(), with(engine));
    pair.receive(1);
    std::vector<rte_mbuf *> in;
    for (uint32_t i = 0; i < 6; i++)
        in.push_back(pair.message(900, i));
    ASSERT_EQ(pair.send(in), 6);
    engine.fail_at(5);
    engine.finish();
    rte_mbuf *next[2] = {pair.message(20, 6), pair.message(20, 7)};
    TxFlow flow{{}, 1000, 0, 9};
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(ops().tx_flow_engine(pair.tx_half, next, flow, 2), -EPROTO);
    EXPECT_EQ(flow.bytes, 0u);
    EXPECT_EQ(tx_stats(pair.tx_half).dma_errors, 1u);
    const auto out = pair.receive(8);
    ASSERT_EQ(out.size(), 1u);
    rte_pktmbuf_free(out[0]);
    for (rte_mbuf *one : next)
        rte_pktmbuf_free(one);
    pair.receive(1); // credits
    expect_clean(pair);
}

TEST_F(CopyEngine, AFailureThatNoBurstHasSeenIsCountedAtTheEnd)
{
    LateEngine engine;
    Pair pair(ops(), with(engine));
    pair.receive(1);
    std::vector<rte_mbuf *> in{pair.message(900, 1)};
    ASSERT_EQ(pair.send(in), 1);
    engine.fail_at(0);
    engine.finish();
    engine.halts_late(1);
    EXPECT_FALSE(tx_close(pair.tx_half));
    EXPECT_TRUE(tx_close(pair.tx_half));
    EXPECT_EQ(tx_stats(pair.tx_half).dma_errors, 1u);
    EXPECT_EQ(held(pair), 0u);
}

TEST_F(CopyEngine, ClosingWaitsForTheEngineAndFreesWhatItHeld)
{
    LateEngine engine;
    Pair pair(ops(), with(engine));
    pair.receive(1);
    std::vector<rte_mbuf *> in{pair.message(900, 1), pair.message(901, 2)};
    ASSERT_EQ(pair.send(in), 2);
    engine.step(40); // in the middle of something
    engine.halts_late(3);
    for (int i = 0; i < 3; i++) {
        EXPECT_FALSE(tx_close(pair.tx_half));
        EXPECT_EQ(held(pair), 2u);
    }
    EXPECT_TRUE(tx_close(pair.tx_half));
    EXPECT_EQ(held(pair), 0u);
    EXPECT_EQ(tx_stats(pair.tx_half).unconfirmed, 2u);
    EXPECT_TRUE(tx_close(pair.tx_half));
    expect_clean(pair);
}

TEST_F(CopyEngine, ALinkLossInMidTransferLeavesNothingBehind)
{
    LateEngine engine;
    Pair pair(ops(), with(engine));
    for (unsigned round = 0; round < 200; round++) {
        pair.receive(1);
        std::vector<rte_mbuf *> in;
        for (uint32_t i = 0; i < 4; i++)
            in.push_back(pair.message(500 + 300 * i, round * 10 + i, 1 + i % 2));
        ASSERT_EQ(pair.send(in), 4);
        engine.step(round * 7 % 900);
        ASSERT_GE(pair.tx(nullptr, nullptr, 0), 0);
        for (rte_mbuf *m : pair.receive(2)) {
            EXPECT_TRUE(Pair::matches(m, m->pkt_len, round * 10 + (m->pkt_len - 500) / 300));
            rte_pktmbuf_free(m);
        }
        pair.reopen(round + 10);
        ASSERT_TRUE(pair.nothing_leaked()) << round;
    }
    expect_clean(pair);
}

TEST_F(CopyEngine, JunkAmongReceiveBuffersIsFoundBeforeAnyIsUsed)
{
    LateEngine engine;
    Pair pair(ops(), with(engine));
    pair.receive(1);
    // 14 good buffers, then one outside the block: found before any of the message is given.
    const uint32_t outside = pair.tx_setup.peer_buf_end;
    std::memcpy(pair.tx_half->buffer_ring.line(1) + 8 + 4, &outside, sizeof(outside));
    rte_mbuf *m = pair.message(16 * 512, 1, 5);
    EXPECT_EQ(pair.tx(&m, nullptr, 1), -EPROTO);
    EXPECT_EQ(tx_stats(pair.tx_half).bad_peer, 1u);
    EXPECT_EQ(engine.given(), 0u);
    EXPECT_EQ(tx_stats(pair.tx_half).messages, 0u);
    rte_pktmbuf_free(m);
    EXPECT_EQ(held(pair), 0u);
    rte_mbuf *next = pair.message(20, 2);
    EXPECT_EQ(pair.tx(&next, nullptr, 1), -EPROTO);
    rte_pktmbuf_free(next);
    engine.finish();
    expect_clean(pair);
    EXPECT_EQ(tx_stats(pair.tx_half).unconfirmed, 0u);
}

TEST_F(CopyEngine, ASetupThatIsNotWholeIsRefused)
{
    LateEngine engine;
    Pair pair(ops(), with(engine));
    pair.close();
    TxSetup setup = pair.tx_setup;
    setup.by_engine.staging = nullptr;
    EXPECT_EQ(tx_open(pair.tx_half, setup), -EINVAL);
    setup = pair.tx_setup;
    setup.by_engine.staging += 8;
    EXPECT_EQ(tx_open(pair.tx_half, setup), -EINVAL);
    setup = pair.tx_setup;
    setup.by_engine.engine.completed = nullptr;
    EXPECT_EQ(tx_open(pair.tx_half, setup), -EINVAL);
    engine.halts_late(1);
    EXPECT_EQ(tx_open(pair.tx_half, pair.tx_setup), -EIO);
    EXPECT_EQ(tx_open(pair.tx_half, pair.tx_setup), 0);
}

} // namespace

} // namespace test_queue
