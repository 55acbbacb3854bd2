// SPDX-License-Identifier: BSD-3-Clause
// Long messages: chains of receive buffers, as long as credit and buffers allow, up to 16 MiB.
#include "long_messages.hpp"

namespace
{

// Semantics: long-1
TEST_P(LongMessage, GoesByOneCopy)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with(4 * mib));
    const uint32_t buf_bytes = long_options(4 * mib).buf_bytes;
    EXPECT_EQ(info(near_channel_).max_message, 4 * mib);
    uint64_t bytes = 0;
    for (const uint32_t length :
         {64 * kib, 64 * kib + 1, 96 * kib - 1, mib, 3 * mib + 7, 4 * mib}) {
        ASSERT_TRUE(send(near_channel_, numbered(length, length), length));
        uint32_t imm = 0;
        rte_mbuf *got = receive_one(far_channel_, &imm);
        ASSERT_NE(got, nullptr);
        EXPECT_EQ(imm, length);
        EXPECT_TRUE(is_numbered(got, length, length)) << length;
        EXPECT_EQ(got->nb_segs, (length + buf_bytes - 1) / buf_bytes)
            << "it stays in the buffers that it was stored to";
        rte_pktmbuf_free(got);
        bytes += length;
    }
    EXPECT_EQ(info(far_channel_).rx_bytes, bytes);
    give_back({near_channel_, far_channel_});
}

// Semantics: long-2
TEST_P(LongMessage, TheLongestHas16MiB)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with(NTBMSG_MAX_MESSAGE));
    EXPECT_EQ(info(near_channel_).max_message, uint32_t{NTBMSG_MAX_MESSAGE});
    ASSERT_TRUE(send(near_channel_, numbered(NTBMSG_MAX_MESSAGE, 1), 1));
    ASSERT_NO_FATAL_FAILURE(expect(far_channel_, NTBMSG_MAX_MESSAGE, 1));
    rte_mbuf *m = message(near_, NTBMSG_MAX_MESSAGE + 1, 0);
    EXPECT_EQ(ntbmsg_channel_send_burst(near_channel_, &m, nullptr, 1), -EMSGSIZE);
    rte_pktmbuf_free(m);
    give_back({near_channel_, far_channel_});
}

// With the endpoint's defaults: a channel only has to ask for the credit.
// Semantics: long-2
TEST_P(LongMessage, DefaultBuffersHoldMessagesOfMoreThan1MiB)
{
    ntbmsg_endpoint_options options = worker_options();
    options.buffers = options.queue_buffers = options.ring_lines = 0;
    options.dedicated = GetParam();
    options.tx_room = 65280;
    ASSERT_NO_FATAL_FAILURE(bring_up(options));
    ASSERT_NO_FATAL_FAILURE(
        join(near_channel_, far_channel_, credit_of(2 * mib), credit_of(2 * mib)));
    EXPECT_EQ(info(near_channel_).max_message, 2 * mib);
    for (const uint32_t length : {mib, 2 * mib}) {
        ASSERT_TRUE(send(near_channel_, numbered(length, length), length));
        ASSERT_NO_FATAL_FAILURE(expect(far_channel_, length, length));
    }
    give_back({near_channel_, far_channel_});
}

// Semantics: long-3
TEST_P(LongMessage, OrderIsKeptAmongLongAndShortOnes)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with(4 * mib));
    const uint32_t lengths[] = {8,        100 * kib, 64,       70 * kib, 3000, 200 * kib,
                                64 * kib, 0,         64 * kib, 1,        48,   mib};
    const uint32_t rounds = 200;
    ASSERT_NO_FATAL_FAILURE(expect_order(lengths, rounds, rounds));
    give_back({near_channel_, far_channel_});
}

// Its credit bounds what it holds: the rest of the buffers stays with others.
// Semantics: long-4
TEST_P(LongMessage, AReaderThatStopsHoldsItsOwnCreditOnly)
{
    ASSERT_NO_FATAL_FAILURE(bring_up(long_options(8 * mib)));
    ASSERT_NO_FATAL_FAILURE(
        join(near_channel_, far_channel_, credit_of(4 * mib), credit_of(4 * mib)));
    ntbmsg_channel *running = nullptr, *reader = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(running, reader, credit_of(2 * mib), credit_of(2 * mib)));
    constexpr uint32_t fits = 8;
    for (uint32_t i = 0; i < fits; ++i)
        ASSERT_TRUE(send(near_channel_, numbered(512 * kib, i), i));
    settle();
    for (uint32_t i = 0; i < 20; ++i) {
        ASSERT_TRUE(send(running, numbered(mib, i), i));
        ASSERT_NO_FATAL_FAILURE(expect(reader, mib, i));
    }
    for (uint32_t i = 0; i < fits; ++i)
        ASSERT_NO_FATAL_FAILURE(expect(far_channel_, 512 * kib, i));
    give_back({near_channel_, far_channel_, running, reader});
}

// Semantics: long-3
TEST_P(LongMessage, AShutdownComesBehindIt)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with(4 * mib));
    ASSERT_TRUE(send(near_channel_, numbered(2 * mib, 5), 5));
    ASSERT_EQ(ntbmsg_channel_shutdown(near_channel_), 0);
    ASSERT_NO_FATAL_FAILURE(expect(far_channel_, 2 * mib, 5));
    rte_mbuf *none = nullptr;
    int rc = 0;
    EXPECT_TRUE(await(
        [&] { return (rc = ntbmsg_channel_recv_burst(far_channel_, &none, nullptr, 1)) != 0; }));
    EXPECT_EQ(rc, -ESHUTDOWN);
    give_back({near_channel_, far_channel_});
}

// Semantics: long-5
TEST_P(LongMessage, AResetInTheMiddleLosesNoMemory)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with(4 * mib));
    for (unsigned turns = 0; turns < 24; ++turns) {
        ASSERT_TRUE(send(near_channel_, numbered(3 * mib, turns)));
        for (unsigned i = 0; i < turns / 2; ++i)
            turn();
        ASSERT_EQ(ntbmsg_channel_reset(turns % 2 == 0 ? near_channel_ : far_channel_, 1), 0);
        give_back({near_channel_, far_channel_});
        settle();
        // All buffers, so all of them are there again.
        ASSERT_NO_FATAL_FAILURE(
            join(near_channel_, far_channel_, credit_of(4 * mib), credit_of(4 * mib)));
        ASSERT_EQ(info(near_channel_).max_message, 4 * mib) << turns;
        ASSERT_TRUE(send(near_channel_, numbered(4 * mib, turns), turns));
        ASSERT_NO_FATAL_FAILURE(expect(far_channel_, 4 * mib, turns)) << turns;
    }
    give_back({near_channel_, far_channel_});
}

// Semantics: long-5
TEST_P(LongMessage, ALossInTheMiddleReturnsEverything)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with(4 * mib));
    ASSERT_TRUE(send(near_channel_, numbered(3 * mib, 1)));
    ASSERT_NO_FATAL_FAILURE(lose_near_and_meet_again(long_options(4 * mib)));
    settle();
    // And the next connection has the buffers.
    ASSERT_NO_FATAL_FAILURE(
        join(near_channel_, far_channel_, credit_of(4 * mib), credit_of(4 * mib)));
    ASSERT_TRUE(send(near_channel_, numbered(4 * mib, 9), 9));
    ASSERT_NO_FATAL_FAILURE(expect(far_channel_, 4 * mib, 9));
    give_back({near_channel_, far_channel_});
}

// Semantics: long-2
TEST_P(LongMessage, IsAsLongAsCreditAllows)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    ASSERT_NO_FATAL_FAILURE(join(near_channel_, far_channel_));
    EXPECT_LT(info(near_channel_).max_message, 64 * kib + 1);
    give_back({near_channel_, far_channel_});
}

INSTANTIATE_TEST_SUITE_P(Workers, LongMessage, testing::Bool(), [](const auto &kind) {
    return kind.param ? "Dedicated" : "RunToCompletion";
});

} // namespace
