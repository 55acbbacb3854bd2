// SPDX-License-Identifier: BSD-3-Clause
// Which memory a window can show, on made-up bus addresses.
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
        return find_exposable({iovas.size() * page_bytes, page_bytes, iova, this}, bytes, mib,
                              rules, pieces);
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
