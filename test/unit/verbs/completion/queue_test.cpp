// SPDX-License-Identifier: BSD-3-Clause
#include "completion/queue.hpp"

#include <array>

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

namespace
{

using ntb::verbs::CompletionQueue;
using ntb::verbs::Pipe;

class CompletionQueueTest : public testing::Test
{
protected:
    void SetUp() override
    {
        ASSERT_EQ(channel_.create(), 0);
        ASSERT_TRUE(queue_.create(5, &channel_, 77));
    }
    bool push(std::uint64_t id, bool solicited = false, ntbv_status status = NTBV_SUCCESS,
              std::uint32_t qpn = 1)
    {
        return queue_.push({.id = id, .status = status, .qpn = qpn}, solicited);
    }
    int events()
    {
        int n = 0;
        pollfd fd = {channel_.descriptor(), POLLIN, 0};
        for (; poll(&fd, 1, 0) == 1; ++n) {
            std::uint64_t cookie = 0;
            EXPECT_EQ(read(channel_.descriptor(), &cookie, sizeof(cookie)), 8);
            EXPECT_EQ(cookie, 77u);
        }
        return n;
    }
    std::uint64_t take()
    {
        ntbv_wc completion = {};
        return queue_.take(1, &completion) == 1 ? completion.id : 0;
    }
    Pipe channel_;
    CompletionQueue queue_;
};

TEST_F(CompletionQueueTest, FillsWhatIsLentToItFirst)
{
    std::array<ntbv_wc, 2> lent;
    queue_.arm(false);
    queue_.lend(2, lent.data());
    for (std::uint64_t i = 1; i <= 7; ++i)
        EXPECT_TRUE(push(i));
    EXPECT_EQ(events(), 1);
    EXPECT_EQ(queue_.give_back(lent.data()), 2);
    EXPECT_EQ(lent[0].id, 1u);
    EXPECT_EQ(lent[1].id, 2u);
    for (std::uint64_t i = 3; i <= 7; ++i)
        EXPECT_EQ(take(), i);
    for (const int n : {0, -1}) {
        queue_.lend(n, lent.data());
        EXPECT_TRUE(push(8));
        EXPECT_EQ(queue_.give_back(lent.data()), 0);
        EXPECT_EQ(take(), 8u);
    }
    for (int i = 0; i < 6; ++i)
        EXPECT_EQ(push(9), i < 5);
    while (take() != 0) {
    }
    queue_.lend(2, lent.data());
    EXPECT_FALSE(push(10)) << "it has overrun before";
    EXPECT_EQ(queue_.give_back(lent.data()), 0);
}

TEST_F(CompletionQueueTest, HoldsWhatItWasMadeForAndGivesItInOrder)
{
    std::array<ntbv_wc, 8> taken;
    for (std::uint64_t turn = 0; turn < 100; ++turn) {
        for (std::uint64_t i = 0; i < 5; ++i)
            ASSERT_TRUE(push(turn * 5 + i));
        ASSERT_EQ(queue_.take(2, taken.data()), 2);
        ASSERT_EQ(queue_.take(8, taken.data() + 2), 3);
        ASSERT_EQ(queue_.take(8, taken.data()), 0);
        ASSERT_EQ(queue_.take(-1, taken.data()), 0);
        for (std::uint64_t i = 0; i < 5; ++i)
            ASSERT_EQ(taken[i].id, turn * 5 + i);
    }
}

TEST_F(CompletionQueueTest, OverrunIsForGood)
{
    for (std::uint64_t i = 1; i <= 5; ++i)
        ASSERT_TRUE(push(i));
    EXPECT_FALSE(push(6));
    EXPECT_TRUE(queue_.overrun());
    EXPECT_EQ(take(), 1u);
    EXPECT_FALSE(push(7));
}

TEST_F(CompletionQueueTest, OneEventFollowsEachArming)
{
    push(1);
    EXPECT_EQ(events(), 0);
    queue_.arm(false);
    EXPECT_EQ(events(), 0) << "what came before raises none";
    push(2);
    push(3);
    EXPECT_EQ(events(), 1);
    queue_.arm(false);
    queue_.arm(false);
    push(4);
    EXPECT_EQ(events(), 1);
}

TEST_F(CompletionQueueTest, ASolicitedOneOrAnErrorWakesWhoWantsOnlyThese)
{
    queue_.arm(true);
    push(1);
    EXPECT_EQ(events(), 0);
    push(2, true);
    EXPECT_EQ(events(), 1);
    queue_.arm(true);
    push(3, false, NTBV_WR_FLUSH_ERR);
    EXPECT_EQ(events(), 1);
    queue_.arm(false);
    queue_.arm(true); // takes nothing back
    push(4);
    EXPECT_EQ(events(), 1);
}

TEST_F(CompletionQueueTest, AFullChannelGetsTheEventLater)
{
    std::uint64_t cookie = 77;
    int written = 0;
    for (; channel_.write(&cookie, sizeof(cookie)); ++written) {
    }
    queue_.arm(false);
    push(1);
    EXPECT_TRUE(queue_.owes_event());
    EXPECT_FALSE(queue_.notify());
    EXPECT_EQ(events(), written);
    EXPECT_TRUE(queue_.notify());
    EXPECT_EQ(events(), 1);
    EXPECT_FALSE(queue_.owes_event());
}

TEST_F(CompletionQueueTest, ForgetsOneQueuePairAndKeepsTheOrderOfOthers)
{
    for (std::uint64_t i = 1; i <= 5; ++i)
        push(i, false, NTBV_SUCCESS, i % 2 ? 1 : 2);
    queue_.forget(1);
    EXPECT_EQ(take(), 2u);
    EXPECT_EQ(take(), 4u);
    EXPECT_EQ(take(), 0u);
    EXPECT_TRUE(queue_.empty());
}

TEST_F(CompletionQueueTest, KeepsWhatWaitsWhenItIsResized)
{
    std::array<ntbv_wc, 8> taken;
    for (std::uint64_t i = 0; i < 5; ++i)
        ASSERT_TRUE(push(i));
    ASSERT_EQ(queue_.take(3, taken.data()), 3); // its places are around the end
    for (std::uint64_t i = 5; i < 8; ++i)
        ASSERT_TRUE(push(i));
    ASSERT_TRUE(queue_.resize(17));
    for (std::uint64_t i = 8; i < 20; ++i)
        ASSERT_TRUE(push(i));
    for (std::uint64_t i = 3; i < 17; ++i)
        ASSERT_EQ(take(), i);
    ASSERT_TRUE(queue_.resize(queue_.count()));
    EXPECT_FALSE(push(20));
    for (std::uint64_t i = 17; i < 20; ++i)
        ASSERT_EQ(take(), i);
    EXPECT_TRUE(queue_.empty() && queue_.overrun());
}

} // namespace
