// SPDX-License-Identifier: BSD-3-Clause
// The memory that a card exposes: whatever the bus addresses of its pages, the registers that show
// it to the peer name those pages. The addresses are made up; all else is EAL's and the driver's.
#include "bus.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <rte_mbuf.h>
#include <rte_memory.h>
#include <rte_pmd_plx_ntb.h>
#include <rte_rawdev.h>

namespace
{

using test::FakeFunction;
using test::LogCapture;
using test::sysfs;

constexpr uint64_t page = uint64_t{2} << 20;
constexpr uint32_t nt0_virtual = 0x3E000, nt0_link = 0x3F000;
constexpr uint32_t inbound_alut = 0x3A000;
constexpr uint32_t alut_for_nt0 = 0x40002100, no_alut = 0x00002100;

/// Every huge page somewhere else: an odd factor leaves no two numbers equal.
uint64_t scattered(uint64_t address)
{
    const uint64_t number = address / page * 0x9E3779B1 & 0xFFFFF;
    return (number + 0x800) * page + address % page;
}
/// Together, but aligned to no more than a page.
uint64_t shifted(uint64_t address)
{
    return (address & 0x3FFFFFFFFF) + 3 * page;
}

uint64_t (*made_up)(uint64_t address) = nullptr;

} // namespace

extern "C" {
rte_iova_t __real_rte_mem_virt2iova(const void *address);
rte_iova_t __wrap_rte_mem_virt2iova(const void *address)
{
    return made_up == nullptr ? __real_rte_mem_virt2iova(address)
                              : made_up(reinterpret_cast<uint64_t>(address));
}
}

namespace
{

class PciMemory : public test::OnTheBus
{
protected:
    FakeFunction nt_;
    uint16_t id_ = 0;
    rte_pmd_plx_ntb_info info_{};
    std::vector<rte_mbuf *> mbufs_;

    /// A device that has started, and all its receive buffers.
    void start(uint32_t ports_and_alut, const char *devargs)
    {
        nt_.registers[0x360] = ports_and_alut;
        ASSERT_EQ(probe(nt_, devargs), 0);
        id_ = static_cast<uint16_t>(rawdev(nt_.address));
        ASSERT_NO_FATAL_FAILURE(start_device(nt_.address));
        info_.size = sizeof(info_);
        rte_rawdev_info info{};
        info.dev_private = &info_;
        ASSERT_EQ(rte_rawdev_info_get(id_, &info, sizeof(info_)), 0);
        mbufs_.resize(info_.buffers);
        ASSERT_EQ(rte_pktmbuf_alloc_bulk(info_.buffer_pool, mbufs_.data(), info_.buffers), 0);
    }
    void TearDown() override
    {
        if (rawdev(nt_.address) >= 0) {
            rte_pktmbuf_free_bulk(mbufs_.data(), static_cast<unsigned>(mbufs_.size()));
            rte_rawdev_stop(id_);
            EXPECT_EQ(remove(nt_.address), 0);
            sysfs().unplug(nt_.address);
        }
        made_up = nullptr;
        OnTheBus::TearDown();
    }

    uint32_t reg(uint32_t offset) { return sysfs().read32(nt_.address, "resource0", offset); }
    uint64_t reg64(uint32_t low, uint32_t high) { return uint64_t{reg(high)} << 32 | reg(low); }
    bool shown_by_alut() { return (reg(nt0_virtual + 0xC94) >> 28 & 1) != 0; }
    /// What the link side's BAR2 leads to, @p offset from its start.
    uint64_t led_to(uint64_t offset)
    {
        if (!shown_by_alut())
            return reg64(nt0_link + 0xC3C, nt0_link + 0xC40) + offset;
        const uint64_t setup = reg64(nt0_link + 0xE8, nt0_link + 0xEC);
        const uint64_t segment = (~(setup & ~uint64_t{0xFFFFF}) + 1) / 256; // of the BAR's size
        const auto entry = static_cast<uint32_t>(offset / segment);
        const uint32_t low = inbound_alut + entry / 128 * 0x1000 + entry % 128 * 4;
        EXPECT_EQ(reg(low + 0x800), 3u) << "entry " << entry;
        return reg64(low, low + 0x400) + offset % segment;
    }
    /// Where the block begins. The last buffer lies nearest to its end, the first at a fixed place.
    uint64_t block_begin()
    {
        uint64_t least = UINT64_MAX;
        for (const rte_mbuf *m : mbufs_)
            least = std::min(least, reinterpret_cast<uint64_t>(m->buf_addr));
        return least & ~(page - 1); // the rings of one small queue end in its first page
    }
    void expect_shown()
    {
        const uint64_t begin = block_begin();
        for (uint64_t at = 0; at < info_.block_bytes; at += page / 4)
            EXPECT_EQ(led_to(at), made_up(begin + at)) << "at " << at;
    }
};

TEST_F(PciMemory, AlutShowsPagesThatLieAnywhere)
{
    made_up = scattered;
    start(alut_for_nt0, "ring=64,buffers=2048");
    ASSERT_EQ(info_.block_bytes, 4 * page);
    EXPECT_EQ(info_.buffers, 2048u);
    EXPECT_TRUE(shown_by_alut());
    expect_shown();
    // What our own engines get: the same pages, and nothing where a buffer lies across two.
    unsigned across = 0;
    for (const rte_mbuf *m : mbufs_) {
        const auto at = reinterpret_cast<uint64_t>(m->buf_addr);
        const bool split = at / page != (at + m->buf_len - 1) / page;
        across += split;
        EXPECT_EQ(rte_mbuf_iova_get(m), split ? RTE_BAD_IOVA : made_up(at));
    }
    EXPECT_GT(across, 0u);
}

TEST_F(PciMemory, WithoutAlutThePoolFitsTheLargestRun)
{
    made_up = scattered;
    {
        const LogCapture log;
        start(no_alut, "ring=64,buffers=2048");
        EXPECT_NE(log.driver().find("buffers instead of 2048"), std::string::npos) << log.text();
    }
    EXPECT_EQ(info_.block_bytes, page);
    EXPECT_LT(info_.buffers, 964u);
    EXPECT_GT(info_.buffers, 900u);
    EXPECT_FALSE(shown_by_alut());
    expect_shown();
}

TEST_F(PciMemory, WithoutAlutAChosenRingLeavesRoomForBuffers)
{
    made_up = scattered;
    start(no_alut, "");
    EXPECT_EQ(info_.block_bytes, page);
    EXPECT_GE(info_.ring_lines, 4096u);
    EXPECT_LE(info_.ring_lines * uint64_t{64}, page / 2);
    EXPECT_GT(info_.buffers, 400u);
    expect_shown();
}

TEST_F(PciMemory, WithoutAlutTheRunIsAlignedOnTheBus)
{
    made_up = shifted;
    start(no_alut, "ring=64,buffers=2048");
    ASSERT_NE(info_.block_bytes, 0u);
    EXPECT_FALSE(shown_by_alut());
    EXPECT_EQ(led_to(0) % info_.block_bytes, 0u);
    const auto first = reinterpret_cast<uint64_t>(mbufs_[0]->buf_addr);
    EXPECT_GE(made_up(first), led_to(0));
    EXPECT_LT(made_up(first), led_to(0) + info_.block_bytes);
}

TEST_F(PciMemory, WhatTheMachineReallyHasWillDo)
{
    start(alut_for_nt0, "ring=64,buffers=512");
    EXPECT_EQ(info_.buffers, 512u);
    for (const rte_mbuf *m : mbufs_) {
        if (rte_mbuf_iova_get(m) != RTE_BAD_IOVA) {
            EXPECT_EQ(rte_mbuf_iova_get(m), rte_mem_virt2iova(m->buf_addr));
        }
    }
}

} // namespace
