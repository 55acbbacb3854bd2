// SPDX-License-Identifier: BSD-3-Clause
// The sending half alone: what a receiver that lies, or says things late, cannot do.
#include <gtest/gtest.h>

#include "direction/sender.hpp"

using namespace ntb::socket;

namespace
{

Sender with_ring(std::uint64_t by_kernel, std::uint64_t ring_bytes)
{
    Sender sender;
    EXPECT_EQ(sender.want(), 1u);
    EXPECT_EQ(sender.route(0, {}).way, Sender::Way::Kernel);
    sender.wrote_by_kernel(by_kernel);
    EXPECT_FALSE(sender.granted(1, ring_bytes).store);
    return sender;
}

} // namespace

TEST(DirectionSender, SwitchesAtItsCount)
{
    Sender sender = with_ring(100, 64);
    const Sender::Route route = sender.route(100, {});
    EXPECT_EQ(route.way, Sender::Way::Ring);
    EXPECT_TRUE(route.switched);
    EXPECT_EQ(route.offset, 100u);
    EXPECT_EQ(route.most, 64u);
    sender.wrote_into_ring(64);
    EXPECT_EQ(sender.route(100, {}).way, Sender::Way::Full);
    EXPECT_EQ(sender.words().start, 100u);
    EXPECT_EQ(sender.words().head, 164u);
}

TEST(DirectionSender, StaysOnTcpWhereBytesWereNotSeen)
{
    Sender sender = with_ring(100, 64);
    EXPECT_EQ(sender.route(101, {}).way, Sender::Way::Kernel);
    EXPECT_EQ(sender.state(), Sender::State::Granted);
}

TEST(DirectionSender, SwitchesAgainBehindTheBytesOfTheFirstRing)
{
    Sender sender = with_ring(100, 64);
    sender.route(100, {});
    sender.wrote_into_ring(10);
    Sender::Actions actions;
    EXPECT_TRUE(sender.go_back({.generation = 1, .seen = true}, actions));
    EXPECT_EQ(sender.want(), 2u);
    sender.wrote_by_kernel(5);
    sender.granted(2, 64);
    EXPECT_TRUE(sender.route(105, {}).switched);
    EXPECT_EQ(sender.words().start, 115u);
}

TEST(DirectionSender, TakesTheKernelsCountAfterADeath)
{
    Sender sender = with_ring(100, 64);
    sender.recount(107);
    EXPECT_TRUE(sender.route(107, {}).switched);
    EXPECT_EQ(sender.words().start, 107u);
    sender.wrote_into_ring(3);
    sender.recount(107);
    EXPECT_EQ(sender.count(), 110u);
}

TEST(DirectionSender, BoundsWhatTheReceiverSaysItTook)
{
    Sender sender = with_ring(100, 64);
    EXPECT_EQ(sender.route(100, {}).most, 64u);
    sender.wrote_into_ring(40);
    EXPECT_EQ(sender.route(100, {.taken = 50}).most, 24u); // not everything of TCP was taken
    EXPECT_EQ(sender.route(100, {.taken = 110}).most, 34u);
    EXPECT_EQ(sender.route(100, {.taken = ~0ull}).most, 64u);
}

TEST(DirectionSender, GoesBackOnlyWhenThisSwitchWasSeen)
{
    Sender sender = with_ring(100, 64);
    sender.route(100, {});
    Sender::Actions actions;
    EXPECT_FALSE(sender.go_back({.generation = 1}, actions));
    EXPECT_FALSE(sender.go_back({.generation = 0, .seen = true}, actions));
    EXPECT_FALSE(actions.store);
    EXPECT_TRUE(sender.go_back({.generation = 1, .seen = true}, actions));
    EXPECT_TRUE(actions.store);
    EXPECT_EQ(sender.words().mark, Mark::Revert);
    EXPECT_EQ(sender.words().mark_offset, 100u);
}

TEST(DirectionSender, ReturnsAGrantThatComesTooLate)
{
    Sender sender;
    EXPECT_EQ(sender.want(), 1u);
    EXPECT_FALSE(sender.close().store);
    EXPECT_TRUE(sender.granted(1, 64).store);
    EXPECT_EQ(sender.words().mark, Mark::Return);
    EXPECT_EQ(sender.state(), Sender::State::Ended);
}

TEST(DirectionSender, IgnoresGrantsThatItDidNotWant)
{
    Sender sender;
    EXPECT_FALSE(sender.granted(1, 64).store);
    EXPECT_EQ(sender.state(), Sender::State::Tcp);
    sender = with_ring(0, 64);
    sender.route(0, {});
    sender.wrote_into_ring(10);
    EXPECT_FALSE(sender.granted(2, 64).store);
    EXPECT_EQ(sender.words().generation, 1u);
    EXPECT_EQ(sender.state(), Sender::State::Ring);
}

TEST(DirectionSender, SaysTheEndForOneThatDied)
{
    Sender sender = with_ring(0, 64);
    sender.route(0, {});
    sender.wrote_into_ring(10);
    Sender reset = sender;
    EXPECT_TRUE(sender.fin_seen(1, false).store);
    EXPECT_EQ(sender.words().mark, Mark::End);
    EXPECT_EQ(sender.words().mark_offset, 10u);
    EXPECT_TRUE(sender.fin_seen(1, false).store); // once more: the same words
    EXPECT_EQ(sender.words().mark_offset, 10u);
    reset.fin_seen(1, true);
    EXPECT_EQ(reset.words().mark, Mark::Reset);
}

TEST(DirectionSender, ResetsWhereBytesWereThrownAway)
{
    Sender sender = with_ring(0, 64);
    sender.route(0, {});
    sender.wrote_into_ring(10);
    Sender all_taken = sender;
    EXPECT_TRUE(sender.gone(9).reset);
    EXPECT_FALSE(all_taken.gone(10).reset);
    EXPECT_EQ(all_taken.state(), Sender::State::Tcp);
    EXPECT_EQ(all_taken.want(), 0u);
}

TEST(DirectionSender, HasNoRoomWhereTheReceiverTakesItsWordBack)
{
    Sender sender = with_ring(100, 64);
    sender.route(100, {});
    sender.wrote_into_ring(64);
    EXPECT_EQ(sender.route(100, {.taken = 140}).most, 40u);
    sender.wrote_into_ring(40);
    EXPECT_EQ(sender.route(100, {.taken = 100}).way, Sender::Way::Full);
    EXPECT_EQ(sender.route(100, {.taken = 139}).way, Sender::Way::Full);
    EXPECT_EQ(sender.route(100, {.taken = 141}).most, 1u);
}

// ---- a ring of 64 bytes of which 16 are used at first

namespace
{

Sender with_narrow_ring()
{
    Sender sender;
    sender.want();
    sender.wrote_by_kernel(100);
    sender.granted(1, 64, 16);
    sender.route(100, {});
    return sender;
}

} // namespace

TEST(DirectionSender, UsesTheWholeRingOnceANarrowOneIsFull)
{
    Sender sender = with_narrow_ring();
    EXPECT_EQ(sender.words().narrow, 16u);
    sender.wrote_into_ring(10);
    EXPECT_EQ(sender.route(100, {.taken = 105}).most, 11u);
    EXPECT_EQ(sender.route(100, {}).place.used, 16u);
    EXPECT_EQ(sender.route(100, {}).place.position, 10u);
    sender.wrote_into_ring(11);
    EXPECT_EQ(sender.route(100, {.taken = 105}).way, Sender::Way::Full);
    EXPECT_TRUE(sender.filled());
    EXPECT_FALSE(sender.filled()) << "once";
    EXPECT_EQ(sender.words().wide, 121u);
    // Behind the narrow ring, as long as its bytes may be read.
    EXPECT_EQ(sender.used_bytes(105), 16u);
    EXPECT_EQ(sender.route(100, {.taken = 105}).most, 48u);
    EXPECT_EQ(sender.route(100, {.taken = 120}).most, 48u);
    EXPECT_EQ(sender.route(100, {.taken = 120}).place.used, 64u);
    EXPECT_EQ(sender.route(100, {.taken = 120}).place.position, 16u);
    sender.wrote_into_ring(48);
    EXPECT_EQ(sender.route(100, {.taken = 120}).way, Sender::Way::Full);
    EXPECT_EQ(sender.route(100, {.taken = 121}).most, 16u);
    EXPECT_EQ(sender.route(100, {.taken = 130}).most, 25u);
    EXPECT_EQ(sender.route(100, {.taken = 130}).place.position, 64u);
    EXPECT_EQ(sender.used_bytes(121), 64u);
    EXPECT_EQ(sender.route(100, {.taken = ~0ull}).most, 64u);
}

TEST(DirectionSender, UsesTheWholeRingWhereNoSmallerOneIsWanted)
{
    for (const std::uint32_t narrow : {0u, 17u, 64u, 128u, ~0u}) {
        Sender sender;
        sender.want();
        sender.granted(1, 64, narrow);
        EXPECT_EQ(sender.route(0, {}).most, 64u) << narrow;
        EXPECT_EQ(sender.words().narrow, 0u);
        sender.wrote_into_ring(64);
        for (int i = 0; i < 20; i++)
            EXPECT_FALSE(sender.filled());
    }
}

TEST(DirectionSender, TheNextRingIsNarrowAgain)
{
    Sender sender = with_narrow_ring();
    sender.wrote_into_ring(16);
    EXPECT_TRUE(sender.filled());
    Sender::Actions actions;
    EXPECT_TRUE(sender.go_back({.generation = 1, .seen = true}, actions));
    sender.want();
    sender.granted(2, 64, 16);
    EXPECT_EQ(sender.words().wide, 0u);
    EXPECT_EQ(sender.route(100, {}).place.used, 16u);
}
