// SPDX-License-Identifier: BSD-3-Clause
// The near host's end is struck by a fault: both sides report the right event, every mbuf comes
// home, and once the fault is over they work again.
#include "pair.hpp"

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <random>

#include <rte_mbuf.h>
#include <rte_rawdev.h>

#include <poll.h>

using namespace contract;

namespace
{

constexpr uint32_t endless = 1u << 30;

class Faults : public Pair
{
protected:
    int strike(rte_pmd_plx_ntb_fault fault, uint32_t argument)
    {
        return rte_pmd_plx_ntb_inject(id(), fault, argument);
    }
    void talk(uint32_t seed) { both_ways(stream(0, seed, 300, {8, 48, 300, 3000})); }
    uint64_t received() { return rte_rawdev_xstats_by_name_get(id(), "rx_messages", nullptr); }
    /// Both send until a loss is reported; they are in the middle of it when this returns.
    void begin_endless(uint32_t seed)
    {
        const Stream s = stream(0, seed, endless, {8, 48, 300, 3000});
        Command command = traffic({s}, {s});
        command.until = test::Until::lost;
        const uint64_t before = received();
        far().begin(command);
        near().begin(command);
        // Bounded by the command's own limit; what does not flow shows in its answer.
        for (int i = 0; i < 20'000 && received() < before + 100; ++i)
            poll(nullptr, 0, 1);
    }
    void end_endless()
    {
        const Answer here = near().end();
        const Answer there = far().end();
        ASSERT_EQ(here.rc, 0) << "near: " << here.text;
        ASSERT_EQ(there.rc, 0) << "far: " << there.text;
    }
    void expect_nothing_held(test::Host &host)
    {
        const auto state = &host == &near() ? near_without_link() : RTE_PMD_PLX_NTB_WAITING;
        ASSERT_TRUE(host.await_state(state)) << host.link().why;
        EXPECT_STRNE(host.link().why, "");
        if (state == RTE_PMD_PLX_NTB_WAITING) {
            EXPECT_EQ(host.outstanding(), 0u) << "nothing is posted while there is no peer";
        }
    }
    /// A step of the near host that finds no chip before its link has trained again.
    template <class Step>
    int64_t once_chip_answers(Step step)
    {
        int64_t rc = step();
        for (int i = 0; rc == -ENODEV && near_beyond_link() && i < 20'000; ++i) {
            poll(nullptr, 0, 1);
            rc = step();
        }
        return rc;
    }
    static const char *no_answer()
    {
        return near_beyond_link() ? "the chip does not answer: the link is down, or the card gone"
                                  : "the chip does not answer";
    }
    /// Whatever came before: a start of the near device that the far one has answered. Its tick has
    /// then seen every break of the link before that start.
    void expect_working(uint32_t seed)
    {
        near().stop();
        ASSERT_EQ(near().ask(Op::start).rc, 0);
        ASSERT_TRUE(near().await_state(RTE_PMD_PLX_NTB_CONNECTED)) << near().link().why;
        ASSERT_TRUE(far().await_state(RTE_PMD_PLX_NTB_CONNECTED)) << far().link().why;
        talk(seed);
    }
};

/// The faults that both ends see as a link that is down.
constexpr rte_pmd_plx_ntb_fault breaks[] = {RTE_PMD_PLX_NTB_FAULT_LINK_DOWN,
                                            RTE_PMD_PLX_NTB_FAULT_PORT_DISABLED,
                                            RTE_PMD_PLX_NTB_FAULT_CABLE_PULLED};

TEST_P(Faults, TheLinkGoesDownInTrafficAndComesUp)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    unsigned round = 0;
    for (const rte_pmd_plx_ntb_fault fault : breaks) {
        SCOPED_TRACE(fault);
        ++round;
        begin_endless(round);
        ASSERT_EQ(strike(fault, 1), 0);
        ASSERT_NO_FATAL_FAILURE(end_endless());
        expect_nothing_held(near());
        expect_nothing_held(far());
        EXPECT_EQ(near().link().width, 0u);
        EXPECT_LE(near().xstat("tx_unconfirmed"), near().xstat("tx_messages"));
        ASSERT_EQ(strike(fault, 0), 0);
        ASSERT_NO_FATAL_FAILURE(await_connected(round + 1));
        talk(10 + round);
    }
    EXPECT_EQ(near().events(), "CLCLCLC");
    EXPECT_EQ(far().events(), "CLCLCLC");
    EXPECT_EQ(near().xstat("link_losses"), 3u);
}

TEST_P(Faults, APulledCableIsReportedAsOne)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    ASSERT_EQ(strike(RTE_PMD_PLX_NTB_FAULT_CABLE_PULLED, 1), 0);
    for (test::Host *host : {&near(), &far()}) {
        ASSERT_TRUE(host->await_event('L'));
        ASSERT_TRUE(
            host->await_state(host == &near() ? near_without_link() : RTE_PMD_PLX_NTB_WAITING));
        EXPECT_TRUE(host->await_why("no process is at the other end of the cable"))
            << host->link().why;
    }
    ASSERT_EQ(strike(RTE_PMD_PLX_NTB_FAULT_CABLE_PULLED, 0), 0);
    await_connected(2);
    talk(1);
}

TEST_P(Faults, TheDeviceStartsWhileTheLinkIsDown)
{
    for (const rte_pmd_plx_ntb_fault fault : breaks) {
        SCOPED_TRACE(fault);
        ASSERT_EQ(near().attach(cable(), patient), 0);
        ASSERT_EQ(strike(fault, 1), 0);
        ASSERT_EQ(near().restart(usual()), near_beyond_link() ? -ENODEV : 0);
        ASSERT_EQ(far().bring_up(cable(), usual()), 0);
        ASSERT_TRUE((near_beyond_link() ? far() : near()).await_state(RTE_PMD_PLX_NTB_WAITING));
        EXPECT_EQ(near().events(), "");
        ASSERT_EQ(strike(fault, 0), 0);
        if (near_beyond_link()) {
            ASSERT_EQ(once_chip_answers([this] { return near().ask(Op::start).rc; }), 0);
        }
        await_connected(1);
        talk(2);
        ASSERT_EQ(far().ask(Op::detach).rc, 0);
        ASSERT_EQ(near().ask(Op::detach).rc, 0);
    }
}

TEST_P(Faults, EachOfManyShortLinkDownsIsALossAndAReconnect)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    constexpr unsigned flaps = 6;
    for (unsigned i = 1; i <= flaps; ++i) {
        const rte_pmd_plx_ntb_fault fault = breaks[i % std::size(breaks)];
        ASSERT_EQ(strike(fault, 1), 0);
        ASSERT_EQ(strike(fault, 0), 0);
        ASSERT_TRUE(near().await_event('L', i));
        ASSERT_TRUE(far().await_event('L', i));
        ASSERT_NO_FATAL_FAILURE(await_connected(i + 1));
    }
    talk(3);
    EXPECT_EQ(near().xstat("link_losses"), flaps);
    EXPECT_EQ(far().xstat("link_losses"), flaps);
}

TEST_P(Faults, AStormOfLinkDownsPasses)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    std::mt19937 random(5);
    for (unsigned i = 0; i < 24; ++i) {
        const rte_pmd_plx_ntb_fault fault = breaks[random() % std::size(breaks)];
        ASSERT_EQ(strike(fault, 1), 0);
        poll(nullptr, 0, static_cast<int>(random() % 4)); // somewhere in whatever comes of it
        ASSERT_EQ(strike(fault, 0), 0);
        poll(nullptr, 0, static_cast<int>(random() % 12));
    }
    const std::string near_events = near().events(); // before its stop, which reports nothing
    expect_working(4);
    for (const std::string &events : {near_events, far().events()}) {
        EXPECT_EQ(events.find('R'), std::string::npos) << events;
        EXPECT_EQ(events.find("LL"), std::string::npos) << events;
        EXPECT_EQ(events.find("CC"), std::string::npos) << events << ": a loss was not reported";
    }
}

/// What the last peer said lies in a block that the next one is to greet: no live peer has said it.
TEST_P(Faults, ALossIsFencedOnce)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    for (unsigned round = 1; round <= 3; ++round) {
        ASSERT_EQ(far().ask(Op::detach).rc, 0);
        ASSERT_TRUE(near().await_event('L', round));
        ASSERT_TRUE(near().await_state(RTE_PMD_PLX_NTB_WAITING));
        ASSERT_EQ(far().bring_up(cable(), usual()), 0);
        ASSERT_TRUE(near().await_event('C', round + 1));
        ASSERT_TRUE(far().await_event('C'));
        EXPECT_EQ(near().xstat("link_fences"), round);
    }
    talk(5);
}

// ---- the card is gone

/// What registers read as then.
class Removal : public Faults
{
protected:
    static constexpr uint32_t how[] = {1, 2}; // all-ones, zeros
    void remove(uint32_t as)
    {
        ASSERT_EQ(strike(RTE_PMD_PLX_NTB_FAULT_CARD_GONE, as), 0);
        ASSERT_TRUE(far().await_event('L'));
        ASSERT_TRUE(far().await_state(RTE_PMD_PLX_NTB_WAITING));
        ASSERT_TRUE(near().await_event('L'));
        const rte_pmd_plx_ntb_link link = near().link();
        EXPECT_EQ(link.state, RTE_PMD_PLX_NTB_FENCING) << "nothing is reused";
        EXPECT_STREQ(link.why, no_answer());
        EXPECT_EQ(link.width, 0u);
        EXPECT_EQ(link.peer_epoch, 0u);
    }
    uint64_t fence_count() { return near().xstat("link_fences"); }
};

TEST_P(Removal, InTrafficIsALossAndTheCardMayComeBack)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    unsigned round = 0;
    for (const uint32_t as : how) {
        SCOPED_TRACE(as);
        ++round;
        const uint64_t fences = fence_count();
        begin_endless(round);
        ASSERT_EQ(strike(RTE_PMD_PLX_NTB_FAULT_CARD_GONE, as), 0);
        ASSERT_NO_FATAL_FAILURE(end_endless());
        EXPECT_EQ(near().link().state, RTE_PMD_PLX_NTB_FENCING);
        EXPECT_STREQ(near().link().why, no_answer());
        EXPECT_EQ(fence_count(), fences) << "the peer's access is not known to be gone";
        expect_nothing_held(far());
        rte_mbuf *mbuf = test::make_message(local_device().pool(), stream(0, 1, 1, {8}), 0);
        EXPECT_EQ(rte_pmd_plx_ntb_tx_burst(id(), 0, &mbuf, nullptr, 1), -ENOTCONN);
        rte_pktmbuf_free(mbuf);
        ASSERT_EQ(strike(RTE_PMD_PLX_NTB_FAULT_CARD_GONE, 0), 0);
        ASSERT_NO_FATAL_FAILURE(await_connected(round + 1));
        talk(10 + round);
    }
    EXPECT_EQ(near().events(), "CLCLC");
}

TEST_P(Removal, StopAndCloseDoNotHang)
{
    for (const uint32_t as : how) {
        SCOPED_TRACE(as);
        ASSERT_NO_FATAL_FAILURE(bring_up());
        talk(20);
        ASSERT_NO_FATAL_FAILURE(remove(as));
        near().stop();
        EXPECT_EQ(near().link().state, RTE_PMD_PLX_NTB_FENCING);
        EXPECT_EQ(near().ask(Op::start).rc, -EBUSY) << "its memory may still be written to";
        EXPECT_EQ(near().ask(Op::close).rc, 0);
        EXPECT_EQ(near().outstanding(), 0u);
        EXPECT_EQ(near().ask(Op::detach).rc, 0);
        EXPECT_EQ(far().ask(Op::detach).rc, 0);
    }
}

TEST_P(Removal, DetachWithoutAStopDoesNotHang)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    ASSERT_NO_FATAL_FAILURE(remove(1));
    EXPECT_EQ(near().ask(Op::detach).rc, 0);
    EXPECT_EQ(far().link().state, RTE_PMD_PLX_NTB_WAITING);
    ASSERT_EQ(once_chip_answers([this] { return near().attach(cable(), patient); }), 0);
    ASSERT_EQ(near().restart(usual()), 0);
    ASSERT_TRUE(near().await_event('C'));
    ASSERT_TRUE(far().await_event('C', 2));
    talk(21);
}

TEST_P(Removal, MbufsThatAreHeldKeepTheDeviceOpen)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    const Stream s = stream(0, 22, 100, {300, 3000});
    Command keep = traffic({}, {s});
    keep.keep = true;
    exchange(keep, traffic({s}, {}));
    ASSERT_NO_FATAL_FAILURE(remove(2));
    ASSERT_EQ(near().ask(Op::pattern, 9).rc, 100);
    near().stop();
    EXPECT_EQ(near().ask(Op::close).rc, -EBUSY);
    EXPECT_EQ(near().ask(Op::unharmed, 9).value, 0u);
    near().ask(Op::release);
    EXPECT_EQ(near().ask(Op::close).rc, 0);
}

TEST_P(Removal, AFailedStopIsCompletedByTheNextStart)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    talk(23);
    ASSERT_NO_FATAL_FAILURE(remove(1));
    near().stop();
    ASSERT_EQ(near().ask(Op::start).rc, -EBUSY);
    ASSERT_EQ(strike(RTE_PMD_PLX_NTB_FAULT_CARD_GONE, 0), 0);
    ASSERT_EQ(near().ask(Op::start).rc, 0);
    await_connected(2);
    talk(24);
    EXPECT_EQ(near().events(), "CLC");
}

/// Queues that a stop has left open are neither freed nor set up again under the link.
TEST_P(Removal, AFailedStopKeepsTheQueues)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    ASSERT_NO_FATAL_FAILURE(remove(1));
    near().stop();
    const rte_pmd_plx_ntb_config other{.ring_lines = 256};
    EXPECT_EQ(near().configure(other), -EBUSY);
    EXPECT_EQ(near().ask(Op::queue_setup).rc, -EBUSY);
    EXPECT_EQ(rte_rawdev_queue_release(id(), 0), -EBUSY);
    ASSERT_EQ(strike(RTE_PMD_PLX_NTB_FAULT_CARD_GONE, 0), 0);
    ASSERT_EQ(once_chip_answers([&] { return near().configure(other); }), 0);
    EXPECT_EQ(rte_rawdev_queue_release(id(), 0), 0);
    ASSERT_EQ(near().ask(Op::queue_setup).rc, 0);
    ASSERT_EQ(near().ask(Op::start).rc, 0);
    await_connected(2);
    talk(26);
}

TEST_P(Removal, BeforeAnyPeerConnected)
{
    for (const uint32_t as : how) {
        SCOPED_TRACE(as);
        ASSERT_EQ(near().bring_up(cable(), usual()), 0);
        ASSERT_EQ(strike(RTE_PMD_PLX_NTB_FAULT_CARD_GONE, as), 0);
        EXPECT_NE(rte_rawdev_selftest(id()), 0);
        uint64_t value = 0;
        EXPECT_EQ(rte_rawdev_get_attr(id(), "spad_user_0", &value), -ENODEV);
        near().stop();
        EXPECT_EQ(near().ask(Op::detach).rc, 0);
    }
}

TEST_P(Removal, ADeviceIsNotStartedOnACardThatIsGone)
{
    for (const uint32_t as : how) {
        SCOPED_TRACE(as);
        ASSERT_EQ(near().attach(cable(), patient), 0);
        ASSERT_EQ(strike(RTE_PMD_PLX_NTB_FAULT_CARD_GONE, as), 0);
        EXPECT_LT(near().restart(usual()), 0);
        ASSERT_EQ(strike(RTE_PMD_PLX_NTB_FAULT_CARD_GONE, 0), 0);
        EXPECT_EQ(once_chip_answers([this] { return near().ask(Op::start).rc; }), 0);
        ASSERT_EQ(far().bring_up(cable(), usual()), 0);
        ASSERT_NO_FATAL_FAILURE(await_connected(1));
        talk(25);
        EXPECT_EQ(near().ask(Op::detach).rc, 0);
        EXPECT_EQ(far().ask(Op::detach).rc, 0);
    }
}

size_t open_descriptors()
{
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<size_t>(std::distance(begin(all), end(all)));
}

TEST_P(Removal, NoDescriptorIsLeft)
{
    size_t after_first = 0;
    for (unsigned round = 0; round < 3; ++round) {
        ASSERT_NO_FATAL_FAILURE(bring_up());
        ASSERT_EQ(strike(breaks[round], 1), 0);
        ASSERT_TRUE(near().await_event('L'));
        ASSERT_EQ(strike(breaks[round], 0), 0);
        ASSERT_NO_FATAL_FAILURE(await_connected(2));
        ASSERT_EQ(strike(RTE_PMD_PLX_NTB_FAULT_CARD_GONE, 1 + round % 2), 0);
        ASSERT_TRUE(near().await_event('L', 2));
        ASSERT_EQ(near().ask(Op::detach).rc, 0);
        ASSERT_EQ(far().ask(Op::detach).rc, 0);
        if (round == 0)
            after_first = open_descriptors();
    }
    EXPECT_EQ(open_descriptors(), after_first);
}

// ---- a stop that finds a queue inside a burst

struct Latch {
    std::atomic<bool> inside{false};
    std::atomic<bool> open{false};
    static void on_free(void *, void *arg)
    {
        auto *self = static_cast<Latch *>(arg);
        self->inside = true;
        for (int i = 0; i < 120'000 && !self->open; ++i)
            poll(nullptr, 0, 1);
    }
};

TEST_P(Faults, AStopWaitsForABurstWithinBoundsAndIsRepeated)
{
    ASSERT_NO_FATAL_FAILURE(bring_up());
    static Latch latch;
    latch.inside = latch.open = false;
    static char data[64];
    static rte_mbuf_ext_shared_info shared;
    shared.free_cb = Latch::on_free;
    shared.fcb_opaque = &latch;
    rte_mbuf_ext_refcnt_set(&shared, 1);
    rte_mbuf *mbuf = rte_pktmbuf_alloc(local_device().pool());
    ASSERT_NE(mbuf, nullptr);
    rte_pktmbuf_attach_extbuf(mbuf, data, RTE_BAD_IOVA, sizeof(data), &shared);
    mbuf->pkt_len = mbuf->data_len = 8;
    std::thread lcore([&] { // it frees the mbuf inside its burst
        EXPECT_EQ(rte_pmd_plx_ntb_tx_burst(id(), 0, &mbuf, nullptr, 1), 1);
    });
    for (int i = 0; i < 60'000 && !latch.inside; ++i)
        poll(nullptr, 0, 1);
    EXPECT_TRUE(latch.inside);
    near().stop();
    EXPECT_EQ(near().link().state, RTE_PMD_PLX_NTB_FENCING);
    EXPECT_EQ(near().ask(Op::close).rc, -EBUSY);
    ASSERT_TRUE(far().await_event('L')) << "reported all the same";
    latch.open = true;
    lcore.join();
    ASSERT_EQ(near().ask(Op::start).rc, 0);
    await_connected(2);
    talk(30);
}

TEST_P(Faults, ArgumentsAreChecked)
{
    ASSERT_EQ(near().attach(cable(), patient), 0);
    EXPECT_EQ(strike(RTE_PMD_PLX_NTB_FAULT_LINK_DOWN, 2), -EINVAL);
    EXPECT_EQ(strike(RTE_PMD_PLX_NTB_FAULT_CARD_GONE, 3), -EINVAL);
    EXPECT_EQ(rte_pmd_plx_ntb_inject(63, RTE_PMD_PLX_NTB_FAULT_LINK_DOWN, 1), -ENODEV);
    EXPECT_EQ(near().ask(Op::close).rc, 0);
    EXPECT_EQ(strike(RTE_PMD_PLX_NTB_FAULT_LINK_DOWN, 1), -ENODEV);
}

CONTRACT_EVERYWHERE(Faults);
CONTRACT_EVERYWHERE(Removal);

} // namespace
