// SPDX-License-Identifier: BSD-3-Clause
// A port that is stopped, or loses its rawdev, in the middle of traffic.
#include "ports.hpp"

#include <atomic>
#include <string>
#include <thread>

#include <ethdev_driver.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_pmd_plx_ntb.h>
#include <rte_pmd_plx_ntb_test.h>
#include <rte_rawdev.h>

namespace test
{

namespace
{

/// A port over a rawdev of its own name, while both directions are polled.
class Polled : public Ports
{
protected:
    void SetUp() override
    {
        Ports::SetUp();
        ASSERT_EQ(rte_vdev_init(rawdev.c_str(), (cable() + small).c_str()), 0);
        near = std::make_unique<TestPort>("net_plx_ntb0", "dev=" + rawdev);
        far = std::make_unique<TestPort>("net_plx_ntb1", cable() + small);
        ASSERT_EQ(near->rc(), 0);
        ASSERT_EQ(far->rc(), 0);
        changes = 0;
        ASSERT_EQ(
            rte_eth_dev_callback_register(near->id(), RTE_ETH_EVENT_INTR_RMV, on_change, nullptr),
            0);
        start({.rmv = true}, {});
        one_each_way(1);
        begin();
    }
    void TearDown() override
    {
        finish();
        rte_eth_dev_callback_unregister(near->id(), RTE_ETH_EVENT_INTR_RMV, on_change, nullptr);
        Ports::TearDown();
        rte_vdev_uninit(rawdev.c_str());
    }
    void finish()
    {
        done = true;
        if (lcore.joinable())
            lcore.join();
    }
    /// Both ports send to each other. It calls the driver as a core does that was in a burst when
    /// the port was stopped: what ethdev puts in the place of a stopped port's bursts is not used.
    void poll()
    {
        const struct rte_eth_fp_ops ops[] = {rte_eth_fp_ops[near->id()], rte_eth_fp_ops[far->id()]};
        while (!done)
            for (const auto &port : ops) {
                rte_mbuf *frame = make_frame(sender.get(), 64, 0);
                if (frame != nullptr && port.tx_pkt_burst(port.txq.data[0], &frame, 1) == 0)
                    rte_pktmbuf_free(frame);
                if (port.rx_pkt_burst(port.rxq.data[0], &frame, 1) == 1) {
                    rte_pktmbuf_free(frame);
                    received = received + 1;
                }
            }
    }
    void begin()
    {
        done = false;
        const unsigned before = received;
        lcore = std::thread([this] { poll(); });
        ASSERT_TRUE(await([&] { return received > before + 100; }));
    }

    static inline const std::string rawdev = "raw_plx_ntb0";
    std::thread lcore;
    std::atomic<bool> done{false};
    std::atomic<unsigned> received{0};
};

TEST_F(Polled, AStopInMidBurstLosesNoMbufAndTrafficComesBack)
{
    for (int round = 0; round < 10; ++round) {
        ASSERT_EQ(rte_eth_dev_stop(near->id()), 0);
        finish();
        ASSERT_EQ(rte_eth_dev_start(near->id()), 0);
        ASSERT_TRUE(near->await_link(true));
        ASSERT_TRUE(far->await_link(true));
        begin();
    }
    ASSERT_EQ(rte_eth_dev_stop(near->id()), 0);
    ASSERT_EQ(rte_eth_dev_stop(far->id()), 0);
    finish(); // the ports are closed with what came in between still in their rings
}

class Removal : public Polled
{
protected:
    uint16_t raw_id() const { return static_cast<uint16_t>(rte_pmd_plx_ntb_find(rawdev.c_str())); }
    /// After it has gone, while it is still polled.
    void expect_gone()
    {
        ASSERT_TRUE(await([] { return changes == 1; }));
        EXPECT_EQ(rte_eth_dev_is_removed(near->id()), 1);
        EXPECT_EQ(near->link().link_status, RTE_ETH_LINK_DOWN);
        EXPECT_TRUE(far->await_link(false));
        const uint64_t before = near->xstat("tx_no_link");
        EXPECT_TRUE(await([&] { return near->xstat("tx_no_link") > before; }));
        finish();
        poll_empty(*near);
        EXPECT_TRUE(would_sleep(*near));
        EXPECT_EQ(rte_eth_dev_set_link_up(near->id()), 0); // it is not down by hand
        EXPECT_EQ(rte_eth_dev_stop(near->id()), 0);
        EXPECT_LT(rte_eth_dev_start(near->id()), 0);
        EXPECT_EQ(rte_eth_stats_reset(near->id()), 0);
        EXPECT_EQ(near->stats().opackets, 0u);
    }
};

TEST_F(Removal, OfTheRawdevEndsThePortAndNothingElse)
{
    ASSERT_EQ(rte_vdev_uninit(rawdev.c_str()), 0);
    expect_gone();
    EXPECT_EQ(changes, 1u);
    // Another of the same name and id: the port does not reach it.
    ASSERT_EQ(rte_vdev_init(rawdev.c_str(), (cable() + small).c_str()), 0);
    EXPECT_LT(rte_eth_dev_start(near->id()), 0);
    auto again = std::make_unique<TestPort>("net_plx_ntb2", "dev=" + rawdev);
    ASSERT_EQ(again->rc(), 0);
    ASSERT_EQ(again->start({}), 0);
    ASSERT_TRUE(far->await_link(true));
    near.swap(again);
    ASSERT_TRUE(near->await_link(true));
    one_each_way(5);
    near.swap(again);
    again.reset();
}

TEST_F(Removal, OfARawdevThatWasClosed)
{
    rte_rawdev_stop(raw_id());
    ASSERT_EQ(rte_rawdev_close(raw_id()), 0);
    expect_gone();
}

TEST_F(Removal, OfTheCardByAnEventOfEal)
{
    rte_dev_event_callback_process("0000:ff:1f.7", RTE_DEV_EVENT_REMOVE);
    rte_dev_event_callback_process(rawdev.c_str(), RTE_DEV_EVENT_ADD);
    EXPECT_EQ(changes, 0u);
    ASSERT_EQ(rte_pmd_plx_ntb_inject(raw_id(), RTE_PMD_PLX_NTB_FAULT_CARD_GONE, 1), 0);
    rte_dev_event_callback_process(rawdev.c_str(), RTE_DEV_EVENT_REMOVE);
    rte_dev_event_callback_process(rawdev.c_str(), RTE_DEV_EVENT_REMOVE);
    expect_gone();
}

TEST_F(Removal, IsRefusedWhileThePortsApplicationHoldsItsBuffers)
{
    finish();
    near.reset();
    near = std::make_unique<TestPort>("net_plx_ntb0", "dev=" + rawdev + ",zero_copy=1");
    ASSERT_EQ(near->rc(), 0);
    ASSERT_EQ(near->start({.rmv = true}), 0);
    ASSERT_TRUE(near->await_link(true));
    ASSERT_TRUE(far->await_link(true));
    rte_mbuf *frame = exchange(*far, *near, 0, make_frame(sender.get(), 1518, 3));
    ASSERT_NE(frame, nullptr);
    EXPECT_NE(rte_vdev_uninit(rawdev.c_str()), 0);
    EXPECT_EQ(rte_eth_dev_is_removed(near->id()), 0);
    rte_pktmbuf_free(frame);
    EXPECT_EQ(rte_vdev_uninit(rawdev.c_str()), 0);
    EXPECT_EQ(rte_eth_dev_is_removed(near->id()), 1);
}

} // namespace

} // namespace test
