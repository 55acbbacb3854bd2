// SPDX-License-Identifier: BSD-3-Clause
// Chip operations against a recording border: exact sequences, with offsets written out. Opening,
// bring-up, link loss and the end.
#include "chip_fixture.hpp"

#include <cerrno>

namespace
{

using namespace plx::hw;
using namespace test;

// ---- opening

TEST_F(ChipTest, OpenWritesNothing)
{
    ASSERT_EQ(ntb_.open(chip_.io(), config_, &why_), 0);
    EXPECT_TRUE(chip_.take_writes().empty());
}

TEST_F(ChipTest, OpenRefusesTheLinkSide)
{
    chip_.config[0xC8C] = 0x80000000;
    chip_.csr[l] = 0x87B010B5;
    EXPECT_EQ(ntb_.open(chip_.io(), config_, &why_), -ENOTSUP);
}

TEST_F(ChipTest, OpenRefusesLayoutsThatCannotWork)
{
    const std::pair<uint64_t, uint64_t> bad[] = {{0, 4 * mib},
                                                 {mib / 2, 4 * mib},
                                                 {3 * mib, 4 * mib},
                                                 {512 * mib, 0},
                                                 {512 * mib, mib},
                                                 {512 * mib, 6 * mib},
                                                 {uint64_t{1} << 62, 4 * mib},
                                                 {512 * mib, uint64_t{1} << 63}};
    for (const auto &[bar2, bar4] : bad) {
        config_.bar2_bytes = bar2;
        config_.bar4_bytes = bar4;
        EXPECT_EQ(ntb_.open(chip_.io(), config_, &why_), -EINVAL) << bar2 << " " << bar4;
        EXPECT_STRNE(why_.what, "");
    }
}

TEST_F(ChipTest, OpenBoundsTheRequesters)
{
    const uint16_t many[31] = {};
    config_.requesters = many;
    config_.requester_count = 31;
    EXPECT_EQ(ntb_.open(chip_.io(), config_, &why_), -EINVAL);
    EXPECT_EQ(why_.expected, 30u);
    config_.requester_count = 30;
    EXPECT_EQ(ntb_.open(chip_.io(), config_, &why_), 0);
}

// ---- bring-up

TEST_F(ChipTest, BringUpSequence)
{
    without_alut();
    open();
    ASSERT_EQ(ntb_.start(), 0);

    Log expected = {w(v + 0xFE4, 0xF), w(v + 0xC54, 0xFFFF), w(v + 0xC64, 0xFFFF)};
    append(expected, closed_data_);
    append(expected, closed_shared_);
    append(expected, {w(v + 0xC50, 0xFFFF), w(v + 0xC60, 0xFFFF), w(v + 0xFE0, 0xF)});
    expected.push_back(w(0x20C, 0x12345678));
    for (uint32_t i = 0; i < 8; i++)
        expected.push_back(w(v + 0xC6C + 4 * i, 0));
    for (uint32_t i = 0; i < 4; i++)
        expected.push_back(w(0x20C + 4 * i, 0));
    append(expected, prologue());
    append(expected, closed_data_);
    append(expected, closed_shared_);
    append(expected, commands_);
    EXPECT_EQ(chip_.take_writes(), expected);
}

TEST_F(ChipTest, HoldingTheLinkSideIsAChoice)
{
    chip_.csr[0xA30] = 0x03000018;
    config_.hold_link_side = false;
    open();
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(chip_.csr[0xA30], 0x03000008u);
}

TEST_F(ChipTest, LinkSideIsSwitchedOnLast)
{
    open();
    ASSERT_EQ(ntb_.program_all(), 0);
    const Log writes = chip_.take_writes();
    EXPECT_EQ(writes.back(), w(l + 0x04, 6));
}

TEST_F(ChipTest, CommandWriteClearsNoStatus)
{
    chip_.config[0x04] = 0xF9000140;
    open();
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(chip_.config[0x04], 0x146u);
}

TEST_F(ChipTest, SecondPortUsesItsOwnBlocks)
{
    chip_.csr[0x360] = 0xC0292800;
    chip_.config[0xC8C] = 1;
    chip_.csr[0x3C000] = 0x87B010B5;
    chip_.csr[0x3CC8C] = 1;
    open();
    ASSERT_EQ(ntb_.start(), 0);
    for (const Access &a : chip_.take_writes()) {
        const bool nt0 = a.offset >= 0x3E000 || (a.offset >= 0x38000 && a.offset < 0x3A000);
        EXPECT_FALSE(a.kind == Access::write && nt0) << a;
    }
    EXPECT_EQ(chip_.csr[0x3D004], 6u);
}

// ---- link loss (E3)

TEST_F(ChipTest, RecordIsPutBackAfterALinkLoss)
{
    open();
    ASSERT_EQ(ntb_.start(), 0);
    ASSERT_EQ(set(0, {{0x7F0000000000, 16 * mib}}), 0);
    ASSERT_EQ(set(1, {{0x200000, 2 * mib}}), 0);
    chip_.take();
    ASSERT_EQ(ntb_.program_all(), 0);
    const auto before = chip_.csr;
    const Log once = chip_.take_writes();

    for (uint32_t offset = l; offset < l + 0x1000; offset += 4)
        chip_.csr[offset] = 0xC000000C;
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(chip_.take_writes(), once);
    for (const Access &a : once)
        if (a.kind == Access::write) {
            EXPECT_EQ(chip_.csr[a.offset], before.at(a.offset)) << a;
        }
}

TEST_F(ChipTest, RepeatedProgrammingTakesNoAccessAwayInBetween)
{
    open();
    ASSERT_EQ(set(0, {{0x7F0000100000, 16 * mib}}), 0); // through the A-LUT
    chip_.take();
    const auto before = chip_.csr;
    ASSERT_EQ(ntb_.program_all(), 0);
    for (const Access &a : chip_.take_writes()) {
        const bool of_window = a.offset >= 0x3A000 && a.offset < 0x3C000;
        if (of_window || a.offset == l + 0xE8 || a.offset == l + 0xEC || a.offset == v + 0xC94) {
            EXPECT_EQ(a.value, before.at(a.offset)) << a;
        }
    }
}

TEST_F(ChipTest, PeerAccessToRegistersCanBeClosed)
{
    open();
    ASSERT_EQ(ntb_.set_peer_csr(false), 0);
    EXPECT_EQ(chip_.csr[l + 0xE4], 0u);
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(chip_.csr[l + 0xE4], 0u) << "programming again must not open it";
    ASSERT_EQ(ntb_.set_peer_csr(true), 0);
    EXPECT_EQ(chip_.csr[l + 0xE4], 3u);
}

// ---- the end, and a chip that goes away

TEST_F(ChipTest, ShutDownTakesEverythingAway)
{
    open();
    ASSERT_EQ(ntb_.start(), 0);
    ASSERT_EQ(set(0, {{0x100002000, 2 * mib}}), 0);
    chip_.take();
    ASSERT_EQ(ntb_.shut_down(false), 0);
    Log expected = {w(v + 0xFE4, 0xF), w(v + 0xC54, 0xFFFF), w(v + 0xC64, 0xFFFF)};
    append(expected, closed_data_);
    append(expected, denied(0x3A000, 256));
    expected.push_back(w(v + 0xC94, 1u << 28));
    append(expected, closed_shared_);
    append(expected, {w(0x208, 0x2), {Access::config_write, 0x04, 0x2}});
    EXPECT_EQ(chip_.take_writes(), expected);
    ASSERT_EQ(ntb_.shut_down(false), 0);
    EXPECT_EQ(chip_.take_writes(), expected);
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(chip_.csr[0x3A800], 0u) << "the record was emptied";
}

TEST_F(ChipTest, ShutDownMayKeepTheLink)
{
    open();
    ASSERT_EQ(ntb_.shut_down(true), 0);
    EXPECT_FALSE(chip_.csr.contains(0x208));
}

/// All-ones is what a dead link gives, zeros what EAL's hot-unplug handler maps in a BAR's place.
class GoneChip : public ChipTest, public testing::WithParamInterface<uint32_t>
{
};

TEST_P(GoneChip, IsReportedByEveryOperation)
{
    open();
    ASSERT_EQ(ntb_.start(), 0);
    chip_.gone = true;
    chip_.nothing = GetParam();
    LinkStatus status;
    uint32_t value = 0;
    EXPECT_EQ(ntb_.start(), -ENODEV);
    EXPECT_EQ(ntb_.program_all(), -ENODEV);
    EXPECT_EQ(ntb_.shut_down(false), -ENODEV);
    EXPECT_EQ(set(0, {{0x40000000, mib}}), -ENODEV);
    EXPECT_EQ(ntb_.window_clear(1), -ENODEV);
    EXPECT_EQ(ntb_.set_peer_csr(false), -ENODEV);
    EXPECT_EQ(ntb_.link_enable(), -ENODEV);
    EXPECT_EQ(ntb_.link_status(&status), -ENODEV);
    EXPECT_EQ(ntb_.link_errors_take(&value), -ENODEV);
}

INSTANTIATE_TEST_SUITE_P(ReadsAs, GoneChip, testing::Values(~0u, 0u),
                         [](const auto &all) { return all.param == 0 ? "Zeros" : "Ones"; });

TEST_F(ChipTest, AChipThatWasRefusedIsNotTouchedAgain)
{
    chip_.csr[v] = ~0u;
    ASSERT_EQ(ntb_.open(chip_.io(), config_, &why_), -ENODEV);
    chip_.take();
    EXPECT_EQ(ntb_.shut_down(true), 0);
    EXPECT_TRUE(chip_.take().empty());
}

TEST_F(ChipTest, WindowSetWhileTheChipWasGoneComesWithTheNextProgramming)
{
    open();
    chip_.gone = true;
    ASSERT_EQ(set(0, {{0x40000000, mib}}), -ENODEV);
    chip_.gone = false;
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(chip_.csr[l + 0xC3C], 0x40000000u);
    EXPECT_EQ(chip_.csr[l + 0xEC], 0xFFFFFFFFu);
}

// Taking over: whatever a predecessor left, the registers we rely on end up the same.
TEST_F(ChipTest, StartDoesNotDependOnWhatWasLeft)
{
    open();
    ASSERT_EQ(ntb_.start(), 0);
    const auto clean = chip_.csr;
    const Log writes = chip_.take_writes();
    uint32_t noise = 12345;
    for (const Access &a : writes) {
        noise = noise * 1664525 + 1013904223;
        if (a.kind == Access::write)
            chip_.csr[a.offset] = noise;
    }
    ASSERT_EQ(ntb_.start(), 0);
    for (const auto &[offset, value] : clean) {
        const uint32_t ours = offset == 0xA30 ? 0x10 : ~0u; // the rest of VS_DEBUG is not ours
        EXPECT_EQ(chip_.csr[offset] & ours, value & ours) << std::hex << offset;
    }
}

} // namespace
