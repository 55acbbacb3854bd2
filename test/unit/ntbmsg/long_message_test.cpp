// SPDX-License-Identifier: BSD-3-Clause
// Long messages: through memory that the receiver grants, by one copy, up to 16 MiB.
#include "long_messages.hpp"

#include "rendezvous/rendezvous_protocol.hpp"

namespace
{

// Semantics: long-1
TEST_P(LongMessage, GoesByOneCopy)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with(4 * mib));
    EXPECT_EQ(info(near_channel_).max_message, 4 * mib - 32 * kib);
    uint64_t bytes = 0, messages = 0;
    settle();
    const uint64_t before = stats(near_).tx_bytes;
    for (const uint32_t length :
         {64 * kib, 64 * kib + 1, 96 * kib - 1, mib, 3 * mib + 7, 4 * mib - 32 * kib}) {
        ASSERT_TRUE(send(near_channel_, numbered(length, length), length));
        ASSERT_NO_FATAL_FAILURE(expect(far_channel_, length, length));
        bytes += length;
        EXPECT_EQ(stats(near_).tx_long, ++messages);
        EXPECT_EQ(stats(near_).tx_long_bytes, bytes) << "each byte is stored once";
    }
    EXPECT_LT(stats(near_).tx_bytes - before, 4096U) << "and goes no other way";
    EXPECT_EQ(info(far_channel_).rx_bytes, bytes);
    give_back({near_channel_, far_channel_});
}

TEST_P(LongMessage, TheLongestHas16MiB)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with(32 * mib));
    EXPECT_EQ(info(near_channel_).max_message, uint32_t{NTBMSG_MAX_MESSAGE});
    ASSERT_TRUE(send(near_channel_, numbered(16 * mib, 1), 1));
    ASSERT_NO_FATAL_FAILURE(expect(far_channel_, 16 * mib, 1));
    rte_mbuf *m = message(near_, 16 * mib + 1, 0);
    EXPECT_EQ(ntbmsg_channel_send_burst(near_channel_, &m, nullptr, 1), -EMSGSIZE);
    rte_pktmbuf_free(m);
    give_back({near_channel_, far_channel_});
}

// Semantics: long-2
TEST_P(LongMessage, OrderIsKeptAmongLongAndShortOnes)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with(4 * mib));
    const uint32_t lengths[] = {8,        100 * kib, 64,       70 * kib, 3000, 200 * kib,
                                64 * kib, 0,         64 * kib, 1,        48,   mib};
    const uint32_t rounds = 200;
    ASSERT_NO_FATAL_FAILURE(expect_order(lengths, rounds, rounds));
    give_back({near_channel_, far_channel_});
}

// Semantics: long-3
TEST_P(LongMessage, AReaderThatStopsHoldsAPartOfTheMemory)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with(8 * mib));
    ntbmsg_channel *running = nullptr, *reader = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(running, reader));
    unsigned stuck = 0;
    ASSERT_NO_FATAL_FAILURE(send_all_that_are_taken(512 * kib, 200, stuck));
    EXPECT_GT(stuck, 4U);
    for (uint32_t i = 0; i < 20; ++i) {
        ASSERT_TRUE(send(running, numbered(mib, i), i));
        ASSERT_NO_FATAL_FAILURE(expect(reader, mib, i));
    }
    for (uint32_t i = 0; i < stuck; ++i)
        ASSERT_NO_FATAL_FAILURE(expect(far_channel_, 512 * kib, i));
    give_back({near_channel_, far_channel_, running, reader});
}

// All of them announced before the first one is handed up: each alone is less than a quarter.
TEST_P(LongMessage, AnnouncedMessagesCountBeforeTheyAreThere)
{
    constexpr uint32_t length = 1984 * kib, depth = 4;
    ASSERT_NO_FATAL_FAILURE(bring_up_with(8 * mib));
    ntbmsg_channel *running = nullptr, *reader = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(running, reader));
    ASSERT_TRUE(send(near_channel_, numbered(64 * kib, 9), 9)); // the way is found
    ASSERT_NO_FATAL_FAILURE(expect(far_channel_, 64 * kib, 9));
    rte_mbuf *mbufs[depth];
    uint32_t words[depth];
    for (uint32_t i = 0; i < depth; ++i)
        mbufs[i] = numbered(length, words[i] = i);
    ASSERT_EQ(ntbmsg_channel_send_burst(near_channel_, mbufs, words, depth), int{depth});
    for (uint32_t i = 0; i < 20; ++i) {
        ASSERT_TRUE(send(running, numbered(mib, i), i));
        ASSERT_NO_FATAL_FAILURE(expect(reader, mib, i));
    }
    for (uint32_t i = 0; i < depth; ++i)
        ASSERT_NO_FATAL_FAILURE(expect(far_channel_, length, i));
    give_back({near_channel_, far_channel_, running, reader});
}

// Semantics: long-2
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
        rte_mbuf *m = numbered(3 * mib, turns);
        ASSERT_TRUE(send(near_channel_, m));
        for (unsigned i = 0; i < turns / 2; ++i)
            turn();
        ASSERT_EQ(ntbmsg_channel_reset(turns % 2 == 0 ? near_channel_ : far_channel_, 1), 0);
        give_back({near_channel_, far_channel_});
        ASSERT_NO_FATAL_FAILURE(join(near_channel_, far_channel_));
        // The whole memory, so all of it is there again.
        ASSERT_TRUE(send(near_channel_, numbered(4 * mib - 32 * kib, turns), turns));
        ASSERT_NO_FATAL_FAILURE(expect(far_channel_, 4 * mib - 32 * kib, turns)) << turns;
    }
    give_back({near_channel_, far_channel_});
}

// Semantics: long-5
TEST_P(LongMessage, ALossInTheMiddleGivesEverythingBack)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with(4 * mib));
    ASSERT_TRUE(send(near_channel_, numbered(3 * mib, 1)));
    for (unsigned i = 0; i < 4; ++i)
        turn();
    ASSERT_NO_FATAL_FAILURE(lose_near_and_meet_again(long_options(4 * mib)));
    // And the next connection has the memory.
    ASSERT_NO_FATAL_FAILURE(join(near_channel_, far_channel_));
    ASSERT_TRUE(send(near_channel_, numbered(4 * mib - 32 * kib, 9), 9));
    ASSERT_NO_FATAL_FAILURE(expect(far_channel_, 4 * mib - 32 * kib, 9));
    give_back({near_channel_, far_channel_});
}

TEST_P(LongMessage, WithoutMemoryTheyAreAsLongAsCreditAllows)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    ASSERT_NO_FATAL_FAILURE(join(near_channel_, far_channel_));
    EXPECT_LT(info(near_channel_).max_message, 64 * kib + 1);
    EXPECT_EQ(stats(near_).tx_long, 0U);
    give_back({near_channel_, far_channel_});
}

TEST_P(LongMessage, OptionsAreChecked)
{
    for (const uint32_t bytes : {1U, 65535U, 65537U, 3 * mib, 1U << 31}) {
        ntbmsg_endpoint_options options = long_options(bytes);
        EXPECT_EQ(ntbmsg_endpoint_open(near_device, &options, &near_), -EINVAL) << bytes;
    }
    near_ = nullptr;
}

INSTANTIATE_TEST_SUITE_P(Workers, LongMessage, testing::Bool(), [](const auto &worker) {
    return worker.param ? "Dedicated" : "RunToCompletion";
});

// ---- channels with a pool of their own

class OwnPool : public LongMessage
{
protected:
    static constexpr uint32_t pool_bytes = 2 * mib;

    /// near_channel_ ends far in a pool of @p bytes.
    void bring_up_with_pool(uint32_t bytes)
    {
        ntbmsg_endpoint_options options = long_options(8 * mib);
        options.pool_bytes = pool_bytes;
        ASSERT_NO_FATAL_FAILURE(bring_up(options));
        ASSERT_EQ(ntbmsg_rx_pool_create(far_worker_, bytes, &pool_), 0);
        ASSERT_NO_FATAL_FAILURE(join_own());
    }
    void join_own()
    {
        ntbmsg_channel_options near_options = channel_options(), far_options = channel_options();
        near_options.send_depth = 4;
        far_options.rx_pool = pool_;
        ASSERT_NO_FATAL_FAILURE(join(near_channel_, far_channel_, near_options, far_options));
    }
    void exchange(uint32_t bytes, uint32_t seed)
    {
        ASSERT_TRUE(send(near_channel_, numbered(bytes, seed), seed));
        ASSERT_NO_FATAL_FAILURE(expect(far_channel_, bytes, seed));
    }
    bool destroyed()
    {
        return await([&] { return ntbmsg_rx_pool_destroy(far_worker_, pool_) == 0; });
    }

    rte_mempool *pool_ = nullptr;
};

// Semantics: long-4
TEST_P(OwnPool, TakesAllThatTheRingDoesNotCarry)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with_pool(mib));
    EXPECT_EQ(info(near_channel_).max_message, mib);
    EXPECT_EQ(info(near_channel_).credit_bytes, 0U);
    uint64_t by_pool = 0;
    for (const uint32_t bytes : {0U, 48U, 2000U, 32 * kib, 64 * kib + 1, mib}) {
        ASSERT_TRUE(send(near_channel_, numbered(bytes, bytes), bytes));
        uint32_t imm = 0;
        rte_mbuf *got = receive_one(far_channel_, &imm);
        ASSERT_NE(got, nullptr) << bytes;
        EXPECT_EQ(imm, bytes);
        EXPECT_TRUE(is_numbered(got, bytes, bytes));
        EXPECT_EQ(got->pool == pool_, bytes > 48) << bytes;
        EXPECT_EQ(stats(near_).tx_long, by_pool += bytes > 48 ? 1 : 0);
        rte_pktmbuf_free(got);
    }
    rte_mbuf *m = message(near_, mib + 1, 0);
    EXPECT_EQ(ntbmsg_channel_send_burst(near_channel_, &m, nullptr, 1), -EMSGSIZE);
    rte_pktmbuf_free(m);
    give_back({near_channel_, far_channel_});
}

// Semantics: long-4
TEST_P(OwnPool, OneThatIsNotReadUsesUpItsOwn)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with_pool(mib));
    ntbmsg_channel *running = nullptr, *reader = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(running, reader));
    unsigned stuck = 0;
    ASSERT_NO_FATAL_FAILURE(send_all_that_are_taken(128 * kib, 100, stuck));
    EXPECT_EQ(rte_mempool_avail_count(pool_), 0U);
    // All that the others share is there.
    const uint32_t shared = 8 * mib - pool_bytes - 32 * kib;
    EXPECT_EQ(info(running).max_message, shared);
    for (uint32_t i = 0; i < 3; ++i) {
        ASSERT_TRUE(send(running, numbered(shared, i), i));
        ASSERT_NO_FATAL_FAILURE(expect(reader, shared, i));
    }
    for (uint32_t i = 0; i < stuck; ++i)
        ASSERT_NO_FATAL_FAILURE(expect(far_channel_, 128 * kib, i));
    give_back({near_channel_, far_channel_, running, reader});
}

TEST_P(OwnPool, LastsUntilItsChannelsAreGone)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with_pool(mib));
    ASSERT_NO_FATAL_FAILURE(exchange(mib, 1));
    EXPECT_EQ(ntbmsg_rx_pool_destroy(far_worker_, pool_), -EBUSY);
    EXPECT_EQ(ntbmsg_rx_pool_destroy(near_worker_, pool_), -EINVAL);
    for (unsigned turns = 0; turns < 6; ++turns) {
        ASSERT_TRUE(send(near_channel_, numbered(mib, turns), turns));
        for (unsigned i = 0; i < turns; ++i)
            turn();
        ASSERT_EQ(ntbmsg_channel_reset(turns % 2 == 0 ? near_channel_ : far_channel_, 1), 0);
        give_back({near_channel_, far_channel_});
        ASSERT_NO_FATAL_FAILURE(join_own());
        ASSERT_NO_FATAL_FAILURE(exchange(mib, turns)) << "the whole pool";
    }
    give_back({near_channel_, far_channel_});
    EXPECT_TRUE(destroyed());
    ASSERT_EQ(ntbmsg_rx_pool_create(far_worker_, pool_bytes, &pool_), 0) << "all of it";
    rte_mempool *more = nullptr;
    EXPECT_EQ(ntbmsg_rx_pool_create(far_worker_, 1, &more), -ENOSPC);
}

TEST_P(OwnPool, StaysOverALoss)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with_pool(mib));
    ASSERT_TRUE(send(near_channel_, numbered(mib, 1)));
    for (unsigned i = 0; i < 4; ++i)
        turn();
    ASSERT_NO_FATAL_FAILURE(lose_near_and_meet_again(long_options(8 * mib)));
    ASSERT_NO_FATAL_FAILURE(join_own());
    ASSERT_NO_FATAL_FAILURE(exchange(mib, 9));
    give_back({near_channel_, far_channel_});
}

TEST_P(OwnPool, OnlyThatOfTheWorkerWillDo)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with_pool(mib));
    rte_mempool *pool = nullptr;
    EXPECT_EQ(ntbmsg_rx_pool_create(far_worker_, 0, &pool), -EINVAL);
    EXPECT_EQ(ntbmsg_rx_pool_create(far_worker_, mib, nullptr), -EINVAL);
    EXPECT_EQ(ntbmsg_rx_pool_create(nullptr, mib, &pool), -EINVAL);
    EXPECT_EQ(ntbmsg_rx_pool_create(far_worker_, mib + 1, &pool), -ENOSPC);
    EXPECT_EQ(ntbmsg_rx_pool_destroy(far_worker_, nullptr), -EINVAL);
    EXPECT_EQ(ntbmsg_rx_pool_destroy(far_worker_, ntbmsg_pool(far_)), -EINVAL);
    ntbmsg_channel *channel = nullptr;
    for (rte_mempool *other : {ntbmsg_pool(near_), pool_}) { // private; in the other host's memory
        ntbmsg_channel_options options = channel_options();
        options.rx_pool = other;
        EXPECT_EQ(ntbmsg_connect(near_worker_, port, &options, &channel), -EINVAL);
    }
    ntbmsg_endpoint *none = nullptr;
    for (const uint32_t bytes : {1U, 32 * kib + 1, 8 * mib - 32 * kib}) {
        ntbmsg_endpoint_options options = long_options(8 * mib);
        options.pool_bytes = bytes;
        EXPECT_EQ(ntbmsg_endpoint_open(near_device, &options, &none), -EINVAL) << bytes;
    }
    give_back({near_channel_, far_channel_});
}

INSTANTIATE_TEST_SUITE_P(Workers, OwnPool, testing::Bool(), [](const auto &worker) {
    return worker.param ? "dedicated" : "run_to_completion";
});

// ---- a peer that breaks the rules

class HostileMessage : public HostilePeer
{
protected:
    ntbmsg_endpoint_options near_options() const override
    {
        return with_memory(worker_options(), mib);
    }
    void SetUp() override
    {
        HostilePeer::SetUp();
        ASSERT_NO_FATAL_FAILURE(greet());
        word_ = open_channel(channel_);
    }
    void announce(uint64_t bytes) { say(op_rts, word_, 0, &bytes, sizeof(bytes)); }

    ntbmsg_channel *channel_ = nullptr;
    uint32_t word_ = 0;
};

TEST_F(HostileMessage, AGrantThatNobodyAskedFor)
{
    const uint32_t piece = 0;
    say(op_cts, word_, 1, &piece, sizeof(piece));
    expect_protest(channel_);
}

TEST_F(HostileMessage, WhoOwesAGrantDoesNotSleep)
{
    ntbmsg_channel *other = nullptr;
    open_channel(other, nullptr, generous_opening());
    ASSERT_GE(ntbmsg_worker_event_fd(near_worker_), 0);
    const unsigned filled = fill_ring(other);
    EXPECT_EQ(ntbmsg_worker_arm(near_worker_), 0)
        << "a full ring alone is nothing to be polled for";
    EXPECT_EQ(ntbmsg_worker_disarm(near_worker_), 0);
    announce(1000);
    turn();
    EXPECT_EQ(ntbmsg_worker_arm(near_worker_), 1);
    ASSERT_NO_FATAL_FAILURE(hear_data(filled));
    EXPECT_EQ(hear().op, op_cts);
    give_back({channel_, other});
}

// A window that nobody has looked through yet.
TEST_F(HostilePeer, WritableIsToldWhenTheWayIsFoundAndNotBefore)
{
    ASSERT_EQ(hear().op, op_hello);
    Hello hello = sound_hello();
    hello.pieces = 16;
    hello.piece_bytes = 32 * kib;
    hello.rendezvous_offset = 4 * mib; // behind the queue pairs
    say(op_hello, 0, 0, &hello, sizeof(hello));
    EXPECT_EQ(hear().op, op_try);
    ntbmsg_poll_set *set = nullptr;
    ASSERT_EQ(ntbmsg_poll_set_create(near_worker_, &set), 0);
    ntbmsg_channel *channel = nullptr;
    ntbmsg_channel_options options = channel_options();
    options.set = set;
    Opening opening = sound_opening();
    opening.max_message = 256 * kib;
    open_channel(channel, &options, opening);
    ntbmsg_ready ready{};
    ASSERT_EQ(ntbmsg_poll(set, &ready, 1), 1);
    EXPECT_EQ(ready.events, NTBMSG_ANSWERED | NTBMSG_WRITABLE);
    ASSERT_EQ(send_one(near_, channel, 100 * kib, 0), 0);
    for (int i = 0; i < 50; ++i)
        ASSERT_EQ(ntbmsg_poll(set, &ready, 1), 0) << i;
    say(op_tried, 0, 0); // not there yet
    EXPECT_EQ(hear().op, op_try);
    EXPECT_EQ(ntbmsg_poll(set, &ready, 1), 0);
    say(op_tried, 0, 1);
    turn();
    ASSERT_EQ(ntbmsg_poll(set, &ready, 1), 1);
    EXPECT_EQ(ready.events, NTBMSG_WRITABLE);
    EXPECT_EQ(ntbmsg_poll(set, &ready, 1), 0) << "once";
    EXPECT_EQ(send_one(near_, channel, 100 * kib, 0), 1);
    EXPECT_EQ(hear().op, op_rts);
    EXPECT_EQ(stats(near_).bad_peer, 0U);
    give_back({channel});
    EXPECT_EQ(ntbmsg_poll_set_destroy(set), 0);
}

TEST_F(HostileMessage, NoBytes)
{
    announce(0);
    expect_protest(channel_);
}

TEST_F(HostileMessage, LongerThanTheMemory)
{
    announce(mib - 32 * kib + 1);
    expect_protest(channel_);
}

TEST_F(HostileMessage, FilledBeforeItIsGranted)
{
    say(op_filled, word_, 1);
    expect_protest(channel_);
}

TEST_F(HostileMessage, MorePiecesThanGranted)
{
    announce(64 * kib);
    const Heard heard = hear();
    ASSERT_EQ(heard.op, op_cts);
    EXPECT_EQ(heard.argument, 2U);
    EXPECT_EQ(heard.bytes.size(), 8U);
    say(op_filled, word_, 3);
    expect_protest(channel_);
    EXPECT_EQ(hear().op, op_fence) << "its pieces are not used again before it has come past this";
    say(op_fenced, 0, 2); // another one's
    turn();
    EXPECT_EQ(stats(near_).bad_peer, 2U);
    say(op_fenced, 0, 1);
    turn();
    say(op_fenced, 0, 1);
    turn();
    EXPECT_EQ(stats(near_).bad_peer, 3U) << "twice";
}

TEST_F(HostileMessage, MoreThanAreAnnouncedAtATime)
{
    for (unsigned i = 0; i < 5; ++i)
        announce(mib - 32 * kib); // one takes all the memory
    Heard heard = hear();
    EXPECT_EQ(heard.op, op_cts);
    expect_protest(channel_);
}

TEST_F(HostileMessage, CloseBeforeItHasCome)
{
    announce(64 * kib);
    EXPECT_EQ(hear().op, op_cts);
    say(op_close, word_, 0);
    expect_protest(channel_);
}

TEST_F(HostileMessage, TriesAndFencesThatNobodyAskedFor)
{
    say(op_tried, 0, 1);
    say(op_fenced, 0, 0);
    say(op_try, 0, 0);
    turn();
    EXPECT_EQ(stats(near_).bad_peer, 3U);
    const uint64_t word = 5;
    say(op_try, 0, 0, &word, sizeof(word));
    const Heard heard = hear();
    EXPECT_EQ(heard.op, op_tried);
    EXPECT_EQ(heard.argument, 0U) << "it was not stored";
    say(op_fence, 0, 7);
    const Heard fenced = hear();
    EXPECT_EQ(fenced.op, op_fenced);
    EXPECT_EQ(fenced.argument, 7U);
    give_back({channel_});
}

} // namespace
