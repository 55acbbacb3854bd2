// SPDX-License-Identifier: BSD-3-Clause
// Bursts of messages of one length, which both ends handle without a look at each field, and what
// may be odd in the midst of them.
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "every_ops.hpp"
#include "pair.hpp"

namespace test_queue
{

using namespace plx;
using namespace plx::queue;

namespace
{

constexpr uint32_t lengths[] = {0,   1,   15,  47,  48,  49,  52,  63,  64,  65,
                                79,  80,  81,  103, 104, 105, 119, 120, 121, 135,
                                136, 137, 160, 161, 216, 217, 256, 272, 273, 1024};

class AlikeBurst : public OfOps
{
protected:
    static std::vector<rte_mbuf *> burst(Pair &pair, unsigned count, uint32_t length, uint32_t id)
    {
        std::vector<rte_mbuf *> in;
        for (unsigned i = 0; i < count; i++)
            in.push_back(pair.message(length, id + i));
        return in;
    }
    static void expect_all(Pair &pair, unsigned count, uint32_t length, uint32_t id)
    {
        unsigned got = 0;
        for (unsigned looks = 0; got < count && looks < count; looks++)
            for (rte_mbuf *m : pair.receive(count - got)) {
                EXPECT_TRUE(Pair::matches(m, length, id + got)) << length << ", message " << got;
                rte_pktmbuf_free(m);
                got++;
            }
        EXPECT_EQ(got, count) << "of length " << length;
    }
};

TEST_P(AlikeBurst, ArrivesWhereverItEnds)
{
    Pair pair(ops());
    pair.receive(1);
    for (const uint32_t length : lengths)
        for (unsigned count = 1; count <= 40; count++) {
            if (count * wire::inline_lines(length) > pair.options.ring_lines / 2)
                break;
            std::vector<rte_mbuf *> in = burst(pair, count, length, count);
            ASSERT_EQ(pair.send(in), static_cast<int>(count)) << "length " << length;
            expect_all(pair, count, length, count);
        }
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
    EXPECT_TRUE(pair.guards_intact());
}

TEST_P(AlikeBurst, IsTakenInParts)
{
    Pair pair(ops());
    pair.receive(1);
    for (const uint32_t length : {8u, 64u, 150u, 200u, 256u})
        for (const unsigned part : {1u, 2u, 3u, 7u, 31u}) {
            std::vector<rte_mbuf *> in = burst(pair, 32, length, part);
            ASSERT_EQ(pair.send(in), 32);
            unsigned got = 0;
            while (got < 32) {
                const std::vector<rte_mbuf *> some = pair.receive(std::min(part, 32 - got));
                ASSERT_FALSE(some.empty());
                for (rte_mbuf *m : some) {
                    EXPECT_TRUE(Pair::matches(m, length, part + got++));
                    rte_pktmbuf_free(m);
                }
            }
        }
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(AlikeBurst, MetadataAndFlagsAreEachMessagesOwn)
{
    Pair pair(ops());
    pair.receive(1);
    for (const uint32_t length : {20u, 64u, 200u}) {
        std::vector<rte_mbuf *> in = burst(pair, 16, length, 1);
        std::vector<Meta> meta, back(16);
        for (uint32_t i = 0; i < 16; i++)
            meta.push_back({uint64_t{i} << 40, i < 8 ? 5 : i, 0});
        ASSERT_EQ(pair.send(in, meta.data()), 16);
        const std::vector<rte_mbuf *> out = pair.receive(16, back.data());
        ASSERT_EQ(out.size(), 16u);
        for (uint32_t i = 0; i < 16; i++) {
            EXPECT_TRUE(Pair::matches(out[i], length, 1 + i));
            EXPECT_EQ(back[i].data, meta[i].data);
            EXPECT_EQ(back[i].flags, meta[i].flags);
            rte_pktmbuf_free(out[i]);
        }
    }
}

// What makes one mbuf of a burst differ from the others: its bytes arrive, and it is given back as
// it has to be.
struct Odd {
    const char *name;
    rte_mbuf *(*make)(Pair &pair, uint32_t length, uint32_t id, std::vector<rte_mbuf *> &kept);
};

rte_mbuf *moved(Pair &pair, uint32_t length, uint32_t id, std::vector<rte_mbuf *> &)
{
    rte_mbuf *m = pair.message(length, id);
    std::memmove(rte_pktmbuf_mtod_offset(m, char *, 16), rte_pktmbuf_mtod(m, char *), length);
    std::memset(rte_pktmbuf_mtod(m, char *), 0xee, 16);
    m->data_off = static_cast<uint16_t>(m->data_off + 16);
    return m;
}

rte_mbuf *shared(Pair &pair, uint32_t length, uint32_t id, std::vector<rte_mbuf *> &kept)
{
    rte_mbuf *m = pair.message(length, id);
    rte_mbuf_refcnt_update(m, 1);
    kept.push_back(m);
    return m;
}

rte_mbuf *cloned(Pair &pair, uint32_t length, uint32_t id, std::vector<rte_mbuf *> &kept)
{
    kept.push_back(pair.message(length, id));
    return rte_pktmbuf_clone(kept.back(), pair.sent_pool);
}

rte_mbuf *chained(Pair &pair, uint32_t length, uint32_t id, std::vector<rte_mbuf *> &)
{
    return pair.message(length, id, 2);
}

rte_mbuf *of_another_pool(Pair &pair, uint32_t length, uint32_t id, std::vector<rte_mbuf *> &)
{
    rte_mbuf *m = rte_pktmbuf_alloc(pair.window_pool);
    auto *data =
        reinterpret_cast<std::byte *>(rte_pktmbuf_append(m, static_cast<uint16_t>(length)));
    for (uint32_t i = 0; i < length; i++)
        data[i] = pattern(id, i);
    return m;
}

rte_mbuf *with_other_fields(Pair &pair, uint32_t length, uint32_t id, std::vector<rte_mbuf *> &)
{
    rte_mbuf *m = pair.message(length, id);
    m->port = 77;
    m->packet_type = 3;
    m->vlan_tci = 9;
    m->ol_flags |= RTE_MBUF_F_TX_TCP_CKSUM;
    return m;
}

constexpr Odd odd_ones[] = {{"moved", moved},
                            {"shared", shared},
                            {"cloned", cloned},
                            {"chained", chained},
                            {"other pool", of_another_pool},
                            {"other fields", with_other_fields}};

TEST_P(AlikeBurst, OneMayBeOdd)
{
    Pair pair(ops());
    pair.receive(1);
    for (const Odd &odd : odd_ones)
        for (const uint32_t length : {30u, 48u, 64u, 104u, 130u, 256u})
            for (const unsigned at : {0u, 1u, 2u, 3u, 17u, 31u}) {
                std::vector<rte_mbuf *> kept, in = burst(pair, 32, length, 100);
                rte_pktmbuf_free(in[at]);
                in[at] = odd.make(pair, length, 100 + at, kept);
                ASSERT_EQ(pair.send(in), 32) << odd.name;
                expect_all(pair, 32, length, 100);
                for (rte_mbuf *m : kept) {
                    EXPECT_EQ(rte_mbuf_refcnt_read(m), 1) << odd.name;
                    rte_pktmbuf_free(m);
                }
            }
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(AlikeBurst, ANullEndsItBeforeItself)
{
    Pair pair(ops());
    pair.receive(1);
    for (const unsigned at : {1u, 2u, 3u, 31u}) {
        std::vector<rte_mbuf *> in = burst(pair, 32, 64, 1);
        rte_pktmbuf_free(in[at]);
        in[at] = nullptr;
        ASSERT_EQ(pair.tx(in.data(), nullptr, 32), static_cast<int>(at));
        expect_all(pair, at, 64, 1);
        for (unsigned i = at + 1; i < 32; i++)
            rte_pktmbuf_free(in[i]);
    }
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
}

// A line of a message in a burst of such, in the receiver's ring.
std::byte *line_of(Pair &pair, uint32_t length, unsigned message, unsigned line)
{
    return pair.rx_setup.ring +
           (message * wire::inline_lines(length) + line) * size_t{wire::line_bytes};
}

TEST_P(AlikeBurst, IsTakenUpToALineThatHasNotArrived)
{
    for (const uint32_t length : {64u, 150u, 200u, 256u})
        for (unsigned line = 0; line < wire::inline_lines(length); line++)
            for (const unsigned at : {1u, 5u}) {
                Pair pair(ops());
                std::vector<rte_mbuf *> in = burst(pair, 8, length, 1);
                ASSERT_EQ(pair.send(in), 8);
                std::byte *const gone = line_of(pair, length, at, line);
                std::array<std::byte, wire::line_bytes> late;
                std::memcpy(late.data(), gone, late.size());
                std::memset(gone, 0, late.size());
                expect_all(pair, at, length, 1);
                EXPECT_TRUE(pair.receive(8).empty());
                std::memcpy(gone, late.data(), late.size());
                expect_all(pair, 8 - at, length, 1 + at);
                pair.close();
                EXPECT_TRUE(pair.nothing_leaked());
            }
}

TEST_P(AlikeBurst, AWrongLineWithinItIsAnError)
{
    for (const uint32_t length : {64u, 150u, 200u, 256u})
        for (unsigned line = 1; line < wire::inline_lines(length); line++)
            for (const unsigned at : {1u, 5u}) {
                Pair pair(ops());
                std::vector<rte_mbuf *> in = burst(pair, 8, length, 1);
                ASSERT_EQ(pair.send(in), 8);
                // Behind its tag a continuation line has zeros.
                line_of(pair, length, at, line)[5] = std::byte{1};
                expect_all(pair, at, length, 1);
                rte_mbuf *none = nullptr;
                EXPECT_EQ(pair.rx(&none, nullptr, 1), -EPROTO);
                EXPECT_EQ(rx_stats(pair.rx_half).bad_peer, 1u);
                pair.close();
                EXPECT_TRUE(pair.nothing_leaked());
            }
}

// Messages of one flow: TxFlow and RxFlow.
constexpr uint64_t flow_data = 0x1234'5678'0000'002a;

TxFlow flow_to_send(uint32_t longest)
{
    return {{flow_data, 3, 0}, longest, 0, 0};
}
RxFlow flow_to_receive(uint32_t longest, uint32_t *high = nullptr)
{
    return {static_cast<uint32_t>(flow_data), 3, high, longest, 0, 0};
}

TEST_P(AlikeBurst, AFlowArrivesWithItsMetadata)
{
    Pair pair(ops());
    pair.receive(1);
    for (const uint32_t length : lengths)
        for (const unsigned count : {1u, 2u, 3u, 16u}) {
            if (count * wire::inline_lines(length) > pair.options.ring_lines / 2)
                continue;
            for (const bool received_as_one : {true, false}) {
                std::vector<rte_mbuf *> in = burst(pair, count, length, 9);
                TxFlow sent = flow_to_send(1024);
                ASSERT_EQ(ops().tx_flow(pair.tx_half, in.data(), sent, count),
                          static_cast<int>(count));
                EXPECT_EQ(sent.bytes, uint64_t{length} * count);
                std::array<rte_mbuf *, 16> out;
                std::array<uint32_t, 16> high{};
                std::array<Meta, 16> meta{};
                RxFlow got = flow_to_receive(1024, high.data());
                const int n = received_as_one
                                  ? ops().rx_flow(pair.rx_half, out.data(), got, 16)
                                  : ops().rx_burst(pair.rx_half, out.data(), meta.data(), count);
                ASSERT_EQ(n, static_cast<int>(count)) << "length " << length;
                for (unsigned i = 0; i < count; i++) {
                    EXPECT_TRUE(Pair::matches(out[i], length, 9 + i));
                    rte_pktmbuf_free(out[i]);
                    if (received_as_one) {
                        EXPECT_EQ(high[i], flow_data >> 32);
                    } else {
                        EXPECT_EQ(meta[i].data, flow_data);
                        EXPECT_EQ(meta[i].flags, 3u);
                    }
                }
                if (received_as_one) {
                    EXPECT_EQ(got.bytes, sent.bytes);
                    EXPECT_EQ(got.other, 0u);
                }
            }
        }
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
    EXPECT_TRUE(pair.guards_intact());
}

// What ends a flow in front of message `at`, for the receiver.
TEST_P(AlikeBurst, AFlowEndsInFrontOfWhatIsNotOfIt)
{
    for (const uint32_t length : {20u, 64u, 200u})
        for (const unsigned at : {0u, 1u, 2u, 7u})
            for (const Meta &other : {Meta{flow_data + 1, 3, 0}, Meta{flow_data, 2, 0}}) {
                Pair pair(ops());
                std::vector<rte_mbuf *> in = burst(pair, 9, length, 1);
                std::vector<Meta> meta(9, Meta{flow_data, 3, 0});
                meta[at] = other;
                ASSERT_EQ(pair.send(in, meta.data()), 9);
                std::array<rte_mbuf *, 9> out;
                RxFlow flow = flow_to_receive(1024);
                ASSERT_EQ(ops().rx_flow(pair.rx_half, out.data(), flow, 9), static_cast<int>(at));
                EXPECT_EQ(flow.other, 1u);
                EXPECT_EQ(flow.bytes, uint64_t{length} * at);
                for (unsigned i = 0; i < at; i++)
                    rte_pktmbuf_free(out[i]);
                expect_all(pair, 9 - at, length, 1 + at);
                pair.close();
                EXPECT_TRUE(pair.nothing_leaked());
            }
}

TEST_P(AlikeBurst, AFlowDoesNotTakeALoneMessageThatIsNotOfIt)
{
    for (const uint32_t length : lengths)
        for (const unsigned most : {1u, 9u})
            for (const auto &[other, longest] : {std::pair{Meta{flow_data + 1, 3, 0}, 1024u},
                                                 std::pair{Meta{flow_data, 2, 0}, 1024u},
                                                 std::pair{Meta{flow_data, 3, 0}, length - 1}}) {
                if (length == 0)
                    continue;
                Pair pair(ops());
                pair.receive(1);
                std::vector<rte_mbuf *> in = burst(pair, 1, length, 1);
                ASSERT_EQ(pair.send(in, &other), 1);
                std::array<rte_mbuf *, 9> out;
                RxFlow flow = flow_to_receive(longest);
                ASSERT_EQ(ops().rx_flow(pair.rx_half, out.data(), flow, most), 0) << length;
                EXPECT_EQ(flow.other, 1u) << length;
                expect_all(pair, 1, length, 1);
                pair.close();
                EXPECT_TRUE(pair.nothing_leaked());
            }
}

TEST_P(AlikeBurst, AFlowEndsInFrontOfALongerMessage)
{
    for (const uint32_t longer : {65u, 256u, 1500u})
        for (const unsigned at : {0u, 1u, 2u, 7u}) {
            Pair pair(ops());
            pair.receive(1);
            std::vector<rte_mbuf *> in = burst(pair, 8, 64, 1);
            rte_pktmbuf_free(in[at]);
            in[at] = pair.message(longer, 1 + at);
            TxFlow sent = flow_to_send(64);
            ASSERT_EQ(ops().tx_flow(pair.tx_half, in.data(), sent, 8), static_cast<int>(at));
            EXPECT_EQ(sent.bytes, 64u * at);
            EXPECT_EQ(tx_stats(pair.tx_half).errors, 0u);
            const std::vector<Meta> meta(8 - at, Meta{flow_data, 3, 0});
            ASSERT_EQ(pair.tx(in.data() + at, meta.data(), 8 - at), static_cast<int>(8 - at));
            std::array<rte_mbuf *, 8> out;
            RxFlow got = flow_to_receive(64);
            ASSERT_EQ(ops().rx_flow(pair.rx_half, out.data(), got, 8), static_cast<int>(at));
            EXPECT_EQ(got.other, 1u);
            for (unsigned i = 0; i < at; i++)
                rte_pktmbuf_free(out[i]);
            expect_all(pair, 1, longer, 1 + at);
            expect_all(pair, 7 - at, 64, 2 + at);
            pair.close();
            EXPECT_TRUE(pair.nothing_leaked());
        }
}

TEST_P(AlikeBurst, AFlowEndsInFrontOfANullWhichIsNoErrorYet)
{
    Pair pair(ops());
    pair.receive(1);
    std::vector<rte_mbuf *> in = burst(pair, 4, 64, 1);
    rte_pktmbuf_free(in[2]);
    in[2] = nullptr;
    TxFlow sent = flow_to_send(1024);
    ASSERT_EQ(ops().tx_flow(pair.tx_half, in.data(), sent, 4), 2);
    EXPECT_EQ(ops().tx_flow(pair.tx_half, in.data() + 2, sent, 2), 0);
    EXPECT_EQ(tx_stats(pair.tx_half).errors, 0u);
    expect_all(pair, 2, 64, 1);
    rte_pktmbuf_free(in[3]);
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
}

TEST_P(AlikeBurst, AFlowGoesOnBehindPadLines)
{
    PairOptions options;
    options.start = options.ring_lines - 5; // a message of two lines does not fit into the fifth
    Pair pair(ops(), options);
    std::vector<rte_mbuf *> in = burst(pair, 6, 64, 1);
    TxFlow sent = flow_to_send(1024);
    ASSERT_EQ(ops().tx_flow(pair.tx_half, in.data(), sent, 6), 6);
    std::array<rte_mbuf *, 6> out;
    RxFlow flow = flow_to_receive(1024);
    ASSERT_EQ(ops().rx_flow(pair.rx_half, out.data(), flow, 6), 6);
    EXPECT_EQ(flow.other, 0u);
    for (unsigned i = 0; i < 6; i++) {
        EXPECT_TRUE(Pair::matches(out[i], 64, 1 + i));
        rte_pktmbuf_free(out[i]);
    }
    pair.close();
    EXPECT_TRUE(pair.nothing_leaked());
}

INSTANTIATE_TEST_SUITE_P(Variants, AlikeBurst, testing::ValuesIn(all_ops), ops_name);

} // namespace

} // namespace test_queue
