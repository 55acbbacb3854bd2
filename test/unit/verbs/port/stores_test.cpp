// SPDX-License-Identifier: BSD-3-Clause
#include "port/stores.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

using ntb::verbs::Stores;

namespace
{

constexpr std::uint64_t lap = 65536, piece = 16384, line = 64;

/// What a line takes by a way, and whether the ring is full meanwhile.
struct Cost {
    std::uint64_t cycles;
    bool full = false;
};

/// Stores whose time is made up. What the reader takes longer for comes a lap later.
class Model
{
public:
    Model() { stores.set_lap(lap); }
    void run(Cost through, Cost past, std::uint64_t laps)
    {
        for (std::uint64_t i = 0; i < laps * lap / piece; ++i) {
            ways.push_back(stores.way());
            const Cost cost = ways.front() != 0 ? past : through;
            if (ways.size() > lap / piece)
                ways.pop_front();
            pasts += stores.way() != 0;
            stores.took(piece, cost.cycles * (piece / line), cost.full);
        }
    }

    Stores stores;
    std::uint64_t pasts = 0; ///< pieces that went past the caches

private:
    std::deque<unsigned> ways;
};

TEST(Stores, GoPastTheCachesWhereTheReaderIsFar)
{
    Model model;
    model.run({36}, {9, true}, 100);
    EXPECT_EQ(model.stores.in_force(), 1u);
}

// The writer alone would find it cheaper.
TEST(Stores, StayInTheCachesWhereTheReaderPaysForIt)
{
    Model model;
    model.run({9}, {14, true}, 4000);
    EXPECT_EQ(model.stores.in_force(), 0u);
    EXPECT_LT(model.pasts, 4000 * (lap / piece) / 20);
}

TEST(Stores, NeedMuchToLeaveTheCachesWhileTheReadersShareIsNotSeen)
{
    Model model;
    model.run({10}, {6}, 1000);
    EXPECT_EQ(model.stores.in_force(), 0u);
    model.run({36}, {8}, 1000);
    EXPECT_EQ(model.stores.in_force(), 1u);
}

TEST(Stores, FollowTheCpusWhenTheyAreMoved)
{
    Model model;
    for (int i = 0; i < 3; ++i) {
        model.run({36}, {9, true}, 1000);
        EXPECT_EQ(model.stores.in_force(), 1u) << i;
        model.run({9}, {14, true}, 1000);
        EXPECT_EQ(model.stores.in_force(), 0u) << i;
    }
}

// Of the way before.
TEST(Stores, TheFirstLapDoesNotCount)
{
    Stores stores;
    stores.set_lap(lap);
    for (int stretch = 0; stretch < 400; ++stretch)
        for (std::uint64_t stored = 0; stored < Stores::laps * lap; stored += piece)
            stores.took(piece, (stored < lap && stores.way() != 0 ? 1000 : 10) * (piece / line),
                        true);
    EXPECT_EQ(stores.in_force(), 0u);
    for (int stretch = 0; stretch < 400; ++stretch)
        for (std::uint64_t stored = 0; stored < Stores::laps * lap; stored += piece)
            stores.took(piece,
                        (stored < lap && stores.way() != 0 ? 1000
                         : stores.way() != 0               ? 5
                                                           : 10) *
                            (piece / line),
                        true);
    EXPECT_EQ(stores.in_force(), 1u);
}

TEST(Stores, EachByteGoesWhereItBelongsBothWays)
{
    for (const unsigned way : {0u, 1u}) {
        Model model;
        if (way != 0)
            model.run({36}, {9, true}, 100);
        ASSERT_EQ(model.stores.in_force(), way);
        std::vector<std::byte> from(20000), to(20200);
        for (std::size_t i = 0; i < from.size(); ++i)
            from[i] = static_cast<std::byte>(i * 7 + (i >> 8));
        for (std::size_t bytes : {0ul, 1ul, 63ul, 4095ul, 4096ul, 4097ul, 10000ul, 16384ul})
            for (std::size_t offset = 0; offset < 80; offset += 7) {
                std::fill(to.begin(), to.end(), std::byte{0xee});
                model.stores.copy(&to[offset], &from[offset / 2], bytes);
                model.stores.settle();
                for (std::size_t i = 0; i < to.size(); ++i)
                    ASSERT_EQ(to[i], i >= offset && i < offset + bytes
                                         ? from[offset / 2 + i - offset]
                                         : std::byte{0xee})
                        << way << " " << bytes << " " << offset << " " << i;
            }
    }
}

} // namespace
