// SPDX-License-Identifier: BSD-3-Clause
// How registers answer: access types and aliases.
#include "chip/one_chip.hpp"

#include "plx_ids.hpp"

using namespace plx;
using namespace plx::test;

namespace
{
using TwinRegisters = OneChip;

TEST_F(TwinRegisters, IdentityTellsPortAndSide)
{
    EXPECT_EQ(get(virt_block + reg::nt_port_id), 0u);
    EXPECT_EQ(get(link_block + reg::nt_port_id), 0x80000000u);
    EXPECT_EQ(get(virt_block + reg::pci_id), 0x87B010B5u);
    EXPECT_EQ(get(link_block + reg::pci_id), 0x87A010B5u);
    EXPECT_EQ(get(virt_block + reg::pci_class_revision) >> 8, facts::class_nt);
    EXPECT_EQ(get(virt_block + reg::pci_subsystem_id) >> 16, 0x8749u);
}

TEST_F(TwinRegisters, DoorbellBitsAreSetAndClearedByOnes)
{
    put(virt_block + reg::db_virt_set, 0x5);
    put(virt_block + reg::db_virt_set, 0xFFFF0010); // the upper half is reserved
    EXPECT_EQ(get(virt_block + reg::db_virt_set), 0x15u);
    EXPECT_EQ(get(virt_block + reg::db_virt_clear), 0x15u);
    put(virt_block + reg::db_virt_clear, 0x4);
    EXPECT_EQ(get(virt_block + reg::db_virt_set), 0x11u);
    EXPECT_EQ(get(virt_block + reg::db_link_set), 0u);
}

TEST_F(TwinRegisters, DoorbellMaskIsReadThroughBothOfItsRegisters)
{
    put(virt_block + reg::db_virt_mask_clear, 0x00F0);
    EXPECT_EQ(get(virt_block + reg::db_virt_mask_set), 0xFF0Fu);
    EXPECT_EQ(get(virt_block + reg::db_virt_mask_clear), 0xFF0Fu);
    put(virt_block + reg::db_virt_mask_set, 0x0010);
    EXPECT_EQ(get(virt_block + reg::db_virt_mask_set), 0xFF1Fu);
}

TEST_F(TwinRegisters, DoorbellsAndScratchpadsAreOneSetInBothBlocks)
{
    put(link_block + reg::db_link_set, 0x2);
    EXPECT_EQ(get(virt_block + reg::db_link_clear), 0x2u);
    for (uint32_t i = 0; i < facts::spad_count; i++) {
        put(link_block + reg::spad[i], 0x1000 + i);
        EXPECT_EQ(get(virt_block + reg::spad[i]), 0x1000 + i);
    }
}

TEST_F(TwinRegisters, ConfigurationSpaceIsTheVirtualBlock)
{
    EXPECT_EQ(twin::config_read32(a, reg::pci_id), 0x87B010B5u);
    twin::config_write32(a, reg::spad[1], 0x77);
    EXPECT_EQ(get(virt_block + reg::spad[1]), 0x77u);
    EXPECT_EQ(twin::config_read32(a, facts::block_size), 0u);
}

TEST_F(TwinRegisters, ReadOnlyAndMissingRegistersIgnoreWrites)
{
    put(virt_block + reg::nt_port_id, ~0u);
    EXPECT_EQ(get(virt_block + reg::nt_port_id), 0u);
    put(link_block + reg::link_err_status, ~0u); // the virtual block alone has it
    put(link_block + reg::link_err_mask, ~0u);
    EXPECT_EQ(get(link_block + reg::link_err_mask), 0u);
    put(virt_block + 0x800, 1);
    EXPECT_EQ(get(virt_block + 0x800), 0u);
    put(facts::nt_base(1, Side::virt) + reg::spad[0], 1); // this board has one NT port
    EXPECT_EQ(get(facts::nt_base(1, Side::virt) + reg::spad[0]), 0u);
    put(facts::bar0_size, 1);
    EXPECT_EQ(get(facts::bar0_size), 0u);
    EXPECT_EQ(get(virt_block + 1), 0u);
}

TEST_F(TwinRegisters, ReadBackGivesTheRequesterOfTheRead)
{
    EXPECT_EQ(get(virt_block + reg::req_id_readback), config.cpu_read_rid);
    put(virt_block + reg::req_id_readback, 0xFFFF);
    EXPECT_EQ(get(virt_block + reg::req_id_readback), config.cpu_read_rid);
}

TEST_F(TwinRegisters, TableEntriesHaveNoBitTwo)
{
    put(virt_block + reg::req_id_lut_virt[3], ~0u);
    EXPECT_EQ(get(virt_block + reg::req_id_lut_virt[3]), 0xFFFBFFFBu);
    // Entry 16 of the virtual table lies where the link block has its entry 0.
    put(virt_block + reg::req_id_lut_link[0], 0x41);
    EXPECT_EQ(get(virt_block + reg::req_id_lut_virt[8]), 0x41u);
    EXPECT_EQ(get(link_block + reg::req_id_lut_link[0]), 1u);
}

TEST_F(TwinRegisters, AlutRamKeepsAddressesAndTwoRights)
{
    const uint32_t array = facts::alut_array(0, Side::link, 256);
    for (const uint32_t entry : {0u, 127u, 128u, 255u}) {
        put(array + facts::alut_entry(reg::alut_lower, entry), 0x11110000 + entry);
        put(array + facts::alut_entry(reg::alut_upper, entry), 0x2222 + entry);
        put(array + facts::alut_entry(reg::alut_permission, entry), ~0u);
    }
    for (const uint32_t entry : {0u, 127u, 128u, 255u}) {
        EXPECT_EQ(get(array + facts::alut_entry(reg::alut_lower, entry)), 0x11110000 + entry);
        EXPECT_EQ(get(array + facts::alut_entry(reg::alut_upper, entry)), 0x2222 + entry);
        EXPECT_EQ(get(array + facts::alut_entry(reg::alut_permission, entry)), 3u);
    }
}

TEST_F(TwinRegisters, TestPatternsAreStorage)
{
    for (uint32_t i = 0; i < facts::test_pattern_count; i++)
        put(facts::test_pattern(0, i), 0x12345678 + i);
    for (uint32_t i = 0; i < facts::test_pattern_count; i++)
        EXPECT_EQ(get(facts::test_pattern(0, i)), 0x12345678 + i);
}
} // namespace
