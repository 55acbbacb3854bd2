// SPDX-License-Identifier: BSD-3-Clause
// The link: when it is up, and what comes back with it.
#include "ports.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>

#include <ethdev_driver.h>
#include <rte_pmd_plx_ntb.h>
#include <rte_pmd_plx_ntb_test.h>

namespace test
{

namespace
{

TEST_F(Ports, TheLinkFollowsThePeerAndIsReported)
{
    changes = 0;
    make();
    ASSERT_EQ(rte_eth_dev_callback_register(near->id(), RTE_ETH_EVENT_INTR_LSC, on_change, nullptr),
              0);
    ASSERT_EQ(near->start({.lsc = true}), 0);
    EXPECT_EQ(near->link().link_status, RTE_ETH_LINK_DOWN);
    rte_mbuf *frame = make_frame(sender.get(), 64, 1);
    EXPECT_EQ(rte_eth_tx_burst(near->id(), 0, &frame, 1), 0);
    rte_pktmbuf_free(frame);
    ASSERT_EQ(far->start({}), 0);
    ASSERT_TRUE(near->await_link(true));
    ASSERT_TRUE(await([] { return changes == 1; }));
    EXPECT_EQ(near->link().link_duplex, RTE_ETH_LINK_FULL_DUPLEX);
    EXPECT_GE(near->link().link_speed, 2000u);
    ASSERT_TRUE(far->await_link(true));
    one_each_way(1);

    ASSERT_EQ(rte_eth_dev_stop(far->id()), 0);
    ASSERT_TRUE(near->await_link(false));
    ASSERT_TRUE(await([] { return changes == 2; }));
    ASSERT_EQ(rte_eth_dev_start(far->id()), 0);
    ASSERT_TRUE(near->await_link(true));
    ASSERT_TRUE(far->await_link(true));
    one_each_way(2);
    rte_eth_dev_callback_unregister(near->id(), RTE_ETH_EVENT_INTR_LSC, on_change, nullptr);
}

/// rte_eth_dev_start() marks the port as started when the driver's part is over; the peer may be
/// connected before that.
TEST_F(Ports, ALinkThatComesWhileThePortStartsIsReported)
{
    make();
    ASSERT_EQ(near->start({.lsc = true}), 0);
    ASSERT_EQ(far->start({}), 0);
    ASSERT_TRUE(near->await_link(true));
    ASSERT_EQ(rte_eth_dev_stop(near->id()), 0);
    ASSERT_TRUE(far->await_link(false));
    changes = 0;
    ASSERT_EQ(rte_eth_dev_callback_register(near->id(), RTE_ETH_EVENT_INTR_LSC, on_change, nullptr),
              0);
    rte_eth_dev *dev = &rte_eth_devices[near->id()];
    ASSERT_EQ(dev->dev_ops->dev_start(dev), 0);
    EXPECT_TRUE(await([] { return changes == 1; }));
    dev->data->dev_started = 1;
    EXPECT_EQ(near->link().link_status, RTE_ETH_LINK_UP);
    rte_eth_dev_callback_unregister(near->id(), RTE_ETH_EVENT_INTR_LSC, on_change, nullptr);
}

TEST_F(Ports, LinkDownAndUpByHand)
{
    make();
    start({}, {});
    for (uint32_t round = 0; round < 3; ++round) {
        ASSERT_EQ(rte_eth_dev_set_link_down(near->id()), 0);
        ASSERT_EQ(rte_eth_dev_set_link_down(near->id()), 0);
        ASSERT_TRUE(near->await_link(false));
        ASSERT_TRUE(far->await_link(false));
        ASSERT_EQ(rte_eth_dev_set_link_up(near->id()), 0);
        ASSERT_TRUE(near->await_link(true));
        ASSERT_TRUE(far->await_link(true));
        one_each_way(round);
    }
    ASSERT_EQ(rte_eth_dev_set_link_down(near->id()), 0);
    ASSERT_EQ(rte_eth_dev_stop(near->id()), 0);
    ASSERT_EQ(rte_eth_dev_start(near->id()), 0);
    ASSERT_TRUE(near->await_link(true));
}

/// Nothing is left to wait for when both links are up: the first burst is taken, each way.
TEST_F(Ports, TrafficComesBackWithTheLink)
{
    make();
    start({}, {});
    int64_t longest_us = 0;
    for (uint32_t round = 0; round < 20; ++round) {
        ASSERT_EQ(rte_eth_dev_stop(far->id()), 0);
        ASSERT_TRUE(near->await_link(false));
        ASSERT_EQ(rte_eth_dev_start(far->id()), 0);
        ASSERT_TRUE(near->await_link(true));
        ASSERT_TRUE(far->await_link(true));
        const auto up = std::chrono::steady_clock::now();
        const TestPort *ways[][2] = {{near.get(), far.get()}, {far.get(), near.get()}};
        for (const auto &[from, to] : ways) {
            rte_mbuf *frame = make_frame(sender.get(), 64, round);
            ASSERT_EQ(rte_eth_tx_burst(from->id(), 0, &frame, 1), 1) << round;
            frame = receive(*to, 0);
            ASSERT_NE(frame, nullptr);
            EXPECT_EQ(same_bytes(frame, round), 64u);
            rte_pktmbuf_free(frame);
        }
        const auto took = std::chrono::steady_clock::now() - up;
        longest_us = std::max<int64_t>(
            longest_us, std::chrono::duration_cast<std::chrono::microseconds>(took).count());
    }
    RecordProperty("longest_us", std::to_string(longest_us));
}

TEST_F(Ports, StopConfigureAndStartAgain)
{
    make();
    start({}, {});
    one_each_way(1);
    ASSERT_EQ(rte_eth_dev_stop(near->id()), 0);
    const auto sent = near->stats().opackets;
    EXPECT_EQ(sent, 1u);
    ASSERT_EQ(rte_eth_dev_start(near->id()), 0);
    ASSERT_TRUE(near->await_link(true));
    ASSERT_TRUE(far->await_link(true));
    one_each_way(2);
    EXPECT_EQ(near->stats().opackets, 2u);
    ASSERT_EQ(rte_eth_dev_reset(near->id()), 0);
    ASSERT_TRUE(far->await_link(false));
}

TEST_F(Ports, AStopThatCouldNotCompleteSaysSoAndAStartWaitsForIt)
{
    make();
    start({}, {});
    one_each_way(1);
    const auto raw = static_cast<uint16_t>(rte_pmd_plx_ntb_find("raw_plx_ntb.net_plx_ntb0"));
    ASSERT_EQ(rte_pmd_plx_ntb_inject(raw, RTE_PMD_PLX_NTB_FAULT_CARD_GONE, 1), 0);
    EXPECT_EQ(rte_eth_dev_stop(near->id()), -EIO);
    EXPECT_EQ(rte_eth_dev_start(near->id()), -EBUSY);
    ASSERT_EQ(rte_pmd_plx_ntb_inject(raw, RTE_PMD_PLX_NTB_FAULT_CARD_GONE, 0), 0);
    ASSERT_TRUE(await([&] { return rte_eth_dev_start(near->id()) == 0; }));
    ASSERT_TRUE(near->await_link(true));
    ASSERT_TRUE(far->await_link(true));
    one_each_way(2);
}

TEST_F(Ports, APortRemovedUnderItsPeerLeavesTheOtherReady)
{
    make();
    start({}, {});
    one_each_way(1);
    far.reset();
    ASSERT_TRUE(near->await_link(false));
    far = std::make_unique<TestPort>("net_plx_ntb1", cable() + small);
    ASSERT_EQ(far->rc(), 0);
    ASSERT_EQ(far->start({.rx = 2, .tx = 2, .scatter = true}), 0);
    ASSERT_TRUE(near->await_link(true));
    ASSERT_TRUE(far->await_link(true));
    one_each_way(2);
}

/// The applications of both hosts were set up differently, and the peer anew under traffic.
TEST_F(Ports, APeerThatComesBackWithOtherSettingsIsTaken)
{
    make();
    start({.rx = 2, .tx = 2, .scatter = true}, {.scatter = true});
    pass(*near, *far, 0, 9000, 1);
    const struct {
        const char *args;
        TestPort::Setup setup;
        uint32_t largest;
    } others[] = {
        {",ring=1024,buffers=512,queue_buffers=112,buf=4096",
         {.rx = 3, .tx = 1, .scatter = true},
         65553},
        {",ring=4096,buffers=64,queue_buffers=14,inline=256", {.room = 1600}, 1518},
        {",ring=64,buffers=256,queue_buffers=112,buf=64,inline=1024", {.room = 4096}, 1518},
    };
    for (const auto &other : others) {
        far.reset();
        ASSERT_TRUE(near->await_link(false));
        far = std::make_unique<TestPort>("net_plx_ntb1", cable() + other.args);
        ASSERT_EQ(far->rc(), 0) << other.args;
        ASSERT_EQ(far->start(other.setup), 0) << other.args;
        ASSERT_TRUE(near->await_link(true));
        ASSERT_TRUE(far->await_link(true));
        pass(*near, *far, 0, 64, 2);
        pass(*near, *far, 0, other.largest, 3);
        pass(*far, *near, 0, other.largest, 4);
    }
}

} // namespace

} // namespace test
