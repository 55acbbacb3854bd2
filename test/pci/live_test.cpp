// SPDX-License-Identifier: BSD-3-Clause
// Two hosts, each with a card that it found on EAL's PCI bus: bring-up, traffic, loss. What answers
// behind the BARs is the twin.
#include "bus.hpp"
#include "host.hpp"
#include "live_card.hpp"
#include "trap.hpp"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <rte_dev.h>

namespace
{

using test::Answer;
using test::Command;
using test::HostSetup;
using test::LiveCard;
using test::LocalHost;
using test::LogCapture;
using test::Op;
using test::stream;
using test::Stream;
using test::sysfs;
using test::traffic;

// No heartbeat is missed by these. With what cases add, they have to be shorter than 128 bytes:
// DPDK refuses longer ones of a device that is added at run time.
constexpr char devargs[] = "buffers=512,heartbeat_ms=30000,lost_ms=60000";

class PciLive : public test::OnTheBus
{
protected:
    std::unique_ptr<LiveCard> cards_[2];
    std::unique_ptr<LocalHost> hosts_[2];
    bool with_engines_ = false;

    void probe_engines()
    {
        with_engines_ = true;
        for (auto &card : cards_)
            for (unsigned channel = 0; channel < LiveCard::engine_count; ++channel)
                ASSERT_EQ(
                    rte_eal_hotplug_add("pci", card->engine_address(channel).c_str(), "dma=1"), 0);
    }

    virtual plx::twin::Switches switches() const { return {}; }

    void SetUp() override
    {
        OnTheBus::SetUp();
        if (IsSkipped())
            return;
        static unsigned cables = 0;
        const std::string cable = "mem:pci-" + std::to_string(cables++);
        for (unsigned i : {0u, 1u}) {
            cards_[i] = std::make_unique<LiveCard>(sysfs(), static_cast<uint8_t>(0x20 + 0x10 * i),
                                                   cable, switches());
            hosts_[i] = std::make_unique<LocalHost>();
        }
    }
    void TearDown() override
    {
        if (cards_[0] != nullptr) {
            for (auto &host : hosts_) {
                host->ask(Op::release);
                host->stop();
                EXPECT_EQ(host->outstanding(), 0u);
                EXPECT_EQ(host->ask(Op::detach).rc, 0);
            }
            for (unsigned channel = 0; with_engines_ && channel < LiveCard::engine_count; ++channel)
                for (auto &card : cards_)
                    EXPECT_EQ(remove(card->engine_address(channel)), 0);
            for (auto &card : cards_)
                EXPECT_FALSE(card->mapped()) << "the driver did not unmap it";
            for (auto &card : cards_)
                card.reset(); // before EAL looks at the bus again
        }
        OnTheBus::TearDown();
    }

    void bring_up(const std::string &more = "")
    {
        for (unsigned i : {0u, 1u}) {
            const std::string text = "pci:" + cards_[i]->address() + "," + devargs + more;
            ASSERT_EQ(hosts_[i]->ask(Op::attach, 0, text).rc, 0);
            ASSERT_EQ(hosts_[i]->restart({}), 0);
        }
        await_connected(1);
    }
    void await_connected(unsigned times)
    {
        for (auto &host : hosts_)
            ASSERT_TRUE(host->await_event('C', times)) << host->link().why;
    }
    void both_ways(const Stream &s)
    {
        if (HasFatalFailure())
            return;
        hosts_[1]->begin(traffic({s}, {s}));
        hosts_[0]->begin(traffic({s}, {s}));
        for (auto &host : hosts_) {
            const Answer answer = host->end();
            EXPECT_EQ(answer.rc, 0) << answer.text;
        }
    }
    void lose_and_meet_again()
    {
        if (HasFatalFailure())
            return;
        both_ways(stream(0, 4, 200, {100, 4000}));
        plx::twin::inject(cards_[0]->host(), plx::twin::Fault::link_down, 1);
        for (auto &host : hosts_)
            ASSERT_TRUE(host->await_event('L', 1)) << host->link().why;
        plx::twin::inject(cards_[0]->host(), plx::twin::Fault::link_down, 0);
        await_connected(2);
        both_ways(stream(0, 5, 200, {100, 4000}));
    }
    /// The second host sleeps between messages until a doorbell has woken it.
    void await_doorbell_wake()
    {
        constexpr uint32_t messages = 10;
        for (unsigned i = 0;
             !HasFatalFailure() && i < 300 && hosts_[1]->xstat("sleep_doorbell_wakes") == 0; ++i) {
            Command echo;
            echo.op = Op::echo;
            echo.value = messages;
            Stream s = stream(0, 10 + i, messages, {64});
            s.burst = 1;
            s.plain = true;
            hosts_[1]->begin(echo);
            hosts_[0]->begin(traffic({s}, {s}));
            for (auto &host : hosts_) {
                const Answer answer = host->end();
                ASSERT_EQ(answer.rc, 0) << answer.text;
            }
        }
        EXPECT_GT(hosts_[1]->xstat("sleep_doorbell_wakes"), 0u);
    }
};

TEST_F(PciLive, CardsConnectAndExchangeMessages)
{
    const uint64_t before = test::trapped_accesses_here();
    const LogCapture log;
    bring_up();
    EXPECT_GT(test::trapped_accesses_here(), before + 100) << "nothing was accessed in BAR0";
    both_ways(stream(0, 1, 3000, {0, 1, 48, 64, 256, 257, 2048, 9000}));
    EXPECT_NE(log.driver().find("pci, window 64 MiB"), std::string::npos) << log.driver();
}

TEST_F(PciLive, BurstsTouchNoRegister)
{
    constexpr uint32_t messages = 20'000;
    bring_up();
    const Stream s = stream(0, 2, messages, {64, 3000});
    uint64_t touched[2] = {};
    std::vector<std::thread> lcores;
    for (unsigned i : {0u, 1u})
        lcores.emplace_back([&, i] {
            const Answer answer = hosts_[i]->local_device().execute(traffic({s}, {s}));
            EXPECT_EQ(answer.rc, 0) << answer.text;
            touched[i] = test::trapped_accesses_here();
        });
    for (std::thread &lcore : lcores)
        lcore.join();
    // Some for a look at the link when all is done.
    EXPECT_LT(touched[0], 100u);
    EXPECT_LT(touched[1], 100u);
}

TEST_F(PciLive, DmaFunctionsCopyLongMessages)
{
    probe_engines();
    bring_up(",inline=256,copy=dma,dma_min=600");
    both_ways(stream(0, 9, 2000, {64, 256, 600, 2048, 2049, 6000}));
    for (auto &host : hosts_) {
        EXPECT_GT(host->xstat("tx_dma_messages"), 1000u);
        EXPECT_EQ(host->xstat("tx_dma_errors"), 0u);
    }
}

/// A NIC in the same machine, say, that is to reach the peer's memory.
TEST_F(PciLive, AForeignRequesterReachesThePeerOnceItsIdIsAdded)
{
    constexpr uint16_t nic = 0x4211;
    bring_up();
    const auto reaches = [&] {
        uint64_t word = 0;
        return plx::twin::window_read(cards_[0]->host(), 2, 0, &word, sizeof(word), nic);
    };
    const uint16_t id = hosts_[0]->local_device().id();
    EXPECT_FALSE(reaches());
    ASSERT_EQ(rte_pmd_plx_ntb_requester_add(id, nic), 0);
    EXPECT_TRUE(reaches());
    EXPECT_EQ(rte_pmd_plx_ntb_requester_add(id, nic), -EEXIST);
    lose_and_meet_again();
    EXPECT_TRUE(reaches());
    ASSERT_EQ(rte_pmd_plx_ntb_requester_remove(id, nic), 0);
    EXPECT_FALSE(reaches());
}

TEST_F(PciLive, AnInterruptWakesASleeper)
{
    // No look but those of the control tick comes in between. Which of the two finds a message
    // first is a matter of time; that the interrupt ever does is not.
    bring_up(",spin_us=0,recheck_us=1000000");
    await_doorbell_wake();
}

TEST_F(PciLive, ALostLinkIsReportedAndRecovers)
{
    bring_up();
    lose_and_meet_again();
}

TEST_F(PciLive, ARemovedCardIsReportedAndCanBeDetached)
{
    constexpr uint32_t all_ones = 1, zeros = 2; // what is read then
    bring_up();
    unsigned losses = 0;
    for (const uint32_t reads : {all_ones, zeros}) {
        both_ways(stream(0, 6, 200, {100}));
        plx::twin::inject(cards_[0]->host(), plx::twin::Fault::card_gone, reads);
        ++losses;
        for (auto &host : hosts_)
            ASSERT_TRUE(host->await_event('L', losses)) << host->link().why;
        plx::twin::inject(cards_[0]->host(), plx::twin::Fault::card_gone, 0);
        await_connected(losses + 1);
    }
    plx::twin::inject(cards_[0]->host(), plx::twin::Fault::card_gone, all_ones);
    ASSERT_TRUE(hosts_[0]->await_event('L', losses + 1)) << hosts_[0]->link().why;
}

TEST_F(PciLive, ACardTakenOverIsFoundInOrder)
{
    bring_up();
    both_ways(stream(0, 7, 100, {100}));
    hosts_[0]->stop();
    ASSERT_EQ(hosts_[0]->ask(Op::detach).rc, 0);
    ASSERT_TRUE(hosts_[1]->await_event('L', 1)) << hosts_[1]->link().why;
    const std::string text = "pci:" + cards_[0]->address() + "," + devargs;
    ASSERT_EQ(hosts_[0]->ask(Op::attach, 0, text).rc, 0);
    ASSERT_EQ(hosts_[0]->restart({}), 0);
    ASSERT_TRUE(hosts_[1]->await_event('C', 2)) << hosts_[1]->link().why;
    both_ways(stream(0, 8, 100, {100}));
}

/// Chips that do the other thing wherever it is unknown what a chip does (doc/hardware.md), but for
/// Q13, START while an engine runs, of which the driver relies on doing no harm.
class PciLiveOtherwise : public PciLive
{
    plx::twin::Switches switches() const override
    {
        plx::twin::Switches other;
        other.spads_survive_link_down = false;
        other.link_up_latches_fe0 = false;
        other.lut_filters_bar0 = true;
        other.masked_doorbells_count = false;
        other.msi_needs_zero = false;
        other.dead_link_reads_ones = false;
        other.dma_port_assign = false;
        other.dma_function_by_channel = false;
        other.dma_link_down_resets = false;
        other.dma_flr = false;
        other.dma_timeout_hangs = false;
        other.dma_refused_writes_fail = false;
        other.dma_stale_tail = false;
        other.dma_relaxed_reorders = true;
        other.dma_last_is_completed = true;
        other.dma_writes_back_all = true;
        other.dma_fetches_past_end = true;
        other.dma_prefetch_unit = 4;
        other.dma_ring_align = 4096;
        return other;
    }
};

TEST_F(PciLiveOtherwise, TheDriverWorksAllTheSame)
{
    probe_engines();
    bring_up(",inline=256,copy=dma,dma_min=600,spin_us=0,recheck_us=1000000");
    both_ways(stream(0, 9, 2000, {64, 256, 600, 2048, 2049, 6000}));
    for (auto &host : hosts_)
        EXPECT_GT(host->xstat("tx_dma_messages"), 1000u);
    await_doorbell_wake();
    lose_and_meet_again();
}

} // namespace
