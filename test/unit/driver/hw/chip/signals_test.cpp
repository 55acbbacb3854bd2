// SPDX-License-Identifier: BSD-3-Clause
// What a chip signals to its peer and hears: doorbells, scratchpads and the link.
#include "../chip_fixture.hpp"

#include <cerrno>

namespace
{

using namespace plx::hw;
using namespace test;

// ---- doorbells

TEST_F(ChipTest, DoorbellRegisters)
{
    open();
    RecordingRegIo peer;
    ntb_.ring(peer.io(), 0x0102);
    EXPECT_EQ(peer.take(), Log{w(0x3EC4C, 0x0102)});

    chip_.csr[v + 0xC50] = 0xFFFF0081;
    EXPECT_EQ(ntb_.doorbells(), 0x0081);
    chip_.take();
    ntb_.doorbells_clear(0x0001);
    ntb_.doorbells_mask(0x00F0);
    ntb_.doorbells_unmask(0x0F00);
    EXPECT_EQ(chip_.take(),
              (Log{w(v + 0xC50, 0x0001), w(v + 0xC54, 0x00F0), w(v + 0xC58, 0x0F00)}));
}

// ---- scratchpads

TEST_F(ChipTest, TwelveScratchpadsWhereThePatternKeepsWhatIsWritten)
{
    open();
    EXPECT_EQ(ntb_.spad_count(), 8u);
    ASSERT_EQ(ntb_.start(), 0);
    EXPECT_EQ(ntb_.spad_count(), 12u);
    ASSERT_EQ(ntb_.spad_write(7, 77), 0);
    ASSERT_EQ(ntb_.spad_write(11, 111), 0);
    EXPECT_EQ(chip_.csr[v + 0xC88], 77u);
    EXPECT_EQ(chip_.csr[0x218], 111u);
    uint32_t value = 0;
    ASSERT_EQ(ntb_.spad_read(11, &value), 0);
    EXPECT_EQ(value, 111u);
    EXPECT_EQ(ntb_.spad_write(12, 0), -EINVAL);
    EXPECT_EQ(ntb_.spad_read(12, &value), -EINVAL);
}

TEST_F(ChipTest, EightScratchpadsWhereThereIsNoPattern)
{
    chip_.deaf[0x20C] = ~0u;
    open();
    ASSERT_EQ(ntb_.start(), 0);
    EXPECT_EQ(ntb_.spad_count(), 8u);
    EXPECT_EQ(ntb_.spad_write(8, 1), -EINVAL);
}

// E2
TEST_F(ChipTest, PatternWriteIsRepeatedUntilItHolds)
{
    open();
    ASSERT_EQ(ntb_.start(), 0);
    chip_.take();
    chip_.deaf[0x210] = 2;
    ASSERT_EQ(ntb_.spad_write(9, 0xABCD), 0);
    const Access wrote = w(0x210, 0xABCD);
    EXPECT_EQ(chip_.take(), (Log{wrote,
                                 {Access::read, 0x210, 0},
                                 {Access::delay, 0, 1},
                                 wrote,
                                 {Access::read, 0x210, 0},
                                 {Access::delay, 0, 1},
                                 wrote,
                                 {Access::read, 0x210, 0xABCD}}));
}

TEST_F(ChipTest, PatternWriteGivesUpAfterAMillisecond)
{
    open();
    ASSERT_EQ(ntb_.start(), 0);
    chip_.take();
    chip_.deaf[0x210] = ~0u;
    EXPECT_EQ(ntb_.spad_write(9, 1), -EAGAIN);
    uint32_t waited = 0;
    for (const Access &a : chip_.take())
        waited += a.kind == Access::delay ? a.value : 0;
    EXPECT_EQ(waited, 999u);
}

TEST_F(ChipTest, PeerScratchpadsLieAtTheSameOffsets)
{
    open();
    ASSERT_EQ(ntb_.start(), 0);
    RecordingRegIo peer;
    ASSERT_EQ(ntb_.peer_spad_write(peer.io(), 3, 33), 0);
    EXPECT_EQ(peer.csr[0x3EC78], 33u);
    ASSERT_EQ(ntb_.peer_spad_write(peer.io(), 10, 5), 0);
    EXPECT_EQ(peer.csr[0x214], 5u);
    EXPECT_EQ(ntb_.peer_spad_write(peer.io(), 12, 0), -EINVAL);
}

TEST_F(ChipTest, AllOnesIsAValueAsLongAsTheChipAnswers)
{
    open();
    chip_.csr[v + 0xC6C] = ~0u;
    uint32_t value = 0;
    EXPECT_EQ(ntb_.spad_read(0, &value), 0);
    EXPECT_EQ(value, ~0u);
    chip_.gone = true;
    EXPECT_EQ(ntb_.spad_read(0, &value), -ENODEV);
}

// ---- link

TEST_F(ChipTest, PortControlKeepsTheOtherPorts)
{
    chip_.csr[0x360] = 0x40002B00; // NT0 on port 11: station 1, bit 3
    open();
    chip_.csr[0x8208] = 0x05;
    ASSERT_EQ(ntb_.shut_down(false), 0);
    EXPECT_EQ(chip_.csr[0x8208], 0x0Du);
    ASSERT_EQ(ntb_.link_enable(), 0);
    EXPECT_EQ(chip_.csr[0x8208], 0x05u);
    ASSERT_EQ(ntb_.link_enable(), 0);
    EXPECT_EQ(chip_.csr[0x8208], 0x05u);
}

TEST_F(ChipTest, LinkStatusIsSpeedAndWidth)
{
    open();
    LinkStatus status;
    chip_.csr[v + 0x78] = 0x30830040;
    ASSERT_EQ(ntb_.link_status(&status), 0);
    EXPECT_TRUE(status.up);
    EXPECT_EQ(status.speed, 3);
    EXPECT_EQ(status.width, 8);
    chip_.csr[v + 0x78] = 0x00010000; // a speed without lanes
    ASSERT_EQ(ntb_.link_status(&status), 0);
    EXPECT_FALSE(status.up);
    EXPECT_EQ(status.speed, 0);
}

TEST_F(ChipTest, LinkErrorsAreClearedAsSeen)
{
    open();
    uint32_t errors = 9;
    ASSERT_EQ(ntb_.link_errors_take(&errors), 0);
    EXPECT_EQ(errors, 0u);
    EXPECT_TRUE(chip_.take_writes().empty());
    chip_.write_ones[v + 0xFE0] = 0xF;
    chip_.csr[v + 0xFE0] = 0x6;
    ASSERT_EQ(ntb_.link_errors_take(&errors), 0);
    EXPECT_EQ(errors, 0x6u);
    EXPECT_EQ(chip_.take_writes(), Log{w(v + 0xFE0, 0x6)});
    EXPECT_EQ(chip_.csr[v + 0xFE0], 0u);
}

} // namespace
