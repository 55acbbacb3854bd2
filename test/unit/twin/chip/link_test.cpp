// SPDX-License-Identifier: BSD-3-Clause
// The link: training, both ends' port control, what a down destroys and what it leaves.
#include "bench_pair.hpp"

using namespace plx;
using namespace plx::test;

namespace
{
constexpr uint32_t link_change = field::err_link_change.mask();
constexpr uint32_t port_bit = 1u << 1; // NT0 lies on port 1
constexpr uint32_t port_control = reg::port_control;
constexpr uint32_t errors = virt_block + reg::link_err_status;

class TwinLink : public MemPair
{
protected:
    void disable(twin::Host *host) { twin::csr_write32(host, port_control, port_bit); }
    void enable(twin::Host *host) { twin::csr_write32(host, port_control, 0); }
    void clear_errors(twin::Host *host) { twin::csr_write32(host, errors, 0xF); }
    bool changed(twin::Host *host) { return (twin::csr_read32(host, errors) & link_change) != 0; }
    void up_and_quiet()
    {
        attach_both();
        train();
        clear_errors(a);
        clear_errors(b);
    }
};

TEST_F(TwinLink, TrainsOnceBothArePluggedIn)
{
    twin::Error error{};
    ASSERT_EQ(twin::attach(config, &a, &error), 0);
    clock.advance_us(1'000'000);
    EXPECT_FALSE(link_is_up(a)) << "nothing is plugged in";
    ASSERT_EQ(twin::attach(config, &b, &error), 0);
    EXPECT_FALSE(link_is_up(a));
    clock.advance_us(config.switches.train_us - 1);
    EXPECT_FALSE(link_is_up(b));
    clock.advance_us(1);
    EXPECT_TRUE(link_is_up(a));
    EXPECT_TRUE(link_is_up(b));
}

TEST_F(TwinLink, StatusIsSeenInBothBlocks)
{
    up_and_quiet();
    const uint32_t status = twin::csr_read32(a, link_block + reg::pcie_link_ctl_status);
    EXPECT_EQ(field::link_speed.get(status), 3u);
    EXPECT_NE(field::link_width.get(status), 0u);
    disable(a);
    EXPECT_EQ(field::link_width.get(twin::csr_read32(a, link_block + reg::pcie_link_ctl_status)),
              0u);
}

TEST_F(TwinLink, EitherEndTakesItDownForBoth)
{
    up_and_quiet();
    for (twin::Host *host : {a, b}) {
        disable(host);
        EXPECT_FALSE(link_is_up(a));
        EXPECT_FALSE(link_is_up(b));
        EXPECT_TRUE(changed(a));
        EXPECT_TRUE(changed(b));
        enable(host);
        train();
        clear_errors(a);
        clear_errors(b);
    }
}

TEST_F(TwinLink, BothEdgesAreLatched)
{
    up_and_quiet();
    disable(a);
    EXPECT_TRUE(changed(b));
    clear_errors(b);
    EXPECT_FALSE(changed(b));
    enable(a);
    clock.advance_us(config.switches.train_us);
    EXPECT_TRUE(changed(b));
}

TEST_F(TwinLink, LatchingTheUpEdgeIsASwitch)
{
    config.switches.link_up_latches_fe0 = false;
    attach_both();
    train();
    EXPECT_FALSE(changed(a));
    disable(a);
    EXPECT_TRUE(changed(a));
}

TEST_F(TwinLink, AShortDownThatNobodySawIsNoticed)
{
    up_and_quiet();
    twin::csr_write32(b, link_block + reg::bar_xlat(2), 0x1234);
    disable(a);
    enable(a);
    clock.advance_us(config.switches.train_us);
    EXPECT_TRUE(changed(b));
    EXPECT_TRUE(link_is_up(b));
    EXPECT_EQ(twin::csr_read32(b, link_block + reg::bar_xlat(2)), 0u);
}

TEST_F(TwinLink, DownResetsTheLinkBlockAndNothingElse)
{
    up_and_quiet();
    twin::csr_write32(b, link_block + reg::bar_xlat(4), 0x5000000);
    twin::csr_write32(b, link_block + reg::req_id_lut_link[2], 0x00110009);
    twin::csr_write32(b, link_block + reg::pci_command_status, 6);
    twin::csr_write32(b, virt_block + reg::bar_xlat(4), 0x6000000);
    twin::csr_write32(b, virt_block + reg::req_id_lut_virt[2], 0x00110009);
    twin::csr_write32(b, virt_block + reg::spad[3], 0x33);
    twin::csr_write32(b, virt_block + reg::db_virt_set, 0x8);
    disable(a);
    EXPECT_EQ(twin::csr_read32(b, link_block + reg::bar_xlat(4)), 0u);
    EXPECT_EQ(twin::csr_read32(b, link_block + reg::req_id_lut_link[2]), 0u);
    EXPECT_EQ(twin::csr_read32(b, link_block + reg::req_id_lut_link[0]), 1u) << "EEPROM default";
    EXPECT_EQ(twin::csr_read32(b, link_block + reg::pci_command_status) & 0xFFFF, 0u);
    EXPECT_EQ(twin::csr_read32(b, virt_block + reg::bar_xlat(4)), 0x6000000u);
    EXPECT_EQ(twin::csr_read32(b, virt_block + reg::req_id_lut_virt[2]), 0x00110009u);
    EXPECT_EQ(twin::csr_read32(b, virt_block + reg::spad[3]), 0x33u);
    EXPECT_EQ(twin::csr_read32(b, virt_block + reg::db_virt_set), 0x8u);
}

TEST_F(TwinLink, AReprogrammedLinkBlockIsResetOnceADown)
{
    up_and_quiet();
    disable(a);
    EXPECT_FALSE(link_is_up(b));
    twin::csr_write32(b, link_block + reg::bar_xlat(4), 0x5000000);
    clock.advance_us(1000);
    EXPECT_EQ(twin::csr_read32(b, link_block + reg::bar_xlat(4)), 0x5000000u);
    enable(a);
    train();
    EXPECT_EQ(twin::csr_read32(b, link_block + reg::bar_xlat(4)), 0x5000000u);
}

TEST_F(TwinLink, VsDebugBitKeepsTheLinkBlock)
{
    up_and_quiet();
    twin::csr_write32(b, reg::vs_debug, 0x03000000 | field::dl_down_reset_disable.mask());
    twin::csr_write32(b, link_block + reg::bar_xlat(4), 0x5000000);
    disable(a);
    EXPECT_TRUE(changed(b));
    EXPECT_EQ(twin::csr_read32(b, link_block + reg::bar_xlat(4)), 0x5000000u);
}

TEST_F(TwinLink, ScratchpadsOverADownAreASwitch)
{
    config.switches.spads_survive_link_down = false;
    up_and_quiet();
    twin::csr_write32(b, virt_block + reg::spad[3], 0x33);
    disable(a);
    EXPECT_EQ(twin::csr_read32(b, virt_block + reg::spad[3]), 0u);
}

TEST_F(TwinLink, TestPatternsRefuseWritesForAWhileAfterADown)
{
    up_and_quiet();
    const uint32_t pattern = facts::test_pattern(0, 0);
    twin::csr_write32(a, pattern, 1);
    disable(b);
    twin::csr_write32(a, pattern, 2);
    EXPECT_EQ(twin::csr_read32(a, pattern), 1u);
    clock.advance_us(config.switches.pattern_protect_us);
    twin::csr_write32(a, pattern, 2);
    EXPECT_EQ(twin::csr_read32(a, pattern), 2u);
}

TEST_F(TwinLink, StaysUpWhenAProcessGoesAndComesBackToItsChip)
{
    up_and_quiet();
    twin::csr_write32(b, virt_block + reg::spad[0], 0xABCD);
    twin::csr_write32(b, link_block + reg::bar_xlat(4), 0x5000000);
    twin::detach(b);
    b = nullptr;
    EXPECT_TRUE(link_is_up(a)) << "a chip stays powered";
    EXPECT_FALSE(twin::cable_connected(a));
    twin::Error error{};
    ASSERT_EQ(twin::attach(config, &b, &error), 0);
    EXPECT_TRUE(link_is_up(b));
    EXPECT_FALSE(changed(a));
    EXPECT_EQ(twin::csr_read32(b, virt_block + reg::spad[0]), 0xABCDu);
    EXPECT_EQ(twin::csr_read32(b, link_block + reg::bar_xlat(4)), 0x5000000u);
}

TEST_F(TwinLink, AResetChipIsADownAndAnUp)
{
    up_and_quiet();
    twin::csr_write32(b, virt_block + reg::spad[0], 0xABCD);
    twin::detach(b);
    b = nullptr;
    config.state = twin::ChipState::reset;
    twin::Error error{};
    ASSERT_EQ(twin::attach(config, &b, &error), 0);
    EXPECT_TRUE(changed(a));
    EXPECT_FALSE(link_is_up(a));
    EXPECT_EQ(twin::csr_read32(b, virt_block + reg::spad[0]), 0u);
    train();
}

TEST_F(TwinLink, WhatADownMeansIsCarriedOutByTheNextProcessOfTheChip)
{
    up_and_quiet();
    twin::csr_write32(b, link_block + reg::bar_xlat(4), 0x5000000);
    twin::detach(b);
    b = nullptr;
    disable(a);
    EXPECT_FALSE(link_is_up(a));
    enable(a);
    clock.advance_us(config.switches.train_us);
    twin::Error error{};
    ASSERT_EQ(twin::attach(config, &b, &error), 0);
    EXPECT_TRUE(changed(b));
    EXPECT_TRUE(link_is_up(b));
    EXPECT_EQ(twin::csr_read32(b, link_block + reg::bar_xlat(4)), 0u);
}
} // namespace
