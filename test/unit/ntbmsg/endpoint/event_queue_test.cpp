// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/event_queue.hpp"

#include <thread>

#include <gtest/gtest.h>

namespace
{

class Events : public testing::Test
{
protected:
    void SetUp() override { ASSERT_EQ(queue_.init(), 0); }
    void TearDown() override { queue_.destroy(); }

    ntbmsg::EventQueue queue_;
};

TEST_F(Events, ComeOutInTheOrderTheyWentIn)
{
    ntbmsg_event event;
    EXPECT_FALSE(queue_.pop(event));
    queue_.push(NTBMSG_EVENT_CONNECTED);
    queue_.push(NTBMSG_EVENT_LOST);
    ASSERT_TRUE(queue_.pop(event));
    EXPECT_EQ(event, NTBMSG_EVENT_CONNECTED);
    ASSERT_TRUE(queue_.pop(event));
    EXPECT_EQ(event, NTBMSG_EVENT_LOST);
    EXPECT_FALSE(queue_.pop(event));
}

TEST_F(Events, TheOldestMakeRoom)
{
    for (int i = 0; i < 10; ++i)
        queue_.push(NTBMSG_EVENT_SILENT);
    for (int i = 0; i < 64; ++i)
        queue_.push(i == 0 ? NTBMSG_EVENT_LOST : NTBMSG_EVENT_CONNECTED);
    ntbmsg_event event;
    ASSERT_TRUE(queue_.pop(event));
    EXPECT_EQ(event, NTBMSG_EVENT_LOST);
    for (int i = 1; i < 64; ++i)
        ASSERT_TRUE(queue_.pop(event));
    EXPECT_FALSE(queue_.pop(event));
}

TEST_F(Events, AwaitReturnsForWhatCameBetweenLookAndWait)
{
    const uint64_t seen = queue_.pushed();
    queue_.push(NTBMSG_EVENT_CONNECTED);
    queue_.await(seen, UINT32_MAX); // would not return in the time of any test
}

TEST_F(Events, AwaitEndsWithoutAnEvent)
{
    queue_.await(queue_.pushed(), 1);
    EXPECT_EQ(queue_.pushed(), 0U);
}

TEST_F(Events, AnotherThreadWakesTheWaiter)
{
    std::thread teller([this] { queue_.push(NTBMSG_EVENT_CONNECTED); });
    queue_.await(0, 30'000);
    EXPECT_EQ(queue_.pushed(), 1U);
    teller.join();
}

} // namespace
