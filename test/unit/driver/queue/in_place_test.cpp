// SPDX-License-Identifier: BSD-3-Clause
// Messages that the caller builds in receive buffers of the peer.
#include <cerrno>
#include <cstring>
#include <deque>
#include <random>

#include <gtest/gtest.h>

#include "every_ops.hpp"
#include "pair.hpp"
#include "queue/state.hpp"

namespace test_queue
{

using namespace plx;
using namespace plx::queue;

namespace
{

class InPlace : public OfOps
{
protected:
    /// Receives one message and compares it.
    static void expect_next(Pair &pair, uint32_t n, uint32_t id)
    {
        auto out = pair.receive(1);
        ASSERT_EQ(out.size(), 1u) << "message " << id;
        EXPECT_TRUE(Pair::matches(out[0], n, id)) << "message " << id;
        rte_pktmbuf_free(out[0]);
    }
    static void send_one(Pair &pair, uint32_t n, uint32_t id)
    {
        std::vector<rte_mbuf *> in{pair.message(n, id)};
        ASSERT_EQ(pair.send(in), 1) << "message " << id;
    }
    static void expect_clean(Pair &pair)
    {
        pair.close();
        EXPECT_TRUE(pair.nothing_leaked());
        EXPECT_TRUE(pair.guards_intact());
    }
};

TEST_P(InPlace, ArrivesAsItWasBuilt)
{
    Pair pair(ops());
    pair.receive(1); // makes buffers available
    for (const uint32_t n : {1u, 47u, 49u, 300u, 511u, 512u}) {
        const auto rooms = pair.reserve(1);
        ASSERT_EQ(rooms.size(), 1u);
        EXPECT_EQ(rooms[0].bytes, 512u);
        Pair::build(rooms.data(), n, n);
        const Meta meta{n, 5, 0};
        ASSERT_EQ(pair.commit({n}, &meta), 1);
        Meta got[1];
        auto out = pair.receive(1, got);
        ASSERT_EQ(out.size(), 1u);
        EXPECT_TRUE(Pair::matches(out[0], n, n));
        EXPECT_EQ(out[0]->pool, pair.window_pool);
        EXPECT_EQ(got[0].data, n);
        EXPECT_EQ(got[0].flags, 5u);
        rte_pktmbuf_free(out[0]);
    }
    expect_clean(pair);
}

TEST_P(InPlace, IsCountedAsABurstIs)
{
    Pair pair(ops());
    pair.receive(1);
    const auto rooms = pair.reserve(3);
    ASSERT_EQ(rooms.size(), 3u);
    EXPECT_EQ(tx_published(pair.tx_half), 0u);
    ASSERT_EQ(pair.commit({100, 512, 200}), 3);
    const TxStats stats = tx_stats(pair.tx_half);
    EXPECT_EQ(stats.messages, 3u);
    EXPECT_EQ(stats.bytes, 812u);
    EXPECT_EQ(stats.cpu_messages, 3u);
    EXPECT_EQ(stats.cpu_bytes, 812u);
    EXPECT_EQ(stats.inline_messages, 0u);
    EXPECT_EQ(tx_published(pair.tx_half), 3u);
    EXPECT_EQ(tx_unconfirmed(pair.tx_half), 3u);
    for (rte_mbuf *m : pair.receive(4))
        rte_pktmbuf_free(m);
    pair.receive(1); // returns the credits
    EXPECT_EQ(tx_unconfirmed(pair.tx_half), 0u);
    expect_clean(pair);
}

TEST_P(InPlace, AMessageTakesAsManyBuffersAsItNeeds)
{
    Pair pair(ops());
    pair.receive(1);
    auto rooms = pair.reserve(7);
    ASSERT_EQ(rooms.size(), 7u);
    Pair::build(&rooms[0], 1200, 1); // three buffers
    Pair::build(&rooms[3], 20, 2);   // one
    Pair::build(&rooms[4], 1024, 3); // two; the last is given back
    ASSERT_EQ(pair.commit({1200, 20, 1024}), 3);
    EXPECT_EQ(tx_aside(pair.tx_half), 1u);
    tx_abort(pair.tx_half);
    send_one(pair, 1100, 4);
    for (const auto &[n, id] : {std::pair{1200u, 1u}, {20u, 2u}, {1024u, 3u}, {1100u, 4u}})
        expect_next(pair, n, id);
    expect_clean(pair);
}

TEST_P(InPlace, TheOrderIsThatOfTheCalls)
{
    Pair pair(ops());
    pair.receive(1);
    auto rooms = pair.reserve(3);
    ASSERT_EQ(rooms.size(), 3u);
    send_one(pair, 40, 1);
    Pair::build(&rooms[0], 400, 2);
    ASSERT_EQ(pair.commit({400}), 1);
    send_one(pair, 700, 3); // inline too
    Pair::build(&rooms[1], 30, 4);
    Pair::build(&rooms[2], 500, 5);
    ASSERT_EQ(pair.commit({30, 500}), 2);
    send_one(pair, 1500, 6); // long: nothing is set aside any more
    for (const auto &[n, id] :
         {std::pair{40u, 1u}, {400u, 2u}, {700u, 3u}, {30u, 4u}, {500u, 5u}, {1500u, 6u}})
        expect_next(pair, n, id);
    expect_clean(pair);
}

TEST_P(InPlace, NoOtherLongMessageGoesMeanwhile)
{
    Pair pair(ops());
    pair.receive(1);
    ASSERT_EQ(pair.reserve(1).size(), 1u);
    std::vector<rte_mbuf *> in{pair.message(20, 1), pair.message(1500, 2), pair.message(20, 3)};
    EXPECT_EQ(pair.send(in), 1) << "up to the long one";
    int rc = 0;
    EXPECT_TRUE(pair.reserve(1, &rc).empty());
    EXPECT_EQ(rc, -EBUSY);
    tx_abort(pair.tx_half);
    EXPECT_EQ(pair.tx(in.data() + 1, nullptr, 2), 2);
    expect_next(pair, 20, 1);
    expect_next(pair, 1500, 2);
    expect_next(pair, 20, 3);
    expect_clean(pair);
}

TEST_P(InPlace, WithoutReceiveBuffersThereIsNone)
{
    Pair pair(ops());
    int rc = -1;
    EXPECT_TRUE(pair.reserve(1, &rc).empty()) << "the peer has not polled";
    EXPECT_EQ(rc, 0);
    EXPECT_EQ(tx_stats(pair.tx_half).full, 1u);
    pair.receive(1);
    const auto rooms = pair.reserve(1000);
    EXPECT_EQ(rooms.size(), 56u) << "all that are available";
    EXPECT_EQ(pair.reserve(0).size(), 0u);
    expect_clean(pair);
}

TEST_P(InPlace, ACommitFindsRoomInAFullRing)
{
    Pair pair(ops());
    pair.receive(1);
    send_one(pair, 10, 0); // which has seen more room than is left behind the next call
    const auto rooms = pair.reserve(5);
    ASSERT_EQ(rooms.size(), 5u);
    uint32_t sent = 1;
    for (rte_mbuf *m = pair.message(10, sent);; m = pair.message(10, sent)) {
        if (pair.tx(&m, nullptr, 1) != 1) {
            rte_pktmbuf_free(m);
            break;
        }
        sent++;
    }
    EXPECT_EQ(sent, pair.options.ring_lines - 5);
    for (uint32_t i = 0; i < 4; i++)
        Pair::build(&rooms[i], 100, sent + i);
    ASSERT_EQ(pair.commit({100, 100, 100, 100}), 4);
    tx_abort(pair.tx_half);
    send_one(pair, 10, sent + 4);
    rte_mbuf *more = pair.message(10, 0);
    EXPECT_EQ(pair.tx(&more, nullptr, 1), 0);
    int rc = -1;
    EXPECT_TRUE(pair.reserve(1, &rc).empty());
    EXPECT_EQ(rc, 0);
    for (uint32_t i = 0; i < sent + 5; i++)
        expect_next(pair, i < sent || i == sent + 4 ? 10 : 100, i);
    pair.receive(1);
    EXPECT_EQ(pair.tx(&more, nullptr, 1), 1) << "all lines came back";
    expect_next(pair, 10, 0);
    expect_clean(pair);
}

TEST_P(InPlace, CreditsReturnWhileSomeIsSetAside)
{
    Pair pair(ops());
    pair.receive(1);
    const auto rooms = pair.reserve(2);
    ASSERT_EQ(rooms.size(), 2u);
    for (uint32_t i = 0; i < 3 * pair.options.ring_lines; i++) {
        send_one(pair, 10, i);
        expect_next(pair, 10, i);
    }
    Pair::build(rooms.data(), 600, 1);
    ASSERT_EQ(pair.commit({600}), 1);
    expect_next(pair, 600, 1);
    expect_clean(pair);
}

TEST_P(InPlace, WhatDoesNotFitIsRefusedAndTheRestRemains)
{
    PairOptions options;
    options.max_message = 1500;
    Pair pair(ops(), options);
    pair.receive(1);
    EXPECT_EQ(pair.commit({10}), -EINVAL) << "nothing is set aside";
    const auto rooms = pair.reserve(4);
    ASSERT_EQ(rooms.size(), 4u);
    EXPECT_EQ(pair.commit({0}), -EINVAL);
    EXPECT_EQ(pair.commit({1501}), -EMSGSIZE);
    EXPECT_EQ(pair.commit({1100, 513}), -EINVAL) << "five buffers";
    EXPECT_EQ(pair.commit({1, 1, 1, 1, 1}), -EINVAL);
    EXPECT_EQ(pair.commit({}), 0);
    EXPECT_EQ(tx_aside(pair.tx_half), 4u);
    EXPECT_EQ(tx_stats(pair.tx_half).messages, 0u);
    EXPECT_TRUE(pair.receive(1).empty());
    Pair::build(rooms.data(), 1500, 3);
    EXPECT_EQ(pair.commit({1500}), 1);
    EXPECT_EQ(pair.commit({1, 1}), -EINVAL) << "one is left";
    expect_next(pair, 1500, 3);
    expect_clean(pair);
}

TEST_P(InPlace, ARoomIsNotLongerThanTheLongestMessage)
{
    PairOptions options;
    options.max_message = 100;
    Pair pair(ops(), options);
    pair.receive(1);
    const auto rooms = pair.reserve(1);
    ASSERT_EQ(rooms.size(), 1u);
    EXPECT_EQ(rooms[0].bytes, 100u);
    expect_clean(pair);
}

TEST_P(InPlace, EndsWithTheConnection)
{
    Pair pair(ops());
    pair.receive(1);
    ASSERT_EQ(pair.reserve(3).size(), 3u);
    pair.close();
    EXPECT_EQ(pair.commit({10}), -ECONNRESET);
    pair.reopen(99);
    EXPECT_EQ(tx_aside(pair.tx_half), 0u);
    pair.receive(1);
    const auto rooms = pair.reserve(1);
    ASSERT_EQ(rooms.size(), 1u);
    Pair::build(rooms.data(), 512, 1);
    EXPECT_EQ(pair.commit({512}), 1);
    expect_next(pair, 512, 1);
    expect_clean(pair);
}

TEST_P(InPlace, InvalidBuffersOfAPeerAreRefused)
{
    for (const uint32_t at : {0u, 1u << 20, UINT32_MAX}) {
        Pair pair(ops());
        pair.receive(1);
        // The second buffer of the first line.
        auto *line = const_cast<std::byte *>(pair.tx_setup.buffer_ring);
        std::memcpy(line + 8 + 4, &at, sizeof(at));
        send_one(pair, 10, 0);
        int rc = 0;
        EXPECT_TRUE(pair.reserve(1, &rc).empty());
        EXPECT_EQ(rc, -EPROTO);
        EXPECT_EQ(tx_stats(pair.tx_half).bad_peer, 1u);
        EXPECT_EQ(tx_aside(pair.tx_half), 0u);
        EXPECT_EQ(pair.commit({1}), -EPROTO);
        rte_mbuf *m = pair.message(10, 1);
        EXPECT_EQ(pair.tx(&m, nullptr, 1), -EPROTO) << "there is room for it";
        rte_pktmbuf_free(m);
        expect_next(pair, 10, 0);
        expect_clean(pair);
    }
}

TEST_P(InPlace, InvalidCreditsOfAPeerAreRefused)
{
    Pair pair(ops());
    pair.receive(1);
    ASSERT_EQ(pair.reserve(2).size(), 2u);
    const uint64_t word = uint64_t{pair.tx_setup.back_base} | uint64_t{1} << 32; // nothing was sent
    std::memcpy(const_cast<std::byte *>(pair.tx_setup.credit), &word, sizeof(word));
    uint32_t sent = 0;
    int rc = 1;
    while (rc == 1) {
        rte_mbuf *m = pair.message(10, sent);
        rc = pair.tx(&m, nullptr, 1);
        if (rc != 1)
            rte_pktmbuf_free(m);
        sent += rc == 1;
    }
    // One line that was sent was confirmed by then: a count that is right by luck.
    EXPECT_EQ(rc, 0);
    const uint64_t beyond = uint64_t{pair.tx_setup.back_base} | uint64_t{sent + 1} << 32;
    std::memcpy(const_cast<std::byte *>(pair.tx_setup.credit), &beyond, sizeof(beyond));
    rte_mbuf *m = pair.message(10, sent);
    EXPECT_EQ(pair.tx(&m, nullptr, 1), -EPROTO);
    rte_pktmbuf_free(m);
    EXPECT_EQ(pair.commit({1}), -EPROTO);
}

/// What one direction of random traffic does, sender ahead of receiver.
struct Sender {
    Pair &pair;
    std::mt19937 random{11};
    std::deque<std::pair<uint32_t, uint32_t>> flying;
    std::vector<Room> rooms; ///< set aside
    size_t used = 0;
    uint32_t id = 0;

    void burst()
    {
        const uint32_t n = static_cast<uint32_t>(random() % (rooms.empty() ? 1600 : 900));
        rte_mbuf *m = pair.message(n, id);
        if (pair.tx(&m, nullptr, 1) == 1)
            flying.emplace_back(n, id++);
        else
            rte_pktmbuf_free(m);
    }
    void build()
    {
        if (rooms.empty()) {
            rooms = pair.reserve(1 + static_cast<unsigned>(random() % 9));
            used = 0;
        }
        if (rooms.empty())
            return;
        const auto left = static_cast<uint32_t>(rooms.size() - used);
        const uint32_t n = 1 + static_cast<uint32_t>(random() % (left * rooms[0].bytes));
        Pair::build(&rooms[used], n, id);
        ASSERT_EQ(pair.commit({n}), 1);
        flying.emplace_back(n, id++);
        used += (n + rooms[0].bytes - 1) / rooms[0].bytes;
        if (used == rooms.size() || random() % 4 == 0)
            end();
    }
    void end()
    {
        tx_abort(pair.tx_half);
        rooms.clear();
    }
};

TEST_P(InPlace, AnyMixArrivesInOrder)
{
    PairOptions options;
    options.ring_lines = 64;
    options.start = uint64_t{1} << 32;
    options.start -= 640; // counts wrap
    Pair pair(ops(), options);
    pair.receive(1);
    Sender sender{.pair = pair, .flying = {}, .rooms = {}};
    for (unsigned round = 0; round < 20000; round++) {
        if (sender.random() % 2 == 0)
            sender.burst();
        else
            sender.build();
        if (sender.random() % 3 != 0)
            continue;
        for (rte_mbuf *m : pair.receive(1 + static_cast<unsigned>(sender.random() % 8))) {
            ASSERT_FALSE(sender.flying.empty());
            const auto [n, id] = sender.flying.front();
            ASSERT_TRUE(Pair::matches(m, n, id)) << "message " << id;
            sender.flying.pop_front();
            rte_pktmbuf_free(m);
        }
    }
    EXPECT_GT(sender.id, 5000u);
    expect_clean(pair);
}

INSTANTIATE_TEST_SUITE_P(EveryOps, InPlace, testing::ValuesIn(all_ops), ops_name);

} // namespace

} // namespace test_queue
