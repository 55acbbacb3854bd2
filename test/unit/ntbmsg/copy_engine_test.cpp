// SPDX-License-Identifier: BSD-3-Clause
// Long messages by a DMA engine: a dmadev of the near device, or DPDK's skeleton.
#include "long_messages.hpp"

#include <rte_dmadev.h>
#include <rte_pmd_plx_ntb.h>
#include <rte_pmd_plx_ntb_test.h>

namespace
{

constexpr uint32_t memory = 4 * mib, longest = memory - 32 * kib;
constexpr uint32_t taken_back = UINT32_MAX; ///< of rte_pmd_plx_ntb_inject()

class CopyEngine : public LongMessage
{
protected:
    const char *extra_arguments() const override { return ",dmadev=1,dma=0"; }

    void bring_up_with_engine(uint32_t min_bytes = 1, uint32_t depth = 0)
    {
        ASSERT_NO_FATAL_FAILURE(bring_up_with(memory));
        dev_ = start("raw_plx_ntb0_dma0", min_bytes, depth);
        settle();
    }
    static int16_t set_up(const char *name)
    {
        const auto dev = static_cast<int16_t>(rte_dma_get_dev_id_by_name(name));
        const rte_dma_conf conf{.nb_vchans = 1};
        rte_dma_vchan_conf vchan{};
        vchan.direction = RTE_DMA_DIR_MEM_TO_MEM;
        vchan.nb_desc = 64;
        EXPECT_EQ(rte_dma_configure(dev, &conf), 0);
        EXPECT_EQ(rte_dma_vchan_setup(dev, 0, &vchan), 0);
        return dev;
    }
    void use(int16_t dev, uint32_t min_bytes, uint32_t depth)
    {
        ntbmsg_dma_options options = options_for(dev);
        options.min_bytes = min_bytes;
        options.depth = depth;
        EXPECT_EQ(ntbmsg_worker_dma_set(near_worker_, &options), 0);
    }
    int16_t start(const char *name, uint32_t min_bytes, uint32_t depth)
    {
        const int16_t dev = set_up(name);
        EXPECT_EQ(rte_dma_start(dev), 0);
        use(dev, min_bytes, depth);
        return dev;
    }
    static ntbmsg_dma_options options_for(int16_t dev)
    {
        ntbmsg_dma_options options;
        ntbmsg_dma_options_init(&options);
        options.dma_dev = dev;
        return options;
    }
    void TearDown() override
    {
        EXPECT_EQ(ntbmsg_endpoint_close(near_), 0);
        near_ = nullptr;
        if (dev_ >= 0)
            rte_dma_stop(dev_);
        LongMessage::TearDown();
    }
    static void inject(rte_pmd_plx_ntb_fault fault, uint32_t argument)
    {
        ASSERT_EQ(rte_pmd_plx_ntb_inject(static_cast<uint16_t>(rte_pmd_plx_ntb_find(near_device)),
                                         fault, argument),
                  0);
    }
    void exchange(uint32_t bytes, uint32_t seed)
    {
        ASSERT_TRUE(send(near_channel_, numbered(bytes, seed), seed));
        ASSERT_NO_FATAL_FAILURE(expect(far_channel_, bytes, seed));
    }
    /// Takes a message of the engine that hangs, and is not given up yet.
    void begin_and_hang(uint32_t bytes)
    {
        ASSERT_NO_FATAL_FAILURE(exchange(64 * kib, 1)); // the way is found
        ASSERT_NO_FATAL_FAILURE(inject(RTE_PMD_PLX_NTB_FAULT_DMA_HANG, 0));
        const uint64_t before = stats(near_).tx_dma_bytes;
        ASSERT_TRUE(send(near_channel_, numbered(bytes, 2), 2));
        ASSERT_TRUE(await([&] { return stats(near_).tx_dma_bytes > before; }));
        ntbmsg_dma_options options = options_for(dev_);
        ASSERT_EQ(ntbmsg_worker_dma_set(near_worker_, &options), -EBUSY);
        ASSERT_EQ(ntbmsg_worker_dma_set(near_worker_, nullptr), -EBUSY);
    }
    /// All of the far memory can be had: nothing of it was lost.
    void expect_all_memory()
    {
        ASSERT_NO_FATAL_FAILURE(join(near_channel_, far_channel_));
        ASSERT_NO_FATAL_FAILURE(exchange(longest, 9));
    }
    /// The link fails, and comes back with nothing lost.
    void expect_loss_and_return()
    {
        ASSERT_TRUE(await_state(near_channel_, NTBMSG_CHANNEL_LOST));
        ASSERT_TRUE(await_state(far_channel_, NTBMSG_CHANNEL_LOST));
        give_back({near_channel_, far_channel_});
        ASSERT_NO_FATAL_FAILURE(inject(RTE_PMD_PLX_NTB_FAULT_LINK_DOWN, 0));
        ASSERT_EQ(ntbmsg_wait_connected(near_, patience_ms), 0);
        ASSERT_EQ(ntbmsg_wait_connected(far_, patience_ms), 0);
        ASSERT_NO_FATAL_FAILURE(expect_all_memory());
    }

    int16_t dev_ = -1;
};

TEST_P(CopyEngine, MessagesGoByIt)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with_engine());
    uint64_t bytes = 0, messages = 0;
    for (const uint32_t length :
         {64 * kib, 64 * kib + 1, 96 * kib - 1, mib, 3 * mib + 7, longest}) {
        ASSERT_NO_FATAL_FAILURE(exchange(length, length));
        bytes += length;
        EXPECT_EQ(stats(near_).tx_dma, ++messages);
        EXPECT_EQ(stats(near_).tx_dma_bytes, bytes) << "each byte is copied once";
    }
    EXPECT_EQ(stats(near_).tx_long_bytes, bytes);
    EXPECT_EQ(stats(near_).tx_dma_errors, 0U);
    give_back({near_channel_, far_channel_});
}

TEST_P(CopyEngine, ShorterOnesGoByTheCpuAndOrderIsKept)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with_engine(128 * kib, 1));
    const uint32_t lengths[] = {64 * kib, 200 * kib, 8, 128 * kib, 100 * kib, 128 * kib - 1, 300};
    constexpr uint32_t total = 70, at_a_time = 4;
    ASSERT_NO_FATAL_FAILURE(expect_order(lengths, total, at_a_time));
    EXPECT_EQ(stats(near_).tx_long, total / 7 * 5);
    EXPECT_EQ(stats(near_).tx_dma, total / 7 * 2);
    give_back({near_channel_, far_channel_});
}

TEST_P(CopyEngine, NothingGoesByItWhereNoSizeWasMeasured)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with_engine(0));
    ASSERT_NO_FATAL_FAILURE(exchange(mib, 1));
    EXPECT_EQ(stats(near_).tx_long, 1U);
    EXPECT_EQ(stats(near_).tx_dma, 0U);
    give_back({near_channel_, far_channel_});
}

TEST_P(CopyEngine, WhatItFailsToCopyTheCpuCopies)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with_engine());
    ASSERT_NO_FATAL_FAILURE(exchange(64 * kib, 1));
    uint64_t errors = 0;
    for (const auto fault :
         {RTE_PMD_PLX_NTB_FAULT_DMA_READ_ERROR, RTE_PMD_PLX_NTB_FAULT_DMA_WRITE_ERROR}) {
        for (const uint32_t behind : {0U, 5U, 31U}) {
            ASSERT_NO_FATAL_FAILURE(inject(fault, behind));
            ASSERT_NO_FATAL_FAILURE(exchange(2 * mib, behind));
            EXPECT_EQ(stats(near_).tx_dma_errors, ++errors);
        }
    }
    give_back({near_channel_, far_channel_});
}

TEST_P(CopyEngine, OneThatStallsGoesOn)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with_engine());
    ASSERT_NO_FATAL_FAILURE(inject(RTE_PMD_PLX_NTB_FAULT_DMA_STALL, 3));
    ASSERT_NO_FATAL_FAILURE(exchange(2 * mib, 1));
    EXPECT_EQ(stats(near_).tx_dma_errors, 0U);
    give_back({near_channel_, far_channel_});
}

TEST_P(CopyEngine, OneThatHangsIsNotUsedAnyMore)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with_engine());
    ASSERT_NO_FATAL_FAILURE(begin_and_hang(mib));
    ASSERT_NO_FATAL_FAILURE(expect(far_channel_, mib, 2));
    const ntbmsg_stats then = stats(near_);
    EXPECT_GT(then.tx_dma_errors, 0U);
    ASSERT_NO_FATAL_FAILURE(exchange(mib, 3));
    EXPECT_EQ(stats(near_).tx_dma, then.tx_dma);
    give_back({near_channel_, far_channel_});
}

TEST_P(CopyEngine, AResetHereWaitsUntilItIsDone)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with_engine());
    ASSERT_NO_FATAL_FAILURE(begin_and_hang(mib));
    ASSERT_EQ(ntbmsg_channel_reset(near_channel_, 3), 0);
    ASSERT_TRUE(await_state(near_channel_, NTBMSG_CHANNEL_RESET));
    ASSERT_TRUE(await_state(far_channel_, NTBMSG_CHANNEL_RESET));
    EXPECT_EQ(ntbmsg_worker_dma_set(near_worker_, nullptr), 0) << "nothing is under way any more";
    give_back({near_channel_, far_channel_});
    ASSERT_NO_FATAL_FAILURE(expect_all_memory());
    give_back({near_channel_, far_channel_});
}

TEST_P(CopyEngine, AResetThereGivesTheMemoryBackOnceItIsDone)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with_engine());
    ASSERT_NO_FATAL_FAILURE(begin_and_hang(mib));
    ASSERT_EQ(ntbmsg_channel_reset(far_channel_, 3), 0);
    ASSERT_TRUE(await_state(near_channel_, NTBMSG_CHANNEL_RESET));
    give_back({near_channel_, far_channel_});
    ASSERT_NO_FATAL_FAILURE(expect_all_memory());
    give_back({near_channel_, far_channel_});
}

TEST_P(CopyEngine, ALossWithCopiesUnderWay)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with_engine());
    ASSERT_NO_FATAL_FAILURE(begin_and_hang(mib));
    ASSERT_NO_FATAL_FAILURE(inject(RTE_PMD_PLX_NTB_FAULT_LINK_DOWN, 1));
    ASSERT_NO_FATAL_FAILURE(expect_loss_and_return());
    give_back({near_channel_, far_channel_});
}

TEST_P(CopyEngine, TheLinkFailsUnderIt)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with_engine());
    ASSERT_NO_FATAL_FAILURE(exchange(64 * kib, 1));
    ASSERT_NO_FATAL_FAILURE(inject(RTE_PMD_PLX_NTB_FAULT_DMA_LINK_LOSS, 300 * kib));
    ASSERT_TRUE(send(near_channel_, numbered(mib, 2), 2));
    ASSERT_NO_FATAL_FAILURE(expect_loss_and_return());
    give_back({near_channel_, far_channel_});
}

TEST_P(CopyEngine, ClosingWaitsForIt)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with_engine());
    ASSERT_NO_FATAL_FAILURE(begin_and_hang(mib));
    give_back({near_channel_, far_channel_});
    EXPECT_EQ(ntbmsg_endpoint_close(near_), 0);
    near_ = nullptr;
}

TEST_P(CopyEngine, OneThatWasNotStartedTakesNothing)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with(memory));
    const int16_t dev = set_up("raw_plx_ntb0_dma0");
    use(dev, 1, 0);
    ASSERT_NO_FATAL_FAILURE(exchange(mib, 1));
    EXPECT_EQ(stats(near_).tx_dma_bytes, 0U);
    give_back({near_channel_, far_channel_});
}

TEST_P(CopyEngine, OptionsAreChecked)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with_engine());
    ntbmsg_dma_options options = options_for(dev_);
    EXPECT_EQ(ntbmsg_worker_dma_set(nullptr, &options), -EINVAL);
    options.depth = 4097;
    EXPECT_EQ(ntbmsg_worker_dma_set(near_worker_, &options), -EINVAL);
    options = options_for(dev_);
    options.size -= 1;
    EXPECT_EQ(ntbmsg_worker_dma_set(near_worker_, &options), -EINVAL);
    options = options_for(-1);
    EXPECT_EQ(ntbmsg_worker_dma_set(near_worker_, &options), -ENODEV);
    options = options_for(dev_);
    options.dma_vchan = 1;
    EXPECT_EQ(ntbmsg_worker_dma_set(near_worker_, &options), -ENODEV);
    EXPECT_EQ(ntbmsg_worker_dma_set(near_worker_, nullptr), 0);
    EXPECT_EQ(ntbmsg_worker_dma_set(near_worker_, nullptr), 0);
    ASSERT_NO_FATAL_FAILURE(exchange(mib, 1));
    EXPECT_EQ(stats(near_).tx_dma, 0U);
    give_back({near_channel_, far_channel_});
}

TEST_P(CopyEngine, OneThatIsTakenAwayLeavesWhatItHasNotBegun)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_with_engine());
    ASSERT_NO_FATAL_FAILURE(exchange(64 * kib, 1));
    rte_mbuf *m = numbered(mib, 2);
    const uint32_t imm = 2;
    ASSERT_EQ(ntbmsg_channel_send_burst(near_channel_, &m, &imm, 1), 1);
    for (unsigned i = 0; i < 10; ++i)
        ntbmsg_worker_poll(near_worker_); // announced; the peer grants nothing meanwhile
    ASSERT_EQ(stats(near_).tx_dma, 2U);
    ASSERT_EQ(ntbmsg_worker_dma_set(near_worker_, nullptr), 0);
    ASSERT_NO_FATAL_FAILURE(expect(far_channel_, mib, 2));
    EXPECT_EQ(stats(near_).tx_dma_bytes, 64U * kib);
    use(dev_, 1, 0);
    ASSERT_NO_FATAL_FAILURE(exchange(mib, 3));
    EXPECT_EQ(stats(near_).tx_dma, 3U);
    give_back({near_channel_, far_channel_});
}

// An engine with a thread of its own: copies are under way while the worker polls.
TEST_P(CopyEngine, AnyDmadevWillDo)
{
    if (rte_vdev_init("dma_skeleton", "") != 0)
        GTEST_SKIP() << "DPDK's dma_skeleton is not installed";
    ASSERT_NO_FATAL_FAILURE(bring_up_with(memory));
    const int16_t dev = start("dma_skeleton", 1, 0);
    for (uint32_t i = 0; i < 20; ++i)
        ASSERT_NO_FATAL_FAILURE(exchange(mib + i, i));
    EXPECT_EQ(stats(near_).tx_dma, 20U);
    EXPECT_EQ(stats(near_).tx_dma_errors, 0U);
    give_back({near_channel_, far_channel_});
    ASSERT_NO_FATAL_FAILURE(close(near_));
    EXPECT_EQ(rte_dma_stop(dev), 0);
    EXPECT_EQ(rte_vdev_uninit("dma_skeleton"), 0);
}

INSTANTIATE_TEST_SUITE_P(Workers, CopyEngine, testing::Bool(), [](const auto &worker) {
    return worker.param ? "dedicated" : "run_to_completion";
});

} // namespace
