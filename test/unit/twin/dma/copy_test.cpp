// SPDX-License-Identifier: BSD-3-Clause
#include "dma/copy.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

using plx::twin::DmaCopier;

namespace
{

class CopierWay : public testing::TestWithParam<unsigned>
{
protected:
    static constexpr size_t room = 140000;
    CopierWay() : source(room), target(room), expected(room)
    {
        for (size_t i = 0; i < room; i++)
            source[i] = static_cast<uint8_t>(i * 7 + i / 251);
    }

    DmaCopier copier{GetParam(), true};
    std::vector<uint8_t> source, target, expected;
};

TEST_P(CopierWay, PutsEachByteWhereItBelongs)
{
    for (const size_t bytes :
         {1u, 8u, 64u, 100u, 192u, 255u, 256u, 257u, 4095u, 4096u, 4161u, 65536u, 131073u})
        for (const size_t at : {64u, 65u, 72u, 127u}) {
            std::fill(target.begin(), target.end(), 0xee);
            std::fill(expected.begin(), expected.end(), 0xee);
            std::copy_n(source.begin() + 5, bytes, expected.begin() + static_cast<long>(at));
            copier.copy(target.data() + at, source.data() + 5, bytes);
            ASSERT_EQ(target, expected) << bytes << " bytes at " << at;
        }
}

TEST_P(CopierWay, CopiesWhatOverlaps)
{
    for (const long by : {-70L, -1L, 1L, 70L}) {
        std::copy(source.begin(), source.end(), target.begin());
        expected = target;
        std::copy_n(source.begin() + 1000, 70000, expected.begin() + 1000 + by);
        copier.copy(target.data() + 1000 + by, target.data() + 1000, 70000);
        ASSERT_EQ(target, expected) << by;
    }
}

TEST_P(CopierWay, SettlesWhatWentPastTheCaches)
{
    const bool past = GetParam() == 1;
    EXPECT_FALSE(copier.loose());
    copier.copy(target.data(), source.data(), 8192);
    EXPECT_EQ(copier.loose(), past);
    copier.settle();
    EXPECT_FALSE(copier.loose());
    // A flag, and what is copied by other stores, go behind what was copied before.
    for (const size_t bytes : {8u, 64u, 300u}) {
        copier.copy(target.data(), source.data(), 8192);
        copier.copy(target.data() + 8192, source.data(), bytes);
        EXPECT_FALSE(copier.loose()) << bytes;
    }
}

INSTANTIATE_TEST_SUITE_P(Both, CopierWay, testing::Values(0, 1),
                         [](const auto &way) { return way.param == 0 ? "Plain" : "Past"; });

} // namespace
