// SPDX-License-Identifier: BSD-3-Clause
// A channel of the twin as an rte_dmadev, through DPDK's public calls. DPDK's own test
// (test/dpdk/) covers the usual ways; here is what it leaves out.
#include "rte_pmd_plx_ntb.h"
#include "rte_pmd_plx_ntb_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <rte_bus_vdev.h>
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_dmadev.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <rte_rawdev.h>

#include <sys/mman.h>
#include <unistd.h>

namespace
{

constexpr char rawdev[] = "raw_plx_ntb0";
constexpr uint64_t below_end = (uint64_t{1} << 48) - 4096;

class DmadevTest : public ::testing::Test
{
protected:
    int16_t dev_ = -1;
    uint8_t *memory_ = nullptr;
    static constexpr size_t half = 1 << 20;

    void SetUp() override
    {
        memory_ = static_cast<uint8_t *>(rte_zmalloc("test", 2 * half, 4096));
        ASSERT_NE(memory_, nullptr);
        for (size_t i = 0; i < half; ++i)
            memory_[i] = static_cast<uint8_t>(i * 7 + i / 256);
    }
    void TearDown() override
    {
        rte_vdev_uninit(rawdev); // with whatever is started
        EXPECT_EQ(rte_dma_count_avail(), 0u);
        rte_free(memory_);
    }
    static int plug(const std::string &devargs)
    {
        static unsigned cables = 0;
        const std::string all = "cable=mem:dmadev-" + std::to_string(getpid()) + "-" +
                                std::to_string(cables++) + "," + devargs;
        return rte_vdev_init(rawdev, all.c_str());
    }
    void plug_and_find()
    {
        ASSERT_EQ(plug("dmadev=1"), 0);
        dev_ = static_cast<int16_t>(rte_dma_get_dev_id_by_name("raw_plx_ntb0_dma0"));
        ASSERT_GE(dev_, 0);
    }
    int set_up(uint16_t descriptors)
    {
        const rte_dma_conf conf{.nb_vchans = 1};
        rte_dma_vchan_conf vchan{};
        vchan.direction = RTE_DMA_DIR_MEM_TO_MEM;
        vchan.nb_desc = descriptors;
        const int rc = rte_dma_configure(dev_, &conf);
        return rc != 0 ? rc : rte_dma_vchan_setup(dev_, 0, &vchan);
    }
    void start(uint16_t descriptors = 64)
    {
        plug_and_find();
        ASSERT_EQ(set_up(descriptors), 0);
        ASSERT_EQ(rte_dma_start(dev_), 0);
    }
    static uint16_t raw_id() { return static_cast<uint16_t>(rte_rawdev_get_dev_id(rawdev)); }
    static void inject(rte_pmd_plx_ntb_fault fault, uint32_t argument)
    {
        ASSERT_EQ(rte_pmd_plx_ntb_inject(raw_id(), fault, argument), 0);
    }
    rte_iova_t at(size_t offset) const { return rte_mem_virt2iova(memory_) + offset; }
    int copy(size_t from, size_t to, uint32_t bytes, uint64_t flags = 0)
    {
        return rte_dma_copy(dev_, 0, at(from), at(to), bytes, flags);
    }
    /// Collects @p n, with a bound that no machine needs. @return their statuses
    std::vector<rte_dma_status_code> await(size_t n)
    {
        std::vector<rte_dma_status_code> all;
        const uint64_t end = rte_get_timer_cycles() + 60 * rte_get_timer_hz();
        while (all.size() < n && rte_get_timer_cycles() < end) {
            rte_dma_status_code some[64];
            const auto most = static_cast<uint16_t>(std::min<size_t>(n - all.size(), 64));
            const uint16_t got = rte_dma_completed_status(dev_, 0, most, nullptr, some);
            all.insert(all.end(), some, some + got);
            if (got == 0)
                rte_delay_us_sleep(200);
        }
        EXPECT_EQ(all.size(), n);
        return all;
    }
    rte_dma_stats stats() const
    {
        rte_dma_stats stats{};
        EXPECT_EQ(rte_dma_stats_get(dev_, 0, &stats), 0);
        return stats;
    }
};

using Codes = std::vector<rte_dma_status_code>;

TEST_F(DmadevTest, NoneUnlessAskedFor)
{
    ASSERT_EQ(plug("queues=1"), 0);
    EXPECT_EQ(rte_dma_count_avail(), 0u);
}

TEST_F(DmadevTest, AsManyAsAskedFor)
{
    ASSERT_EQ(plug("dmadev=4"), 0);
    EXPECT_EQ(rte_dma_count_avail(), 4u);
    for (const char *name : {"raw_plx_ntb0_dma0", "raw_plx_ntb0_dma3"})
        EXPECT_GE(rte_dma_get_dev_id_by_name(name), 0) << name;
}

TEST_F(DmadevTest, SaysWhatItCan)
{
    plug_and_find();
    rte_dma_info info{};
    ASSERT_EQ(rte_dma_info_get(dev_, &info), 0);
    EXPECT_STREQ(info.dev_name, "raw_plx_ntb0_dma0");
    EXPECT_EQ(info.dev_capa,
              RTE_DMA_CAPA_MEM_TO_MEM | RTE_DMA_CAPA_OPS_COPY | RTE_DMA_CAPA_HANDLES_ERRORS);
    EXPECT_EQ(info.max_vchans, 1);
    EXPECT_EQ(info.min_desc, 16);
    EXPECT_EQ(info.max_desc, 2032);
}

TEST_F(DmadevTest, RefusesWhatItCannot)
{
    plug_and_find();
    EXPECT_LT(rte_dma_start(dev_), 0) << "not configured";
    EXPECT_LT(set_up(15), 0);
    EXPECT_LT(set_up(2033), 0);
    const rte_dma_conf two{.nb_vchans = 2};
    EXPECT_LT(rte_dma_configure(dev_, &two), 0);
    const rte_dma_conf one{.nb_vchans = 1};
    ASSERT_EQ(rte_dma_configure(dev_, &one), 0);
    EXPECT_LT(rte_dma_start(dev_), 0) << "no virtual channel";
    ASSERT_EQ(set_up(2032), 0);
    ASSERT_EQ(rte_dma_start(dev_), 0);
    EXPECT_EQ(rte_dma_burst_capacity(dev_, 0), 2032);
    EXPECT_EQ(rte_dma_fill(dev_, 0, 0, at(0), 64, 0), -EINVAL);
    rte_dma_sge sge{at(0), 64};
    EXPECT_EQ(rte_dma_copy_sg(dev_, 0, &sge, &sge, 1, 1, 0), -EINVAL);
    EXPECT_EQ(rte_dma_copy(dev_, 0, uint64_t{1} << 48, at(0), 64, 0), -EINVAL);
    EXPECT_EQ(rte_dma_copy(dev_, 0, at(0), uint64_t{1} << 48, 64, 0), -EINVAL);
    EXPECT_EQ(rte_dma_copy(dev_, 0, at(0), at(half), 1u << 27, 0), -EINVAL);
    EXPECT_EQ(rte_dma_burst_capacity(dev_, 0), 2032) << "none of it was taken";
}

TEST_F(DmadevTest, TakesNoMoreThanItsRingHolds)
{
    start(16);
    for (int i = 0; i < 16; ++i)
        EXPECT_EQ(copy(0, half, 64), i);
    EXPECT_EQ(copy(0, half, 64), -ENOSPC);
    EXPECT_EQ(rte_dma_submit(dev_, 0), 0);
    EXPECT_EQ(await(16), Codes(16, RTE_DMA_STATUS_SUCCESSFUL));
    EXPECT_EQ(copy(0, half, 64), 16);
}

TEST_F(DmadevTest, CopiesOfEverySizeAndAlignment)
{
    start();
    size_t from = 1;
    size_t to = half + 3;
    for (uint32_t bytes = 0; bytes < 600; bytes += bytes < 140 ? 1 : 37) {
        ASSERT_GE(copy(from, to, bytes, RTE_DMA_OP_FLAG_SUBMIT), 0);
        ASSERT_EQ(await(1), Codes(1, RTE_DMA_STATUS_SUCCESSFUL));
        ASSERT_EQ(std::memcmp(memory_ + from, memory_ + to, bytes), 0) << bytes;
        ASSERT_EQ(memory_[to + bytes], 0) << bytes;
        from += bytes + 1;
        to += bytes + 5;
    }
    ASSERT_GE(copy(0, half, half, RTE_DMA_OP_FLAG_SUBMIT), 0);
    EXPECT_EQ(await(1), Codes(1, RTE_DMA_STATUS_SUCCESSFUL));
    EXPECT_EQ(std::memcmp(memory_, memory_ + half, half), 0);
}

TEST_F(DmadevTest, AFencedChainFollowsItsData)
{
    start();
    for (size_t i = 0; i < 40; ++i)
        ASSERT_GE(
            copy(i == 0 ? 0 : half + (i - 1) * 5000, half + i * 5000, 5000, RTE_DMA_OP_FLAG_FENCE),
            0);
    rte_dma_submit(dev_, 0);
    EXPECT_EQ(await(40), Codes(40, RTE_DMA_STATUS_SUCCESSFUL));
    EXPECT_EQ(std::memcmp(memory_, memory_ + half + 39 * 5000, 5000), 0);
}

TEST_F(DmadevTest, FailuresKeepTheirPlaces)
{
    start();
    EXPECT_EQ(copy(0, half, 64), 0);
    EXPECT_EQ(rte_dma_copy(dev_, 0, below_end, at(half), 64, 0), 1);
    EXPECT_EQ(copy(64, half + 64, 64), 2);
    EXPECT_EQ(rte_dma_copy(dev_, 0, at(0), below_end, 64, RTE_DMA_OP_FLAG_SUBMIT), 3);
    uint16_t last = 99;
    bool error = false;
    EXPECT_EQ(rte_dma_completed(dev_, 0, 10, &last, &error), 1);
    EXPECT_EQ(last, 0);
    EXPECT_TRUE(error);
    EXPECT_EQ(await(3), (Codes{RTE_DMA_STATUS_BUS_READ_ERROR, RTE_DMA_STATUS_SUCCESSFUL,
                               RTE_DMA_STATUS_BUS_WRITE_ERROR}));
    EXPECT_EQ(stats().submitted, 4u);
    EXPECT_EQ(stats().completed, 4u);
    EXPECT_EQ(stats().errors, 2u);
    EXPECT_EQ(rte_dma_stats_reset(dev_, 0), 0);
    EXPECT_EQ(stats().submitted + stats().completed + stats().errors, 0u);
}

TEST_F(DmadevTest, AStallIsMendedWithoutTheApplication)
{
    start();
    inject(RTE_PMD_PLX_NTB_FAULT_DMA_STALL, 2);
    for (int i = 0; i < 8; ++i)
        copy(0, half, 64);
    rte_dma_submit(dev_, 0);
    EXPECT_EQ(await(8), Codes(8, RTE_DMA_STATUS_SUCCESSFUL));
}

TEST_F(DmadevTest, AHangReturnsEverythingAndStops)
{
    start();
    inject(RTE_PMD_PLX_NTB_FAULT_DMA_HANG, 1);
    for (int i = 0; i < 4; ++i)
        copy(0, half, 64);
    rte_dma_submit(dev_, 0);
    EXPECT_EQ(await(4), (Codes{RTE_DMA_STATUS_SUCCESSFUL, RTE_DMA_STATUS_ERROR_UNKNOWN,
                               RTE_DMA_STATUS_NOT_ATTEMPTED, RTE_DMA_STATUS_NOT_ATTEMPTED}));
    EXPECT_EQ(copy(0, half, 64), -EIO);
    enum rte_dma_vchan_status status = RTE_DMA_VCHAN_IDLE;
    EXPECT_EQ(rte_dma_vchan_status(dev_, 0, &status), 0);
    EXPECT_EQ(status, RTE_DMA_VCHAN_HALTED_ERROR);
    EXPECT_EQ(rte_dma_stop(dev_), 0);
    EXPECT_EQ(rte_dma_start(dev_), -EIO) << "only a reset of the switch mends it";
}

TEST_F(DmadevTest, StoppingForgetsAndStartingBeginsAnew)
{
    start();
    for (int i = 0; i < 5; ++i)
        copy(0, half, 64, RTE_DMA_OP_FLAG_SUBMIT);
    EXPECT_EQ(rte_dma_stop(dev_), 0);
    ASSERT_EQ(rte_dma_start(dev_), 0);
    EXPECT_EQ(rte_dma_completed(dev_, 0, 10, nullptr, nullptr), 0);
    EXPECT_EQ(copy(0, half, 64, RTE_DMA_OP_FLAG_SUBMIT), 0) << "numbers begin at 0";
    EXPECT_EQ(await(1), Codes(1, RTE_DMA_STATUS_SUCCESSFUL));
    EXPECT_EQ(rte_dma_stop(dev_), 0);
    ASSERT_EQ(set_up(500), 0) << "another ring";
    ASSERT_EQ(rte_dma_start(dev_), 0);
    EXPECT_EQ(rte_dma_burst_capacity(dev_, 0), 500);
}

TEST_F(DmadevTest, DumpsWhatItIsDoing)
{
    start();
    char *text = nullptr;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    copy(0, half, 64, RTE_DMA_OP_FLAG_SUBMIT);
    EXPECT_EQ(rte_dma_dump(dev_, file), 0);
    std::fclose(file);
    EXPECT_NE(std::strstr(text, "raw_plx_ntb0_dma0 of raw_plx_ntb0"), nullptr) << text;
    EXPECT_NE(std::strstr(text, "1 given, 0 collected"), nullptr) << text;
    std::free(text);
}

TEST_F(DmadevTest, MemoryOfTheApplicationIsReachedOnceItIsMapped)
{
    start();
    constexpr size_t bytes = 1 << 20;
    void *own = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(own, MAP_FAILED);
    const auto iova = reinterpret_cast<uintptr_t>(own);
    rte_device *device = nullptr;
    rte_rawdev_info info{};
    ASSERT_EQ(rte_rawdev_info_get(raw_id(), &info, 0), 0);
    device = info.device;
    ASSERT_NE(device, nullptr);
    const auto status = [&] {
        EXPECT_GE(rte_dma_copy(dev_, 0, at(0), iova + 5, 3000, RTE_DMA_OP_FLAG_SUBMIT), 0);
        return await(1);
    };
    EXPECT_EQ(status(), Codes(1, RTE_DMA_STATUS_BUS_WRITE_ERROR));
    ASSERT_EQ(rte_extmem_register(own, bytes, nullptr, 0, 4096), 0);
    ASSERT_EQ(rte_dev_dma_map(device, own, iova, bytes), 0);
    EXPECT_EQ(status(), Codes(1, RTE_DMA_STATUS_SUCCESSFUL));
    EXPECT_EQ(std::memcmp(static_cast<uint8_t *>(own) + 5, memory_, 3000), 0);
    EXPECT_LT(rte_dev_dma_map(device, own, iova, bytes), 0) << "a second time";
    EXPECT_EQ(rte_dev_dma_unmap(device, own, iova, bytes), 0);
    EXPECT_LT(rte_dev_dma_unmap(device, own, iova, bytes), 0) << "a second time";
    EXPECT_EQ(status(), Codes(1, RTE_DMA_STATUS_BUS_WRITE_ERROR));
    EXPECT_EQ(rte_extmem_unregister(own, bytes), 0);
    munmap(own, bytes);
}

TEST_F(DmadevTest, TheDeviceOutlivesItsDmadevsAndNotTheReverse)
{
    start();
    const uint16_t raw = raw_id();
    EXPECT_EQ(rte_rawdev_close(raw), -EBUSY);
    EXPECT_GE(copy(0, half, 64, RTE_DMA_OP_FLAG_SUBMIT), 0);
    EXPECT_EQ(await(1), Codes(1, RTE_DMA_STATUS_SUCCESSFUL));
    EXPECT_EQ(rte_dma_stop(dev_), 0);
    EXPECT_EQ(rte_dma_close(dev_), 0);
    EXPECT_EQ(rte_dma_count_avail(), 0u);
    EXPECT_EQ(rte_rawdev_close(raw), 0);
}

TEST_F(DmadevTest, ARemovalStopsIt)
{
    start();
    copy(0, half, 64, RTE_DMA_OP_FLAG_SUBMIT);
    EXPECT_EQ(rte_vdev_uninit(rawdev), 0);
    EXPECT_EQ(rte_dma_count_avail(), 0u);
}

} // namespace
