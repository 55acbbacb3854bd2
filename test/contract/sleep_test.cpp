// SPDX-License-Identifier: BSD-3-Clause
// Receivers that sleep: what wakes them, and that nothing is slept through.
#include "pair.hpp"

#include <cerrno>
#include <random>
#include <thread>

#include <rte_epoll.h>
#include <rte_interrupts.h>
#include <rte_mbuf.h>
#include <rte_rawdev.h>
#include <rte_service.h>

#include <poll.h>
#include <sys/epoll.h>

using namespace contract;

namespace
{

constexpr int patience_ms = 60'000;
constexpr uint32_t patience_us = patience_ms * 1000;

/// No look but those of the control tick comes in between.
const std::string rarely = patient + ",spin_us=0,recheck_us=1000000";

class Sleep : public Pair
{
protected:
    static HostSetup with(const std::string &devargs) { return {.devargs = devargs}; }

    int fd(uint16_t queue = 0) { return rte_pmd_plx_ntb_rx_event_fd(id(), queue); }
    bool readable(int timeout_ms, uint16_t queue = 0)
    {
        pollfd waiting{fd(queue), POLLIN, 0};
        return poll(&waiting, 1, timeout_ms) == 1;
    }
    /// With nothing to receive. What opened the connection may wake once for nothing.
    void arm(uint16_t queue = 0) { ASSERT_EQ(rte_pmd_plx_ntb_rx_arm(id(), queue), 0); }
    Command sends(uint32_t count, uint32_t queue = 0)
    {
        return traffic({stream(queue, 1, count, {8})}, {});
    }
    unsigned receive(uint16_t queue = 0)
    {
        rte_mbuf *mbufs[32];
        const int got = rte_pmd_plx_ntb_rx_burst(id(), queue, mbufs, nullptr, 32);
        if (got > 0)
            rte_pktmbuf_free_bulk(mbufs, static_cast<unsigned>(got));
        return got > 0 ? static_cast<unsigned>(got) : 0;
    }
    /// As a receiver goes about it, wakes for nothing and all.
    bool sleep_until_received(unsigned count, uint16_t queue = 0)
    {
        for (unsigned got = 0; got < count;) {
            const unsigned now = receive(queue);
            got += now;
            if (now > 0 || rte_pmd_plx_ntb_rx_arm(id(), queue) != 0)
                continue;
            const bool woken = readable(patience_ms, queue);
            rte_pmd_plx_ntb_rx_disarm(id(), queue);
            if (!woken)
                return false;
        }
        return true;
    }
    void sent_while_asleep(uint32_t count, uint16_t queue = 0)
    {
        if (HasFatalFailure())
            return;
        far().begin(sends(count, queue));
        EXPECT_TRUE(sleep_until_received(count, queue));
        EXPECT_EQ(far().end().rc, 0);
    }
    uint64_t doorbell_wakes() { return near().xstat("sleep_doorbell_wakes"); }
    uint64_t check_wakes() { return near().xstat("sleep_check_wakes"); }
};

TEST_P(Sleep, MessageWakes)
{
    bring_up();
    arm();
    far().begin(sends(1));
    ASSERT_TRUE(readable(patience_ms));
    EXPECT_EQ(rte_pmd_plx_ntb_rx_disarm(id(), 0), 0);
    EXPECT_FALSE(readable(0)) << "disarming takes the event with it";
    EXPECT_TRUE(sleep_until_received(1));
    EXPECT_EQ(far().end().rc, 0);
}

TEST_P(Sleep, AnotherThreadWakes)
{
    bring_up();
    arm();
    std::thread([&] { EXPECT_EQ(rte_pmd_plx_ntb_rx_wake(id(), 0), 0); }).join();
    EXPECT_TRUE(readable(patience_ms));
    EXPECT_EQ(rte_pmd_plx_ntb_rx_disarm(id(), 0), 0);
    EXPECT_EQ(rte_pmd_plx_ntb_rx_wake(id(), 0), 0);
    EXPECT_FALSE(readable(0)) << "not armed";
}

TEST_P(Sleep, WorksInRteEpoll)
{
    bring_up();
    rte_epoll_event event{};
    event.epdata.event = EPOLLIN;
    event.epdata.data = this;
    ASSERT_EQ(rte_epoll_ctl(RTE_EPOLL_PER_THREAD, EPOLL_CTL_ADD, fd(), &event), 0);
    arm();
    far().begin(sends(1));
    rte_epoll_event happened{};
    EXPECT_EQ(rte_epoll_wait(RTE_EPOLL_PER_THREAD, &happened, 1, patience_ms), 1);
    EXPECT_EQ(happened.epdata.data, this);
    EXPECT_EQ(rte_epoll_ctl(RTE_EPOLL_PER_THREAD, EPOLL_CTL_DEL, fd(), &event), 0);
    rte_pmd_plx_ntb_rx_disarm(id(), 0);
    EXPECT_TRUE(sleep_until_received(1));
    EXPECT_EQ(far().end().rc, 0);
}

TEST_P(Sleep, ArmingReportsWaitingMessages)
{
    bring_up();
    ASSERT_EQ(far().ask(sends(1)).rc, 0);
    ASSERT_EQ(rte_pmd_plx_ntb_rx_wait(id(), 0, patience_us), 1);
    EXPECT_EQ(rte_pmd_plx_ntb_rx_arm(id(), 0), 1);
    EXPECT_TRUE(readable(0)) << "for a caller that waits all the same";
    EXPECT_EQ(rte_pmd_plx_ntb_rx_disarm(id(), 0), 0);
    EXPECT_FALSE(readable(0));
    EXPECT_EQ(rte_pmd_plx_ntb_rx_wait(id(), 0, 0), 1);
    EXPECT_EQ(receive(), 1u);
    EXPECT_EQ(rte_pmd_plx_ntb_rx_wait(id(), 0, 0), 0);
}

TEST_P(Sleep, DoorbellWakesByItself)
{
    bring_up(with(rarely), with(rarely));
    // Which of the two finds a message first is a matter of time; that the doorbell ever does is
    // not.
    for (unsigned i = 0; i < 1000 && doorbell_wakes() == 0; ++i)
        sent_while_asleep(1);
    EXPECT_GT(doorbell_wakes(), 0u);
    EXPECT_GT(far().xstat("sleep_rings"), 0u);
}

TEST_P(Sleep, MsiWakesToo)
{
    bring_up(with(rarely + ",msi=1"), with(rarely + ",msi=1"));
    for (unsigned i = 0; i < 1000 && doorbell_wakes() == 0; ++i)
        sent_while_asleep(1);
    EXPECT_GT(doorbell_wakes(), 0u);
}

TEST_P(Sleep, LostDoorbellsCostNoMessage)
{
    bring_up(with(patient + ",spin_us=0"), usual());
    ASSERT_EQ(rte_pmd_plx_ntb_inject(id(), RTE_PMD_PLX_NTB_FAULT_DROP_DOORBELLS, UINT32_MAX), 0);
    // On a slow machine all may be there before the receiver sleeps, in any round.
    for (unsigned i = 0; i < 10 || (i < 1000 && check_wakes() == 0); ++i)
        sent_while_asleep(3);
    EXPECT_EQ(doorbell_wakes(), 0u);
    EXPECT_GT(check_wakes(), 0u);
}

TEST_P(Sleep, LateDoorbellsCostNoMessage)
{
    bring_up(with(patient + ",spin_us=0"), usual());
    ASSERT_EQ(rte_pmd_plx_ntb_inject(id(), RTE_PMD_PLX_NTB_FAULT_LATE_DOORBELLS, 30'000), 0);
    for (unsigned i = 0; i < 10; ++i)
        sent_while_asleep(3);
}

TEST_P(Sleep, WithoutInterruptItLooks)
{
    bring_up(with(patient + ",spin_us=0,intr=0"), usual());
    for (unsigned i = 0; i < 10; ++i)
        sent_while_asleep(3);
    EXPECT_EQ(doorbell_wakes(), 0u);
    EXPECT_EQ(far().xstat("sleep_rings"), 0u) << "rang without a listener";
}

TEST_P(Sleep, WithItsRegistersClosedItLooks)
{
    if (near_beyond_link()) {
        EXPECT_EQ(near().attach(cable(), "peer_csr=closed"), -ENOTSUP) << "they are the peer's too";
        return;
    }
    bring_up(with(patient + ",spin_us=0,peer_csr=closed"), usual());
    for (unsigned i = 0; i < 10; ++i)
        sent_while_asleep(3);
    EXPECT_EQ(far().xstat("sleep_rings"), 0u) << "rang where it cannot be heard";
}

TEST_P(Sleep, QueuesThatShareADoorbell)
{
    HostSetup setup = usual();
    setup.config.queues = 18;
    setup.config.ring_lines = 64;
    setup.config.queue_buffers = 14;
    bring_up(setup, setup);
    arm(1);
    sent_while_asleep(5, 17);
    rte_pmd_plx_ntb_rx_disarm(id(), 1);
    EXPECT_EQ(receive(1), 0u);
    sent_while_asleep(5, 1);
}

TEST_P(Sleep, DisarmedIsNotWoken)
{
    bring_up();
    arm();
    ASSERT_EQ(rte_pmd_plx_ntb_rx_disarm(id(), 0), 0);
    ASSERT_EQ(far().ask(sends(1)).rc, 0);
    while (receive() == 0)
        std::this_thread::yield();
    EXPECT_FALSE(readable(0));
}

TEST_P(Sleep, EndOfTheConnectionWakes)
{
    bring_up();
    arm();
    far().stop();
    EXPECT_TRUE(readable(patience_ms));
    rte_pmd_plx_ntb_rx_disarm(id(), 0);
    EXPECT_TRUE(near().await_event('L'));
}

TEST_P(Sleep, ComingOfAPeerWakes)
{
    ASSERT_EQ(near().bring_up(cable(), usual()), 0);
    arm();
    ASSERT_EQ(far().bring_up(cable(), usual()), 0);
    EXPECT_TRUE(readable(patience_ms));
    rte_pmd_plx_ntb_rx_disarm(id(), 0);
    await_connected(1);
    sent_while_asleep(3);
}

TEST_P(Sleep, StopWakesTheSleeper)
{
    bring_up();
    std::atomic<int> said{-1};
    std::thread waits([&] { said = rte_pmd_plx_ntb_rx_wait(id(), 0, RTE_PMD_PLX_NTB_FOREVER); });
    EXPECT_TRUE(near().await_xstat("sleep_arms", 1));
    near().stop();
    waits.join();
    EXPECT_EQ(said.load(), 1);
}

TEST_P(Sleep, ReconnectsToThePeer)
{
    bring_up();
    sent_while_asleep(3);
    far().stop();
    ASSERT_TRUE(near().await_event('L'));
    ASSERT_EQ(far().restart(usual()), 0);
    await_connected(2);
    sent_while_asleep(3);
}

TEST_P(Sleep, ServiceLooksAfterSleepers)
{
    bring_up(with(rarely + ",intr=0,service=1"), usual());
    uint32_t service = 0;
    ASSERT_EQ(rte_service_get_by_name(local_device().name(), &service), 0);
    ASSERT_EQ(rte_service_runstate_set(service, 1), 0);
    arm();
    far().begin(sends(1));
    for (int i = 0; i < patience_ms && !readable(1); ++i)
        ASSERT_EQ(rte_service_run_iter_on_app_lcore(service, 1), 0);
    EXPECT_TRUE(readable(0));
    rte_pmd_plx_ntb_rx_disarm(id(), 0);
    EXPECT_EQ(receive(), 1u);
    EXPECT_EQ(far().end().rc, 0);
}

TEST_P(Sleep, RefusesWhatIsNotThere)
{
    bring_up();
    constexpr uint16_t no_queue = 1, no_device = RTE_RAWDEV_MAX_DEVS - 1;
    for (const auto &[device, queue] :
         {std::pair{id(), no_queue}, std::pair{no_device, uint16_t{0}},
          std::pair{uint16_t{UINT16_MAX}, uint16_t{0}}}) {
        EXPECT_EQ(rte_pmd_plx_ntb_rx_event_fd(device, queue), -ENODEV);
        EXPECT_EQ(rte_pmd_plx_ntb_rx_arm(device, queue), -ENODEV);
        EXPECT_EQ(rte_pmd_plx_ntb_rx_disarm(device, queue), -ENODEV);
        EXPECT_EQ(rte_pmd_plx_ntb_rx_wake(device, queue), -ENODEV);
        EXPECT_EQ(rte_pmd_plx_ntb_rx_wait(device, queue, 0), -ENODEV);
    }
    EXPECT_EQ(rte_pmd_plx_ntb_rx_disarm(id(), 0), 0) << "not armed";
    EXPECT_EQ(rte_pmd_plx_ntb_rx_wait(id(), 0, 1000), 0);
}

/// Either end asleep while the other works, at any point of each other's falling asleep.
TEST_P(Sleep, TenThousandTimesWithoutALostOne)
{
    constexpr uint32_t rounds = 5000; // a sleep at each end
    bring_up(with(rarely), with(patient + ",spin_us=3,recheck_us=1000000"));
    Command echo{.op = Op::echo, .value = rounds, .limit_ms = 120'000};
    far().begin(echo);
    const int seed = testing::UnitTest::GetInstance()->random_seed() + 1;
    std::minstd_rand random(static_cast<unsigned>(seed));
    for (uint32_t i = 0; i < rounds; ++i) {
        for (auto spins = random() % 4000; spins > 0; --spins)
            rte_pause();
        rte_mbuf *mbuf = rte_pktmbuf_alloc(local_device().pool());
        ASSERT_NE(mbuf, nullptr);
        ASSERT_NE(rte_pktmbuf_append(mbuf, 8), nullptr);
        ASSERT_EQ(rte_pmd_plx_ntb_tx_burst(id(), 0, &mbuf, nullptr, 1), 1);
        while (receive() == 0)
            ASSERT_EQ(rte_pmd_plx_ntb_rx_wait(id(), 0, patience_us), 1) << "round " << i;
    }
    EXPECT_EQ(far().end().rc, 0);
    EXPECT_GT(doorbell_wakes(), 0u);
}

CONTRACT_EVERYWHERE(Sleep);

} // namespace
