// SPDX-License-Identifier: BSD-3-Clause
// What the driver makes of a card's BARs, mappings and memory, on made-up ones.
#include "bus/pci_bars.hpp"
#include "bus/pci_mapping.hpp"
#include "bus/exposable.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace
{

using namespace plx::pmd;
using plx::hw::Piece;
using plx::hw::WindowRules;

constexpr uint64_t mib = uint64_t{1} << 20;

// ---- BARs

class PciBarsTest : public testing::Test
{
protected:
    std::byte mapped_{};
    PciBars bars_{.csr = {0xF7000000, 256 << 10, &mapped_, false, false},
                  .data = {0x3800000000, 512 * mib, &mapped_, true, true},
                  .shared = {0x3840000000, 4 * mib, &mapped_, true, true}};

    void expect_fault(const char *bar, const char *word)
    {
        BarFault fault;
        EXPECT_FALSE(check_bars(bars_, &fault));
        EXPECT_NE(std::string(fault.text).find(bar), std::string::npos) << fault.text;
        EXPECT_NE(std::string(fault.text).find(word), std::string::npos) << fault.text;
    }
};

TEST_F(PciBarsTest, TakesWhatABoardHas)
{
    BarFault fault;
    EXPECT_TRUE(check_bars(bars_, &fault)) << fault.text;
    EXPECT_STREQ(fault.text, "");
}

TEST_F(PciBarsTest, NamesTheOneThatWillNotDo)
{
    const PciBars good = bars_;
    bars_.csr.bytes = 0;
    expect_fault("BAR0", "absent");
    bars_ = good;
    bars_.csr.bytes = 128 << 10;
    expect_fault("BAR0", "256 KiB");
    bars_ = good;
    bars_.data.bytes = 0;
    expect_fault("BAR2", "absent");
    bars_ = good;
    bars_.data.bus = 0;
    expect_fault("BAR2", "no address");
    bars_ = good;
    bars_.data.bytes = 384 * mib;
    expect_fault("BAR2", "power of two");
    bars_ = good;
    bars_.data.bytes = mib / 2;
    expect_fault("BAR2", "power of two");
    bars_ = good;
    bars_.data.bus += 4096;
    expect_fault("BAR2", "multiple");
    bars_ = good;
    bars_.data.is_64bit = false;
    expect_fault("BAR2", "32-bit");
    bars_ = good;
    bars_.shared.is_64bit = false;
    expect_fault("BAR4", "32-bit");
    bars_ = good;
    bars_.shared.bytes = mib;
    expect_fault("BAR4", "2048 KiB");
    bars_ = good;
    bars_.shared.addr = nullptr;
    expect_fault("BAR4", "mapped");
}

TEST_F(PciBarsTest, ReadsTheTypeBits)
{
    PciBar bar;
    set_type(&bar, 0xF700000C);
    EXPECT_TRUE(bar.is_64bit);
    EXPECT_TRUE(bar.prefetchable);
    set_type(&bar, 0xF7000000);
    EXPECT_FALSE(bar.is_64bit);
    EXPECT_FALSE(bar.prefetchable);
    set_type(&bar, 0xF7000008);
    EXPECT_FALSE(bar.is_64bit);
    EXPECT_TRUE(bar.prefetchable);
}

TEST_F(PciBarsTest, KnowsHowFarTheEnginesReach)
{
    EXPECT_TRUE(dma_reaches(bars_.data));
    bars_.data.bus = (uint64_t{1} << 48) - bars_.data.bytes;
    EXPECT_TRUE(dma_reaches(bars_.data));
    bars_.data.bus += bars_.data.bytes;
    EXPECT_FALSE(dma_reaches(bars_.data));
    bars_.data.bus = uint64_t{1} << 47;
    bars_.data.bytes = uint64_t{1} << 48;
    EXPECT_FALSE(dma_reaches(bars_.data));
    EXPECT_FALSE(dma_reaches({}));
}

// ---- mappings

constexpr char maps[] =
    "55d0c0a00000-55d0c0a21000 r-xp 00000000 08:01 131 /usr/bin/dpdk-testpmd\n"
    "7f0000000000-7f0000040000 rw-s 00000000 00:15 97 /sys/bus/pci/devices/0000:03:00.0/resource0\n"
    "7f0000040000-7f0020040000 rw-s 00000000 00:15 98 "
    "/sys/bus/pci/devices/0000:03:00.0/resource2_wc\n"
    "7f0040000000-7f0060000000 rw-s 00000000 00:15 99 anon_inode:[vfio-device]\n"
    "7f0080000000-7f0080001000 rw-p 00000000 00:00 0 \n"
    "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]";
constexpr uintptr_t uncached_at = 0x7f0000000000, wc_at = 0x7f0000040000, vfio_at = 0x7f0040000000;

std::string path_at(uintptr_t addr)
{
    char path[256];
    const size_t length = mapped_path(maps, addr, path, sizeof(path));
    EXPECT_EQ(length, std::string(path).size());
    return path;
}

TEST(PciMappingTest, FindsWhatIsMapped)
{
    EXPECT_EQ(path_at(wc_at), "/sys/bus/pci/devices/0000:03:00.0/resource2_wc");
    EXPECT_EQ(path_at(wc_at - 1), "/sys/bus/pci/devices/0000:03:00.0/resource0");
    EXPECT_EQ(path_at(vfio_at + 0x1000), "anon_inode:[vfio-device]");
    EXPECT_EQ(path_at(0x7ffc00000000), "[stack]");
    EXPECT_EQ(path_at(0x7f0080000000), "") << "memory of no file";
    EXPECT_EQ(path_at(0x1000), "") << "nothing";
    char shorter[8];
    EXPECT_EQ(mapped_path(maps, wc_at, shorter, sizeof(shorter)), 7u);
    EXPECT_STREQ(shorter, "/sys/bu");
}

TEST(PciMappingTest, ReadsRangeRegisters)
{
    constexpr char mtrr[] =
        "reg00: base=0x000000000 (    0MB), size=262144MB, count=1: write-back\n"
        "reg01: base=0x0c0000000 ( 3072MB), size= 1024MB, count=1: uncachable\n"
        "reg02: base=0x3800000000 (229376MB), size=  512MB, count=1: write-combining\n"
        "reg03: base=0x0f8000000 ( 3968MB), size=   64KB, count=1: write-combining\n"
        "reg04: base=0x, size=many, count=1: write-combining\n";
    EXPECT_TRUE(mtrr_combines(mtrr, 0x3800000000, 512 * mib));
    EXPECT_TRUE(mtrr_combines(mtrr, 0x3810000000, 256 * mib));
    EXPECT_FALSE(mtrr_combines(mtrr, 0x3810000000, 512 * mib)) << "half of it only";
    EXPECT_FALSE(mtrr_combines(mtrr, 0x0c0000000, mib));
    EXPECT_TRUE(mtrr_combines(mtrr, 0x0f8000000, 64 << 10));
    EXPECT_FALSE(mtrr_combines(mtrr, 0x0f8000000, 128 << 10));
    EXPECT_FALSE(mtrr_combines("", 0x3800000000, mib));
}

TEST(PciMappingTest, TellsHowStoresReachTheWindow)
{
    const auto combines = [](KernelDriver driver, uintptr_t addr, const char *mtrr, bool igb_uio_wc) {
        const MappingFacts facts{driver, maps, mtrr, igb_uio_wc};
        const BarMapping mapping = bar_mapping(facts, addr, 0x3800000000, 512 * mib);
        EXPECT_STRNE(mapping.why, "");
        return mapping.write_combining;
    };
    constexpr char mtrr[] = "reg02: base=0x3800000000 (229376MB), size=  512MB, count=1: "
                            "write-combining\n";
    EXPECT_TRUE(combines(KernelDriver::uio_pci_generic, wc_at, "", false));
    EXPECT_FALSE(combines(KernelDriver::uio_pci_generic, uncached_at, "", false));
    EXPECT_TRUE(combines(KernelDriver::igb_uio, wc_at, "", true));
    EXPECT_FALSE(combines(KernelDriver::igb_uio, wc_at, "", false)) << "the kernel holds it uncached";
    EXPECT_FALSE(combines(KernelDriver::vfio_pci, vfio_at, "", false));
    EXPECT_TRUE(combines(KernelDriver::vfio_pci, vfio_at, mtrr, false));
}

// ---- memory

/// An allocation whose pages lie where the test says.
struct Pages {
    std::vector<uint64_t> iovas;
    size_t page_bytes = 2 * mib;
    Piece pieces[plx::facts::alut_entries_one_nt] = {};

    static uint64_t iova(void *ctx, size_t offset)
    {
        const Pages &pages = *static_cast<Pages *>(ctx);
        EXPECT_EQ(offset % pages.page_bytes, 0u);
        return pages.iovas.at(offset / pages.page_bytes);
    }
    Exposable find(size_t bytes, uint32_t entries)
    {
        const WindowRules rules{.bytes_max = 512 * mib, .bytes_min = mib, .entries = entries};
        return find_exposable({iovas.size() * page_bytes, page_bytes, iova, this}, bytes, mib, rules,
                             pieces);
    }
};

TEST(PciMemoryTest, AlutTakesPagesWhereverTheyLie)
{
    Pages pages{{10 * mib, 4 * mib, 6 * mib, 100 * mib}};
    const Exposable found = pages.find(8 * mib, 256);
    EXPECT_EQ(found.offset, 0u);
    EXPECT_EQ(found.bytes, 8 * mib);
    ASSERT_EQ(found.pieces, 3u);
    EXPECT_EQ(pages.pieces[0].address, 10 * mib);
    EXPECT_EQ(pages.pieces[0].bytes, 2 * mib);
    EXPECT_EQ(pages.pieces[1].address, 4 * mib);
    EXPECT_EQ(pages.pieces[1].bytes, 4 * mib);
    EXPECT_EQ(pages.pieces[2].address, 100 * mib);
}

TEST(PciMemoryTest, AlutSegmentsMayBeLargerThanPages)
{
    // 512 MiB in 128 segments: 4 MiB each, two pages that have to lie together.
    Pages pages;
    for (uint64_t i = 0; i < 128; ++i)
        for (uint64_t half : {0u, 2u})
            pages.iovas.push_back((1024 + 8 * (127 - i) + half) * mib);
    EXPECT_EQ(pages.find(512 * mib, 128).bytes, 512 * mib);
    EXPECT_EQ(pages.find(512 * mib, 128).pieces, 128u);
    std::swap(pages.iovas[200], pages.iovas[201]);
    EXPECT_EQ(pages.find(512 * mib, 128).bytes, 256 * mib) << "smaller segments suit every page";
    EXPECT_EQ(pages.find(512 * mib, 256).bytes, 512 * mib);
}

TEST(PciMemoryTest, SmallPagesAreNoUseToTheAlutUnlessTheyLieTogether)
{
    Pages pages{{}, 4096};
    for (uint64_t i = 0; i < 2048; ++i)
        pages.iovas.push_back(64 * mib + i * 4096);
    EXPECT_EQ(pages.find(8 * mib, 256).pieces, 1u);
    for (uint64_t &iova : pages.iovas)
        iova += 4096; // together, but no segment is aligned
    EXPECT_EQ(pages.find(8 * mib, 256).bytes, 4 * mib) << "an aligned run within";
}

TEST(PciMemoryTest, WithoutAlutTheRunIsAligned)
{
    Pages pages{{16 * mib, 18 * mib, 20 * mib, 22 * mib}};
    Exposable found = pages.find(8 * mib, 0);
    EXPECT_EQ(found.bytes, 8 * mib);
    EXPECT_EQ(found.pieces, 1u);
    EXPECT_EQ(pages.pieces[0].address, 16 * mib);

    pages.iovas = {18 * mib, 20 * mib, 22 * mib, 24 * mib}; // contiguous, and aligned nowhere
    found = pages.find(8 * mib, 0);
    EXPECT_EQ(found.offset, 2 * mib);
    EXPECT_EQ(found.bytes, 4 * mib);
    EXPECT_EQ(pages.pieces[0].address, 20 * mib);
}

TEST(PciMemoryTest, WithoutAlutTheLargestRunIsTaken)
{
    Pages pages{{2 * mib, 90 * mib, 32 * mib, 34 * mib, 8 * mib, 12 * mib}};
    const Exposable found = pages.find(8 * mib, 0);
    EXPECT_EQ(found.offset, 4 * mib);
    EXPECT_EQ(found.bytes, 4 * mib);
    EXPECT_EQ(pages.pieces[0].address, 32 * mib);
}

TEST(PciMemoryTest, NothingIsFoundWhereNothingIsAligned)
{
    Pages pages{{}, 4096};
    for (uint64_t i = 0; i < 256; ++i)
        pages.iovas.push_back(mib + i * 8192);
    EXPECT_EQ(pages.find(mib, 0).bytes, 0u);
    EXPECT_EQ(pages.find(mib, 256).bytes, mib) << "segments of 4 KiB";
}

TEST(PciMemoryTest, ARunNeverExceedsWhatWasAsked)
{
    Pages pages{{0, 2 * mib, 4 * mib, 6 * mib, 8 * mib, 10 * mib, 12 * mib, 14 * mib}};
    EXPECT_EQ(pages.find(4 * mib, 0).bytes, 4 * mib);
    EXPECT_EQ(pages.find(4 * mib, 256).bytes, 4 * mib);
    EXPECT_EQ(pages.pieces[0].bytes, 4 * mib);
}

} // namespace
