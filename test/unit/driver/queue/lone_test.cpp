// SPDX-License-Identifier: BSD-3-Clause
// Messages in the ring that are sent and received alone, which have ways of their own by their
// number of lines.
#include <array>
#include <cerrno>
#include <cstring>

#include <gtest/gtest.h>

#include "every_ops.hpp"
#include "pair.hpp"

namespace test_queue
{

using namespace plx;
using namespace plx::queue;

namespace
{

/// The shortest and the longest message of one to six lines; those of six have no way of their own.
constexpr std::array<uint32_t, 12> lengths{0, 48, 49, 104, 105, 160, 161, 216, 217, 272, 273, 328};
static_assert(lengths[9] == longest_of(alike_lines_max));

class Lone : public OfOps
{
protected:
    static void send_one(Pair &pair, uint32_t n, uint32_t id)
    {
        rte_mbuf *m = pair.message(n, id);
        const Meta meta{uint64_t{0x0123456789abcdef} + id, id & 0x3f, 0};
        ASSERT_EQ(pair.tx(&m, &meta, 1), 1) << n;
    }
    /// @param most  messages asked for
    static void receive_one(Pair &pair, uint32_t n, uint32_t id, unsigned most)
    {
        Meta meta[4];
        auto out = pair.receive(most, meta);
        ASSERT_EQ(out.size(), 1u) << n;
        EXPECT_TRUE(Pair::matches(out[0], n, id)) << n;
        EXPECT_EQ(out[0]->nb_segs, 1) << n;
        EXPECT_EQ(rte_mbuf_refcnt_read(out[0]), 1) << n;
        EXPECT_EQ(meta[0].data, uint64_t{0x0123456789abcdef} + id) << n;
        EXPECT_EQ(meta[0].flags, id & 0x3f) << n;
        rte_pktmbuf_free(out[0]);
    }
};

TEST_P(Lone, AtEachPlaceBeforeTheEndOfTheRing)
{
    for (const uint32_t n : lengths) {
        Pair pair(ops(), {.ring_lines = 64});
        const uint32_t needs = wire::inline_lines(n);
        for (uint32_t left = 1; left <= 8; left++) {
            for (const unsigned most : {1u, 4u}) {
                while (pair.tx_half->ring.left(pair.tx_half->head) != left) {
                    send_one(pair, 8, left);
                    receive_one(pair, 8, left, 1);
                }
                const uint64_t head = pair.tx_half->head;
                send_one(pair, n, left);
                EXPECT_EQ(pair.tx_half->head, head + needs + (needs > left ? left : 0));
                receive_one(pair, n, left, most);
                EXPECT_TRUE(pair.receive(most).empty());
                EXPECT_EQ(pair.rx_half->tail, pair.tx_half->head);
            }
        }
        pair.close();
        EXPECT_TRUE(pair.nothing_leaked());
        EXPECT_TRUE(pair.guards_intact());
    }
}

TEST_P(Lone, NoneIsStoredBeyondTheRoomThatThePeerHasLeft)
{
    for (const uint32_t n : lengths) {
        Pair pair(ops(), {.ring_lines = 64});
        const uint32_t needs = wire::inline_lines(n);
        rte_mbuf *m = pair.message(n, 1);
        uint32_t sent = 0;
        for (; pair.tx(&m, nullptr, 1) == 1; m = pair.message(n, 1 + sent))
            sent++;
        EXPECT_EQ(sent, 64 / needs) << n;
        EXPECT_EQ(pair.tx(&m, nullptr, 1), 0) << n;
        for (uint32_t i = 0; i < sent; i++) {
            auto out = pair.receive(1);
            ASSERT_EQ(out.size(), 1u);
            EXPECT_TRUE(Pair::matches(out[0], n, 1 + i)) << n;
            rte_pktmbuf_free(out[0]);
        }
        EXPECT_TRUE(pair.receive(1).empty());
        ASSERT_EQ(pair.tx(&m, nullptr, 1), 1) << n;
        auto out = pair.receive(1);
        ASSERT_EQ(out.size(), 1u);
        EXPECT_TRUE(Pair::matches(out[0], n, 1 + sent)) << n;
        rte_pktmbuf_free(out[0]);
        pair.close();
        EXPECT_TRUE(pair.nothing_leaked());
        EXPECT_TRUE(pair.guards_intact());
    }
}

/// The short ways take an mbuf that is there already, and there are such again when all are used.
TEST_P(Lone, EachTakesASpareMbuf)
{
    for (const uint32_t n : lengths) {
        const bool is_short = n <= longest_of(alike_lines_max);
        Pair pair(ops(), {.ring_lines = 1024}); // none comes to its end
        pair.receive(1);                        // posts the buffers
        send_one(pair, 8, 0);
        receive_one(pair, 8, 0, 1);
        for (uint32_t id = 1; id < 3 * Rx::spares_max; id++) {
            const uint32_t before = rx_spares(pair.rx_half);
            send_one(pair, n, id);
            receive_one(pair, n, id, id % 2 == 0 ? 1 : 4);
            const uint32_t there = before == 0 && is_short ? Rx::spares_max : before;
            EXPECT_EQ(rx_spares(pair.rx_half), there - (is_short ? 1 : 0)) << n;
        }
        pair.close();
        EXPECT_TRUE(pair.nothing_leaked());
    }
}

/// What is polled once for each message, and finds it, has long ones next.
TEST_P(Lone, BuffersAreReplacedBehindOneOfSeveralLines)
{
    for (const uint32_t n : lengths) {
        if (wire::inline_lines(n) <= 2)
            continue; // their ways leave it to the next poll
        Pair pair(ops());
        send_one(pair, n, 1);
        receive_one(pair, n, 1, 1);
        send_one(pair, 2000, 2);
        auto out = pair.receive(1);
        ASSERT_EQ(out.size(), 1u);
        EXPECT_TRUE(Pair::matches(out[0], 2000, 2));
        rte_pktmbuf_free(out[0]);
        pair.close();
        EXPECT_TRUE(pair.nothing_leaked());
    }
}

TEST_P(Lone, WithAnotherBehindItBothAreReceived)
{
    for (const uint32_t n : lengths) {
        Pair pair(ops());
        for (uint32_t id = 0; id < 3; id++)
            send_one(pair, n, id);
        receive_one(pair, n, 0, 1);
        auto out = pair.receive(4);
        ASSERT_EQ(out.size(), 2u) << n;
        for (uint32_t i = 0; i < 2; i++)
            EXPECT_TRUE(Pair::matches(out[i], n, 1 + i)) << n;
        rte_pktmbuf_free_bulk(out.data(), 2);
        pair.close();
        EXPECT_TRUE(pair.nothing_leaked());
    }
}

/// Whichever line is missing: a peer may show the first one before the others.
TEST_P(Lone, NothingIsTakenUntilAllLinesAreThere)
{
    for (const uint32_t n : lengths)
        for (uint32_t missing = 1; missing < wire::inline_lines(n); missing++) {
            Pair pair(ops());
            send_one(pair, 8, 0);
            receive_one(pair, 8, 0, 1);
            send_one(pair, n, 1);
            std::byte *const line = pair.rx_half->ring.line(pair.rx_half->tail + missing);
            uint64_t word;
            std::memcpy(&word, line, sizeof(word));
            std::memset(line, 0, sizeof(word));
            for (const unsigned most : {1u, 4u})
                EXPECT_TRUE(pair.receive(most).empty()) << n << " without line " << missing;
            std::memcpy(line, &word, sizeof(word));
            receive_one(pair, n, 1, 4);
            pair.close();
            EXPECT_TRUE(pair.nothing_leaked());
        }
}

TEST_P(Lone, ALineThatSaysMoreThanItsTagIsTheEnd)
{
    for (const uint32_t n : lengths)
        for (uint32_t wrong = 1; wrong < wire::inline_lines(n); wrong++)
            for (const unsigned most : {1u, 4u}) {
                Pair pair(ops());
                send_one(pair, 8, 0);
                receive_one(pair, 8, 0, 1);
                send_one(pair, n, 1);
                std::byte *const line = pair.rx_half->ring.line(pair.rx_half->tail + wrong);
                line[wire::cont_payload_offset - 1] = std::byte{1};
                rte_mbuf *out[4];
                EXPECT_EQ(pair.rx(out, nullptr, most), -EPROTO) << n << ", line " << wrong;
                pair.close();
                EXPECT_TRUE(pair.nothing_leaked());
            }
}

INSTANTIATE_TEST_SUITE_P(Variants, Lone, testing::ValuesIn(all_ops), ops_name);

} // namespace

} // namespace test_queue
