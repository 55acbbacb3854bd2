// SPDX-License-Identifier: BSD-3-Clause
// Segments of the data window: who has which.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "window/segment_map.hpp"

using plx::pmd::SegmentMap;

namespace
{

TEST(SegmentMap, IsEmptyWhileTheWindowIsClosed)
{
    SegmentMap map;
    EXPECT_EQ(map.segments(), 0u);
    EXPECT_EQ(map.free(), 0u);
    EXPECT_EQ(map.longest(), 0u);
    EXPECT_EQ(map.take(1, SegmentMap::any), -1);
}

TEST(SegmentMap, GivesOutTheFirstThatFit)
{
    SegmentMap map;
    map.reset(256, 1, 8);
    EXPECT_EQ(map.free(), 248u);
    EXPECT_EQ(map.take(4, SegmentMap::any), 8);
    EXPECT_EQ(map.take(1, SegmentMap::any), 12);
    map.release(8, 4);
    EXPECT_EQ(map.take(5, SegmentMap::any), 13) << "the hole is too small";
    EXPECT_EQ(map.take(4, SegmentMap::any), 8);
    EXPECT_EQ(map.free(), 238u);
    EXPECT_EQ(map.longest(), 238u);
}

TEST(SegmentMap, RefusesWhatIsNotThere)
{
    SegmentMap map;
    map.reset(128, 1, 120);
    EXPECT_EQ(map.take(0, SegmentMap::any), -1);
    EXPECT_EQ(map.take(9, SegmentMap::any), -1);
    EXPECT_EQ(map.take(1, 1), -1) << "there is one part";
    EXPECT_EQ(map.take(~0u, SegmentMap::any), -1);
    EXPECT_EQ(map.take(8, 0), 120);
    EXPECT_EQ(map.take(1, SegmentMap::any), -1);
    EXPECT_EQ(map.longest(), 0u);
}

TEST(SegmentMap, NothingCrossesTheBorderOfAWindow)
{
    SegmentMap map;
    map.reset(256, 4, 8);
    EXPECT_EQ(map.per_part(), 64u);
    EXPECT_EQ(map.longest(), 64u);
    EXPECT_EQ(map.take(65, SegmentMap::any), -1);
    EXPECT_EQ(map.take(60, SegmentMap::any), 64) << "56 are left in part 0";
    EXPECT_EQ(map.take(5, 1), -1);
    EXPECT_EQ(map.take(5, SegmentMap::any), 8);
    EXPECT_EQ(map.take(64, 3), 192);
    EXPECT_EQ(map.take(1, 4), -1);
    map.reset(256, 1, 0);
    EXPECT_EQ(map.take(256, SegmentMap::any), 0);
}

TEST(SegmentMap, NoSegmentHasTwoOwnersAndNoneIsLost)
{
    std::mt19937 random(4711);
    for (const unsigned windows : {1u, 2u, 128u}) {
        SegmentMap map;
        map.reset(256, windows, 2);
        std::vector<std::pair<unsigned, unsigned>> held;
        std::vector<bool> owned(256, false);
        owned[0] = owned[1] = true;
        unsigned free = 254;
        for (unsigned step = 0; step < 5000; ++step) {
            if (random() % 2 == 0 && !held.empty()) {
                const size_t which = random() % held.size();
                map.release(held[which].first, held[which].second);
                for (unsigned i = 0; i < held[which].second; ++i)
                    owned[held[which].first + i] = false;
                free += held[which].second;
                held.erase(held.begin() + static_cast<ptrdiff_t>(which));
            } else {
                const auto count = static_cast<unsigned>(1 + random() % 9);
                const int first = map.take(count, SegmentMap::any);
                if (first < 0) {
                    ASSERT_LT(map.longest(), count);
                    continue;
                }
                const auto at = static_cast<unsigned>(first);
                ASSERT_EQ(at / map.per_part(), (at + count - 1) / map.per_part());
                for (unsigned i = 0; i < count; ++i) {
                    ASSERT_FALSE(owned[at + i]);
                    owned[at + i] = true;
                }
                free -= count;
                held.emplace_back(at, count);
            }
            ASSERT_EQ(map.free(), free);
        }
    }
}

} // namespace
