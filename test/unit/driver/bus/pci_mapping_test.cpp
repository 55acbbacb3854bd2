// SPDX-License-Identifier: BSD-3-Clause
// How stores reach a BAR, from made-up texts of the kernel.
#include "bus/pci_mapping.hpp"

#include <string>

#include <gtest/gtest.h>

namespace
{

using namespace plx::pmd;

constexpr uint64_t mib = uint64_t{1} << 20;

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
    const auto combines = [](KernelDriver driver, uintptr_t addr, const char *mtrr,
                             bool igb_uio_wc) {
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
    EXPECT_FALSE(combines(KernelDriver::igb_uio, wc_at, "", false))
        << "the kernel holds it uncached";
    EXPECT_FALSE(combines(KernelDriver::vfio_pci, vfio_at, "", false));
    EXPECT_TRUE(combines(KernelDriver::vfio_pci, vfio_at, mtrr, false));
}

} // namespace
