// SPDX-License-Identifier: BSD-3-Clause
// Long messages by the chip's DMA engine: the same promises, and mbufs that are held meanwhile.
#include "pair.hpp"

#include <cerrno>
#include <vector>

#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_rawdev.h>

#include <poll.h>

using namespace contract;

namespace
{

/// Messages above the one go by receive buffers, from the other on by an engine.
constexpr const char *inline_max = ",inline=256";
constexpr uint32_t dma_min = 600;

class Copy : public Pair
{
protected:
    /// Who sends how; the engine is asked for, whatever it would be worth.
    static HostSetup by_dma(const std::string &more = "")
    {
        return {.devargs =
                    patient + inline_max + ",copy=dma,dma_min=" + std::to_string(dma_min) + more};
    }
    static HostSetup by_cpu() { return {.devargs = patient + inline_max + ",copy=cpu"}; }
    /// By default no engine is the link side's of a chip that both share.
    static HostSetup far_by_dma(const std::string &more = "")
    {
        return far_has_engines() ? by_dma(more) : by_cpu();
    }
    uint64_t attribute(const char *name)
    {
        uint64_t value = ~uint64_t{0};
        EXPECT_EQ(rte_rawdev_get_attr(id(), name, &value), 0) << name;
        return value;
    }
    /// Every mbuf to send is in its pool.
    void await_home()
    {
        for (int ms = 0; ms < 60'000 && rte_mempool_in_use_count(local_device().pool()) != 0; ++ms)
            poll(nullptr, 0, 1);
        EXPECT_EQ(rte_mempool_in_use_count(local_device().pool()), 0u);
    }
    void bring_up_posted(const HostSetup &near_setup, const HostSetup &far_setup)
    {
        bring_up(near_setup, far_setup);
        both_ways(stream(0, 99, 1, {900}));
    }
};

TEST_P(Copy, LengthsAroundTheBounds)
{
    bring_up(by_dma(), far_by_dma());
    EXPECT_EQ(attribute("copy_engine"), 1u);
    EXPECT_EQ(attribute("dma_min"), dma_min);
    both_ways(stream(0, 7, 2400,
                     {0, 48, 256, 257, dma_min - 1, dma_min, dma_min + 1, 1023, 1024, 2047, 2048,
                      2049, 4095, 4096, 4097, 6144, 6145, 64, 20000}));
    const uint64_t inlined = near().xstat("tx_inline_messages");
    const uint64_t cpu = near().xstat("tx_cpu_messages"), dma = near().xstat("tx_dma_messages");
    EXPECT_EQ(near().xstat("tx_q0_dma_messages"), dma);
    EXPECT_EQ(inlined + cpu + dma, 2400u);
    EXPECT_EQ(near().xstat("tx_long_messages"), cpu + dma);
    EXPECT_GT(inlined, 500u);
    EXPECT_GT(cpu, 200u);
    EXPECT_GT(dma, 1500u);
    EXPECT_GT(near().xstat("tx_dma_bytes"), dma * dma_min);
    EXPECT_EQ(near().xstat("tx_dma_errors"), 0u);
    EXPECT_EQ(near().xstat("link_losses"), 0u);
}

TEST_P(Copy, ChainsAndSmallBuffers)
{
    HostSetup setup = by_dma();
    setup.config = {.buffers = 1024, .buf_bytes = 512, .queue_buffers = 504, .inline_max = 48};
    HostSetup far_setup = far_by_dma();
    far_setup.config = setup.config;
    bring_up(setup, far_setup);
    Stream s = stream(0, 20, 300, {1, 700, 1000, 1001, 2048, 2049, 5000, 30000});
    for (const uint32_t segment : {100u, 512u, 2048u}) {
        s.segment = segment;
        s.seed += 1;
        s.burst = 8;
        both_ways(s);
    }
    EXPECT_GT(near().xstat("tx_dma_messages"), 500u);
}

TEST_P(Copy, OneSideByDmaAndOneByCpu)
{
    bring_up(by_dma(), by_cpu());
    both_ways(stream(0, 8, 1000, {8, 300, 3000, 600}));
    EXPECT_GT(near().xstat("tx_dma_messages"), 0u);
    EXPECT_EQ(far().xstat("tx_dma_messages"), 0u);
}

TEST_P(Copy, EachQueuePairItsChannelAndTheOthersTheCpu)
{
    HostSetup setup = by_dma(",dma=2");
    setup.config.queues = 3;
    setup.pool_mbufs = 1023;
    HostSetup far_setup = setup;
    far_setup.devargs = far_by_dma(",dma=2").devargs;
    bring_up(setup, far_setup);
    const Stream a = stream(0, 31, 300, {3000, 8, 700}), b = stream(1, 32, 300, {600, 5000}),
                 c = stream(2, 33, 300, {2048, 700});
    const Command all = traffic({a, b, c}, {a, b, c});
    exchange(all, all);
    EXPECT_EQ(near().xstat("tx_q0_dma_messages"), 200u);
    EXPECT_EQ(near().xstat("tx_q1_dma_messages"), 300u);
    EXPECT_EQ(near().xstat("tx_q2_dma_messages"), 0u);
    EXPECT_EQ(near().xstat("tx_q2_cpu_messages"), 300u);
}

TEST_P(Copy, EachHalfOnAThreadOfItsOwn)
{
    bring_up(by_dma(), far_by_dma());
    const Stream s = stream(0, 300, 3000, {8, 64, 700, 257, 4000});
    Command command = traffic({s}, {s});
    command.threads = true;
    exchange(command, command);
}

TEST_P(Copy, AGivenCurveDecides)
{
    const std::string curve = ",copy_curve=512:90:800/4096:400:300/16384:1600:400";
    bring_up({.devargs = patient + curve}, {.devargs = patient + ",copy_curve=512:90:800"});
    EXPECT_EQ(attribute("dma_min"), 4096u);
    both_ways(stream(0, 9, 200, {4095, 4096}));
    EXPECT_EQ(near().xstat("tx_dma_messages"), 100u);
    EXPECT_EQ(far().xstat("tx_dma_messages"), 0u);
}

TEST_P(Copy, WithoutAChannelTheCpuCopies)
{
    bring_up({.devargs = patient + ",dma=0"}, usual());
    EXPECT_EQ(attribute("copy_engine"), 0u);
    EXPECT_EQ(attribute("dma_min"), 0u);
    both_ways(stream(0, 9, 100, {3000}));
    EXPECT_EQ(near().xstat("tx_cpu_messages"), 100u);
}

TEST_P(Copy, AskedForWithoutAChannelIsRefused)
{
    ASSERT_EQ(near().attach(cable(), patient + ",copy=dma,dma=0"), 0);
    EXPECT_EQ(near().restart({}), -ENOTSUP);
}

TEST_P(Copy, ReceivedOnesCanBeSentOn)
{
    bring_up(by_dma(), far_by_dma());
    send_on(stream(0, 9, 200, {8, 700, 5000}));
    EXPECT_GT(near().xstat("tx_dma_messages"), 100u);
}

TEST_P(Copy, AnIdleSenderGetsItsMbufsBack)
{
    bring_up_posted(by_dma(), far_by_dma());
    await_home();
    const Stream s = stream(0, 50, 0, {3000, 700});
    std::vector<rte_mbuf *> burst;
    std::vector<rte_pmd_plx_ntb_meta> meta;
    for (uint32_t i = 0; i < 20; ++i) {
        burst.push_back(test::make_message(local_device().pool(), s, i));
        meta.push_back(test::message_meta(s, i));
    }
    ASSERT_EQ(rte_pmd_plx_ntb_tx_burst(id(), 0, burst.data(), meta.data(), 20), 20);
    await_home(); // without another burst
    Stream in = s;
    in.count = 20;
    const Answer there = far().ask(traffic({}, {in}));
    EXPECT_EQ(there.rc, 0) << there.text;
}

TEST_P(Copy, EveryMbufComesHomeAtStop)
{
    bring_up(by_dma(), far_by_dma());
    both_ways(stream(0, 40, 500, {8, 700, 3000}));
    near().stop();
    far().stop();
    EXPECT_EQ(near().outstanding(), 0u);
    EXPECT_EQ(far().outstanding(), 0u);
    // And again, with the same engines.
    ASSERT_EQ(near().restart(by_dma()), 0);
    ASSERT_EQ(far().restart(far_by_dma()), 0);
    await_connected(2);
    both_ways(stream(0, 41, 500, {8, 700, 3000}));
    EXPECT_GT(near().xstat("tx_dma_messages"), 600u);
}

/// Engines that fail in the middle of traffic.
class CopyFaults : public Copy
{
protected:
    /// Both send until a loss is reported; what arrives before may be cut off anywhere.
    void talk_until_lost(rte_pmd_plx_ntb_fault fault, uint32_t argument)
    {
        Stream s = stream(0, 60, 1u << 30, {8, 700, 3000, 300});
        s.unchecked = true;
        Command command = traffic({s}, {s});
        command.until = test::Until::lost;
        far().begin(command);
        ASSERT_EQ(near().inject(fault, argument), 0);
        near().begin(command);
        const Answer here = near().end(), there = far().end();
        EXPECT_EQ(here.rc, 0) << here.text;
        EXPECT_EQ(there.rc, 0) << there.text;
    }
    /// Connected again, with everything that was on the way back in its pool. A host that was about
    /// to send when the connection was lost, and looks again only when there is a new one, has sent
    /// unexpected.
    void expect_whole(uint32_t seed)
    {
        await_connected(2);
        await_home();
        ASSERT_EQ(near().ask(Op::discard).rc, 0);
        ASSERT_EQ(far().ask(Op::discard).rc, 0);
        both_ways(stream(0, seed, 400, {8, 700, 3000, 300}));
    }
};

TEST_P(CopyFaults, AStallIsMended)
{
    bring_up(by_dma(), far_by_dma());
    ASSERT_EQ(near().inject(RTE_PMD_PLX_NTB_FAULT_DMA_STALL, 200), 0);
    both_ways(stream(0, 61, 400, {8, 700, 3000, 300}));
    EXPECT_EQ(near().xstat("link_losses"), 0u);
}

TEST_P(CopyFaults, AFailedReadEndsTheConnection)
{
    bring_up(by_dma(), far_by_dma());
    talk_until_lost(RTE_PMD_PLX_NTB_FAULT_DMA_READ_ERROR, 500);
    EXPECT_EQ(near().xstat("tx_dma_errors"), 1u);
    expect_whole(62);
}

TEST_P(CopyFaults, AFailedWriteEndsTheConnection)
{
    bring_up(by_dma(), far_by_dma());
    talk_until_lost(RTE_PMD_PLX_NTB_FAULT_DMA_WRITE_ERROR, 500);
    EXPECT_EQ(near().xstat("tx_dma_errors"), 1u);
    expect_whole(63);
}

TEST_P(CopyFaults, TheLinkGoesDownInMidTransfer)
{
    bring_up(by_dma(), far_by_dma());
    talk_until_lost(RTE_PMD_PLX_NTB_FAULT_DMA_LINK_LOSS, 200'001);
    ASSERT_EQ(near().inject(RTE_PMD_PLX_NTB_FAULT_LINK_DOWN, 0), 0);
    expect_whole(64);
    EXPECT_EQ(attribute("dma_min"), dma_min) << "the engine is used again";
}

TEST_P(CopyFaults, AHungEngineIsGivenUpAndTheCpuTakesOver)
{
    bring_up(by_dma(), far_by_dma());
    talk_until_lost(RTE_PMD_PLX_NTB_FAULT_DMA_HANG, 500);
    expect_whole(65);
    EXPECT_EQ(attribute("dma_min"), 0u);
    EXPECT_GT(near().xstat("tx_cpu_messages"), 199u);
}

CONTRACT_EVERYWHERE_WITH_ENGINES(Copy);
CONTRACT_EVERYWHERE_WITH_ENGINES(CopyFaults);

} // namespace
