// SPDX-License-Identifier: BSD-3-Clause
// Devices find each other in any order of start, report what happens, stop and connect again.
#include "pair.hpp"

#include <atomic>
#include <cerrno>
#include <functional>
#include <thread>

#include <rte_mbuf.h>

#include <poll.h>

using namespace contract;

namespace
{

class Life : public Pair
{
protected:
    void talk(uint32_t seed) { both_ways(stream(0, seed, 300, {8, 48, 300, 3000})); }

    static HostSetup patient_end(unsigned linger_ms)
    {
        return {.devargs = patient + ",linger_ms=" + std::to_string(linger_ms)};
    }
    /// The far host stops with 200 messages in the near one's memory.
    void far_stops_unheard(const Stream &s, unsigned far_linger_ms)
    {
        bring_up(patient_end(600'000), patient_end(far_linger_ms));
        talk(1);                 // receive buffers are available from then on
        near().ask(Op::discard); // a poll that finds nothing confirms the last message
        ASSERT_EQ(far().ask(traffic({s}, {})).rc, 0);
        far_stop_ = std::thread([this] { far().stop(); });
        ASSERT_TRUE(near().await_event('E'));
    }
    /// One message after the other, and no end before the last.
    void receive_slowly(const Stream &s)
    {
        for (uint32_t i = 0; i < s.count; ++i) {
            rte_mbuf *m = nullptr;
            rte_pmd_plx_ntb_meta meta{};
            ASSERT_TRUE(await([&] {
                return m != nullptr || rte_pmd_plx_ntb_rx_burst(id(), 0, &m, &meta, 1) == 1;
            })) << i;
            EXPECT_EQ(test::check_message(m, meta, id(), s, i), "") << i;
            rte_pktmbuf_free(m);
            if (i + 1 < s.count) {
                EXPECT_EQ(near().link().state, RTE_PMD_PLX_NTB_CLOSING);
                EXPECT_EQ(near().events(), "CE");
            }
        }
    }
    void TearDown() override
    {
        if (far_stop_.joinable())
            far_stop_.join();
        Pair::TearDown();
    }

    std::thread far_stop_;
};

const Stream unheard = stream(0, 21, 200, {8, 48, 300, 3000, 8000});

TEST_P(Life, WhatWasSentIsReceivedAfterAStop)
{
    far_stops_unheard(unheard, 0);
    far_stop_.join();
    EXPECT_EQ(far().link().state, RTE_PMD_PLX_NTB_STOPPED);
    EXPECT_EQ(far().xstat("tx_unconfirmed"), 200u) << "it has not waited";
    receive_slowly(unheard);
    ASSERT_TRUE(near().await_state(RTE_PMD_PLX_NTB_WAITING));
    EXPECT_EQ(near().events(), "CEL");
    ASSERT_EQ(far().ask(Op::start).rc, 0);
    await_connected(2);
    talk(2);
}

TEST_P(Life, AStopWaitsForASlowReceiver)
{
    far_stops_unheard(unheard, 600'000);
    rte_mbuf *m = test::make_message(local_device().pool(), stream(0, 1, 1, {8}), 0);
    EXPECT_EQ(rte_pmd_plx_ntb_tx_burst(id(), 0, &m, nullptr, 1), -ENOTCONN)
        << "who has stopped takes nothing";
    rte_pktmbuf_free(m);
    receive_slowly(unheard);
    far_stop_.join();
    EXPECT_EQ(far().xstat("tx_unconfirmed"), 0u);
    ASSERT_TRUE(near().await_state(RTE_PMD_PLX_NTB_WAITING));
}

/// Also of what no later poll has confirmed.
TEST_P(Life, AStopConfirmsWhatWasReceived)
{
    bring_up(patient_end(0), patient_end(0));
    one_way(stream(0, 3, 20, {8, 300}));
    far().stop();
    ASSERT_TRUE(near().await_state(RTE_PMD_PLX_NTB_WAITING));
    EXPECT_EQ(near().xstat("tx_unconfirmed"), 0u);
}

/// Neither receives any more: each counts what it has sent, and knows of the other at once.
TEST_P(Life, TwoThatStopAtOnceWaitForNobody)
{
    bring_up(patient_end(600'000), patient_end(600'000));
    ASSERT_EQ(near().ask(traffic({stream(0, 1, 70, {8})}, {})).rc, 0);
    ASSERT_EQ(far().ask(traffic({stream(0, 1, 30, {8})}, {})).rc, 0);
    far_stop_ = std::thread([this] { far().stop(); });
    uint64_t left = 0;
    EXPECT_EQ(rte_pmd_plx_ntb_stop(id(), 600'000, &left), 0);
    EXPECT_EQ(left, 70u);
    far_stop_.join();
    EXPECT_EQ(far().xstat("tx_unconfirmed"), 30u);
}

TEST_P(Life, AStopWaitsNoLongerThanItShould)
{
    bring_up();
    ASSERT_EQ(near().ask(traffic({stream(0, 1, 70, {8})}, {})).rc, 0);
    uint32_t count = 0;
    EXPECT_EQ(rte_pmd_plx_ntb_tx_unconfirmed(id(), 0, &count), 0);
    EXPECT_EQ(count, 70u);
    uint64_t left = 0;
    EXPECT_EQ(rte_pmd_plx_ntb_stop(id(), 20, &left), 0);
    EXPECT_EQ(left, 70u);
    EXPECT_EQ(near().xstat("tx_unconfirmed"), 70u);
    EXPECT_EQ(rte_pmd_plx_ntb_tx_unconfirmed(id(), 0, &count), -ENOTCONN);
    EXPECT_EQ(count, 70u) << "as long as nothing else is sent";
    left = 0;
    EXPECT_EQ(rte_pmd_plx_ntb_stop(id(), 60'000, &left), 0) << "it is stopped";
    EXPECT_EQ(left, 70u);
    EXPECT_EQ(rte_pmd_plx_ntb_stop(63, 0, nullptr), -ENODEV);
    EXPECT_EQ(rte_pmd_plx_ntb_tx_unconfirmed(id(), 1, &count), -ENODEV);
    EXPECT_EQ(rte_pmd_plx_ntb_tx_unconfirmed(63, 0, &count), -ENODEV);
    EXPECT_EQ(rte_pmd_plx_ntb_tx_unconfirmed(id(), 0, nullptr), -EINVAL);
}

TEST_P(Life, WhatIsConfirmedIsCountedWhileMessagesFlow)
{
    bring_up();
    uint32_t count = 1;
    EXPECT_EQ(rte_pmd_plx_ntb_tx_unconfirmed(id(), 0, &count), 0);
    EXPECT_EQ(count, 0u);
    one_way(stream(0, 5, 1000, {8, 300, 3000}));
    EXPECT_TRUE(await([&] {
        far().ask(Op::discard); // a poll that finds nothing confirms the last
        return rte_pmd_plx_ntb_tx_unconfirmed(id(), 0, &count) == 0 && count == 0;
    }));
}

TEST_P(Life, NearFirst)
{
    ASSERT_EQ(near().bring_up(cable(), usual()), 0);
    ASSERT_TRUE(near().await_state(RTE_PMD_PLX_NTB_WAITING));
    EXPECT_STRNE(near().link().why, "");
    EXPECT_EQ(near().events(), "");
    ASSERT_EQ(far().bring_up(cable(), usual()), 0);
    await_connected(1);
    talk(1);
    EXPECT_EQ(near().events(), "C");
    EXPECT_EQ(far().events(), "C");
}

TEST_P(Life, FarFirst)
{
    ASSERT_EQ(far().bring_up(cable(), usual()), 0);
    ASSERT_TRUE(far().await_state(RTE_PMD_PLX_NTB_WAITING));
    ASSERT_EQ(near().bring_up(cable(), usual()), 0);
    await_connected(1);
    talk(2);
}

TEST_P(Life, BothAttachedBeforeEitherStarts)
{
    ASSERT_EQ(near().attach(cable(), patient), 0);
    ASSERT_EQ(far().attach(cable(), patient), 0);
    ASSERT_EQ(far().restart(usual()), 0);
    ASSERT_TRUE(far().await_state(RTE_PMD_PLX_NTB_WAITING));
    ASSERT_EQ(near().restart(usual()), 0);
    await_connected(1);
    talk(3);
}

TEST_P(Life, LinkSaysWhatItKnows)
{
    ASSERT_EQ(near().attach(cable(), patient), 0);
    rte_pmd_plx_ntb_link link = near().link();
    EXPECT_EQ(link.state, RTE_PMD_PLX_NTB_STOPPED);
    EXPECT_EQ(link.width != 0, near_beyond_link()) << "its root port is there, with any peer";
    ASSERT_EQ(near().restart(usual()), 0);
    ASSERT_TRUE(near().await_state(RTE_PMD_PLX_NTB_WAITING));
    link = near().link();
    EXPECT_EQ(link.peer_epoch, 0u);
    EXPECT_EQ(link.peer_max_message, 0u);
    EXPECT_EQ(link.queues, 0u);

    HostSetup other = usual();
    other.config.max_message = 12345;
    ASSERT_EQ(far().bring_up(cable(), other), 0);
    await_connected(1);
    link = near().link();
    EXPECT_EQ(link.state, RTE_PMD_PLX_NTB_CONNECTED);
    EXPECT_STREQ(link.why, "");
    EXPECT_GE(link.speed, 1u);
    EXPECT_GE(link.width, 1u);
    EXPECT_NE(link.peer_epoch, 0u);
    EXPECT_EQ(link.peer_max_message, 12345u);
    EXPECT_EQ(link.queues, 1u);
    EXPECT_EQ(rte_pmd_plx_ntb_link_get(id(), nullptr), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_link_get(63, &link), -ENODEV);
}

TEST_P(Life, NothingGoesBeforeThePeerIsThere)
{
    ASSERT_EQ(near().bring_up(cable(), usual()), 0);
    rte_mbuf *mbuf = test::make_message(local_device().pool(), stream(0, 1, 1, {8}), 0);
    ASSERT_NE(mbuf, nullptr);
    EXPECT_EQ(rte_pmd_plx_ntb_tx_burst(id(), 0, &mbuf, nullptr, 1), -ENOTCONN);
    rte_mbuf *got = nullptr;
    EXPECT_EQ(rte_pmd_plx_ntb_rx_burst(id(), 0, &got, nullptr, 1), 0);
    EXPECT_EQ(rte_pmd_plx_ntb_tx_burst(id(), 1, &mbuf, nullptr, 1), -ENODEV);
    EXPECT_EQ(rte_pmd_plx_ntb_rx_burst(id(), 1, &got, nullptr, 1), -ENODEV);
    rte_pmd_plx_ntb_burst burst;
    ASSERT_EQ(rte_pmd_plx_ntb_burst_get(id(), 0, &burst), 0);
    EXPECT_EQ(burst.tx(burst.tx_queue, &mbuf, nullptr, 1), -ENOTCONN);
    EXPECT_EQ(burst.rx(burst.rx_queue, &got, nullptr, 1), 0);
    EXPECT_EQ(rte_pmd_plx_ntb_burst_get(id(), 0, nullptr), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_burst_get(id(), 1, &burst), -ENODEV);
    test::Host &only = near();
    EXPECT_EQ(only.outstanding(), 1u) << "what was refused stays the caller's";
    rte_pktmbuf_free(mbuf);
}

TEST_P(Life, FarStopsAndStarts)
{
    bring_up();
    talk(4);
    const uint32_t epoch = near().link().peer_epoch;
    far().stop();
    ASSERT_TRUE(near().await_event('L'));
    ASSERT_TRUE(near().await_state(RTE_PMD_PLX_NTB_WAITING));
    EXPECT_EQ(far().link().state, RTE_PMD_PLX_NTB_STOPPED);
    ASSERT_EQ(far().ask(Op::start).rc, 0);
    await_connected(2);
    EXPECT_NE(near().link().peer_epoch, epoch);
    talk(5);
    EXPECT_EQ(near().events(), "CELC");
    EXPECT_EQ(far().events(), "CLC") << "its own stop is reported as well";
}

TEST_P(Life, NearStopsAndStarts)
{
    bring_up();
    for (unsigned round = 1; round <= 5; ++round) {
        talk(10 + round);
        near().stop();
        ASSERT_TRUE(far().await_event('L', round));
        ASSERT_EQ(near().ask(Op::start).rc, 0);
        await_connected(round + 1);
    }
    talk(20);
    EXPECT_EQ(near().xstat("link_connects"), 6u);
    EXPECT_EQ(far().xstat("link_losses"), 5u);
}

TEST_P(Life, BothStartAgainAtOnce)
{
    bring_up();
    for (unsigned round = 0; round < 5; ++round) {
        Command again;
        again.op = Op::stop;
        far().begin(again);
        near().ask(again);
        far().end();
        again.op = Op::start;
        far().begin(again);
        ASSERT_EQ(near().ask(again).rc, 0);
        ASSERT_EQ(far().end().rc, 0);
        ASSERT_TRUE(near().await_state(RTE_PMD_PLX_NTB_CONNECTED));
        ASSERT_TRUE(far().await_state(RTE_PMD_PLX_NTB_CONNECTED));
        talk(30 + round);
    }
}

TEST_P(Life, StartsAgainWithOtherSizes)
{
    bring_up();
    talk(40);
    HostSetup other = usual();
    other.config = {
        .queues = 2, .ring_lines = 128, .buffers = 512, .buf_bytes = 256, .queue_buffers = 28};
    near().stop();
    ASSERT_EQ(near().restart(other), 0);
    await_connected(2);
    talk(41);
    far().stop();
    ASSERT_EQ(far().restart(other), 0);
    await_connected(3);
    both_ways(stream(1, 42, 1000, {8, 256, 257, 3840}));
}

TEST_P(Life, NothingOfAnOldConnectionArrives)
{
    bring_up(patient_end(0), patient_end(0)); // else the far side would still receive them
    Command offer = traffic({stream(0, 50, 100, {8, 48})}, {});
    ASSERT_EQ(near().ask(offer).rc, 0);
    near().stop(); // the far side has not taken one
    ASSERT_TRUE(far().await_event('L'));
    EXPECT_EQ(near().xstat("tx_unconfirmed"), 100u);
    ASSERT_EQ(near().ask(Op::start).rc, 0);
    await_connected(2);
    talk(51); // checks that the first that comes is the first of this stream
}

TEST_P(Life, WhatWasConfirmedWasReceived)
{
    bring_up();
    const Stream s = stream(0, 60, 1u << 30, {8, 48, 400}); // more than any ring takes ahead
    Command out = traffic({s}, {});
    out.until = test::Until::lost;
    Command in = traffic({}, {s});
    in.in[0].count = 2000; // then it stops in the middle of what comes
    near().begin(out);
    ASSERT_EQ(far().ask(in).rc, 0);
    far().stop();
    const uint64_t received = far().xstat("rx_messages");
    const Answer end = near().end();
    ASSERT_EQ(end.rc, 0) << end.text;
    ASSERT_TRUE(near().await_state(RTE_PMD_PLX_NTB_WAITING));
    const uint64_t sent = near().xstat("tx_messages");
    const uint64_t confirmed = sent - near().xstat("tx_unconfirmed");
    EXPECT_EQ(received, 2000u);
    EXPECT_EQ(sent, end.sent);
    EXPECT_LE(confirmed, received);
    EXPECT_LE(received, sent);
}

TEST_P(Life, StopIsSafeWhileMbufsAreHeld)
{
    bring_up();
    const Stream s = stream(0, 70, 200, {8, 300, 5000});
    Command keep = traffic({}, {s});
    keep.keep = true;
    exchange(keep, traffic({s}, {}));
    near().stop();
    EXPECT_GT(near().outstanding(), 0u);
    uint32_t i = 0;
    for (const rte_mbuf *m : local_device().kept())
        EXPECT_EQ(m->pkt_len, test::message_length(s, i++));
    HostSetup other = usual();
    other.config.buf_bytes = 4096;
    EXPECT_EQ(near().restart(other), -EBUSY) << "their memory would have to go";
    EXPECT_EQ(near().restart(usual()), 0) << "the same memory can be exposed again";
    near().stop();
    EXPECT_EQ(near().ask(Op::close).rc, -EBUSY);
    near().ask(Op::release);
    EXPECT_EQ(near().ask(Op::close).rc, 0);
    EXPECT_EQ(near().ask(Op::close).rc, 0) << "close can be repeated";
}

TEST_P(Life, DetachAndAttachAtRunTime)
{
    bring_up();
    talk(80);
    for (unsigned round = 0; round < 3; ++round) {
        ASSERT_EQ(far().ask(Op::detach).rc, 0); // while it runs
        ASSERT_TRUE(near().await_event('L', round + 1));
        ASSERT_TRUE(near().await_state(RTE_PMD_PLX_NTB_WAITING));
        ASSERT_EQ(far().bring_up(cable(), usual()), 0);
        ASSERT_TRUE(near().await_event('C', round + 2));
        ASSERT_TRUE(far().await_event('C', 1));
        talk(81 + round);
    }
}

TEST_P(Life, BothEndsTakeTurnsInLeaving)
{
    bring_up();
    for (unsigned round = 0; round < 4; ++round) {
        test::Host &leaver = round % 2 == 0 ? near() : far();
        test::Host &stayer = round % 2 == 0 ? far() : near();
        ASSERT_EQ(leaver.ask(Op::detach).rc, 0);
        ASSERT_TRUE(stayer.await_state(RTE_PMD_PLX_NTB_WAITING));
        ASSERT_EQ(leaver.bring_up(cable(), usual()), 0);
        ASSERT_TRUE(leaver.await_state(RTE_PMD_PLX_NTB_CONNECTED));
        ASSERT_TRUE(stayer.await_state(RTE_PMD_PLX_NTB_CONNECTED));
        talk(90 + round);
    }
}

/// One chip between both is the virtual side's to restart.
TEST_P(Life, AChipInAnyStateIsTakenOver)
{
    if (near_beyond_link()) {
        EXPECT_EQ(near().attach(cable(), "state=reset"), -EINVAL);
        return;
    }
    for (const char *state : {"keep", "reset", "random"}) {
        SCOPED_TRACE(state);
        const HostSetup setup{.devargs = patient + ",state=" + state};
        ASSERT_EQ(near().bring_up(cable(), setup), 0);
        if (far().link().state == RTE_PMD_PLX_NTB_STOPPED) {
            ASSERT_EQ(far().bring_up(cable(), usual()), 0);
        }
        ASSERT_TRUE(near().await_state(RTE_PMD_PLX_NTB_CONNECTED));
        ASSERT_TRUE(far().await_state(RTE_PMD_PLX_NTB_CONNECTED));
        talk(100);
        ASSERT_EQ(near().ask(Op::detach).rc, 0);
        ASSERT_TRUE(far().await_state(RTE_PMD_PLX_NTB_WAITING));
    }
}

/// Doorbells pending, windows open to anywhere, tables of nonsense: whatever a seed brings.
TEST_P(Life, AChipFullOfGarbageIsTakenOver)
{
    if (near_beyond_link()) {
        EXPECT_EQ(near().attach(cable(), "state=random"), -EINVAL);
        return;
    }
    ASSERT_EQ(far().bring_up(cable(), usual()), 0);
    for (unsigned seed = 1; seed <= 12; ++seed) {
        SCOPED_TRACE(seed);
        const HostSetup setup{.devargs = patient + ",state=random:" + std::to_string(seed)};
        ASSERT_EQ(near().bring_up(cable(), setup), 0);
        ASSERT_TRUE(near().await_event('C')) << near().link().why;
        ASSERT_TRUE(far().await_event('C', seed)) << far().link().why;
        talk(120 + seed);
        ASSERT_EQ(near().ask(Op::detach).rc, 0);
        ASSERT_TRUE(far().await_event('L', seed));
    }
}

TEST_P(Life, ACallbackCanAskAndGo)
{
    bring_up();
    static std::atomic<unsigned> calls;
    calls = 0;
    const auto callback = [](uint16_t device, rte_pmd_plx_ntb_event, void *) {
        rte_pmd_plx_ntb_link link;
        calls += rte_pmd_plx_ntb_link_get(device, &link) == 0 ? 1 : 100;
    };
    ASSERT_EQ(rte_pmd_plx_ntb_event_register(id(), callback, nullptr), 0);
    far().stop();
    ASSERT_TRUE(near().await_state(RTE_PMD_PLX_NTB_WAITING));
    EXPECT_EQ(calls, 2u) << "closing, and lost";
    ASSERT_EQ(rte_pmd_plx_ntb_event_register(id(), nullptr, nullptr), 0);
    ASSERT_EQ(far().ask(Op::start).rc, 0);
    ASSERT_TRUE(near().await_state(RTE_PMD_PLX_NTB_CONNECTED));
    EXPECT_EQ(calls, 2u) << "not after it was removed";
    EXPECT_EQ(rte_pmd_plx_ntb_event_register(63, nullptr, nullptr), -ENODEV);
}

TEST_P(Life, ASlowCallbackDelaysNoOtherDevice)
{
    bring_up();
    struct {
        std::atomic<bool> inside{false};
        std::atomic<bool> go{false};
    } static gate;
    gate.inside = gate.go = false;
    const auto callback = [](uint16_t, rte_pmd_plx_ntb_event, void *) {
        gate.inside = true;
        await([] { return gate.go.load(); });
    };
    ASSERT_EQ(rte_pmd_plx_ntb_event_register(id(), callback, nullptr), 0);
    far().stop();
    EXPECT_TRUE(await([] { return gate.inside.load(); }));
    {
        test::LocalHost others[2];
        const std::string wire = "mem:others-" + std::to_string(getpid());
        for (test::LocalHost &other : others)
            EXPECT_EQ(other.bring_up(wire, usual()), 0);
        for (test::LocalHost &other : others)
            EXPECT_TRUE(other.await_event('C'));
    }
    EXPECT_FALSE(gate.go);
    gate.go = true;
    ASSERT_EQ(rte_pmd_plx_ntb_event_register(id(), nullptr, nullptr), 0);
}

CONTRACT_EVERYWHERE(Life);
/// What passes on either side: the process that is not the test's may be the one beyond the link.
INSTANTIATE_TEST_SUITE_P(TwoProcessesRootPortVirtual, Life,
                         testing::Values(Setting{"processes", BackEnd::processes, on_virtual_side,
                                                 on_link_side}),
                         name_of);

} // namespace
