// SPDX-License-Identifier: BSD-3-Clause
// Credit of a channel at both ends, by numbers alone: what one end says reaches the other one in
// order, some time later.
#include <deque>
#include <random>

#include <gtest/gtest.h>

#include "transport/credit.hpp"

namespace
{

using namespace ntbmsg;

constexpr uint32_t most = 65535;

TEST(SendCredit, GrowsNoFurtherThanTheFieldsOfAMessage)
{
    SendCredit tx{};
    tx.grant({most - 1, 10});
    EXPECT_FALSE(tx.grow({2, 0}, most, true));
    EXPECT_FALSE(tx.grow({0, most}, most, true));
    EXPECT_EQ(tx.now.messages, most - 1);
    EXPECT_TRUE(tx.grow({1, 5}, most, true));
    EXPECT_EQ(tx.granted.messages, most);
    EXPECT_EQ(tx.now.buffers, 15U);
}

TEST(SendCredit, WhereNothingMayBeSentOnlyTheGrantGrows)
{
    SendCredit tx{};
    tx.grant({4, 4});
    tx.now.messages = 0;
    EXPECT_TRUE(tx.grow({4, 4}, most, false));
    EXPECT_EQ(tx.now.messages, 0U);
    EXPECT_EQ(tx.granted.messages, 8U);
}

TEST(SendCredit, GivesBackWhatIsNotInUseButForOneMessage)
{
    SendCredit tx{};
    tx.grant({10, 6});
    tx.sent({4, 1});
    Credit given = tx.yield({3, 2});
    EXPECT_EQ(given.messages, 3U);
    EXPECT_EQ(given.buffers, 2U);
    given = tx.yield({most, most});
    EXPECT_EQ(given.messages, 3U) << "what was sent is still out";
    EXPECT_EQ(given.buffers, 3U);
    EXPECT_TRUE(tx.returned({4, 1}, true));
    given = tx.yield({most, most});
    EXPECT_EQ(given.messages, 3U) << "one message stays";
    EXPECT_EQ(tx.granted.messages, 1U);
    EXPECT_EQ(tx.now.messages, 1U);
}

TEST(ReceiveCredit, MoreThanThePeerHasIsNotGivenBack)
{
    ReceiveCredit rx{};
    rx.grant({10, 4});
    rx.open();
    ASSERT_TRUE(rx.use({8, 1}));
    EXPECT_FALSE(rx.shrink({3, 0}));
    EXPECT_FALSE(rx.shrink({0, 4}));
    EXPECT_EQ(rx.granted.messages, 10U);
    EXPECT_TRUE(rx.shrink({2, 3}));
    EXPECT_EQ(rx.granted.messages, 8U);
    EXPECT_FALSE(rx.use({1, 0}));
}

TEST(ReceiveCredit, IsDueByPartOfWhatIsGrantedNow)
{
    ReceiveCredit rx{};
    rx.grant({4, 0});
    EXPECT_EQ(rx.due_at, 2U);
    rx.open();
    rx.grow({60, 0});
    EXPECT_EQ(rx.due_at, 32U);
    ASSERT_TRUE(rx.shrink({63, 0}));
    EXPECT_EQ(rx.due_at, 1U) << "or its sender would wait for ever";
    rx.grow({511, 0});
    EXPECT_EQ(rx.due_at, 256U) << "half of little";
    rx.grow({512, 0});
    EXPECT_EQ(rx.due_at, 256U) << "a smaller part of more";
    rx.grow({2048, 0});
    EXPECT_EQ(rx.due_at, 384U) << "an eighth of much";
    rx.grow({10000, 0});
    EXPECT_EQ(rx.due_at, ReceiveCredit::most_due);
}

TEST(Lending, AnswersOnceAndForNoMoreThanWasAskedFor)
{
    Lending l{};
    EXPECT_FALSE(l.answered({0, 0}));
    l.recalled = {8, 2};
    l.answer_due = true;
    EXPECT_FALSE(l.answered({9, 0}));
    EXPECT_FALSE(l.answered({0, 3}));
    EXPECT_TRUE(l.answered({5, 0}));
    EXPECT_FALSE(l.answered({0, 0}));
}

TEST(Lending, WantsAsMuchAgainOfWhatIsLacking)
{
    Lending l{};
    l.least = {8, 32};
    l.most = {1024, 256};
    l.lacks = protocol::lack_messages;
    EXPECT_EQ(l.wanted({64, 32}).messages, 64U);
    EXPECT_EQ(l.wanted({64, 32}).buffers, 0U);
    EXPECT_EQ(l.wanted({1000, 32}).messages, 24U);
    EXPECT_EQ(l.wanted({1024, 32}).messages, 0U);
    l.lacks = protocol::lack_buffers;
    EXPECT_EQ(l.wanted({64, 32}).buffers, 32U);
    EXPECT_EQ(l.surplus({64, 40}).messages, 56U);
    EXPECT_EQ(l.surplus({64, 40}).buffers, 8U);
    EXPECT_EQ(l.surplus({4, 1}).messages, 0U);
}

TEST(Budget, KeepsWhatFurtherChannelsNeed)
{
    EXPECT_EQ(Budget::spare(100, 20, 2), 60U);
    EXPECT_EQ(Budget::spare(100, 50, 2), 0U);
    EXPECT_EQ(Budget::spare(100, 51, 2), 50U) << "less than they need: half";
    EXPECT_EQ(Budget::spare(0, 4095, 2), 0U);
    EXPECT_EQ(Budget::share(16384, 4095, 2, 64), 64U);
    EXPECT_EQ(Budget::share(10, 0, 4, 64), 4U);
}

/// Both ends of a channel, and messages between them that take their time.
class TwoEnds
{
public:
    explicit TwoEnds(uint32_t seed) : random_(seed)
    {
        budget_.left = {pool, pool};
        lending_.least = {8, 4};
        lending_.most = {512, 64};
        Credit first{};
        EXPECT_TRUE(budget_.reserve({64, 16}, 4, first));
        rx_.grant(first);
        rx_.open();
        tx_.grant(first);
    }
    void step()
    {
        switch (random_() % 6) {
        case 0:
            send();
            break;
        case 1:
            take_in();
            break;
        case 2:
            if (received_.messages != 0 || received_.buffers != 0)
                give_credit();
            break;
        case 3:
            grow();
            break;
        case 4:
            recall();
            break;
        default:
            hear();
        }
    }
    /// Nothing is lost or counted twice, wherever it is.
    void check() const
    {
        Credit under_way{}, back{}, extra{}, given{};
        for (const Said &said : to_receiver_)
            (said.kind == Said::data ? under_way : given) += said.much;
        for (const Said &said : to_sender_) {
            if (said.kind == Said::credit)
                back += said.much;
            if (said.kind == Said::grant)
                extra += said.much;
        }
        EXPECT_EQ(budget_.left.messages + rx_.granted.messages, pool);
        EXPECT_EQ(budget_.left.buffers + rx_.granted.buffers, pool);
        EXPECT_EQ(tx_.granted.messages + extra.messages + given.messages, rx_.granted.messages);
        EXPECT_EQ(tx_.granted.buffers + extra.buffers + given.buffers, rx_.granted.buffers);
        EXPECT_EQ(tx_.now.messages + under_way.messages + back.messages + extra.messages +
                      given.messages,
                  rx_.left.messages);
        EXPECT_EQ(rx_.left.messages + received_.messages, rx_.granted.messages);
    }

private:
    struct Said {
        enum Kind { data, give_back, credit, grant, recall } kind;
        Credit much;
    };
    static constexpr uint32_t pool = 1000;

    void send()
    {
        const Credit one = {1, static_cast<uint32_t>(random_() % 3)};
        if (!tx_.now.covers(one))
            return;
        tx_.sent(one);
        to_receiver_.push_back({Said::data, one});
    }
    void take_in()
    {
        if (to_receiver_.empty())
            return;
        const Said said = to_receiver_.front();
        to_receiver_.pop_front();
        if (said.kind == Said::data) {
            ASSERT_TRUE(rx_.use(said.much));
            received_ += said.much;
            return;
        }
        ASSERT_TRUE(lending_.answered(said.much));
        ASSERT_TRUE(rx_.shrink(said.much));
        budget_.release(said.much);
    }
    void give_credit()
    {
        rx_.received(received_);
        to_sender_.push_back({Said::credit, rx_.owed});
        rx_.returned();
        received_ = {};
    }
    void grow()
    {
        lending_.lacks = protocol::lack_messages | protocol::lack_buffers;
        const Credit extra = lending_.wanted(rx_.granted).least(budget_.left);
        budget_.left -= extra;
        rx_.grow(extra);
        to_sender_.push_back({Said::grant, extra});
    }
    void recall()
    {
        if (lending_.answer_due)
            return;
        lending_.recalled = lending_.surplus(rx_.granted);
        lending_.answer_due = true;
        to_sender_.push_back({Said::recall, lending_.recalled});
    }
    void hear()
    {
        if (to_sender_.empty())
            return;
        const Said said = to_sender_.front();
        to_sender_.pop_front();
        if (said.kind == Said::credit)
            ASSERT_TRUE(tx_.returned(said.much, true));
        else if (said.kind == Said::grant)
            ASSERT_TRUE(tx_.grow(said.much, most, true));
        else
            to_receiver_.push_back({Said::give_back, tx_.yield(said.much)});
    }

    std::mt19937 random_;
    SendCredit tx_{};
    ReceiveCredit rx_{};
    Lending lending_{};
    Budget budget_{};
    Credit received_{};
    std::deque<Said> to_receiver_, to_sender_;
};

TEST(TwoEnds, LoseNothingWhateverCrosses)
{
    for (uint32_t seed = 0; seed < 50; ++seed) {
        TwoEnds ends(seed);
        for (int i = 0; i < 2000; ++i) {
            ends.step();
            ends.check();
            ASSERT_FALSE(HasFailure()) << "seed " << seed << ", step " << i;
        }
    }
}

} // namespace
