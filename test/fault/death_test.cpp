// SPDX-License-Identifier: BSD-3-Clause
// A host dies, or stands still, in the middle of traffic. The other one reports it, counts what it
// does not know, gets all its mbufs back, and works again when the peer does.
#include "host.hpp"

#include <memory>

#include <gtest/gtest.h>

#include <poll.h>

using test::Answer;
using test::Command;
using test::HostSetup;
using test::Op;
using test::RemoteHost;
using test::Stream;
using test::stream;
using test::traffic;
using test::Until;

namespace
{

/// No heartbeat is missed by these; the cable reports a death.
constexpr uint32_t ring_lines = 1024;
const HostSetup patient{.devargs = "heartbeat_ms=30000,lost_ms=60000",
                        .config = {.ring_lines = ring_lines}};
constexpr uint32_t endless = 1u << 30;

class Death : public testing::Test
{
protected:
    test::Folder folder_;
    const std::string cable_ = folder_.file("cable");
    std::unique_ptr<RemoteHost> survivor_ = std::make_unique<RemoteHost>();
    std::unique_ptr<RemoteHost> victim_ = std::make_unique<RemoteHost>();

    void connect(unsigned times)
    {
        ASSERT_TRUE(survivor_->await_event('C', times)) << survivor_->link().why;
        ASSERT_TRUE(victim_->await_event('C')) << victim_->link().why;
    }
    void talk(uint32_t seed)
    {
        const Stream s = stream(0, seed, 1000, {8, 48, 300, 5000});
        victim_->begin(traffic({s}, {s}));
        const Answer here = survivor_->ask(traffic({s}, {s}));
        const Answer there = victim_->end();
        ASSERT_EQ(here.rc, 0) << here.text;
        ASSERT_EQ(there.rc, 0) << there.text;
    }
    /// Both talk until the connection is lost. The victim's command stays without an answer.
    void begin_endless(uint32_t seed, std::initializer_list<uint32_t> sizes = {8, 48, 300, 3000})
    {
        const Stream s = stream(0, seed, endless, sizes);
        Command command = traffic({s}, {s});
        command.until = Until::lost;
        victim_->begin(command);
        survivor_->begin(command);
    }
    /// The victim sends this; the survivor does not give the mbufs back.
    void survivor_keeps(const Stream &s)
    {
        Command keep = traffic({}, {s});
        keep.keep = true;
        victim_->begin(traffic({s}, {}));
        ASSERT_EQ(survivor_->ask(keep).rc, 0);
        ASSERT_EQ(victim_->end().rc, 0);
    }
    struct Sent {
        uint64_t messages;
        uint64_t unconfirmed;
    };
    Sent survivor_sent()
    {
        return {survivor_->xstat("tx_messages"), survivor_->xstat("tx_unconfirmed")};
    }
    /// The survivor has reported the loss, and has everything back but what it exposes to the next
    /// peer.
    /// @param start what it had sent when this connection began: who has received the last message
    /// does not look for another, so that some of a talk may be unconfirmed too
    void expect_survival(const Sent &start, uint64_t sent_before)
    {
        const Answer end = survivor_->end();
        ASSERT_EQ(end.rc, 0) << end.text;
        ASSERT_TRUE(survivor_->await_state(RTE_PMD_PLX_NTB_WAITING));
        EXPECT_STRNE(survivor_->link().why, "");
        EXPECT_EQ(survivor_->outstanding(), 0u) << "no receive buffer is out without a peer";
        const Sent now = survivor_sent();
        EXPECT_EQ(now.messages - sent_before, end.sent);
        EXPECT_LE(now.unconfirmed - start.unconfirmed, now.messages - start.messages);
        EXPECT_LE(now.unconfirmed - start.unconfirmed, ring_lines) << "no more than the ring held";
    }
    void TearDown() override
    {
        for (RemoteHost *host : {survivor_.get(), victim_.get()}) {
            if (host == nullptr || !host->alive())
                continue;
            host->ask(Op::release);
            host->stop();
            EXPECT_EQ(host->outstanding(), 0u);
            EXPECT_EQ(host->ask(Op::detach).rc, 0);
        }
    }
};

/// Who of the two came first and listens on the cable.
class DeathOfEither : public Death, public testing::WithParamInterface<bool>
{
protected:
    bool victim_listens() const { return GetParam(); }
};

TEST_P(DeathOfEither, KilledInTrafficAgainAndAgain)
{
    RemoteHost &first = victim_listens() ? *victim_ : *survivor_;
    RemoteHost &second = victim_listens() ? *survivor_ : *victim_;
    ASSERT_EQ(first.bring_up(cable_, patient), 0);
    ASSERT_EQ(second.bring_up(cable_, patient), 0);
    ASSERT_NO_FATAL_FAILURE(connect(1));
    Sent start = survivor_sent();
    for (unsigned round = 1; round <= 6; ++round) {
        SCOPED_TRACE(round);
        const uint64_t sent = survivor_->xstat("tx_messages");
        begin_endless(round);
        // In the middle: the survivor is busy, so the victim's death comes when it comes.
        poll(nullptr, 0, static_cast<int>(5 * round));
        victim_->kill_now();
        ASSERT_NO_FATAL_FAILURE(expect_survival(start, sent));
        victim_ = std::make_unique<RemoteHost>();
        ASSERT_EQ(victim_->bring_up(cable_, patient), 0);
        ASSERT_NO_FATAL_FAILURE(connect(round + 1));
        start = survivor_sent();
        talk(100 + round);
    }
    EXPECT_EQ(survivor_->xstat("link_losses"), 6u);
}

TEST_P(DeathOfEither, KilledDuringBringUp)
{
    if (victim_listens()) {
        ASSERT_EQ(victim_->attach(cable_, patient.devargs), 0);
    }
    ASSERT_EQ(survivor_->bring_up(cable_, patient), 0);
    for (unsigned round = 0; round < 8; ++round) {
        if (round > 0 || !victim_listens()) {
            ASSERT_EQ(victim_->attach(cable_, patient.devargs), 0);
        }
        ASSERT_EQ(victim_->restart(patient), 0);
        poll(nullptr, 0, static_cast<int>(round)); // somewhere on the way
        victim_->kill_now();
        victim_ = std::make_unique<RemoteHost>();
    }
    ASSERT_EQ(victim_->bring_up(cable_, patient), 0);
    ASSERT_TRUE(victim_->await_state(RTE_PMD_PLX_NTB_CONNECTED)) << victim_->link().why;
    ASSERT_TRUE(survivor_->await_state(RTE_PMD_PLX_NTB_CONNECTED)) << survivor_->link().why;
    talk(200);
}

INSTANTIATE_TEST_SUITE_P(Fault, DeathOfEither, testing::Bool(), [](const auto &listens) {
    return std::string(listens.param ? "VictimListens" : "SurvivorListens");
});

/// Sizes and chip states of the one that comes after one that was killed.
struct Successor {
    const char *state;
    rte_pmd_plx_ntb_config config;
};
const Successor successors[] = {
    {"keep",
     {.queues = 2, .ring_lines = 128, .buffers = 512, .buf_bytes = 256, .queue_buffers = 56}},
    {"reset", {.ring_lines = 4096, .buffers = 8192}},
    {"random:3", {.ring_lines = 256, .buf_bytes = 4096, .max_message = 8000}},
    {"random:4", {.queues = 4, .inline_max = 1024}},
    {"reset", {.ring_lines = ring_lines}},
};

TEST_F(Death, KilledInTrafficAndFollowedByAnother)
{
    ASSERT_EQ(survivor_->bring_up(cable_, patient), 0);
    ASSERT_EQ(victim_->bring_up(cable_, patient), 0);
    ASSERT_NO_FATAL_FAILURE(connect(1));
    Sent start = survivor_sent();
    unsigned round = 1;
    for (const Successor &next : successors) {
        SCOPED_TRACE(next.state);
        begin_endless(round);
        poll(nullptr, 0, 10);
        victim_->kill_now();
        // The victim's ring may have been larger than the survivor's.
        const Answer end = survivor_->end();
        ASSERT_EQ(end.rc, 0) << end.text;
        ASSERT_TRUE(survivor_->await_state(RTE_PMD_PLX_NTB_WAITING));
        EXPECT_EQ(survivor_->outstanding(), 0u);
        const Sent now = survivor_sent();
        EXPECT_LE(now.unconfirmed - start.unconfirmed, now.messages - start.messages);
        victim_ = std::make_unique<RemoteHost>();
        const HostSetup setup{.devargs = patient.devargs + ",state=" + next.state,
                              .config = next.config};
        ASSERT_EQ(victim_->bring_up(cable_, setup), 0);
        ASSERT_NO_FATAL_FAILURE(connect(++round));
        start = survivor_sent();
        talk(300 + round);
    }
    EXPECT_EQ(survivor_->xstat("link_losses"), std::size(successors));
}

/// What the survivor said to the first still stands there when the second looks.
TEST_F(Death, WhoComesAfterARefusedOneIsNotRefused)
{
    const HostSetup unfit{.devargs = patient.devargs, .config = {.workers = 1}};
    ASSERT_EQ(survivor_->bring_up(cable_, patient), 0);
    for (unsigned round = 1; round <= 5; ++round) {
        SCOPED_TRACE(round);
        ASSERT_EQ(victim_->bring_up(cable_, unfit), 0);
        ASSERT_TRUE(victim_->await_event('R')) << victim_->link().why;
        ASSERT_TRUE(survivor_->await_event('R', round)) << survivor_->link().why;
        victim_->kill_now();
        victim_ = std::make_unique<RemoteHost>();
        ASSERT_EQ(victim_->bring_up(cable_, patient), 0);
        ASSERT_NO_FATAL_FAILURE(connect(round));
        EXPECT_EQ(victim_->events(), "C");
        victim_->kill_now();
        victim_ = std::make_unique<RemoteHost>();
    }
}

TEST_F(Death, KilledWhileMbufsOfItsAreHeld)
{
    ASSERT_EQ(survivor_->bring_up(cable_, patient), 0);
    ASSERT_EQ(victim_->bring_up(cable_, patient), 0);
    ASSERT_NO_FATAL_FAILURE(connect(1));
    ASSERT_NO_FATAL_FAILURE(survivor_keeps(stream(0, 1, 100, {300, 3000})));
    victim_->kill_now();
    ASSERT_TRUE(survivor_->await_event('L'));
    ASSERT_TRUE(survivor_->await_state(RTE_PMD_PLX_NTB_WAITING));
    // They are the application's now: it may write to them, and the peer does not.
    ASSERT_EQ(survivor_->ask(Op::pattern, 7).rc, 100);
    victim_ = std::make_unique<RemoteHost>();
    ASSERT_EQ(victim_->bring_up(cable_, patient), 0);
    ASSERT_NO_FATAL_FAILURE(connect(2));
    talk(2);
    EXPECT_EQ(survivor_->ask(Op::unharmed, 7).value, 0u);
}

TEST_F(Death, FrozenIsSilentThenAlive)
{
    const HostSetup watchful{.devargs = "heartbeat_ms=100,lost_ms=60000"};
    ASSERT_EQ(survivor_->bring_up(cable_, watchful), 0);
    ASSERT_EQ(victim_->bring_up(cable_, patient), 0);
    ASSERT_NO_FATAL_FAILURE(connect(1));
    const uint32_t epoch = survivor_->link().peer_epoch;
    victim_->freeze();
    ASSERT_TRUE(survivor_->await_state(RTE_PMD_PLX_NTB_SILENT));
    victim_->thaw();
    ASSERT_TRUE(survivor_->await_event('A'));
    ASSERT_TRUE(survivor_->await_state(RTE_PMD_PLX_NTB_CONNECTED));
    EXPECT_EQ(survivor_->link().peer_epoch, epoch) << "nothing was lost";
    talk(1);
    const std::string events = survivor_->events();
    EXPECT_EQ(events.find('L'), std::string::npos) << events;
}

/// A peer that was frozen in traffic, given up, and goes on: not one byte may change that the
/// survivor did not ask for.
TEST_F(Death, FrozenIsLostAndFencedOff)
{
    const HostSetup watchful{.devargs = "heartbeat_ms=300,lost_ms=2000"};
    ASSERT_EQ(survivor_->bring_up(cable_, watchful), 0);
    ASSERT_EQ(victim_->bring_up(cable_, patient), 0);
    ASSERT_NO_FATAL_FAILURE(connect(1));
    // What it holds is window memory of its own, written by the victim.
    ASSERT_NO_FATAL_FAILURE(survivor_keeps(stream(0, 1, 300, {2048})));

    const uint64_t unconfirmed = survivor_->xstat("tx_unconfirmed");
    const uint64_t sent = survivor_->xstat("tx_messages");
    begin_endless(2, {2048, 3000, 8});
    poll(nullptr, 0, 30);
    victim_->freeze(); // somewhere inside a burst
    const Answer end = survivor_->end();
    ASSERT_EQ(end.rc, 0) << end.text;
    EXPECT_NE(std::string(end.events).find('S'), std::string::npos) << end.events;
    ASSERT_TRUE(survivor_->await_state(RTE_PMD_PLX_NTB_WAITING));
    EXPECT_LE(survivor_->xstat("tx_unconfirmed") - unconfirmed,
              survivor_->xstat("tx_messages") - sent);
    ASSERT_EQ(survivor_->ask(Op::pattern, 9).rc, 300);

    victim_->thaw();
    ASSERT_EQ(victim_->end().rc, 0) << "the victim reports it too";
    ASSERT_TRUE(survivor_->await_event('C', 2)) << survivor_->link().why;
    ASSERT_TRUE(victim_->await_event('C', 2)) << victim_->link().why;
    EXPECT_EQ(survivor_->ask(Op::unharmed, 9).value, 0u);
    talk(3);
    EXPECT_EQ(survivor_->ask(Op::unharmed, 9).value, 0u);
}

/// The same with a survivor that has started its device again meanwhile.
TEST_F(Death, FrozenWhileTheOtherStartsAgain)
{
    const HostSetup watchful{.devargs = "heartbeat_ms=300,lost_ms=2000"};
    ASSERT_EQ(survivor_->bring_up(cable_, watchful), 0);
    ASSERT_EQ(victim_->bring_up(cable_, patient), 0);
    ASSERT_NO_FATAL_FAILURE(connect(1));
    begin_endless(2, {2048, 3000, 8});
    poll(nullptr, 0, 20);
    victim_->freeze();
    ASSERT_EQ(survivor_->end().rc, 0);
    survivor_->stop();
    EXPECT_EQ(survivor_->outstanding(), 0u);
    ASSERT_EQ(survivor_->restart(watchful), 0);
    ASSERT_TRUE(survivor_->await_state(RTE_PMD_PLX_NTB_WAITING));
    victim_->thaw();
    ASSERT_EQ(victim_->end().rc, 0);
    ASSERT_TRUE(survivor_->await_event('C', 2)) << survivor_->link().why;
    ASSERT_TRUE(victim_->await_event('C', 2)) << victim_->link().why;
    talk(4);
}

/// Longer than a test may take: an end of it is no end of time.
const HostSetup lingering{.devargs = patient.devargs + ",linger_ms=600000",
                          .config = {.ring_lines = ring_lines}};

/// What has arrived lies in the survivor's own memory.
// Semantics: close-1
TEST_F(Death, KilledWhileItWaitsForItsReceiver)
{
    ASSERT_EQ(survivor_->bring_up(cable_, lingering), 0);
    ASSERT_EQ(victim_->bring_up(cable_, lingering), 0);
    ASSERT_NO_FATAL_FAILURE(connect(1));
    talk(1);
    const Stream s = stream(0, 2, 200, {8, 48, 300, 5000});
    ASSERT_EQ(victim_->ask(traffic({s}, {})).rc, 0);
    Command stop;
    stop.op = Op::stop;
    victim_->begin(stop);
    ASSERT_TRUE(survivor_->await_event('E'));
    victim_->kill_now();
    victim_ = std::make_unique<RemoteHost>();
    ASSERT_EQ(victim_->bring_up(cable_, patient), 0) << "and the next one is there";
    EXPECT_EQ(survivor_->events(), "CE");
    const Answer here = survivor_->ask(traffic({}, {s}));
    EXPECT_EQ(here.rc, 0) << here.text;
    ASSERT_NO_FATAL_FAILURE(connect(2));
    talk(3);
    EXPECT_EQ(survivor_->events(), "CELC");
}

/// The survivor stands still while the victim ends in order, and finds no one when it goes on.
// Semantics: close-1
TEST_F(Death, WhoHasLeftInOrderIsStillReceived)
{
    const HostSetup hasty{.devargs = patient.devargs + ",linger_ms=0", .config = patient.config};
    for (unsigned round = 1; round <= 3; ++round) {
        SCOPED_TRACE(round);
        if (round == 1) {
            ASSERT_EQ(survivor_->bring_up(cable_, lingering), 0);
        }
        ASSERT_EQ(victim_->bring_up(cable_, hasty), 0);
        ASSERT_NO_FATAL_FAILURE(connect(round));
        const Stream s = stream(0, round, 200, {8, 48, 300});
        ASSERT_EQ(victim_->ask(traffic({s}, {})).rc, 0);
        survivor_->freeze();
        victim_->stop();
        ASSERT_EQ(victim_->ask(Op::detach).rc, 0);
        victim_ = std::make_unique<RemoteHost>(); // its process is gone
        survivor_->thaw();
        const Answer here = survivor_->ask(traffic({}, {s}));
        ASSERT_EQ(here.rc, 0) << here.text;
        EXPECT_EQ(here.received, 200u);
    }
    ASSERT_TRUE(survivor_->await_event('L', 3));
    EXPECT_EQ(survivor_->events(), "CELCELCEL");
}

// Semantics: close-4
TEST_F(Death, TheReceiverIsKilledWhileItsSenderWaits)
{
    ASSERT_EQ(survivor_->bring_up(cable_, lingering), 0);
    ASSERT_EQ(victim_->bring_up(cable_, lingering), 0);
    ASSERT_NO_FATAL_FAILURE(connect(1));
    ASSERT_EQ(survivor_->ask(traffic({stream(0, 1, 100, {8, 48})}, {})).rc, 0);
    Command stop;
    stop.op = Op::stop;
    survivor_->begin(stop);
    ASSERT_TRUE(victim_->await_state(RTE_PMD_PLX_NTB_CLOSING));
    victim_->kill_now();
    ASSERT_EQ(survivor_->end().rc, 0);
    EXPECT_EQ(survivor_->xstat("tx_unconfirmed"), 100u);
    EXPECT_EQ(survivor_->link().state, RTE_PMD_PLX_NTB_STOPPED);
    EXPECT_EQ(survivor_->outstanding(), 0u);
}

} // namespace
