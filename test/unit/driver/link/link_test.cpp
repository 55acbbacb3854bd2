// SPDX-License-Identifier: BSD-3-Clause
// Link life: how two hosts meet, lose each other, stop and meet again.
#include "link_hosts.hpp"

#include <cerrno>
#include <functional>

namespace
{

using namespace plx;
using namespace plx::test;

TEST_F(LinkTest, ConnectsInEitherOrderOfStart)
{
    ASSERT_EQ(a.start(), 0);
    run(20);
    EXPECT_EQ(a.link.state(), LinkState::waiting);
    ASSERT_EQ(b.start(), 0);
    run(4);
    expect_joined();
    EXPECT_TRUE(a.saw(LinkEvent::connected));
    EXPECT_TRUE(b.saw(LinkEvent::connected));
    EXPECT_STREQ(a.link.why(), "");
    EXPECT_EQ(a.fences, 0) << "nothing was promised to anybody else";
}

TEST_F(LinkTest, CleanStopIsReportedAndTheOtherSideFences)
{
    ASSERT_NO_FATAL_FAILURE(try_connect());
    ASSERT_TRUE(a.link.stop());
    EXPECT_EQ(a.link.state(), LinkState::stopped);
    EXPECT_FALSE(a.window);
    run(1);
    EXPECT_TRUE(b.saw(LinkEvent::lost));
    EXPECT_EQ(b.fences, 1);
    ASSERT_EQ(a.start(), 0);
    run(6);
    expect_joined();
    EXPECT_EQ(b.link.connects(), 2u);
}

TEST_F(LinkTest, TheEndIsReportedOnceWhatHadArrivedWasReceived)
{
    try_connect();
    expect_joined();
    b.arrived = 3;
    ASSERT_TRUE(a.link.stop());
    run(1);
    EXPECT_EQ(b.link.state(), LinkState::closing);
    EXPECT_FALSE(b.sending) << "the peer takes nothing more";
    for (; b.taken < 3; ++b.taken) {
        run(300); // 1.5 s
        EXPECT_EQ(b.link.state(), LinkState::closing);
        EXPECT_FALSE(b.saw(LinkEvent::lost));
        EXPECT_TRUE(b.open);
        EXPECT_EQ(b.fences, 0) << "nothing is reused";
    }
    run(1);
    EXPECT_TRUE(b.saw(LinkEvent::lost));
    EXPECT_EQ(b.fences, 1);
    EXPECT_EQ(b.link.state(), LinkState::waiting);
}

TEST_F(LinkTest, WhatIsNotReceivedInTimeIsLost)
{
    try_connect();
    expect_joined();
    b.arrived = 1;
    ASSERT_TRUE(a.link.stop());
    run(400); // 2 s
    EXPECT_EQ(b.link.state(), LinkState::closing);
    run(2);
    EXPECT_TRUE(b.saw(LinkEvent::lost));
    EXPECT_EQ(b.link.state(), LinkState::waiting);
}

TEST_F(LinkTest, WhoIsLateReceivesWhatAPeerThatHasLeftHadSent)
{
    const std::function<void()> ends[] = {
        [this] { a.die(); },
        [this] { world.cable = false; },
    };
    for (const auto &leaves : ends) {
        try_connect();
        expect_joined();
        b.arrived = 2;
        b.taken = 0;
        EXPECT_FALSE(a.link.linger());
        ASSERT_TRUE(a.link.stop());
        leaves();
        run(100);
        EXPECT_EQ(b.link.state(), LinkState::closing);
        EXPECT_FALSE(b.saw(LinkEvent::lost));
        EXPECT_EQ(b.fences, 0) << "nothing is reused";
        b.taken = 2;
        run(1);
        EXPECT_TRUE(b.saw(LinkEvent::lost));
        EXPECT_EQ(b.fences, 1);
        world.cable = true;
        b.link.stop();
        b.events.clear();
        b.fences = 0;
        a.alive = true;
    }
}

TEST_F(LinkTest, WhatAnEarlierPeerSaidIsNoEndOfThisOne)
{
    try_connect();
    expect_joined();
    b.arrived = 1;
    b.inbox.state = wire::HelloState::closing;
    b.inbox.epoch += 1;
    pmd::seal(b.inbox);
    a.die();
    run(1);
    EXPECT_TRUE(b.saw(LinkEvent::lost));
    EXPECT_FALSE(b.saw(LinkEvent::closing));
}

TEST_F(LinkTest, WhoHasLostStoresDoesNotSayThatAllHaveArrived)
{
    try_connect();
    expect_joined();
    a.engine_busy = true;
    EXPECT_TRUE(a.link.linger());
    world.cable = false;
    EXPECT_FALSE(a.link.linger());
    world.cable = true; // up again before the stop
    ASSERT_TRUE(a.link.stop());
    EXPECT_NE(b.inbox.state, wire::HelloState::closing);
    EXPECT_TRUE(a.saw(LinkEvent::lost));
}

TEST_F(LinkTest, ThePeerOfOneThatClosesWaitsForIt)
{
    try_connect();
    expect_joined();
    b.arrived = 1;
    ASSERT_TRUE(a.link.stop());
    run(1);
    ASSERT_EQ(a.start(), 0);
    run(100);
    EXPECT_EQ(b.link.state(), LinkState::closing);
    EXPECT_EQ(a.link.state(), LinkState::waiting);
    a.alive = false; // nor does the loss of the cable take anything away
    run(100);
    EXPECT_EQ(b.link.state(), LinkState::closing);
    a.alive = true;
    b.taken = 1;
    run(4);
    expect_joined();
}

TEST_F(LinkTest, OneThatClosesCanStop)
{
    try_connect();
    expect_joined();
    b.arrived = 1;
    ASSERT_TRUE(a.link.stop());
    run(1);
    EXPECT_FALSE(b.link.linger()) << "no one confirms";
    ASSERT_TRUE(b.link.stop());
    EXPECT_TRUE(b.saw(LinkEvent::lost));
}

TEST_F(LinkTest, AnOrderlyEndWaitsForConfirmation)
{
    try_connect();
    expect_joined();
    a.sent = 2;
    a.engine_busy = true;
    EXPECT_TRUE(a.link.linger());
    EXPECT_FALSE(a.sending);
    world.now_us += 10'000;
    EXPECT_TRUE(a.link.linger());
    b.link.tick();
    EXPECT_EQ(b.link.state(), LinkState::connected) << "it has not all arrived";
    a.engine_busy = false;
    b.arrived = 2;
    for (; b.taken < 2; a.sent = 2 - ++b.taken) {
        world.now_us += 500'000;
        EXPECT_TRUE(a.link.linger()) << "no heartbeat is needed while the peer ticks";
        b.link.tick();
        EXPECT_EQ(b.link.state(), LinkState::closing);
        EXPECT_FALSE(b.saw(LinkEvent::lost));
    }
    EXPECT_FALSE(a.link.linger());
    ASSERT_TRUE(a.link.stop());
    EXPECT_TRUE(a.saw(LinkEvent::lost));
    b.link.tick();
    EXPECT_TRUE(b.saw(LinkEvent::lost));
}

TEST_F(LinkTest, AReceiverThatClosesIsHeardForLongerThanASilentOneIs)
{
    try_connect();
    expect_joined();
    a.sent = 1;
    b.arrived = 1;
    EXPECT_TRUE(a.link.linger());
    b.link.tick();
    for (uint64_t end = world.now_us + 1'900'000; world.now_us < end; world.now_us += 10'000) {
        ASSERT_TRUE(a.link.linger()) << world.now_us;
        b.link.tick();
        ASSERT_EQ(b.link.state(), LinkState::closing);
    }
    b.taken = 1;
    a.sent = 0;
    EXPECT_FALSE(a.link.linger());
    ASSERT_TRUE(a.link.stop());
    b.link.tick();
    EXPECT_TRUE(b.saw(LinkEvent::lost));
}

TEST_F(LinkTest, TwoThatEndAtOnceDoNotWaitForEachOther)
{
    try_connect();
    expect_joined();
    a.sent = b.sent = a.arrived = b.arrived = 5;
    EXPECT_TRUE(a.link.linger());
    EXPECT_FALSE(b.link.linger()) << "the peer receives no more";
    ASSERT_TRUE(b.link.stop());
    EXPECT_FALSE(a.link.linger());
    ASSERT_TRUE(a.link.stop());
}

TEST_F(LinkTest, ALostPeerIsNotWaitedFor)
{
    const std::function<void()> breaks[] = {
        [this] { world.cable = false; },
        [this] { b.die(); },
        [this] { a.link.protocol_error(); },
        [] {}, // its control thread stands still
        [this] {
            b.link.protocol_error();
            b.link.tick(); // it begins a new epoch
        },
    };
    for (const auto &its : breaks) {
        try_connect();
        expect_joined();
        a.sent = 1;
        EXPECT_TRUE(a.link.linger());
        its();
        for (unsigned i = 0; i < 30; ++i, world.now_us += 40'000)
            if (!a.link.linger())
                break;
        EXPECT_FALSE(a.link.linger());
        a.link.stop();
        world.cable = true;
        a.die();
        b.die();
        a.events.clear();
        a.born();
        b.born();
        a.link.stop();
        b.link.stop();
    }
}

TEST_F(LinkTest, AnUnannouncedRestartIsNoticedByTheEpoch)
{
    ASSERT_NO_FATAL_FAILURE(try_connect());
    const uint64_t old_pair = a.own_pair;
    b.die();
    b.born(); // between two ticks of a
    run(8);
    expect_joined();
    EXPECT_TRUE(a.saw(LinkEvent::lost));
    EXPECT_NE(a.own_pair, old_pair) << "tags of the old connection would still be valid";
}

TEST_F(LinkTest, DeathIsLostAndComesBackWithOtherSizes)
{
    ASSERT_NO_FATAL_FAILURE(try_connect());
    b.die();
    run(1);
    EXPECT_TRUE(a.saw(LinkEvent::lost));
    EXPECT_FALSE(a.open);
    run(10);
    EXPECT_EQ(a.link.state(), LinkState::waiting);
    wire::Hello other = sizes();
    other.ring_lines = 256;
    other.buf_begin = static_cast<uint32_t>(
        wire::queue_area_end(2, other.ring_lines, other.buffer_ring_lines) / wire::line_bytes);
    b.born(other);
    run(6);
    expect_joined();
    EXPECT_EQ(a.link.peer().ring_lines, 256u);
}

TEST_F(LinkTest, SilenceThatEndsLosesNothing)
{
    ASSERT_NO_FATAL_FAILURE(try_connect());
    b.mute = true;
    run(12); // 60 ms
    EXPECT_EQ(a.link.state(), LinkState::silent);
    EXPECT_EQ(a.fences, 0);
    b.mute = false;
    run(4);
    EXPECT_EQ(a.link.state(), LinkState::connected);
    EXPECT_TRUE(a.saw(LinkEvent::alive));
    EXPECT_FALSE(a.saw(LinkEvent::lost));
}

TEST_F(LinkTest, APeerWhoseHeartbeatsStandStillIsAliveWhileItSends)
{
    ASSERT_NO_FATAL_FAILURE(try_connect());
    b.mute = true; // its control thread has no CPU
    for (unsigned i = 0; i < 1000; ++i) {
        ++a.traffic;
        run(1);
    }
    EXPECT_EQ(a.link.state(), LinkState::connected);
    EXPECT_EQ(a.events, std::vector<LinkEvent>{LinkEvent::connected});
    run(12);
    EXPECT_EQ(a.link.state(), LinkState::silent);
    ++a.traffic;
    run(1);
    EXPECT_EQ(a.link.state(), LinkState::connected);
    EXPECT_TRUE(a.saw(LinkEvent::alive));
    run(300);
    EXPECT_TRUE(a.saw(LinkEvent::lost)) << "neither";
}

TEST_F(LinkTest, StoppedPeerIsLostThenFencedThenMetAgain)
{
    ASSERT_NO_FATAL_FAILURE(try_connect());
    for (unsigned i = 0; i < 300; ++i) { // b is stopped: only a ticks, 1.5 s
        world.now_us += 5'000;
        a.link.tick();
    }
    EXPECT_TRUE(a.saw(LinkEvent::lost));
    EXPECT_GE(a.fences, 1);
    EXPECT_EQ(b.link.state(), LinkState::connected) << "it does not know yet";
    run(10);
    expect_joined();
    EXPECT_TRUE(b.saw(LinkEvent::lost));
}

TEST_F(LinkTest, BusyQueueDelaysTheFenceAndNothingIsReusedBefore)
{
    ASSERT_NO_FATAL_FAILURE(try_connect());
    a.busy = 3;
    world.cable = false;
    run(1);
    EXPECT_EQ(a.link.state(), LinkState::losing);
    EXPECT_TRUE(a.window);
    EXPECT_FALSE(a.saw(LinkEvent::lost)) << "reported before what is unconfirmed is counted";
    run(4);
    EXPECT_TRUE(a.saw(LinkEvent::lost));
    EXPECT_EQ(a.link.state(), LinkState::waiting);
    a.busy = 2;
    EXPECT_FALSE(a.link.stop());
    EXPECT_FALSE(a.link.stop());
    EXPECT_TRUE(a.link.stop());
    EXPECT_TRUE(a.link.stop()) << "stopped stays stopped";
}

TEST_F(LinkTest, APendingLossIsReportedByTheStop)
{
    ASSERT_NO_FATAL_FAILURE(try_connect());
    a.busy = 1;
    world.cable = false;
    run(1);
    ASSERT_FALSE(a.saw(LinkEvent::lost));
    ASSERT_TRUE(a.link.stop());
    EXPECT_TRUE(a.saw(LinkEvent::lost));
}

TEST_F(LinkTest, AStopIsALossReportedOnceTheQueuesAreQuiet)
{
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    run(4);
    a.busy = 1;
    EXPECT_FALSE(a.link.stop());
    EXPECT_FALSE(a.saw(LinkEvent::lost)) << "reported before what is unconfirmed is counted";
    EXPECT_TRUE(a.link.stop());
    EXPECT_EQ(a.events, (std::vector<LinkEvent>{LinkEvent::connected, LinkEvent::lost}));
    EXPECT_STREQ(a.link.why(), "this side has stopped");
    ASSERT_EQ(a.start(), 0);
    EXPECT_TRUE(a.link.stop()) << "nothing to lose";
    EXPECT_EQ(a.events.size(), 2u);
}

TEST_F(LinkTest, LossIsReportedAlsoWhenAQueueStaysInsideABurst)
{
    ASSERT_NO_FATAL_FAILURE(try_connect());
    a.busy = 1000;
    world.cable = false;
    run(5);
    EXPECT_TRUE(a.saw(LinkEvent::lost));
    EXPECT_EQ(a.link.state(), LinkState::fencing);
    EXPECT_EQ(a.fences, 0);
    a.busy = 0;
    run(1);
    EXPECT_EQ(a.link.state(), LinkState::waiting);
    EXPECT_EQ(a.fences, 1);
}

TEST_F(LinkTest, ProtocolBreakTakesTheConnectionDownAndUp)
{
    ASSERT_NO_FATAL_FAILURE(try_connect());
    a.link.protocol_error();
    run(8);
    EXPECT_TRUE(a.saw(LinkEvent::lost));
    expect_joined();
}

TEST_F(LinkTest, WindowThatDoesNotOpenIsAnError)
{
    a.open_window_result = -EINVAL;
    EXPECT_EQ(a.start(), -EINVAL);
    EXPECT_EQ(a.link.state(), LinkState::stopped);
}

TEST_F(LinkTest, QueuesThatDoNotOpenAreReportedOnceAndTriedAgain)
{
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    a.open_queues_result = -ENOMEM;
    run(10);
    EXPECT_EQ(a.link.state(), LinkState::refused);
    EXPECT_STRNE(a.link.why(), "");
    EXPECT_EQ(a.events, std::vector<LinkEvent>{LinkEvent::refused});
    a.open_queues_result = 0;
    run(4);
    expect_joined();
    EXPECT_EQ(a.events, (std::vector<LinkEvent>{LinkEvent::refused, LinkEvent::connected}));
}

TEST_F(LinkTest, WhoStoodStillHasNotListened)
{
    ASSERT_NO_FATAL_FAILURE(try_connect());
    world.now_us += 5'000'000; // the whole machine: neither side has run
    a.link.tick();
    EXPECT_EQ(a.link.state(), LinkState::connected) << "the peer gets its turn first";
    run(4);
    expect_joined();
    EXPECT_EQ(a.events, std::vector<LinkEvent>{LinkEvent::connected});
    EXPECT_EQ(b.events, std::vector<LinkEvent>{LinkEvent::connected});
}

TEST_F(LinkTest, AControlThreadThatIsLateStillLosesADeadPeer)
{
    ASSERT_NO_FATAL_FAILURE(try_connect());
    b.mute = true;
    const uint64_t since = world.now_us;
    while (a.link.state() != LinkState::waiting && world.now_us - since < 60'000'000) {
        world.now_us += 250'000; // each tick comes a quarter of a second late
        a.link.tick();
    }
    EXPECT_TRUE(a.saw(LinkEvent::silent));
    EXPECT_TRUE(a.saw(LinkEvent::lost));
    EXPECT_LE(world.now_us - since, 7'500'000u) << "lost_us in pieces of tick_max_us";
}

TEST_F(LinkTest, StopThatFailedIsRepeated)
{
    ASSERT_NO_FATAL_FAILURE(try_connect());
    a.deaf = true;
    EXPECT_FALSE(a.link.stop());
    EXPECT_FALSE(a.link.stop());
    EXPECT_EQ(a.link.state(), LinkState::stopping);
    a.deaf = false;
    EXPECT_TRUE(a.link.stop());
    EXPECT_EQ(a.events, (std::vector<LinkEvent>{LinkEvent::connected, LinkEvent::lost}));
    ASSERT_EQ(a.start(), 0);
    run(8);
    expect_joined();
}

TEST_F(LinkTest, AChipThatIsGoneIsALossWithoutAWayBack)
{
    ASSERT_NO_FATAL_FAILURE(try_connect());
    a.gone = true;
    a.deaf = true;
    run(100);
    EXPECT_EQ(a.events, (std::vector<LinkEvent>{LinkEvent::connected, LinkEvent::lost}));
    EXPECT_STREQ(a.link.why(), "the chip does not answer");
    EXPECT_EQ(a.link.state(), LinkState::fencing) << "nothing is reused";
    EXPECT_FALSE(a.link.stop());
    EXPECT_EQ(a.link.state(), LinkState::stopping);
}

/// On the twin a fence moves the block, and the peer's window follows some time later.
TEST_F(LinkTest, NoReplyBeforeThePeersStoresArrive)
{
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    b.link.tick(); // hello(b)
    a.link.tick(); // hello(a, ack b)
    b.die();
    b.born();
    b.link.tick(); // hello of another b
    a.moves = true;
    a.link.tick();
    EXPECT_EQ(a.fences, 1) << "the block was promised to the first one";
    run(10);
    EXPECT_NE(b.link.state(), LinkState::connected) << "what it sends would be lost";
    a.followed = true;
    run(6);
    expect_joined();
    EXPECT_EQ(a.fences, 1);
}

/// Whatever happens for a while, in whatever order the two sides run: once it is quiet they meet,
/// with seeds that fit, and rings were never touched while in use (checked inside Host).
TEST_F(LinkTest, ConvergesFromAnyStorm)
{
    for (unsigned seed = 1; seed <= 300; ++seed) {
        SCOPED_TRACE(seed);
        World storm;
        storm.random.seed(seed);
        Host x{storm}, y{storm};
        x.join(y);
        y.join(x);
        ASSERT_EQ(x.start(), 0);
        ASSERT_EQ(y.start(), 0);
        std::mt19937_64 dice(seed);
        Host *const hosts[] = {&x, &y};
        for (int i = 0; i < 400; ++i) {
            storm.now_us += dice() % 30'000;
            Host &host = *hosts[dice() % 2];
            switch (dice() % 16) {
            case 0:
                storm.cable = !storm.cable;
                break;
            case 1:
                if (host.alive)
                    host.die();
                else
                    host.born();
                break;
            case 2:
                host.lose_stores = !host.lose_stores;
                break;
            case 3:
                host.mute = !host.mute;
                break;
            case 4:
                host.busy = static_cast<int>(dice() % 3);
                break;
            case 5:
                storm.now_us += 1'100'000; // somebody was stopped
                break;
            default:
                if (host.alive)
                    host.link.tick();
            }
        }
        storm.cable = true;
        for (Host *host : hosts) {
            host->lose_stores = false;
            host->mute = false;
            host->busy = 0;
            if (!host->alive)
                host->born();
        }
        for (int i = 0; i < 40; ++i) {
            storm.now_us += 5'000;
            hosts[i % 2]->link.tick();
        }
        ASSERT_EQ(x.link.state(), LinkState::connected) << x.link.why();
        ASSERT_EQ(y.link.state(), LinkState::connected) << y.link.why();
        ASSERT_EQ(x.own_pair, y.peer_pair);
        ASSERT_EQ(y.own_pair, x.peer_pair);
    }
}

} // namespace
