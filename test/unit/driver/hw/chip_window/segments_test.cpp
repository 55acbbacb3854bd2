// SPDX-License-Identifier: BSD-3-Clause
// Segments of the data window, exposed and revoked one by one.
#include "../chip_fixture.hpp"

#include <cerrno>

namespace
{

using namespace plx::hw;
using namespace test;

class SegmentsTest : public ChipTest
{
protected:
    static constexpr uint64_t segment = 2 * mib;

    // A block in the first four of 256 segments of 2 MiB.
    void open_block()
    {
        open();
        ASSERT_EQ(ntb_.window_fix(512 * mib, &why_), 0) << why_.what;
        ASSERT_EQ(set(0, {{0x7F0000000000, 8 * mib}}), 0) << why_.what;
        chip_.take();
    }
    int expose(unsigned first, std::vector<Piece> pieces, uint32_t rights = rights_write)
    {
        return ntb_.segments_set(first, pieces.data(), static_cast<unsigned>(pieces.size()), rights,
                                 &why_);
    }
    uint32_t rights_of(unsigned i) { return chip_.csr[0x3A800 + i / 128 * 0x1000 + i % 128 * 4]; }
};

TEST_F(SegmentsTest, AFixedBarKeepsSegmentsAsTheyAre)
{
    open_block();
    EXPECT_EQ(ntb_.segment_bytes(), segment);
    EXPECT_EQ(ntb_.window_rules(0).bar_bytes(8 * mib), 512 * mib);
    EXPECT_EQ(chip_.csr[l + 0xE8], 0xE000000Cu) << "512 MiB";
    EXPECT_EQ(chip_.csr[v + 0xC94], 1u << 28);
    for (unsigned i = 0; i < 256; i++)
        EXPECT_EQ(rights_of(i), i < 4 ? 3u : 0u) << i;
    EXPECT_EQ(ntb_.window_fix(256 * mib, &why_), -EBUSY);
    EXPECT_EQ(ntb_.window_clear(0), 0);
    EXPECT_EQ(ntb_.segment_bytes(), 0u);
    EXPECT_EQ(ntb_.window_fix(256 * mib, &why_), 0);
    EXPECT_EQ(ntb_.window_rules(0).segment(1), mib);
}

TEST_F(SegmentsTest, SizesToFixAreChecked)
{
    open();
    for (const uint64_t bytes : {uint64_t{0}, mib / 2, 3 * mib, 1024 * mib}) {
        EXPECT_EQ(ntb_.window_fix(bytes, &why_), -EINVAL) << bytes;
        EXPECT_EQ(why_.found, bytes);
    }
    EXPECT_EQ(ntb_.window_rules(0).bytes_min, mib);
}

TEST_F(SegmentsTest, ExposeSequence)
{
    open_block();
    ASSERT_EQ(expose(127, {{0x100200000, segment}, {0x300000000, segment}}), 0);
    const Access flush = {Access::read, v, 0x87B010B5};
    const Log expected = {w(0x3A9FC, 0), w(0x3B800, 0),          flush,  // denied while it changes
                          w(0x3A5FC, 1), w(0x3A1FC, 0x00200000),         // high, low
                          w(0x3B400, 3), w(0x3B000, 0),          flush,  // there before
                          w(0x3A9FC, 1), w(0x3B800, 1),          flush}; // the rights
    EXPECT_EQ(chip_.take(), expected);
}

TEST_F(SegmentsTest, RevocationIsDenialAndARead)
{
    open_block();
    ASSERT_EQ(expose(10, {{0x100200000, 2 * segment}}, rights_all), 0);
    chip_.take();
    ASSERT_EQ(ntb_.segments_clear(10, 2), 0);
    EXPECT_EQ(chip_.take(), (Log{w(0x3A828, 0), w(0x3A82C, 0), {Access::read, v, 0x87B010B5}}));
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(rights_of(10), 0u) << "programming again must not expose it";
    EXPECT_EQ(rights_of(0), 3u);
}

TEST_F(SegmentsTest, SegmentsArePartOfTheRecord)
{
    open_block();
    ASSERT_EQ(expose(200, {{0x100200000, segment}}, rights_read), 0);
    for (uint32_t offset = 0x3A000; offset < 0x3C000; offset += 4)
        chip_.csr[offset] = 0x55;
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(rights_of(200), 2u);
    EXPECT_EQ(rights_of(201), 0u);
    EXPECT_EQ(chip_.csr[0x3B000 + 72 * 4], 0x00200000u);
    EXPECT_EQ(chip_.csr[0x3B400 + 72 * 4], 1u);
    ASSERT_EQ(set(0, {{0x7F0000000000, 8 * mib}}), 0);
    EXPECT_EQ(rights_of(200), 0u) << "a new window has no old segments";
}

TEST_F(SegmentsTest, NothingIsRecordedWhereTheChipDoesNotAnswer)
{
    open_block();
    ASSERT_EQ(expose(8, {{0x100200000, segment}}), 0);
    chip_.gone = true;
    EXPECT_EQ(expose(9, {{0x100400000, segment}}), -ENODEV);
    EXPECT_EQ(ntb_.segments_clear(8, 1), -ENODEV);
    chip_.gone = false;
    ASSERT_EQ(ntb_.program_all(), 0);
    EXPECT_EQ(rights_of(8), 0u) << "made up for";
    EXPECT_EQ(rights_of(9), 0u);
}

TEST_F(SegmentsTest, OtherPortUsesItsOwnArray)
{
    chip_.csr[0x360] = 0xC0292800;
    open();
    ASSERT_EQ(ntb_.window_fix(512 * mib, &why_), 0);
    ASSERT_EQ(set(0, {{0x7F0000000000, 8 * mib}}), 0);
    EXPECT_EQ(ntb_.segment_bytes(), 4 * mib);
    ASSERT_EQ(expose(127, {{0x100400000, 4 * mib}}), 0);
    EXPECT_EQ(chip_.csr[0x39800 + 127 * 4], 1u);
    EXPECT_EQ(expose(127, {{0x100400000, 8 * mib}}), -EINVAL) << "there are 128";
}

TEST_F(SegmentsTest, BadPiecesAreRefusedAndTouchNothing)
{
    open_block();
    const struct {
        const char *name;
        unsigned first;
        std::vector<Piece> pieces;
        uint32_t rights;
        uint64_t found;
        uint64_t expected;
    } rows[] = {
        {"no rights", 4, {{0, segment}}, 0, 0, 3},
        {"unknown rights", 4, {{0, segment}}, 4, 4, 3},
        {"address", 4, {{mib, segment}}, 3, mib, segment},
        {"size", 4, {{0, mib}}, 3, mib, segment},
        {"second piece", 4, {{0, segment}, {4096, segment}}, 3, 4096, segment},
        {"empty piece", 4, {{0, 0}}, 3, 0, segment},
        {"no piece", 4, {}, 3, 4, 256},
        {"behind the last", 256, {{0, segment}}, 3, 257, 256},
        {"far behind the last", ~0u, {{0, segment}}, 3, uint64_t{1} << 32, 256},
        {"over the last", 255, {{0, 2 * segment}}, 3, 257, 256},
        {"wraps around",
         4,
         {{~uint64_t{0} - segment + 1, 2 * segment}},
         3,
         ~uint64_t{0} - segment + 1,
         0},
        {"larger than BAR2", 4, {{0, 1024 * mib}}, 3, 1024 * mib, 512 * mib},
    };
    for (const auto &row : rows) {
        EXPECT_EQ(expose(row.first, row.pieces, row.rights), -EINVAL) << row.name;
        EXPECT_STRNE(why_.what, "") << row.name;
        EXPECT_EQ(why_.found, row.found) << row.name;
        EXPECT_EQ(why_.expected, row.expected) << row.name;
    }
    EXPECT_EQ(ntb_.segments_clear(256, 1), -EINVAL);
    EXPECT_EQ(ntb_.segments_clear(1, 256), -EINVAL);
    EXPECT_EQ(ntb_.segments_clear(~0u, 2), -EINVAL);
    EXPECT_TRUE(chip_.take().empty());
}

TEST_F(SegmentsTest, NoneWithoutAnOpenAlut)
{
    open();
    EXPECT_EQ(expose(4, {{0, segment}}), -EINVAL) << "closed";
    ASSERT_EQ(set(0, {{0x40000000, 16 * mib}}), 0);
    EXPECT_EQ(ntb_.segment_bytes(), 0u);
    EXPECT_EQ(expose(4, {{0, segment}}), -EINVAL) << "base and offset";
    without_alut();
    open();
    EXPECT_EQ(ntb_.window_fix(512 * mib, &why_), -ENOTSUP);
    EXPECT_EQ(ntb_.segments_clear(0, 1), -EINVAL);
}

TEST_F(SegmentsTest, SplitNeedsAnAlut)
{
    open();
    EXPECT_EQ(ntb_.window_rules(0).split_max(), 7u);
    EXPECT_EQ(ntb_.window_rules(1).split_max(), 0u);
    without_alut();
    open();
    EXPECT_EQ(ntb_.window_rules(0).split_max(), 0u);
}

} // namespace
