// SPDX-License-Identifier: BSD-3-Clause
// Cores that sleep until a frame comes.
#include "ports.hpp"

#include <chrono>

#include <rte_interrupts.h>
#include <rte_power_intrinsics.h>

namespace test
{

namespace
{

TEST_F(Ports, AnInterruptWakesASleeperAlsoForWhatCameBefore)
{
    make();
    start({.interrupts = true}, {});
    ASSERT_EQ(
        rte_eth_dev_rx_intr_ctl_q(near->id(), 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_ADD, nullptr),
        0);
    const auto sleeps = [&] {
        rte_epoll_event event;
        return rte_epoll_wait(RTE_EPOLL_PER_THREAD, &event, 1,
                              static_cast<int>(std::chrono::milliseconds(patience).count()));
    };
    for (const bool before : {true, false}) {
        rte_mbuf *frame = make_frame(sender.get(), 64, 9);
        if (before) {
            ASSERT_TRUE(send(*far, 0, frame));
        }
        ASSERT_EQ(rte_eth_dev_rx_intr_enable(near->id(), 0), 0);
        if (!before) {
            ASSERT_TRUE(send(*far, 0, frame));
        }
        EXPECT_EQ(sleeps(), 1) << before;
        ASSERT_EQ(rte_eth_dev_rx_intr_disable(near->id(), 0), 0);
        frame = receive(*near, 0);
        ASSERT_NE(frame, nullptr);
        rte_pktmbuf_free(frame);
    }
    ASSERT_EQ(
        rte_eth_dev_rx_intr_ctl_q(near->id(), 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_DEL, nullptr),
        0);
}

TEST_F(Ports, APollingCoreMaySleepUntilAFrameComes)
{
    make();
    ASSERT_EQ(near->start({}), 0);
    poll_empty(*near);
    EXPECT_TRUE(would_sleep(*near)); // there is no peer
    ASSERT_EQ(far->start({}), 0);
    ASSERT_TRUE(await([&] { return !would_sleep(*near); })); // there is one
    for (uint32_t round = 0; round < 3; ++round) {
        ASSERT_TRUE(await([&] {
            poll_empty(*near);
            return would_sleep(*near);
        }));
        rte_power_monitor_cond condition{};
        ASSERT_EQ(rte_eth_get_monitor_addr(near->id(), 0, &condition), 0);
        ASSERT_TRUE(send(*far, 0, make_frame(sender.get(), round == 1 ? 1518 : 64, round)));
        // The condition that was taken before, as a core that sleeps has it.
        auto *word = static_cast<uint32_t *>(const_cast<void *>(condition.addr));
        EXPECT_TRUE(await([&] {
            return condition.fn(__atomic_load_n(word, __ATOMIC_ACQUIRE), condition.opaque) == -1;
        }));
        EXPECT_FALSE(would_sleep(*near));
        rte_mbuf *frame = receive(*near, 0);
        ASSERT_NE(frame, nullptr);
        rte_pktmbuf_free(frame);
        EXPECT_FALSE(would_sleep(*near)); // the peer waits for its credits
    }
    ASSERT_EQ(rte_eth_dev_stop(far->id()), 0);
    ASSERT_TRUE(near->await_link(false));
    poll_empty(*near);
    EXPECT_TRUE(would_sleep(*near));
}

} // namespace

} // namespace test
