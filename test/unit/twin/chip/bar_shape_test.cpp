// SPDX-License-Identifier: BSD-3-Clause
#include "chip/one_chip.hpp"

#include <algorithm>

using namespace plx;
using namespace plx::test;

namespace
{
using TwinBarShape = OneChip;

TEST_F(TwinBarShape, SetupSaysWhichBarBitsStick)
{
    write64(a, link_block + reg::bar_setup(Side::link, 2), ~(4 * mib - 1) | 0xC);
    write64(a, link_block + reg::pci_bar[2], ~uint64_t{0});
    EXPECT_EQ(get(link_block + reg::pci_bar[2]), 0xFFC0000Cu);
    EXPECT_EQ(get(link_block + reg::pci_bar[3]), 0xFFFFFFFFu);
    put(link_block + reg::bar_setup(Side::link, 4), 0xFFF00000); // 32-bit, 1 MiB
    put(link_block + reg::bar_setup(Side::link, 5), 0);
    put(link_block + reg::pci_bar[4], ~0u);
    put(link_block + reg::pci_bar[5], ~0u);
    EXPECT_EQ(get(link_block + reg::pci_bar[4]), 0xFFF00000u);
    EXPECT_EQ(get(link_block + reg::pci_bar[5]), 0u);
}

TEST_F(TwinBarShape, BarsWithoutAWindowAreNamed)
{
    testing::internal::CaptureStderr();
    write64(a, link_block + reg::bar_setup(Side::link, 4), ~(4 * mib - 1) | 0xC);
    write64(a, link_block + reg::pci_bar[4], link_address(4));
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "one of 64 bits";
    testing::internal::CaptureStderr();
    put(link_block + reg::bar_setup(Side::link, 4), 0xFFF00000);
    put(link_block + reg::bar_setup(Side::link, 5), 0xFFF00000);
    put(link_block + reg::pci_bar[4], 0x10000000);
    put(link_block + reg::pci_bar[5], 0x20000000);
    put(link_block + reg::pci_bar[5], 0x30000000);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("BAR5 was set up as a 32-bit BAR"), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << "once";
}

TEST_F(TwinBarShape, LinkBar0IsOf256KiBIn32Or64Bits)
{
    put(link_block + reg::bar0_setup_link, facts::bar0_setup_32bit);
    put(link_block + reg::pci_bar[0], ~0u);
    put(link_block + reg::pci_bar[1], ~0u);
    EXPECT_EQ(get(link_block + reg::pci_bar[0]), 0xFFFC0000u);
    EXPECT_EQ(get(link_block + reg::pci_bar[1]), 0u);
    put(link_block + reg::bar0_setup_link, facts::bar0_setup_64bit);
    write64(a, link_block + reg::pci_bar[0], ~uint64_t{0});
    EXPECT_EQ(get(link_block + reg::pci_bar[0]), 0xFFFC0004u);
    EXPECT_EQ(get(link_block + reg::pci_bar[1]), 0xFFFFFFFFu);
}
} // namespace
