// SPDX-License-Identifier: BSD-3-Clause
// What registers hold before a driver has written to them.
#include "chip/one_chip.hpp"

using namespace plx;
using namespace plx::test;

namespace
{
using TwinPowerOn = OneChip;

TEST_F(TwinPowerOn, PowerOnValuesAreThoseOfAnEeprom)
{
    EXPECT_EQ(get(reg::vs0_upstream), 0x40002100u);
    EXPECT_EQ(get(reg::vs_debug), 0x03000000u);
    EXPECT_EQ(get(virt_block + reg::req_id_lut_virt[0]), 1u);
    EXPECT_EQ(get(link_block + reg::req_id_lut_link[0]), 1u);
    EXPECT_EQ(get(virt_block + reg::link_err_mask), 0xFu);
    EXPECT_EQ(get(virt_block + reg::db_virt_mask_set), 0xFFFFu);
    EXPECT_EQ(get(virt_block + reg::bar_setup(Side::virt, 2)), 0xE000000Cu); // 512 MiB
    EXPECT_EQ(get(virt_block + reg::bar_setup(Side::virt, 3)), 0xFFFFFFFFu);
}

TEST_F(TwinPowerOn, FirmwareAssignedTheBars)
{
    const auto address = reinterpret_cast<uintptr_t>(twin::bar(a, 2).base);
    EXPECT_EQ(get(virt_block + reg::pci_bar[2]), static_cast<uint32_t>(address) | 0xC);
    EXPECT_EQ(get(virt_block + reg::pci_bar[3]), static_cast<uint32_t>(address >> 32));
    EXPECT_TRUE(field::mem_enable.get(get(virt_block + reg::pci_command_status)));
    EXPECT_EQ(twin::bar(a, 2).bytes, config.bar2_bytes);
    EXPECT_EQ(twin::bar(a, 0).base, nullptr);
    EXPECT_EQ(twin::bar(a, 3).bytes, 0u);
}

TEST_F(TwinPowerOn, RandomStateIsGarbageThatASeedRepeats)
{
    auto spad_after = [&](uint64_t seed) {
        twin::detach(a);
        config.state = twin::ChipState::random;
        config.random_seed = seed;
        twin::Error error{};
        EXPECT_EQ(twin::attach(config, &a, &error), 0) << error.text;
        EXPECT_EQ(get(reg::vs0_upstream), 0x40002100u) << "strapped";
        EXPECT_EQ(get(virt_block + reg::bar_setup(Side::virt, 2)), 0xE000000Cu) << "the EEPROM's";
        EXPECT_EQ(get(virt_block + reg::pci_id), 0x87B010B5u) << "read-only";
        return get(virt_block + reg::spad[0]);
    };
    const uint32_t first = spad_after(7);
    EXPECT_NE(first, 0u);
    EXPECT_NE(spad_after(8), first);
    EXPECT_EQ(spad_after(7), first);
}
} // namespace
