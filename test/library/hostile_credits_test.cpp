// SPDX-License-Identifier: BSD-3-Clause
// Credit of several channels in one message, towards a peer that knows CREDITS and from one.
#include <array>

#include <gtest/gtest.h>

#include "hostile_peer.hpp"

namespace
{

constexpr unsigned channel_count = credits_max + 1;

class CreditsPeer : public HostilePeer
{
protected:
    static constexpr uint16_t first_slot = 10;

    void greet_with(uint64_t features)
    {
        ASSERT_EQ(hear().op, op_hello);
        Hello hello = sound_hello();
        hello.features = features;
        ASSERT_NO_FATAL_FAILURE(say(op_hello, 0, 0, &hello, sizeof(hello)));
    }
    /// Channels that return credit with each second message.
    void open_all(unsigned n)
    {
        ntbmsg_channel_options options = channel_options();
        options.credit_messages = 4;
        for (unsigned i = 0; i < n; ++i)
            words_.at(i) = open_channel(channels_.at(i), &options, sound_opening(slot(i)));
    }
    static uint16_t slot(unsigned i) { return static_cast<uint16_t>(first_slot + i); }
    /// Two messages to each of the first @p n channels, which their application receives.
    void use(unsigned n)
    {
        for (unsigned i = 0; i < 2 * n; ++i)
            say(op_data, words_.at(i / 2), 0);
        turn();
        for (unsigned i = 0; i < n; ++i) {
            rte_mbuf *got[2] = {};
            ASSERT_EQ(ntbmsg_channel_recv_burst(channels_.at(i), got, nullptr, 2), 2);
            rte_pktmbuf_free_bulk(got, 2);
        }
    }
    static std::vector<ChannelCredit> credits_in(const Heard &heard)
    {
        std::vector<ChannelCredit> credits(heard.bytes.size() / sizeof(ChannelCredit));
        std::memcpy(credits.data(), heard.bytes.data(), credits.size() * sizeof(ChannelCredit));
        return credits;
    }
    void expect_credits(const Heard &heard, unsigned n)
    {
        ASSERT_EQ(heard.op, op_credits);
        EXPECT_EQ(heard.word, 0U);
        EXPECT_EQ(heard.argument, n);
        ASSERT_EQ(heard.bytes.size(), n * sizeof(ChannelCredit));
        const std::vector<ChannelCredit> credits = credits_in(heard);
        for (unsigned i = 0; i < n; ++i) {
            EXPECT_EQ(credits[i].word, slot_word(slot(i), 9));
            EXPECT_EQ(credits[i].argument, credit_argument(2, 0));
        }
    }
    void say_credits(const std::vector<ChannelCredit> &credits, uint32_t count)
    {
        say(op_credits, 0, count, credits.data(), credits.size() * sizeof(ChannelCredit));
        turn();
    }
    void TearDown() override
    {
        for (ntbmsg_channel *channel : channels_) {
            if (channel != nullptr)
                give_back({channel});
        }
        HostilePeer::TearDown();
    }

    std::array<ntbmsg_channel *, channel_count> channels_{};
    std::array<uint32_t, channel_count> words_{};
};

TEST_F(CreditsPeer, CreditOfSeveralChannelsComesInOneMessage)
{
    ASSERT_NO_FATAL_FAILURE(greet_with(feature_credits));
    open_all(channel_count);
    ASSERT_NO_FATAL_FAILURE(use(channel_count));
    ASSERT_NO_FATAL_FAILURE(expect_credits(hear(), credits_max));
    const Heard last = hear();
    EXPECT_EQ(last.op, op_credit) << "one alone needs no list";
    EXPECT_EQ(last.word, slot_word(slot(credits_max), 9));
    EXPECT_TRUE(is_silent());
    EXPECT_EQ(stats(near_).bad_peer, 0U);
}

TEST_F(CreditsPeer, CreditOfFewDoesNotWaitForOthersThatNeverCome)
{
    ASSERT_NO_FATAL_FAILURE(greet_with(feature_credits));
    open_all(2);
    for (int round = 0; round < 3; ++round) {
        ASSERT_NO_FATAL_FAILURE(use(2));
        ASSERT_NO_FATAL_FAILURE(expect_credits(hear(), 2));
    }
    EXPECT_EQ(stats(near_).bad_peer, 0U);
}

TEST_F(CreditsPeer, CreditOfFewIsSentThoughMessagesKeepComing)
{
    ASSERT_NO_FATAL_FAILURE(greet_with(feature_credits));
    open_all(1);
    ntbmsg_channel *busy = nullptr;
    const uint32_t busy_word = open_channel(busy);
    ASSERT_NO_FATAL_FAILURE(use(1));
    // Each poll finds a message, so none shows that the sender waits.
    rte_mbuf *got = nullptr;
    unsigned said = 0;
    for (ntbmsg_meta meta{}; said < 20 && far_receive(got, meta) == 0; ++said) {
        rte_mbuf *mbuf = message(far_, 8, 0);
        ASSERT_EQ(far_send(mbuf, {header(busy_word, 0), op_data, 0}), 1);
        ASSERT_EQ(ntbmsg_worker_poll(near_worker_), 1);
    }
    ASSERT_LT(said, 20U);
    rte_pktmbuf_free(got);
    EXPECT_GT(said, 1U) << "it had waited for others";
    give_back({busy});
}

// A poll set reports a run at once, whatever waits.
TEST_F(CreditsPeer, CreditOfFewIsSentThoughASetFindsARunInEachPoll)
{
    constexpr unsigned run = 16;
    ASSERT_NO_FATAL_FAILURE(greet_with(feature_credits));
    open_all(1);
    ntbmsg_poll_set *set = nullptr;
    ASSERT_EQ(ntbmsg_poll_set_create(near_worker_, &set), 0);
    ntbmsg_channel_options options = channel_options();
    options.credit_messages = 1024;
    options.set = set;
    ntbmsg_channel *busy = nullptr;
    const uint32_t busy_word = open_channel(busy, &options);
    ntbmsg_ready opened{};
    ASSERT_EQ(ntbmsg_poll_set_poll(set, &opened, 1), 1);
    ASSERT_NO_FATAL_FAILURE(use(1));
    rte_mbuf *got = nullptr;
    unsigned polls = 0;
    for (ntbmsg_meta meta{}; polls < 20 && far_receive(got, meta) == 0; ++polls) {
        for (unsigned i = 0; i < run; ++i)
            ASSERT_EQ(far_send(message(far_, 8, 0), {header(busy_word, 0), op_data, 0}), 1);
        ntbmsg_ready ready{};
        ASSERT_EQ(ntbmsg_poll_set_poll(set, &ready, 1), 1);
        EXPECT_EQ(ready.channel, busy);
        EXPECT_EQ(ready.events, NTBMSG_READABLE);
        rte_mbuf *mbufs[run] = {};
        ASSERT_EQ(ntbmsg_channel_recv_burst(busy, mbufs, nullptr, run), static_cast<int>(run));
        rte_pktmbuf_free_bulk(mbufs, run);
    }
    ASSERT_LT(polls, 20U);
    rte_pktmbuf_free(got);
    EXPECT_GT(polls, 1U) << "it had waited for others";
    give_back({busy});
    EXPECT_EQ(ntbmsg_poll_set_destroy(set), 0);
}

TEST_F(CreditsPeer, APeerOfAnEarlierVersionGetsOneForEach)
{
    ASSERT_NO_FATAL_FAILURE(greet_with(0));
    open_all(3);
    ASSERT_NO_FATAL_FAILURE(use(3));
    for (unsigned i = 0; i < 3; ++i) {
        const Heard heard = hear();
        EXPECT_EQ(heard.op, op_credit);
        EXPECT_EQ(heard.word, slot_word(slot(i), 9));
    }
    EXPECT_TRUE(is_silent());
}

TEST_F(CreditsPeer, CreditsAreTakenByTheirChannels)
{
    ASSERT_NO_FATAL_FAILURE(greet_with(feature_credits));
    open_all(3);
    for (unsigned i = 0; i < 3; ++i) {
        ASSERT_EQ(send_one(near_, channels_.at(i), 8, 0), 1);
        ASSERT_EQ(hear().op, op_data);
    }
    // The second has ended in the meantime, or never was.
    say_credits({{words_[0], credit_argument(1, 0)},
                 {slot_word(60, 7), credit_argument(1, 0)},
                 {words_[2], credit_argument(1, 0)}},
                3);
    EXPECT_EQ(info(channels_[0]).unconfirmed, 0U);
    EXPECT_EQ(info(channels_[1]).unconfirmed, 1U);
    EXPECT_EQ(info(channels_[2]).unconfirmed, 0U);
    EXPECT_EQ(stats(near_).bad_peer, 0U);
}

TEST_F(CreditsPeer, MoreThanWasUsedEndsThatChannelAlone)
{
    ASSERT_NO_FATAL_FAILURE(greet_with(feature_credits));
    open_all(2);
    ASSERT_EQ(send_one(near_, channels_[1], 8, 0), 1);
    ASSERT_EQ(hear().op, op_data);
    say_credits({{words_[0], credit_argument(1, 0)}, {words_[1], credit_argument(1, 0)}}, 2);
    const Heard heard = hear();
    EXPECT_EQ(heard.op, op_reset);
    EXPECT_EQ(heard.word, slot_word(slot(0), 9));
    EXPECT_EQ(ntbmsg_channel_state_get(channels_[0]), NTBMSG_CHANNEL_RESET);
    EXPECT_EQ(ntbmsg_channel_state_get(channels_[1]), NTBMSG_CHANNEL_OPEN);
    EXPECT_EQ(info(channels_[1]).unconfirmed, 0U);
    EXPECT_EQ(stats(near_).bad_peer, 1U);
}

TEST_F(CreditsPeer, ListsThatLieAreCountedAndDropped)
{
    ASSERT_NO_FATAL_FAILURE(greet_with(feature_credits));
    open_all(1);
    ASSERT_EQ(send_one(near_, channels_[0], 8, 0), 1);
    ASSERT_EQ(hear().op, op_data);
    const ChannelCredit sound = {words_[0], credit_argument(1, 0)};
    say_credits({sound}, 2);
    say_credits({sound, sound}, 1);
    say_credits({}, 1);
    say_credits(std::vector<ChannelCredit>(credits_max + 1, sound), credits_max + 1);
    say_credits({sound}, 0x20000001);
    const std::vector<uint8_t> huge(3000);
    say(op_credits, 0, 375, huge.data(), huge.size());
    say(op_credits, words_[0], 1, &sound, sizeof(sound)); // to a channel
    turn();
    EXPECT_EQ(hear().op, op_reset);
    EXPECT_EQ(stats(near_).bad_peer, 7U);
}

TEST_F(CreditsPeer, CreditsWithoutTheFeatureAreCountedAndDropped)
{
    ASSERT_NO_FATAL_FAILURE(greet_with(0));
    open_all(1);
    ASSERT_EQ(send_one(near_, channels_[0], 8, 0), 1);
    ASSERT_EQ(hear().op, op_data);
    say_credits({{words_[0], credit_argument(1, 0)}}, 1);
    EXPECT_EQ(info(channels_[0]).unconfirmed, 1U);
    EXPECT_EQ(stats(near_).bad_peer, 1U);
}

} // namespace
