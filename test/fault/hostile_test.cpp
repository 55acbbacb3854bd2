// SPDX-License-Identifier: BSD-3-Clause
// Whatever a peer writes: it is refused, or given up, in words; nothing crashes, spins or is lost;
// and a good peer is welcome afterwards.
#include "hostile.hpp"

#include "host.hpp"

#include <memory>

using fault::Hostile;
using test::Answer;
using test::Command;
using test::HostSetup;
using test::Op;
using test::RemoteHost;
using test::Stream;
using test::stream;
using test::traffic;
using test::Until;
namespace wire = plx::wire;

namespace
{

const HostSetup patient{.devargs = "heartbeat_ms=30000,lost_ms=60000"};

class HostilePeer : public testing::Test
{
protected:
    test::Folder folder_;
    const std::string cable_ = folder_.file("cable");
    RemoteHost host_;
    std::unique_ptr<Hostile> peer_;

    void SetUp() override
    {
        ASSERT_EQ(host_.bring_up(cable_, patient), 0);
        peer_ = std::make_unique<Hostile>(cable_);
        ASSERT_FALSE(HasFailure());
    }
    /// The host sends and receives whatever comes.
    static Command pump(Until until, uint32_t limit_ms, bool inline_only = false)
    {
        Stream s =
            inline_only ? stream(0, 1, 1u << 30, {8}) : stream(0, 1, 1u << 30, {8, 300, 3000});
        s.unchecked = true;
        Command command = traffic({s}, {s});
        command.until = until;
        command.limit_ms = limit_ms;
        return command;
    }
    void expect_good_peer_welcome()
    {
        peer_.reset();
        RemoteHost good;
        ASSERT_EQ(good.bring_up(cable_, patient), 0);
        ASSERT_TRUE(good.await_event('C')) << good.link().why;
        ASSERT_TRUE(host_.await_state(RTE_PMD_PLX_NTB_CONNECTED)) << host_.link().why;
        const Stream s = stream(0, 77, 1000, {8, 48, 300, 5000});
        good.begin(traffic({s}, {s}));
        const Answer here = host_.ask(traffic({s}, {s}));
        EXPECT_EQ(here.rc, 0) << here.text;
        const Answer there = good.end();
        EXPECT_EQ(there.rc, 0) << there.text;
        EXPECT_EQ(good.ask(Op::detach).rc, 0);
    }
    void TearDown() override
    {
        ASSERT_TRUE(host_.alive());
        host_.stop();
        EXPECT_EQ(host_.outstanding(), 0u);
        EXPECT_EQ(host_.ask(Op::detach).rc, 0);
    }
};

struct BadHello {
    const char *name;
    void (*spoil)(wire::Hello &);
};

TEST_F(HostilePeer, ImpossibleHellosAreRefusedInWords)
{
    const BadHello bad[] = {
        {"version", [](wire::Hello &h) { h.major = wire::version_major + 1; }},
        {"bytes", [](wire::Hello &h) { h.bytes = 4096; }},
        {"state", [](wire::Hello &h) { h.state = static_cast<wire::HelloState>(9); }},
        {"epoch", [](wire::Hello &h) { h.epoch = 0; }},
        {"block", [](wire::Hello &h) { h.block_bytes = uint64_t{1} << 63; }},
        {"queues", [](wire::Hello &h) { h.qp_count = 0xffffffff; }},
        {"ring", [](wire::Hello &h) { h.ring_lines = 100; }},
        {"buffer_ring", [](wire::Hello &h) { h.buffer_ring_lines = 0x80000000; }},
        {"buffers", [](wire::Hello &h) { h.buf_bytes = 0; }},
        {"begin", [](wire::Hello &h) { h.buf_begin = 0; }},
        {"end", [](wire::Hello &h) { h.buf_end = 0xffffffff; }},
        {"message", [](wire::Hello &h) { h.max_message = 0xffffffff; }},
    };
    unsigned refusals = 0;
    for (const BadHello &b : bad) {
        SCOPED_TRACE(b.name);
        wire::Hello hello = peer_->honest();
        b.spoil(hello);
        peer_->say(hello);
        ASSERT_TRUE(host_.await_event('R', ++refusals)) << host_.link().why;
        const rte_pmd_plx_ntb_link link = host_.link();
        EXPECT_EQ(link.state, RTE_PMD_PLX_NTB_REFUSED);
        EXPECT_STRNE(link.why, "");
        wire::Hello answer;
        EXPECT_TRUE(plx::test::await([&] {
            return peer_->heard(&answer) && answer.state == wire::HelloState::refused;
        })) << "the peer gets the reason";
        peer_->say(peer_->honest());
        ASSERT_TRUE(host_.await_state(RTE_PMD_PLX_NTB_WAITING)) << host_.link().why;
    }
    EXPECT_EQ(host_.xstat("link_refusals"), refusals);
    ASSERT_TRUE(peer_->connect());
    ASSERT_TRUE(host_.await_event('C'));
    expect_good_peer_welcome();
}

TEST_F(HostilePeer, OneThatRefusesIsReported)
{
    wire::Hello hello = peer_->honest();
    hello.state = wire::HelloState::refused;
    hello.ack = peer_->victim().epoch;
    peer_->say(hello);
    ASSERT_TRUE(host_.await_event('R'));
    EXPECT_EQ(host_.link().state, RTE_PMD_PLX_NTB_REFUSED);
    EXPECT_STRNE(host_.link().why, "");
    expect_good_peer_welcome();
}

/// What it stores after that is received as any message is; nothing is sent to it.
TEST_F(HostilePeer, OneThatSaysItStopsAndGoesOnIsLost)
{
    ASSERT_TRUE(peer_->connect());
    ASSERT_TRUE(host_.await_event('C'));
    peer_->put_line_head(0, 8, 1); // unread, so that there is something to wait for
    wire::Hello hello = peer_->honest();
    hello.ack = peer_->victim().epoch;
    hello.state = wire::HelloState::closing;
    peer_->say(hello);
    ASSERT_TRUE(host_.await_event('E'));

    hello.state = wire::HelloState::up;
    peer_->say(hello);
    peer_->put_buffer_line(0, 14, hello.buf_begin);
    constexpr uint32_t more = 100;
    for (uint32_t line = 1; line <= more; ++line)
        peer_->put_line_head(line, 8, 1);
    host_.begin(pump(Until::lost, 60'000));
    const Answer end = host_.end();
    EXPECT_EQ(end.rc, 0) << end.text;
    EXPECT_EQ(end.sent, 0u);
    EXPECT_LE(end.received, more + 1);
    ASSERT_TRUE(host_.await_event('L'));
    EXPECT_EQ(host_.xstat("rx_bad_peer"), 0u);
    expect_good_peer_welcome();
}

/// A seal would outlive the peer: who comes after it could map neither chip nor memory.
TEST_F(HostilePeer, NothingThatItGotCanBeSealed)
{
    ASSERT_TRUE(peer_->connect());
    ASSERT_TRUE(host_.await_event('C'));
    EXPECT_GE(fault::twin_descriptors().size(), 3u) << "two chips, and the memory behind a window";
    EXPECT_EQ(fault::seal_all(), 0u);
    expect_good_peer_welcome();
}

/// The victim keeps a dead peer's chip, and gives it to the next one in its place.
TEST_F(HostilePeer, ChipsOfZerosHarmNobodyElse)
{
    ASSERT_TRUE(peer_->connect());
    ASSERT_TRUE(host_.await_event('C'));
    fault::overwrite_chips([] { return 0u; });
    expect_good_peer_welcome();
}

TEST_F(HostilePeer, ChipsOfOnesHarmNobodyElse)
{
    ASSERT_TRUE(peer_->connect());
    ASSERT_TRUE(host_.await_event('C'));
    fault::overwrite_chips([] { return ~0u; });
    expect_good_peer_welcome();
}

TEST_F(HostilePeer, ChipsOfNoiseHarmNobodyElse)
{
    ASSERT_TRUE(peer_->connect());
    ASSERT_TRUE(host_.await_event('C'));
    std::mt19937 random(1);
    fault::overwrite_chips([&] { return static_cast<uint32_t>(random()); });
    expect_good_peer_welcome();
}

TEST_F(HostilePeer, ABreakOfTheLinkIsALossHoweverShort)
{
    ASSERT_TRUE(peer_->connect());
    ASSERT_TRUE(host_.await_event('C'));
    peer_->break_link();
    EXPECT_TRUE(host_.await_event('L')) << "what was under way is gone";
    EXPECT_EQ(host_.xstat("link_silences"), 0u) << "seen by the link, not by a missing heartbeat";
    expect_good_peer_welcome();
}

/// With rx=stable a message is the receiver's alone once it is delivered; without, it stays
/// writable by its sender until its buffer is released.
TEST_F(HostilePeer, DeliveredBytesChangeOnlyWithoutStable)
{
    for (const bool stable : {true, false}) {
        SCOPED_TRACE(stable);
        peer_.reset();
        ASSERT_EQ(host_.ask(Op::detach).rc, 0);
        HostSetup setup = patient;
        setup.devargs += stable ? ",rx=stable" : ",rx=direct";
        setup.config.buffers = 64;
        ASSERT_EQ(host_.bring_up(cable_, setup), 0);
        peer_ = std::make_unique<Hostile>(cable_);
        ASSERT_FALSE(HasFailure());
        ASSERT_TRUE(peer_->connect());
        ASSERT_TRUE(host_.await_event('C'));
        Stream s = stream(0, 1, 1, {3000});
        s.unchecked = true;
        Command keep = traffic({}, {s});
        keep.keep = true;
        host_.begin(keep);
        // Its buffers come with its first look.
        ASSERT_TRUE(plx::test::await([&] { return peer_->has_buffers(); }));
        peer_->put_line_head(0, 3000, static_cast<unsigned>(wire::Kind::long_message));
        ASSERT_EQ(host_.end().received, 1u);
        ASSERT_EQ(host_.ask(Op::pattern, 9).rc, 1);
        const wire::Hello &victim = peer_->victim();
        for (size_t at = size_t{victim.buf_begin} * wire::line_bytes;
             at < size_t{victim.buf_end} * wire::line_bytes; at += 8)
            peer_->put(at, 0x6666666666666666);
        const uint64_t harmed = host_.ask(Op::unharmed, 9).value;
        EXPECT_EQ(harmed == 0, stable) << harmed << " bytes";
        host_.ask(Op::release);
    }
}

struct Lie {
    const char *name;
    const char *counter;
    void (*publish)(Hostile &);
    bool inline_only = false; ///< credits are looked at when the ring is full
};

void PrintTo(const Lie &lie, std::ostream *out)
{
    *out << lie.name;
}

/// Each is a word that doc/wire-protocol.md, sections 4.4 to 6, forbids, with a valid tag.
const Lie lies[] = {
    {"KindZero", "rx_bad_peer", [](Hostile &p) { p.put_line_head(0, 8, 0); }},
    {"KindThree", "rx_bad_peer", [](Hostile &p) { p.put_line_head(0, 8, 3); }},
    {"InlineTooLong", "rx_bad_peer", [](Hostile &p) { p.put_line_head(0, 1025, 1); }},
    {"LongestLength", "rx_bad_peer", [](Hostile &p) { p.put_line_head(0, 0xffffff, 1); }},
    {"PostedEmpty", "rx_bad_peer", [](Hostile &p) { p.put_line_head(0, 0, 2); }},
    {"PostedTooLong", "rx_bad_peer", [](Hostile &p) { p.put_line_head(0, 0xffffff, 2); }},
    {"MoreThanIsPosted", "rx_bad_peer",
     [](Hostile &p) {
         const uint32_t each = p.victim().max_message;
         for (uint32_t line = 0; line < 3; ++line)
             p.put_line_head(line, each, 2);
     }},
    {"ContinuationWithALength", "rx_bad_peer",
     [](Hostile &p) {
         p.put(p.ring(1), uint64_t{p.ring_tag()} | uint64_t{5} << 32);
         p.put_line_head(0, 100, 1);
     }},
    {"PostedCountZero", "tx_bad_peer", [](Hostile &p) { p.put_buffer_line(0, 0, 4096); }},
    {"PostedCountTooLarge", "tx_bad_peer", [](Hostile &p) { p.put_buffer_line(0, 15, 4096); }},
    {"BufferBeforeAll", "tx_bad_peer", [](Hostile &p) { p.put_buffer_line(0, 14, 0); }},
    {"BufferAtTheEnd", "tx_bad_peer",
     [](Hostile &p) { p.put_buffer_line(0, 14, p.honest().buf_end - 1); }},
    {"BufferFarAway", "tx_bad_peer", [](Hostile &p) { p.put_buffer_line(0, 14, 0xffffffff); }},
    {"CreditForNothing", "tx_bad_peer",
     [](Hostile &p) { p.put(p.credit(), uint64_t{p.back()} | uint64_t{0x7fffffff} << 32); }, true},
    {"CreditBackwards", "tx_bad_peer",
     [](Hostile &p) { p.put(p.credit(), uint64_t{p.back()} | uint64_t{0xffffffff} << 32); }, true},
};

class LyingPeer : public HostilePeer, public testing::WithParamInterface<Lie>
{
};

TEST_P(LyingPeer, IsDetectedAndDisconnected)
{
    const Lie &lie = GetParam();
    ASSERT_TRUE(peer_->connect());
    ASSERT_TRUE(host_.await_event('C'));
    host_.begin(pump(Until::lost, 60'000, lie.inline_only));
    lie.publish(*peer_);
    const Answer end = host_.end();
    EXPECT_EQ(end.rc, 0) << end.text;
    EXPECT_EQ(host_.xstat(lie.counter), 1u);
    ASSERT_TRUE(host_.await_event('L'));
    expect_good_peer_welcome();
}

INSTANTIATE_TEST_SUITE_P(Fault, LyingPeer, testing::ValuesIn(lies),
                         [](const auto &lie) { return std::string(lie.param.name); });

/// Seeded noise that knows the format well enough to get past the first look.
class Storm
{
public:
    Storm(Hostile &peer, unsigned seed) : peer_(peer), random_(seed) {}
    void blow(unsigned stores)
    {
        for (unsigned i = 0; i < stores; ++i)
            (this->*kinds[random_() % std::size(kinds)])();
    }

private:
    uint32_t any() { return static_cast<uint32_t>(random_()); }
    /// Small numbers, large ones, and those near a border.
    uint32_t number()
    {
        const uint32_t edges[] = {0, 1, 47, 48, 49, 255, 256, 257, 1024, 1025, 2048, 65536};
        const uint32_t edge = edges[any() % std::size(edges)];
        return any() % 4 == 0 ? any() : any() % 2 == 0 ? edge : any() % 4096;
    }
    void ring_line() { peer_.put_line_head(next_line_++, number(), any(), any()); }
    void good_message() { peer_.put_line_head(next_line_++, any() % 49, 1, any()); }
    void long_message() { peer_.put_line_head(next_line_++, 1 + any() % 5000, 2, any()); }
    void continuation() { peer_.put(peer_.ring(next_line_++), peer_.ring_tag()); }
    void any_line() { peer_.put(peer_.ring(any()), uint64_t{any()} << 32 | peer_.ring_tag()); }
    void credit()
    {
        peer_.put(peer_.credit() + 8 * (any() % 2),
                  uint64_t{peer_.back()} | uint64_t{number()} << 32);
    }
    void buffer_line() { peer_.put_buffer_line(next_buffer_line_++, any() % 17, number()); }
    void good_buffers()
    {
        const wire::Hello h = peer_.honest();
        peer_.put_buffer_line(next_buffer_line_++, 14,
                              h.buf_begin + any() % (h.buf_end - h.buf_begin));
    }
    void heartbeat() { peer_.put(wire::heartbeat_offset, uint64_t{any()} << 32 | any()); }
    void torn_hello() { peer_.put(any() % 12 * 8, uint64_t{any()} << 32 | any()); }
    void anywhere()
    {
        peer_.put(any() % (peer_.victim().block_bytes / 8) * 8, uint64_t{any()} << 32 | any());
    }

    using Kind = void (Storm::*)();
    static constexpr Kind kinds[] = {
        &Storm::ring_line,    &Storm::good_message, &Storm::good_message, &Storm::long_message,
        &Storm::continuation, &Storm::any_line,     &Storm::credit,       &Storm::buffer_line,
        &Storm::good_buffers, &Storm::good_buffers, &Storm::heartbeat,    &Storm::torn_hello,
        &Storm::anywhere};
    Hostile &peer_;
    std::mt19937 random_;
    uint32_t next_line_ = 0;
    uint32_t next_buffer_line_ = 0;
};

TEST_F(HostilePeer, StormsOfEverySeed)
{
    constexpr unsigned seeds = 60;
    for (unsigned seed = 1; seed <= seeds; ++seed) {
        SCOPED_TRACE(seed);
        ASSERT_TRUE(peer_->connect()) << host_.link().why;
        host_.begin(pump(Until::time, 15));
        Storm storm(*peer_, seed);
        for (unsigned gust = 0; gust < 20; ++gust) {
            storm.blow(seed % 3 == 0 ? 500 : 10);
            sched_yield();
        }
        const Answer end = host_.end();
        ASSERT_EQ(end.rc, 0) << end.text;
        ASSERT_TRUE(host_.alive());
    }
    expect_good_peer_welcome();
}

/// The same against the geometry: hellos whose single fields are off, with a good CRC.
TEST_F(HostilePeer, HellosOfEverySeed)
{
    std::mt19937 random(1);
    constexpr unsigned hellos = 3000;
    for (unsigned i = 0; i < hellos; ++i) {
        wire::Hello hello = peer_->honest();
        uint64_t words[sizeof(hello) / 8];
        std::memcpy(words, &hello, sizeof(hello));
        words[1 + random() % 11] ^= uint64_t{1} << random() % 64;
        std::memcpy(&hello, words, sizeof(hello));
        peer_->say(hello);
        if (i % 100 == 0) { // now and then it is looked at for sure
            host_.ask(pump(Until::time, 15));
            ASSERT_TRUE(host_.alive());
        }
    }
    ASSERT_TRUE(peer_->connect()) << host_.link().why;
    expect_good_peer_welcome();
}

} // namespace
