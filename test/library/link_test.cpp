// SPDX-License-Identifier: BSD-3-Clause
// Link state and events of an endpoint.
#include <cerrno>

#include "cabled.hpp"

namespace
{

using Link = Cabled;

TEST_F(Link, AloneItWaitsAndSaysWhy)
{
    open(near_device, near_);
    EXPECT_EQ(ntbmsg_endpoint_link_state_get(near_), NTBMSG_LINK_WAITING);
    EXPECT_EQ(ntbmsg_endpoint_wait_connected(near_, 0), -ETIMEDOUT);
    EXPECT_EQ(ntbmsg_endpoint_wait_connected(near_, 20), -ETIMEDOUT);
    EXPECT_EQ(ntbmsg_endpoint_max_message(near_), 0U);
    char why[96] = "";
    EXPECT_EQ(ntbmsg_endpoint_link_reason_get(near_, why, sizeof(why)), 0);
    EXPECT_NE(why[0], '\0');
}

TEST_F(Link, WhyIsCutToTheRoomThereIs)
{
    open(near_device, near_);
    char why[4] = {'x', 'x', 'x', 'x'};
    EXPECT_EQ(ntbmsg_endpoint_link_reason_get(near_, why, sizeof(why)), 0);
    EXPECT_EQ(why[3], '\0');
    EXPECT_EQ(ntbmsg_endpoint_link_reason_get(near_, why, 0), -EINVAL);
    EXPECT_EQ(ntbmsg_endpoint_link_reason_get(near_, nullptr, 4), -EINVAL);
}

TEST_F(Link, ConnectsInAnyOrderAndReportsIt)
{
    connect();
    for (ntbmsg_endpoint *e : {near_, far_}) {
        EXPECT_EQ(ntbmsg_endpoint_link_state_get(e), NTBMSG_LINK_CONNECTED);
        EXPECT_TRUE(await_event(e, NTBMSG_EVENT_CONNECTED));
        EXPECT_GE(ntbmsg_endpoint_max_message(e), 2048U);
        char why[96] = "x";
        EXPECT_EQ(ntbmsg_endpoint_link_reason_get(e, why, sizeof(why)), 0);
        EXPECT_STREQ(why, "");
        EXPECT_EQ(stats(e).links, 1U);
    }
}

TEST_F(Link, MaxMessageIsThePeers)
{
    open(near_device, near_);
    ntbmsg_endpoint_options options = small_options();
    options.max_message = 5000;
    open(far_device, far_, options);
    ASSERT_EQ(ntbmsg_endpoint_wait_connected(near_, patience_ms), 0);
    EXPECT_EQ(ntbmsg_endpoint_max_message(near_), 5000U);
}

TEST_F(Link, QueuesHereAndWorkersThereAreRefusedWithBothNumbers)
{
    ntbmsg_endpoint_options options = small_options();
    options.queues = 1;
    options.workers = 0;
    open(near_device, near_, options);
    options.queues = 0;
    options.workers = 1;
    open(far_device, far_, options);
    EXPECT_TRUE(await_event(near_, NTBMSG_EVENT_REFUSED));
    EXPECT_TRUE(await_event(far_, NTBMSG_EVENT_REFUSED));
    char why[96] = "";
    EXPECT_EQ(ntbmsg_endpoint_link_reason_get(near_, why, sizeof(why)), 0);
    EXPECT_STREQ(why, "queues and workers do not fit: this side has 1 and 0, the peer 0 and 1");
    EXPECT_EQ(ntbmsg_endpoint_link_reason_get(far_, why, sizeof(why)), 0);
    EXPECT_STREQ(why, "queues and workers do not fit: this side has 0 and 1, the peer 1 and 0");
}

TEST_F(Link, APeerThatClosesIsLostAndComesBack)
{
    connect();
    ASSERT_TRUE(await_event(near_, NTBMSG_EVENT_CONNECTED));
    close(far_);
    ASSERT_TRUE(await_event(near_, NTBMSG_EVENT_LOST));
    EXPECT_EQ(ntbmsg_endpoint_link_state_get(near_), NTBMSG_LINK_WAITING);
    rte_mbuf *unsent = message(near_, 8, 0);
    EXPECT_EQ(ntbmsg_queue_send_burst(near_, 0, &unsent, nullptr, 1), -ENOTCONN);
    rte_pktmbuf_free(unsent);
    open(far_device, far_);
    ASSERT_TRUE(await_event(near_, NTBMSG_EVENT_CONNECTED));
    EXPECT_EQ(stats(near_).links, 2U);
    rte_mbuf *sent = message(near_, 8, 7);
    ASSERT_EQ(ntbmsg_endpoint_wait_connected(far_, patience_ms), 0);
    ASSERT_EQ(ntbmsg_queue_send_burst(near_, 0, &sent, nullptr, 1), 1);
    rte_mbuf *got = receive(far_);
    ASSERT_NE(got, nullptr);
    rte_pktmbuf_free(got);
}

TEST_F(Link, NullArgumentsAreRefused)
{
    open(near_device, near_);
    ntbmsg_event event;
    EXPECT_EQ(ntbmsg_endpoint_event_poll(nullptr, &event), -EINVAL);
    EXPECT_EQ(ntbmsg_endpoint_event_poll(near_, nullptr), -EINVAL);
    EXPECT_EQ(ntbmsg_endpoint_event_poll(near_, &event), 0);
    EXPECT_EQ(ntbmsg_endpoint_wait_connected(nullptr, 0), -EINVAL);
    EXPECT_EQ(ntbmsg_endpoint_link_state_get(nullptr), NTBMSG_LINK_WAITING);
    EXPECT_EQ(ntbmsg_endpoint_max_message(nullptr), 0U);
}

} // namespace
