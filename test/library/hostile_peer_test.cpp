// SPDX-License-Identifier: BSD-3-Clause
// Peers that break the rules of channels.
#include "hostile_peer.hpp"

#include "wire/one_sided.hpp"

namespace
{

TEST_F(HostilePeer, WhatComesBeforeTheHelloIsDropped)
{
    const Opening opening = sound_opening();
    say(op_connect, 0, port, &opening, sizeof(opening));
    say(op_data, slot_word(0, 1), 0);
    turn();
    EXPECT_EQ(stats(near_).rx_dropped, 2U);
    ASSERT_NO_FATAL_FAILURE(greet());
    say(op_connect, 0, port, &opening, sizeof(opening));
    turn();
    ntbmsg_request request;
    EXPECT_EQ(ntbmsg_listener_poll(listener_, near_worker_, &request), 1);
}

TEST_F(HostilePeer, AnotherVersionIsRefusedInWords)
{
    Hello hello = sound_hello();
    hello.major = 2;
    say(op_hello, 0, 0, &hello, sizeof(hello));
    turn();
    expect_refused("version");
}

TEST_F(HostilePeer, ImpossibleHellosAreRefused)
{
    const auto refused = [&](const Hello &hello) { return refusal(hello) != nullptr; };
    EXPECT_FALSE(refused(sound_hello()));
    Hello hello = sound_hello();
    hello.magic ^= 1;
    EXPECT_TRUE(refused(hello));
    hello = sound_hello();
    hello.buf_bytes = 0;
    EXPECT_TRUE(refused(hello));
    hello = sound_hello();
    hello.channels = 65537;
    EXPECT_TRUE(refused(hello));
    hello = sound_hello();
    hello.bytes = 63;
    EXPECT_TRUE(refused(hello));
    // A second one, and one that is cut off, change nothing.
    ASSERT_NO_FATAL_FAILURE(greet());
    hello = sound_hello();
    say(op_hello, 0, 0, &hello, sizeof(hello));
    say(op_hello, 0, 0, &hello, 5);
    turn();
    EXPECT_EQ(stats(near_).bad_peer, 2U);
}

/// Takes shorter messages than an endpoint with workers can be set to.
class ShortMessagePeer : public HostilePeer
{
protected:
    const char *extra_arguments() const override { return ",max_message=255"; }
    ntbmsg_endpoint_options near_options() const override
    {
        ntbmsg_endpoint_options options = worker_options();
        options.max_message = 8192;
        return options;
    }
};

TEST_F(ShortMessagePeer, OneThatTakesTooShortMessagesIsRefused)
{
    const Hello hello = sound_hello();
    say(op_hello, 0, 0, &hello, sizeof(hello));
    turn();
    expect_refused("256");
}

TEST_F(HostilePeer, BrokenConnectsAreCountedAndDropped)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    Opening opening = sound_opening();
    say(op_connect, 0, port, &opening, sizeof(opening) - 1);
    opening.private_bytes = NTBMSG_MAX_PRIVATE + 1;
    say(op_connect, 0, port, &opening, sizeof(opening));
    opening = sound_opening();
    opening.generation = 0;
    say(op_connect, 0, port, &opening, sizeof(opening));
    opening = sound_opening();
    opening.messages = 0;
    say(op_connect, 0, port, &opening, sizeof(opening));
    opening.messages = 65536;
    say(op_connect, 0, port, &opening, sizeof(opening));
    const std::vector<uint8_t> huge(5000);
    say(op_connect, 0, port, huge.data(), 2000);
    turn();
    EXPECT_EQ(stats(near_).bad_peer, 6U);
    ntbmsg_request request;
    EXPECT_EQ(ntbmsg_listener_poll(listener_, near_worker_, &request), 0);
    opening = sound_opening();
    say(op_connect, 0, 0x10000 + port, &opening, sizeof(opening));
    const Heard heard = hear();
    EXPECT_EQ(heard.op, op_reject);
    EXPECT_EQ(heard.argument, static_cast<uint32_t>(NTBMSG_REASON_NO_LISTENER));
}

TEST_F(HostilePeer, AStormOfConnectsGetsAnAnswerEachAndTakesNoMemory)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    constexpr unsigned storm = 1000;
    std::vector<unsigned> answered(storm);
    unsigned said = 0, answers = 0;
    for (const uint64_t end = now_ms() + patience_ms; answers < storm - 64 && now_ms() < end;) {
        // Says as much as the ring takes before it listens at all.
        rte_mbuf *mbuf = said < storm ? message(far_, sizeof(Opening), 0) : nullptr;
        if (mbuf != nullptr) {
            const Opening opening = sound_opening(static_cast<uint16_t>(said));
            std::memcpy(rte_pktmbuf_mtod(mbuf, void *), &opening, sizeof(opening));
            const ntbmsg_meta meta = {header(0, port), op_connect, 0};
            if (far_send(mbuf, meta) == 1) {
                ++said;
                continue;
            }
            rte_pktmbuf_free(mbuf);
        }
        ntbmsg_worker_poll(near_worker_);
        rte_mbuf *got = nullptr;
        ntbmsg_meta meta{};
        while (far_receive(got, meta) == 1) {
            ASSERT_EQ(meta.flags, op_reject);
            ASSERT_LT(word_slot(header_word(meta.data)), storm);
            ++answered[word_slot(header_word(meta.data))];
            ++answers;
            rte_pktmbuf_free(got);
        }
    }
    EXPECT_EQ(answers, storm - 64); // the rest waits: the backlog, and the slots
    EXPECT_EQ(*std::max_element(answered.begin(), answered.end()), 1U);
    ntbmsg_channel *own = nullptr;
    EXPECT_EQ(ntbmsg_channel_connect(near_worker_, port, nullptr, &own), -ENOSPC);
    // As they are answered, slots come back.
    ntbmsg_request request;
    while (ntbmsg_listener_poll(listener_, near_worker_, &request) == 1)
        ASSERT_EQ(ntbmsg_request_reject(&request, 0, nullptr, 0), 0);
    turn();
    ASSERT_EQ(ntbmsg_channel_connect(near_worker_, port, nullptr, &own), 0);
    give_back({own});
}

TEST_F(HostilePeer, MoreMessagesThanGranted)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    ntbmsg_channel *channel = nullptr;
    const uint32_t word = open_channel(channel);
    for (int i = 0; i < 65; ++i)
        say(op_data, word, 0, &i, sizeof(i));
    turn();
    expect_protest(channel);
    EXPECT_EQ(stats(near_).rx_dropped, 65U);
}

TEST_F(HostilePeer, MoreBuffersThanGranted)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    ntbmsg_channel *channel = nullptr;
    const uint32_t word = open_channel(channel);
    const std::vector<uint8_t> bytes(2048);
    for (int i = 0; i < 33; ++i)
        say(op_data, word, 0, bytes.data(), bytes.size());
    turn();
    expect_protest(channel);
}

TEST_F(HostilePeer, MoreCreditThanWasUsed)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    ntbmsg_channel *channel = nullptr;
    const uint32_t word = open_channel(channel);
    say(op_credit, word, credit_argument(1, 0));
    expect_protest(channel);
}

TEST_F(HostilePeer, CreditBeforeTheAnswer)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    ntbmsg_channel *channel = nullptr;
    ASSERT_EQ(ntbmsg_channel_connect(near_worker_, port, nullptr, &channel), 0);
    const Heard heard = hear();
    Opening asked{};
    std::memcpy(&asked, heard.bytes.data(), sizeof(asked));
    say(op_credit, slot_word(asked.slot, asked.generation), credit_argument(1, 0));
    turn();
    EXPECT_EQ(ntbmsg_channel_state_get(channel), NTBMSG_CHANNEL_RESET);
    EXPECT_EQ(stats(near_).bad_peer, 1U);
    give_back({channel});
}

TEST_F(HostilePeer, UnknownOperations)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    ntbmsg_channel *channel = nullptr;
    const uint32_t word = open_channel(channel);
    say(63, word, 0);
    expect_protest(channel);
    say(63, word, 0); // the slot is free by now
    say(62, 0, 0);
    turn();
    EXPECT_EQ(stats(near_).bad_peer, 3U);
}

TEST_F(HostilePeer, ASecondAnswer)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    ntbmsg_channel *channel = nullptr;
    const uint32_t word = open_channel(channel);
    const Opening answer = sound_opening();
    say(op_accept, word, 0, &answer, sizeof(answer));
    expect_protest(channel);
}

TEST_F(HostilePeer, DataBehindTheClose)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    ntbmsg_channel *channel = nullptr;
    const uint32_t word = open_channel(channel);
    say(op_close, word, 0);
    say(op_data, word, 0);
    expect_protest(channel);
}

TEST_F(HostilePeer, AnAcceptThatComesTooLateIsTurnedDown)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    for (const bool timed_out : {true, false}) {
        ntbmsg_channel_options options = channel_options();
        options.timeout_ms = timed_out ? 1 : 0;
        ntbmsg_channel *channel = nullptr;
        ASSERT_EQ(ntbmsg_channel_connect(near_worker_, port, &options, &channel), 0);
        const Heard asked = hear();
        ASSERT_EQ(asked.op, op_connect);
        Opening opening{};
        std::memcpy(&opening, asked.bytes.data(), sizeof(opening));
        if (!timed_out) {
            EXPECT_EQ(ntbmsg_channel_reset(channel, 5), 0);
        }
        EXPECT_EQ(ntbmsg_channel_wait_open(channel, patience_ms),
                  timed_out ? -ETIMEDOUT : -ECONNRESET);
        // The handle is still held.
        const Opening answer = sound_opening();
        say(op_accept, slot_word(opening.slot, opening.generation), 0, &answer, sizeof(answer));
        const Heard heard = hear();
        EXPECT_EQ(heard.op, op_reset);
        EXPECT_EQ(heard.word, slot_word(3, 9));
        EXPECT_EQ(heard.argument, static_cast<uint32_t>(NTBMSG_REASON_CLOSED));
        give_back({channel});
    }
    EXPECT_EQ(stats(near_).bad_peer, 0U);
}

TEST_F(HostilePeer, PayloadWhereThereIsNone)
{
    for (const uint32_t op : {op_credit, op_close, op_flush}) {
        if (op == op_credit) {
            ASSERT_NO_FATAL_FAILURE(greet());
        }
        ntbmsg_channel *channel = nullptr;
        const uint32_t word = open_channel(channel);
        const uint64_t before = stats(near_).bad_peer;
        say(op, word, 0, &op, sizeof(op));
        EXPECT_EQ(hear().op, op_reset);
        EXPECT_EQ(stats(near_).bad_peer, before + 1);
        give_back({channel});
    }
}

TEST_F(HostilePeer, AQuestionAlwaysHasAnAnswer)
{
    constexpr uint32_t asker = 0x90003;
    ASSERT_NO_FATAL_FAILURE(greet());
    ntbmsg_channel *channel = nullptr;
    const uint32_t word = open_channel(channel);
    say(op_flush, word, asker);
    Heard heard = hear();
    EXPECT_EQ(heard.op, op_credit);
    EXPECT_EQ(heard.argument, 0U) << "nothing was sent";
    say(op_data, word, 0);
    say(op_flush, word, asker);
    heard = hear();
    EXPECT_EQ(heard.op, op_credit);
    EXPECT_EQ(heard.argument, 0U) << "nothing was received";
    give_back({channel}); // unread
    EXPECT_EQ(hear().op, op_close);
    say(op_flush, word, asker);
    EXPECT_EQ(hear().op, op_reset);
    turn();
    say(op_flush, word, asker);
    heard = hear();
    EXPECT_EQ(heard.op, op_reset) << "of a slot that is free";
    EXPECT_EQ(heard.word, asker);
    EXPECT_EQ(stats(near_).bad_peer, 0U);
    say(op_leave, word, 0);
    say(op_leave, 0, 0, &asker, sizeof(asker));
    turn();
    EXPECT_EQ(stats(near_).bad_peer, 2U);
}

/// Lends credit: the worker has little of it.
class LendingPeer : public HostilePeer
{
protected:
    static constexpr uint32_t pool = 512; ///< messages, the fewest that a worker may have
    static constexpr uint16_t rich_slot = 4, poor_slot = 5;

    ntbmsg_endpoint_options near_options() const override
    {
        ntbmsg_endpoint_options options = worker_options();
        options.rx_mbufs = pool;
        return options;
    }
    void SetUp() override
    {
        HostilePeer::SetUp();
        ASSERT_EQ(hear().op, op_hello);
        Hello hello = sound_hello();
        hello.features = feature_lending;
        ASSERT_NO_FATAL_FAILURE(say(op_hello, 0, 0, &hello, sizeof(hello)));
    }
    /// A channel with the usual credit, one that has got nearly all of the rest because it asked
    /// for it, and one for which nothing was left.
    void open_three()
    {
        rich_word_ = open_channel(rich_, nullptr, sound_opening(rich_slot));
        ntbmsg_channel_options options = channel_options();
        options.credit_messages = pool - info(rich_).granted_messages - 8;
        open_channel(asked_, &options, sound_opening());
        poor_word_ = open_channel(poor_, nullptr, sound_opening(poor_slot));
        ASSERT_EQ(info(poor_).granted_messages, 2U);
    }
    /// The poor one uses all that it had at first, and says that it lacks more. Hears what the
    /// worker says then.
    void use_up()
    {
        say(op_more, poor_word_, lack_messages);
        for (int i = 0; i < 2; ++i) {
            say(op_data, poor_word_, 0);
            rte_mbuf *got = receive_one(poor_);
            ASSERT_NE(got, nullptr);
            rte_pktmbuf_free(got);
        }
        turn();
        rte_mbuf *got = nullptr;
        for (ntbmsg_meta meta{}; far_receive(got, meta) == 1; rte_pktmbuf_free(got)) {
            const uint32_t argument = header_argument(meta.data);
            if (meta.flags == op_grant)
                granted_ += credit_messages(argument);
            else if (meta.flags == op_recall)
                recalled_ += credit_messages(argument);
            else
                ASSERT_EQ(meta.flags, op_credit);
            EXPECT_EQ(header_word(meta.data),
                      slot_word(meta.flags == op_recall ? rich_slot : poor_slot, 9));
        }
    }
    void expect_reset(uint16_t slot)
    {
        const Heard heard = hear();
        EXPECT_EQ(heard.op, op_reset);
        EXPECT_EQ(heard.word, slot_word(slot, 9));
        EXPECT_EQ(heard.argument, static_cast<uint32_t>(NTBMSG_REASON_PROTOCOL));
        EXPECT_EQ(stats(near_).bad_peer, 1U);
    }
    void TearDown() override
    {
        give_back({rich_, asked_, poor_});
        HostilePeer::TearDown();
    }

    ntbmsg_channel *rich_ = nullptr, *asked_ = nullptr, *poor_ = nullptr;
    uint32_t rich_word_ = 0, poor_word_ = 0;
    uint32_t granted_ = 0, recalled_ = 0; ///< messages, by the worker
};

TEST_F(LendingPeer, WhatIsGivenBackIsGrantedToAnother)
{
    ASSERT_NO_FATAL_FAILURE(open_three());
    ASSERT_NO_FATAL_FAILURE(use_up());
    EXPECT_EQ(recalled_, 31U);
    say(op_surplus, rich_word_, credit_argument(recalled_, 0));
    turn();
    EXPECT_EQ(info(rich_).granted_messages, 33U);
    ASSERT_NO_FATAL_FAILURE(use_up());
    EXPECT_EQ(granted_, 2U);
    EXPECT_EQ(info(poor_).granted_messages, 4U);
    EXPECT_EQ(stats(near_).bad_peer, 0U);
}

TEST_F(LendingPeer, OneThatNeverGivesBackKeepsNobodyElseFromWorking)
{
    ASSERT_NO_FATAL_FAILURE(open_three());
    ASSERT_NO_FATAL_FAILURE(use_up());
    for (int i = 0; i < 100; ++i)
        ASSERT_NO_FATAL_FAILURE(use_up()) << i;
    EXPECT_EQ(granted_, 0U);
    EXPECT_EQ(recalled_, 31U) << "it is asked once";
    EXPECT_EQ(info(rich_).granted_messages, 64U);
    give_back({rich_});
    rich_ = nullptr;
    EXPECT_EQ(hear().op, op_close);
    say(op_reset, rich_word_, 0);
    turn();
    ASSERT_NO_FATAL_FAILURE(use_up());
    EXPECT_NE(granted_, 0U) << "the end of a channel returns all that it had";
    EXPECT_EQ(stats(near_).bad_peer, 0U);
}

TEST_F(LendingPeer, MoreGivenBackThanWasAskedFor)
{
    ASSERT_NO_FATAL_FAILURE(open_three());
    ASSERT_NO_FATAL_FAILURE(use_up());
    say(op_surplus, rich_word_, credit_argument(recalled_ + 1, 0));
    expect_reset(rich_slot);
}

TEST_F(LendingPeer, WhatWasUsedGivenBack)
{
    ASSERT_NO_FATAL_FAILURE(open_three());
    for (int i = 0; i < 40; ++i)
        say(op_data, rich_word_, 0);
    ASSERT_NO_FATAL_FAILURE(use_up());
    say(op_surplus, rich_word_, credit_argument(recalled_, 0));
    expect_reset(rich_slot);
}

TEST_F(LendingPeer, WhatWasGivenBackUsed)
{
    ASSERT_NO_FATAL_FAILURE(open_three());
    ASSERT_NO_FATAL_FAILURE(use_up());
    say(op_surplus, rich_word_, credit_argument(recalled_, 0));
    for (int i = 0; i < 34; ++i)
        say(op_data, rich_word_, 0);
    expect_reset(rich_slot);
}

TEST_F(LendingPeer, GivingBackUnasked)
{
    ASSERT_NO_FATAL_FAILURE(open_three());
    say(op_surplus, poor_word_, 0);
    expect_reset(poor_slot);
}

TEST_F(LendingPeer, GrantingUnasked)
{
    ASSERT_NO_FATAL_FAILURE(open_three());
    say(op_grant, poor_word_, credit_argument(1, 1));
    expect_reset(poor_slot);
}

TEST_F(LendingPeer, GrantingMoreThanThereCanBe)
{
    ASSERT_NO_FATAL_FAILURE(open_three());
    for (int i = 0; i < 16; ++i)
        ASSERT_EQ(send_one(near_, poor_, 8, 0), 1);
    ASSERT_EQ(send_one(near_, poor_, 8, 0), 0);
    turn();
    ASSERT_NO_FATAL_FAILURE(hear_data(16));
    Heard heard = hear();
    EXPECT_EQ(heard.op, op_more);
    EXPECT_EQ(heard.argument, lack_messages);
    say(op_grant, poor_word_, credit_argument(max_credit - 15, 0));
    expect_reset(poor_slot);
}

TEST_F(LendingPeer, LackingWhatDoesNotExist)
{
    ASSERT_NO_FATAL_FAILURE(open_three());
    say(op_more, poor_word_, 4);
    expect_reset(poor_slot);
}

TEST_F(LendingPeer, WithAPayload)
{
    for (const uint32_t op : {op_more, op_grant, op_recall, op_surplus}) {
        ntbmsg_channel *channel = nullptr;
        const uint32_t word = open_channel(channel);
        const uint64_t before = stats(near_).bad_peer;
        say(op, word, 1, &op, sizeof(op));
        EXPECT_EQ(hear().op, op_reset);
        EXPECT_EQ(stats(near_).bad_peer, before + 1);
        give_back({channel});
        say(op, word, 1); // the slot is free: it may have been under way
        turn();
        EXPECT_EQ(stats(near_).bad_peer, before + 1);
    }
}

TEST_F(LendingPeer, AskedForAllAChannelGivesWhatItHasNotUsedAndGoesOn)
{
    ASSERT_NO_FATAL_FAILURE(open_three());
    for (int i = 0; i < 3; ++i)
        ASSERT_EQ(send_one(near_, poor_, 8, 0), 1);
    ASSERT_NO_FATAL_FAILURE(hear_data(3));
    for (const uint32_t given : {13U, 0U}) {
        say(op_recall, poor_word_, credit_argument(max_credit, max_credit));
        const Heard heard = hear();
        EXPECT_EQ(heard.op, op_surplus);
        EXPECT_EQ(credit_messages(heard.argument), given);
        EXPECT_EQ(credit_buffers(heard.argument), given != 0 ? 8U : 0U);
    }
    EXPECT_EQ(info(poor_).credit_messages, 3U);
    EXPECT_EQ(send_one(near_, poor_, 8, 0), 0);
    EXPECT_EQ(hear().op, op_more);
    say(op_credit, poor_word_, credit_argument(3, 0));
    turn();
    EXPECT_EQ(send_one(near_, poor_, 8, 0), 1);
    EXPECT_EQ(stats(near_).bad_peer, 0U);
}

TEST_F(HostilePeer, CreditThatMovesWithoutTheFeature)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    ntbmsg_channel *channel = nullptr;
    const uint32_t word = open_channel(channel);
    for (int i = 0; i < 16; ++i)
        ASSERT_EQ(send_one(near_, channel, 8, 0), 1);
    ASSERT_EQ(send_one(near_, channel, 8, 0), 0);
    turn();
    ASSERT_NO_FATAL_FAILURE(hear_data(16));
    EXPECT_TRUE(is_silent()) << "a peer of an earlier version is not asked";
    say(op_recall, word, credit_argument(1, 0));
    expect_protest(channel);
}

TEST_F(HostilePeer, StaleMessagesReachNoChannel)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    ntbmsg_channel *channel = nullptr;
    const uint32_t word = open_channel(channel);
    ASSERT_EQ(ntbmsg_channel_reset(channel, 5), 0);
    give_back({channel});
    EXPECT_EQ(hear().op, op_reset);
    say(op_data, word, 0);
    say(op_close, word, 0);
    say(op_reset, word, 0);
    say(op_credit, word, credit_argument(65535, 65535));
    say(op_data, slot_word(65535, 65535), 0);
    say(op_data, 0, 0);
    for (uint32_t op = one_sided_first; op <= one_sided_last; ++op)
        say(op, word, 0);
    turn();
    EXPECT_EQ(stats(near_).bad_peer, 0U);
    EXPECT_EQ(stats(near_).rx_dropped, 3U);
}

// ---- what was meant for the peer before

TEST_F(HostilePeer, AHelloThatWasOwedToTheOneBeforeIsSaidOnce)
{
    ASSERT_NO_FATAL_FAILURE(come_back());
    EXPECT_EQ(hear().op, op_hello);
    EXPECT_TRUE(is_silent());
}

TEST_F(HostilePeer, WhatIsOwedToTheOneBeforeIsNotPaid)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    ntbmsg_channel *channel = nullptr;
    open_channel(channel, nullptr, generous_opening());
    EXPECT_GT(fill_ring(channel), 16U);
    ASSERT_EQ(ntbmsg_channel_reset(channel, 5), 0);
    ASSERT_NO_FATAL_FAILURE(come_back());
    EXPECT_EQ(hear().op, op_hello);
    EXPECT_TRUE(is_silent());
    give_back({channel});
    EXPECT_TRUE(is_silent());
}

TEST_F(HostilePeer, WhoSleepsBeforeItHasSeenALossGreetsTheNextOne)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    ntbmsg_channel *channel = nullptr;
    open_channel(channel);
    ASSERT_GE(ntbmsg_worker_event_fd(near_worker_), 0);
    ASSERT_NO_FATAL_FAILURE(come_back());
    EXPECT_GE(ntbmsg_worker_arm(near_worker_), 0);
    EXPECT_EQ(ntbmsg_channel_state_get(channel), NTBMSG_CHANNEL_LOST);
    ntbmsg_meta meta{};
    rte_mbuf *got = nullptr;
    for (const uint64_t end = now_ms() + patience_ms; got == nullptr && now_ms() < end;)
        far_receive(got, meta); // without a poll of the worker
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(meta.flags, op_hello);
    rte_pktmbuf_free(got);
    EXPECT_EQ(ntbmsg_worker_disarm(near_worker_), 0);
    give_back({channel});
}

// ---- what comes late allows no send

TEST_F(HostilePeer, CreditBehindAShutdown)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    ntbmsg_channel *channel = nullptr;
    const uint32_t word = open_channel(channel);
    ASSERT_EQ(send_one(near_, channel, 8, 0), 1);
    ASSERT_EQ(ntbmsg_channel_shutdown(channel), 0);
    EXPECT_EQ(hear().op, op_data);
    EXPECT_EQ(hear().op, op_close);
    say(op_credit, word, credit_argument(1, 0));
    turn();
    EXPECT_EQ(send_one(near_, channel, 8, 0), -ESHUTDOWN);
    EXPECT_TRUE(is_silent());
    EXPECT_EQ(info(channel).unconfirmed, 0U);
    EXPECT_EQ(stats(near_).bad_peer, 0U);
    give_back({channel});
}

TEST_F(HostilePeer, AnAcceptThatGoesBehindAShutdown)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    ntbmsg_channel *other = nullptr, *channel = nullptr;
    open_channel(other, nullptr, generous_opening());
    const Opening opening = sound_opening(4);
    say(op_connect, 0, port, &opening, sizeof(opening));
    turn();
    ntbmsg_request request;
    ASSERT_EQ(ntbmsg_listener_poll(listener_, near_worker_, &request), 1);
    const unsigned filled = fill_ring(other);
    ASSERT_EQ(ntbmsg_channel_accept(&request, nullptr, &channel), 0);
    ASSERT_EQ(ntbmsg_channel_shutdown(channel), 0);
    ASSERT_NO_FATAL_FAILURE(hear_data(filled));
    EXPECT_EQ(hear().op, op_accept);
    EXPECT_EQ(hear().op, op_close);
    EXPECT_EQ(send_one(near_, channel, 8, 0), -ESHUTDOWN);
    EXPECT_TRUE(is_silent());
    give_back({channel, other});
}

TEST_F(HostilePeer, ChanceHitsNothing)
{
    ASSERT_NO_FATAL_FAILURE(greet());
    ntbmsg_channel *channel = nullptr;
    const uint32_t word = open_channel(channel);
    uint64_t seed = 0x9e3779b97f4a7c15;
    const auto random = [&seed] {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        return seed ^= seed << 17;
    };
    for (int i = 0; i < 20000; ++i) {
        uint8_t bytes[200];
        for (auto &byte : bytes)
            byte = static_cast<uint8_t>(random());
        const uint32_t target = random() % 4 == 0 ? word : static_cast<uint32_t>(random() % 66);
        ASSERT_NO_FATAL_FAILURE(say(static_cast<uint32_t>(random() % 64), target,
                                    static_cast<uint32_t>(random() >> random() % 64), bytes,
                                    random() % sizeof(bytes)));
        ntbmsg_request request;
        if (ntbmsg_listener_poll(listener_, near_worker_, &request) == 1)
            ntbmsg_request_reject(&request, 1, nullptr, 0);
        rte_mbuf *got = nullptr;
        ntbmsg_meta meta;
        for (int j = 0; j < 32 && far_receive(got, meta) == 1; ++j)
            rte_pktmbuf_free(got);
    }
    EXPECT_GT(stats(near_).bad_peer, 0U);
    give_back({channel});
}

} // namespace
