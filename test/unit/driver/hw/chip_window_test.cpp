// SPDX-License-Identifier: BSD-3-Clause
// Windows of a chip: sequences of both kinds, with and without an A-LUT, and what is refused.
#include "chip_fixture.hpp"

#include <cerrno>

namespace
{

using namespace plx::hw;
using namespace test;

TEST_F(ChipTest, PlainWindowSequence)
{
    without_alut();
    open();
    ASSERT_EQ(set(0, {{0x7F1234000000, 32 * mib}}), 0);
    Log expected = closed_data_;
    append(expected, {w(l + 0xC3C, 0x34000000), w(l + 0xC40, 0x7F12), w(l + 0xE8, 0xFE00000C),
                      w(l + 0xEC, 0xFFFFFFFF), w(l + 0x18, 0), w(l + 0x1C, 0x40000000)});
    EXPECT_EQ(chip_.take_writes(), expected);
}

TEST_F(ChipTest, SharedWindowLiesInTheSecondHalf)
{
    open();
    ASSERT_EQ(set(1, {{0x40200000, 2 * mib}}), 0);
    Log expected = closed_shared_;
    append(expected, {w(l + 0xC44, 0x40200000), w(l + 0xC48, 0), w(l + 0xF0, 0xFFE0000C),
                      w(l + 0xF4, 0xFFFFFFFF), w(l + 0x20, 0x200000), w(l + 0x24, 0x80000000)});
    EXPECT_EQ(chip_.take_writes(), expected);
    EXPECT_EQ(ntb_.outbound_offset(1), 2 * mib);
    EXPECT_EQ(ntb_.outbound_offset(0), 0u);
}

TEST_F(ChipTest, AlutSequence)
{
    open();
    // Two pieces, 1 MiB each: 2 MiB in 256 segments of 8 KiB.
    ASSERT_EQ(set(0, {{0x100002000, mib}, {0x5000, 0}, {0x200004000, mib}}), -EINVAL);
    ASSERT_EQ(set(0, {{0x100002000, mib}, {0x200004000, mib}}), 0);
    const Log all = chip_.take();

    Log expected = closed_data_;
    append(expected, denied(0x3A000, 256));
    expected.push_back(w(v + 0xC94, 1u << 28));
    expected.push_back({Access::read, v, 0x87B010B5});
    append(expected, {w(l + 0xC3C, ~0u), w(l + 0xC40, ~0u)});
    for (uint32_t i = 0; i < 256; i++) {
        const uint32_t entry = 0x3A000 + i / 128 * 0x1000 + i % 128 * 4;
        expected.push_back(w(entry + 0x400, i < 128 ? 1 : 2));
        expected.push_back(w(entry, (i < 128 ? 0x2000 : 0x4000) + i % 128 * 0x2000));
    }
    expected.push_back({Access::read, v, 0x87B010B5}); // the barrier: no A-LUT RAM is read
    append(expected, {w(v + 0xC94, 1u << 28), w(l + 0xE8, 0xFFE0000C), w(l + 0xEC, 0xFFFFFFFF),
                      w(l + 0x18, 0), w(l + 0x1C, 0x40000000)});
    for (uint32_t i = 0; i < 256; i++)
        expected.push_back(w(0x3A800 + i / 128 * 0x1000 + i % 128 * 4, 3));
    expected.push_back({Access::read, v, 0x87B010B5});
    EXPECT_EQ(all, expected);
}

TEST_F(ChipTest, SharedAlutHas128EntriesInTheSecondArray)
{
    chip_.csr[0x360] = 0xC0292800;
    open();
    EXPECT_EQ(ntb_.window_rules(0).entries, 128u);
    ASSERT_EQ(set(0, {{0x100002000, mib}}), 0);
    EXPECT_EQ(chip_.csr[0x39000 + 127 * 4], 0x2000u + 127 * 0x2000);
    EXPECT_EQ(chip_.csr[0x39800 + 127 * 4], 3u);
    for (const Access &a : chip_.take_writes())
        EXPECT_FALSE(a.offset >= 0x3A000 && a.offset < 0x3E000) << a;
}

TEST_F(ChipTest, AlutExposesNoMoreThanWasAsked)
{
    open();
    ASSERT_EQ(set(0, {{0x100000000, 3 * mib}}, plx::facts::field::alut_write.mask()), 0);
    for (uint32_t i = 0; i < 256; i++) // 4 MiB in segments of 16 KiB: the last quarter is no one's
        EXPECT_EQ(chip_.csr[0x3A800 + i / 128 * 0x1000 + i % 128 * 4], i < 192 ? 1u : 0u) << i;
}

TEST_F(ChipTest, AlignedBlockNeedsNoAlut)
{
    open();
    ASSERT_EQ(set(0, {{0x40000000, 16 * mib}}), 0);
    EXPECT_EQ(chip_.csr[v + 0xC94], 0u);
    EXPECT_EQ(chip_.csr[l + 0xC3C], 0x40000000u);
}

TEST_F(ChipTest, NewWindowReplacesTheOldEntries)
{
    open();
    ASSERT_EQ(set(0, {{0x100002000, 2 * mib}}), 0);
    ASSERT_EQ(set(0, {{0x300000000, 3 * mib}}), 0);
    EXPECT_EQ(chip_.csr[0x3A400], 3u);
    EXPECT_EQ(chip_.csr[0x3B800 + 127 * 4], 0u);
}

// E16, and law: what is taken away is known to be away.
TEST_F(ChipTest, ClearingTheSharedWindowClosesIt)
{
    open();
    ASSERT_EQ(set(1, {{0x40200000, 2 * mib}}), 0);
    chip_.take();
    ASSERT_EQ(set(1, {}), 0);
    Log expected = closed_shared_;
    expected.push_back({Access::read, v, 0x87B010B5});
    EXPECT_EQ(chip_.take(), expected);
    ASSERT_EQ(set(1, {{0x40200000, 2 * mib}}), 0);
    ASSERT_EQ(set(1, {{0x40200000, 0}}), 0);
    EXPECT_EQ(chip_.csr[l + 0xF4], 0u);
}

TEST_F(ChipTest, ClearedAlutWindowIsAskedAndDenied)
{
    open();
    ASSERT_EQ(set(0, {{0x40000000, 16 * mib}}), 0);
    chip_.take();
    ASSERT_EQ(ntb_.window_clear(0), 0);
    Log expected = closed_data_;
    append(expected, denied(0x3A000, 256));
    expected.push_back(w(v + 0xC94, 1u << 28));
    expected.push_back({Access::read, v, 0x87B010B5});
    EXPECT_EQ(chip_.take(), expected);
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(chip_.csr[l + 0xEC], 0u) << "programming again must not open it";
    EXPECT_EQ(ntb_.window_clear(2), -EINVAL);
}

struct Refused {
    const char *name;
    bool alut;
    unsigned window;
    std::vector<Piece> pieces;
    uint32_t rights;
    uint64_t found;
    uint64_t expected;
};

class RefusedWindow : public ChipTest, public ::testing::WithParamInterface<Refused>
{
};

TEST_P(RefusedWindow, SaysWhatWasExpectedAndTouchesNothing)
{
    const Refused &p = GetParam();
    if (!p.alut)
        without_alut();
    open();
    EXPECT_EQ(set(p.window, p.pieces, p.rights), -EINVAL);
    EXPECT_STRNE(why_.what, "");
    EXPECT_EQ(why_.found, p.found);
    EXPECT_EQ(why_.expected, p.expected);
    EXPECT_TRUE(chip_.take_writes().empty());
}

INSTANTIATE_TEST_SUITE_P(
    Windows, RefusedWindow,
    ::testing::Values(
        Refused{"NoSuchWindow", true, 2, {{0, mib}}, 3, 2, 1},
        Refused{"SizeNoPowerOfTwo", false, 0, {{0, 3 * mib}}, 3, 3 * mib, 4 * mib},
        Refused{"SizeBelowTheGranule", false, 0, {{0, mib / 2}}, 3, mib / 2, mib},
        Refused{"AddressUnaligned", false, 0, {{mib, 2 * mib}}, 3, mib, 2 * mib},
        Refused{"AddressUnalignedByOne", false, 0, {{1, mib}}, 3, 1, mib},
        Refused{"TwoPiecesWithoutAlut", false, 0, {{0, mib}, {mib, mib}}, 3, 2, 1},
        Refused{"RightsWithoutAlut", false, 0, {{0, mib}}, 1, 1, 3},
        Refused{"UnknownRights", true, 0, {{0, mib}}, 4, 4, 3},
        Refused{"LargerThanBar2", true, 0, {{0, 1024 * mib}}, 3, 1024 * mib, 512 * mib},
        Refused{"TogetherLarger", true, 0, {{0, 512 * mib}, {0, 1}}, 3, 1, 0},
        Refused{"LargerThanHalfOfBar4", true, 1, {{0, 4 * mib}}, 3, 4 * mib, 2 * mib},
        Refused{"SharedWindowHasNoAlut", true, 1, {{4096, mib}}, 3, 4096, mib},
        Refused{"SharedWindowOnePiece", true, 1, {{0, mib}, {mib, mib}}, 3, 2, 1},
        Refused{"WrapsAround", true, 0, {{~uint64_t{0} - 4095, mib}}, 3, ~uint64_t{0} - 4095, 0},
        Refused{"AlutAddress", true, 0, {{0x800, 2 * mib}}, 3, 0x800, 8192},
        Refused{"AlutSize", true, 0, {{0, 2 * mib - 4096}}, 3, 2 * mib - 4096, 8192},
        Refused{"AlutSecondPiece", true, 0, {{0, mib}, {4096, mib}}, 3, 4096, 8192},
        Refused{"AlutEmptyPiece", true, 0, {{0, mib}, {0, 0}}, 3, 0, 4096},
        Refused{"TooManyPieces", true, 0, std::vector<Piece>(257, {0, 4096}), 3, 257, 256}),
    [](const auto &test) { return test.param.name; });

TEST_F(ChipTest, RulesCanBeAsked)
{
    open();
    const WindowRules data = ntb_.window_rules(0);
    EXPECT_EQ(data.bytes_max, 512 * mib);
    EXPECT_EQ(data.bar_bytes(1), mib);
    EXPECT_EQ(data.bar_bytes(3 * mib), 4 * mib);
    EXPECT_EQ(data.segment(1), 4096u);
    EXPECT_EQ(data.segment(512 * mib), 2 * mib);
    EXPECT_EQ(data.bar_bytes(513 * mib), 0u);
    const WindowRules shared = ntb_.window_rules(1);
    EXPECT_EQ(shared.bytes_max, 2 * mib);
    EXPECT_EQ(shared.segment(mib), mib);
    EXPECT_EQ(ntb_.window_rules(2).bytes_max, 0u);
}

} // namespace
