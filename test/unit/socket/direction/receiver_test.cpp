// SPDX-License-Identifier: BSD-3-Clause
// The receiving half alone: ends, losses, and a sender that lies.
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "direction/receiver.hpp"

using namespace ntb::socket;
using Source = Receiver::Source;

namespace
{

constexpr Receiver::Kernel quiet{0, false, false};
constexpr Receiver::Kernel fin{0, true, false};
constexpr Receiver::Kernel rst{0, false, true};

/// A receiver that took 100 bytes by TCP and has granted a ring of 64.
Receiver granted()
{
    Receiver receiver;
    receiver.took_from_kernel(100);
    EXPECT_TRUE(receiver.may_grant(1, 100));
    EXPECT_EQ(receiver.grant(64), 1u);
    return receiver;
}

SenderWords words(std::uint64_t start, std::uint64_t head, Mark mark = Mark::None)
{
    return {1, true, mark, start, head, mark == Mark::None ? 0 : head};
}

void expect_reset(Receiver receiver, const SenderWords &peer)
{
    receiver.look(peer, 100);
    EXPECT_EQ(receiver.next(quiet).source, Source::Reset);
}

} // namespace

TEST(DirectionReceiver, TakesTcpUpToTheSwitchAndThenTheRing)
{
    Receiver receiver = granted();
    EXPECT_TRUE(receiver.look(words(110, 120), 100));
    EXPECT_TRUE(receiver.words().seen);
    EXPECT_EQ(receiver.next({50, false, false}).most, 10u);
    EXPECT_EQ(receiver.next(quiet).source, Source::Wait);
    receiver.took_from_kernel(10);
    const Receiver::Reading reading = receiver.next({40, false, false});
    EXPECT_EQ(reading.source, Source::Ring);
    EXPECT_EQ(reading.offset, 110u);
    EXPECT_EQ(reading.most, 10u);
}

TEST(DirectionReceiver, EndsAtTheMarkNeverAtTheFin)
{
    Receiver receiver = granted();
    EXPECT_EQ(receiver.next(fin).source, Source::Wait);
    EXPECT_TRUE(receiver.report_fin(fin));
    EXPECT_FALSE(receiver.report_fin(fin));
    receiver.look(words(100, 110), 100);
    receiver.took_from_ring(10);
    EXPECT_EQ(receiver.next(fin).source, Source::Wait);
    receiver.look(words(100, 112, Mark::End), 100);
    EXPECT_EQ(receiver.next(fin).source, Source::Ring);
    receiver.took_from_ring(2);
    EXPECT_EQ(receiver.next(fin).source, Source::End);
}

TEST(DirectionReceiver, GrantsNothingAfterAFin)
{
    Receiver receiver = granted();
    receiver.report_fin(fin);
    receiver.look({1, false, Mark::Return, 0, 0, 0}, 100);
    EXPECT_EQ(receiver.next(fin).source, Source::Kernel);
    EXPECT_FALSE(receiver.may_grant(2, 100));
}

TEST(DirectionReceiver, GrantsOnlyWhatIsWantedAndWhereCountsAgree)
{
    Receiver receiver;
    EXPECT_FALSE(receiver.may_grant(0, 0));
    EXPECT_FALSE(receiver.may_grant(2, 0));
    EXPECT_FALSE(receiver.may_grant(1, 1));
    receiver.ask();
    EXPECT_FALSE(receiver.may_grant(1, 0));
}

TEST(DirectionReceiver, ResetsWhereBytesWereReadUnseen)
{
    Receiver receiver = granted();
    EXPECT_FALSE(receiver.look(words(110, 110), 101));
    EXPECT_EQ(receiver.next(quiet).source, Source::Reset);
}

TEST(DirectionReceiver, ShowsWhatIsInTheRingBeforeAReset)
{
    Receiver receiver = granted();
    receiver.look(words(100, 105), 100);
    EXPECT_EQ(receiver.next(rst).most, 5u);
    receiver.took_from_ring(5);
    EXPECT_EQ(receiver.next(rst).source, Source::Reset);
}

TEST(DirectionReceiver, ShowsAResetThatTheDaemonSays)
{
    Receiver receiver = granted();
    receiver.look(words(100, 105, Mark::Reset), 100);
    EXPECT_EQ(receiver.next(fin).source, Source::Ring);
    receiver.took_from_ring(5);
    EXPECT_EQ(receiver.next(fin).source, Source::Reset);
}

TEST(DirectionReceiver, TakesTheKernelsCountAfterADeath)
{
    Receiver receiver = granted();
    receiver.recount(107);
    EXPECT_TRUE(receiver.look(words(110, 110), 107));
    EXPECT_EQ(receiver.next({9, false, false}).most, 3u);
}

TEST(DirectionReceiver, KeepsAnEndThatIsReachedBeforeAReset)
{
    Receiver receiver = granted();
    receiver.look(words(100, 100, Mark::End), 100);
    EXPECT_EQ(receiver.next(rst).source, Source::End);
}

TEST(DirectionReceiver, DeliversAtALossWhatArrived)
{
    Receiver receiver = granted();
    receiver.look(words(100, 105), 100);
    Receiver marked = receiver;
    receiver.lost();
    receiver.look(words(100, 105, Mark::End), 100); // too late to count
    EXPECT_EQ(receiver.next(quiet).source, Source::Ring);
    receiver.took_from_ring(5);
    EXPECT_EQ(receiver.next(quiet).source, Source::Reset);
    marked.look(words(100, 105, Mark::Revert), 100);
    marked.lost();
    marked.took_from_ring(5);
    EXPECT_EQ(marked.next(quiet).source, Source::Kernel);
}

TEST(DirectionReceiver, TakesTcpButNoFinAfterALossBeforeTheSwitch)
{
    Receiver receiver = granted();
    receiver.lost();
    EXPECT_EQ(receiver.next({3, true, false}).source, Source::Kernel);
    receiver.took_from_kernel(3);
    EXPECT_EQ(receiver.next(quiet).source, Source::Wait);
    EXPECT_EQ(receiver.next(fin).source, Source::Reset);
}

TEST(DirectionReceiver, ResetsForASenderThatLies)
{
    expect_reset(granted(), words(99, 110));  // a switch below what TCP brought
    expect_reset(granted(), words(110, 109)); // a head below the switch
    expect_reset(granted(), words(110, 175)); // beyond the room
    expect_reset(granted(), {1, true, Mark::End, 100, 110, 105});
    expect_reset(granted(), {1, true, Mark::Return, 100, 100, 100});
    expect_reset(granted(), {1, false, Mark::End, 0, 0, 0});
    expect_reset(granted(), words(100, 110, static_cast<Mark>(9)));
    Receiver receiver = granted();
    receiver.look(words(100, 110), 100);
    expect_reset(receiver, words(101, 110));
    expect_reset(receiver, words(100, 109));
    receiver.look(words(100, 110, Mark::End), 100);
    expect_reset(receiver, words(100, 111, Mark::End));
    expect_reset(receiver, words(100, 110, Mark::Revert));
    Receiver other = granted();
    SenderWords older = words(100, 110);
    older.generation = 0;
    EXPECT_FALSE(other.look(older, 100));
    EXPECT_EQ(other.state(), Receiver::State::Granted);
}

// ---- a ring of 64 bytes of which 16 are used at first

namespace
{

SenderWords narrow(std::uint64_t head, std::uint64_t wide = 0)
{
    SenderWords words = {1, true, Mark::None, 100, head, 0};
    words.narrow = 16;
    words.wide = wide;
    return words;
}

} // namespace

TEST(DirectionReceiver, FollowsTheSenderIntoTheWholeRing)
{
    Receiver receiver = granted();
    EXPECT_TRUE(receiver.look(narrow(110), 100));
    receiver.took_from_ring(5);
    receiver.look(narrow(121 + 48, 121), 100);
    EXPECT_EQ(receiver.next(quiet).most, 64u);
    EXPECT_EQ(receiver.place_of(120).used, 16u);
    EXPECT_EQ(receiver.place_of(120).position, 20u);
    EXPECT_EQ(receiver.place_of(121).used, 64u);
    EXPECT_EQ(receiver.place_of(121).position, 16u);
    receiver.took_from_ring(16);
    receiver.look(narrow(121 + 64, 121), 100);
    EXPECT_EQ(receiver.next(quiet).most, 64u);
}

TEST(DirectionReceiver, ResetsWhereASenderLiesAboutTheBytesInUse)
{
    const auto with = [](SenderWords words, std::uint32_t bytes) {
        words.narrow = bytes;
        return words;
    };
    expect_reset(granted(), narrow(117)); // no room
    expect_reset(granted(), with(narrow(110), 15));
    expect_reset(granted(), with(narrow(110), 128));
    expect_reset(granted(), with(narrow(110, 116), 0));
    expect_reset(granted(), narrow(116 + 49, 116)); // over those that were not read
    for (const std::uint64_t wide : {1ull, 100ull, 117ull, ~0ull})
        expect_reset(granted(), narrow(110, wide));
    Receiver receiver = granted();
    receiver.look(narrow(116, 116), 100);
    expect_reset(receiver, narrow(116));
    expect_reset(receiver, narrow(116, 115));
    expect_reset(receiver, with(narrow(116, 116), 32));
    receiver = granted();
    receiver.look(narrow(116), 100);
    expect_reset(receiver, narrow(116, 115)); // a byte that was seen would lie elsewhere
}

/// As bytes: there is no comparison, and each copy has what the other has.
bool same(const Receiver &a, const Receiver &b)
{
    return std::memcmp(static_cast<const void *>(&a), static_cast<const void *>(&b), sizeof(a)) ==
           0;
}

// A sender that lies, word by word: what is accepted by its head alone is what look() accepts, with
// the same outcome; what is not leaves no trace.
TEST(DirectionReceiver, AHeadAloneIsLookedAtAsAllWordsAre)
{
    std::mt19937_64 generator(7);
    const auto pick = [&generator](std::uint64_t n) { return generator() % n; };
    unsigned accepted = 0, refused = 0;
    for (unsigned round = 0; round < 200000; round++) {
        Receiver receiver = granted();
        SenderWords peer = words(100, 100 + pick(64));
        receiver.look(peer, 100);
        if (pick(2) == 0 && receiver.next(quiet).source == Source::Ring)
            receiver.took_from_ring(1 + pick(receiver.next(quiet).most));
        peer.head = pick(4) == 0 ? pick(300) : peer.head + pick(70);
        switch (pick(8)) {
        case 0:
            peer.start += pick(3);
            break;
        case 1:
            peer.generation += static_cast<std::uint32_t>(pick(2));
            break;
        case 2:
            peer.mark = static_cast<Mark>(pick(5));
            break;
        case 3:
            peer.wide += pick(200);
            break;
        default:
            break;
        }
        Receiver by_head, by_all;
        std::memcpy(static_cast<void *>(&by_head), static_cast<const void *>(&receiver),
                    sizeof(receiver));
        std::memcpy(static_cast<void *>(&by_all), static_cast<const void *>(&receiver),
                    sizeof(receiver));
        if (by_head.look_at_head(peer)) {
            by_all.look(peer, 100);
            ASSERT_TRUE(same(by_head, by_all)) << round;
            accepted++;
        } else {
            ASSERT_TRUE(same(by_head, receiver)) << round;
            refused++;
        }
    }
    EXPECT_GT(accepted, 10000u);
    EXPECT_GT(refused, 10000u);
}
