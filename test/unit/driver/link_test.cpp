// SPDX-License-Identifier: BSD-3-Clause
// Link life between two hosts whose memory, clock and cable the test holds in its hand.
#include <plx_link.hpp>

#include <gtest/gtest.h>
#include <rte_hash_crc.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <string>
#include <vector>

using namespace plx;
using pmd::Link;
using pmd::LinkEvent;
using pmd::LinkState;

namespace
{

constexpr uint64_t window_bytes = uint64_t{256} << 20;

wire::Hello sizes()
{
    wire::Hello h{};
    h.block_bytes = 16 << 20;
    h.qp_count = 2;
    h.ring_lines = 1024;
    h.posted_lines = 32;
    h.buf_bytes = 2048;
    h.buf_begin = static_cast<uint32_t>(
        wire::queue_area_end(h.qp_count, h.ring_lines, h.posted_lines) / wire::line_bytes);
    h.buf_end = h.buf_begin + 4096 * 34;
    h.max_message = 65536;
    h.heartbeat_us = 10'000;
    return h;
}

/// What both hosts of a test share.
struct World {
    uint64_t now_us = 1'000'000;
    std::mt19937_64 random{1};
    bool cable = true;
};

/// A host: its lent block is two words of interest; a store arrives if the cable and the window of
/// the other side are open.
class Host final : public pmd::LinkPort
{
public:
    explicit Host(World &world) : world_(world), link(*this) {}

    void join(Host &other) { other_ = &other; }
    int start(const wire::Hello &own = sizes()) { return link.start(own, window_bytes, {}); }
    /// The process dies: nothing is said, its memory is gone.
    void die()
    {
        alive = false;
        window = false;
        open = false;
        inbox = {};
        heartbeat = 0;
    }
    /// Another process takes its place.
    void born(const wire::Hello &own = sizes())
    {
        alive = true;
        link.~Link();
        new (&link) Link(*this);
        ASSERT_EQ(start(own), 0);
    }
    bool saw(LinkEvent event) const
    {
        for (LinkEvent e : events)
            if (e == event)
                return true;
        return false;
    }

    uint64_t now_us() override { return world_.now_us; }
    uint64_t random() override { return world_.random(); }
    bool way_open(const char **why) override
    {
        *why = gone ? "the chip does not answer" : "the link is down";
        return !gone && world_.cable && other_->alive;
    }
    int open_window() override
    {
        EXPECT_FALSE(open) << "the window is opened while queues run";
        if (open_window_result == 0)
            window = true;
        return open_window_result;
    }
    bool quiesce() override
    {
        if (busy > 0) {
            --busy;
            return false;
        }
        open = false;
        return true;
    }
    bool fence() override
    {
        EXPECT_FALSE(open) << "fenced under a running queue";
        if (deaf)
            return false;
        ++fences;
        inbox = {}; // the block has moved: what was said before does not come along
        followed = followed && !moves;
        window = false;
        return true;
    }
    void prepare_rings(uint64_t seed) override
    {
        EXPECT_FALSE(open) << "rings are prepared under a running queue";
        prepared = seed;
    }
    int open_queues(const wire::Hello &, uint64_t own_seed, uint64_t peer_seed) override
    {
        EXPECT_EQ(own_seed, prepared);
        own_pair = own_seed;
        peer_pair = peer_seed;
        open = open_queues_result == 0;
        return open_queues_result;
    }
    wire::Hello read_hello() override { return inbox; }
    uint64_t read_heartbeat() override { return heartbeat; }
    void write_hello(const wire::Hello &hello) override
    {
        if (reaches())
            other_->inbox = hello;
    }
    void write_heartbeat(uint64_t word) override
    {
        if (reaches() && !mute)
            other_->heartbeat = word;
    }
    void report(LinkEvent event) override { events.push_back(event); }
    void explain(const char *why) override { said = why; }

    bool reaches() const
    {
        return world_.cable && other_->alive && other_->window && other_->followed && !lose_stores;
    }

private:
    World &world_;
    Host *other_ = nullptr;

public:
    Link link;
    wire::Hello inbox{};
    uint64_t heartbeat = 0;
    std::vector<LinkEvent> events;
    std::string said;
    uint64_t prepared = 0, own_pair = 0, peer_pair = 0;
    int fences = 0;
    int busy = 0;
    int open_window_result = 0;
    int open_queues_result = 0;
    bool alive = true;
    bool window = false;
    bool open = false;
    bool mute = false;
    bool lose_stores = false;
    bool gone = false;    ///< the chip does not answer
    bool moves = false;   ///< a fence takes the way of the peer's stores along, until it follows
    bool followed = true; ///< it has
    bool deaf = false;    ///< nor does it say that the window is closed
};

class LinkTest : public testing::Test
{
protected:
    LinkTest()
    {
        a.join(b);
        b.join(a);
    }
    void run(unsigned ticks, uint64_t step_us = 5'000)
    {
        for (unsigned i = 0; i < ticks; ++i) {
            world.now_us += step_us;
            if (a.alive)
                a.link.tick();
            if (b.alive)
                b.link.tick();
        }
    }
    void expect_joined()
    {
        ASSERT_EQ(a.link.state(), LinkState::connected) << a.link.why();
        ASSERT_EQ(b.link.state(), LinkState::connected) << b.link.why();
        EXPECT_EQ(a.own_pair, b.peer_pair);
        EXPECT_EQ(b.own_pair, a.peer_pair);
    }

    World world;
    Host a{world}, b{world};
};

TEST_F(LinkTest, MeetsInEitherOrderOfStart)
{
    ASSERT_EQ(a.start(), 0);
    run(20);
    EXPECT_EQ(a.link.state(), LinkState::waiting);
    ASSERT_EQ(b.start(), 0);
    run(4);
    expect_joined();
    EXPECT_TRUE(a.saw(LinkEvent::back));
    EXPECT_TRUE(b.saw(LinkEvent::back));
    EXPECT_STREQ(a.link.why(), "");
    EXPECT_EQ(a.fences, 0) << "nothing was promised to anybody else";
}

TEST_F(LinkTest, CleanStopIsToldAndTheOtherSideFences)
{
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    run(4);
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

TEST_F(LinkTest, RestartWithoutAWordIsNoticedByTheEpoch)
{
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    run(4);
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
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    run(4);
    b.die();
    run(1);
    EXPECT_TRUE(a.saw(LinkEvent::lost));
    EXPECT_FALSE(a.open);
    run(10);
    EXPECT_EQ(a.link.state(), LinkState::waiting);
    wire::Hello other = sizes();
    other.ring_lines = 256;
    other.buf_begin = static_cast<uint32_t>(
        wire::queue_area_end(2, other.ring_lines, other.posted_lines) / wire::line_bytes);
    b.born(other);
    run(6);
    expect_joined();
    EXPECT_EQ(a.link.peer().ring_lines, 256u);
}

TEST_F(LinkTest, SilenceHurtsNobodyIfItEnds)
{
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    run(4);
    b.mute = true;
    run(12); // 60 ms
    EXPECT_EQ(a.link.state(), LinkState::silent);
    EXPECT_EQ(a.fences, 0);
    b.mute = false;
    run(4);
    EXPECT_EQ(a.link.state(), LinkState::connected);
    EXPECT_TRUE(a.saw(LinkEvent::awake));
    EXPECT_FALSE(a.saw(LinkEvent::lost));
}

TEST_F(LinkTest, StoppedPeerIsLostThenFencedThenMetAgain)
{
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    run(4);
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
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    run(4);
    a.busy = 3;
    world.cable = false;
    run(1);
    EXPECT_EQ(a.link.state(), LinkState::losing);
    EXPECT_TRUE(a.window);
    EXPECT_FALSE(a.saw(LinkEvent::lost)) << "told before what is unconfirmed is counted";
    run(4);
    EXPECT_TRUE(a.saw(LinkEvent::lost));
    EXPECT_EQ(a.link.state(), LinkState::waiting);
    a.busy = 2;
    EXPECT_FALSE(a.link.stop());
    EXPECT_FALSE(a.link.stop());
    EXPECT_TRUE(a.link.stop());
    EXPECT_TRUE(a.link.stop()) << "stopped stays stopped";
}

TEST_F(LinkTest, LossThatIsOwedIsToldByTheStop)
{
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    run(4);
    a.busy = 1;
    world.cable = false;
    run(1);
    ASSERT_FALSE(a.saw(LinkEvent::lost));
    ASSERT_TRUE(a.link.stop());
    EXPECT_TRUE(a.saw(LinkEvent::lost));
}

TEST_F(LinkTest, LossIsToldAlsoWhenAQueueStaysInsideABurst)
{
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    run(4);
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

TEST_F(LinkTest, TornHelloIsNotYet)
{
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    b.link.tick();
    a.inbox.seed ^= 1;
    a.link.tick();
    EXPECT_EQ(a.link.state(), LinkState::waiting);
    EXPECT_FALSE(a.saw(LinkEvent::refused));
    run(4);
    expect_joined();
}

TEST_F(LinkTest, LostAckIsRepeated)
{
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    a.link.tick(); // hello(a)
    b.link.tick(); // hello(b, ack a)
    a.lose_stores = true;
    a.link.tick(); // connected; its ack is lost
    ASSERT_EQ(a.link.state(), LinkState::connected);
    a.lose_stores = false;
    run(6);
    expect_joined();
}

struct Bad {
    const char *name;
    void (*spoil)(wire::Hello &);
};

class RefusedHello : public LinkTest, public testing::WithParamInterface<Bad>
{
};

TEST_P(RefusedHello, IsAnsweredInWordsAndHealsWhenReplaced)
{
    ASSERT_EQ(a.start(), 0);
    wire::Hello hello = sizes();
    hello.state = wire::HelloState::up;
    hello.epoch = 77;
    hello.seq = 1;
    hello.seed = 99;
    pmd::seal(hello);
    GetParam().spoil(hello);
    hello.crc = ~rte_hash_crc(&hello, offsetof(wire::Hello, crc), ~0u);
    a.inbox = hello;
    a.link.tick();
    EXPECT_EQ(a.link.state(), LinkState::refused);
    EXPECT_TRUE(a.saw(LinkEvent::refused));
    EXPECT_STRNE(a.link.why(), "");
    EXPECT_FALSE(a.open);
    a.link.tick();
    EXPECT_EQ(a.events.size(), 1u) << "told once";
    ASSERT_EQ(b.start(), 0);
    run(4);
    expect_joined();
}

const Bad bad_hellos[] = {
    {"Version", [](wire::Hello &h) { h.major = 2; }},
    {"Bytes", [](wire::Hello &h) { h.bytes = 128; }},
    {"Epoch", [](wire::Hello &h) { h.epoch = 0; }},
    {"State", [](wire::Hello &h) { h.state = static_cast<wire::HelloState>(9); }},
    {"BlockTooSmall", [](wire::Hello &h) { h.block_bytes = 4096; }},
    {"BlockNotPowerOfTwo", [](wire::Hello &h) { h.block_bytes += 4096; }},
    {"BlockBeyondWindow", [](wire::Hello &h) { h.block_bytes = window_bytes * 2; }},
    {"NoQueues", [](wire::Hello &h) { h.qp_count = 0; }},
    {"TooManyQueues", [](wire::Hello &h) { h.qp_count = 65; }},
    {"HugeQueues", [](wire::Hello &h) { h.qp_count = ~0u; }},
    {"RingNotPowerOfTwo", [](wire::Hello &h) { h.ring_lines = 1000; }},
    {"RingTooSmall", [](wire::Hello &h) { h.ring_lines = 32; }},
    {"RingTooLarge", [](wire::Hello &h) { h.ring_lines = 1u << 31; }},
    {"PostedTooSmall", [](wire::Hello &h) { h.posted_lines = 1; }},
    {"PostedTooLarge", [](wire::Hello &h) { h.posted_lines = 8192; }},
    {"BufNotLines", [](wire::Hello &h) { h.buf_bytes = 100; }},
    {"BufZero", [](wire::Hello &h) { h.buf_bytes = 0; }},
    {"BufHuge", [](wire::Hello &h) { h.buf_bytes = 1u << 31; }},
    {"BuffersOverRings", [](wire::Hello &h) { h.buf_begin = 0; }},
    {"BuffersBehindBlock", [](wire::Hello &h) { h.buf_end = ~0u; }},
    {"BuffersBackwards", [](wire::Hello &h) { h.buf_end = h.buf_begin - 1; }},
    {"MessageTooLong", [](wire::Hello &h) { h.max_message = ~0u; }},
    {"NoHeartbeat", [](wire::Hello &h) { h.heartbeat_us = 0; }},
};
INSTANTIATE_TEST_SUITE_P(Field, RefusedHello, testing::ValuesIn(bad_hellos),
                         [](const auto &bad) { return std::string(bad.param.name); });

TEST_F(LinkTest, EveryTruncationOfSizesStaysInsideTheWindow)
{
    std::mt19937_64 random(7);
    for (int i = 0; i < 200'000; ++i) {
        wire::Hello h = sizes();
        h.state = wire::HelloState::up;
        h.epoch = 5;
        uint32_t *const fields[] = {&h.qp_count,  &h.ring_lines, &h.posted_lines, &h.buf_bytes,
                                    &h.buf_begin, &h.buf_end,    &h.max_message};
        uint32_t *field = fields[random() % std::size(fields)];
        *field = random() % 2 != 0 ? 1u << (random() % 32) : static_cast<uint32_t>(random());
        h.block_bytes = uint64_t{1} << (random() % 40);
        pmd::seal(h);
        const char *why = nullptr;
        if (pmd::judge(h, window_bytes, &why) != pmd::Verdict::acceptable)
            continue;
        ASSERT_LE(h.block_bytes, window_bytes);
        const uint64_t last = wire::ring_offset(h.qp_count - 1, h.ring_lines, h.posted_lines) +
                              uint64_t{h.ring_lines} * wire::line_bytes;
        ASSERT_LE(last, h.block_bytes);
        ASSERT_LE(uint64_t{h.buf_end} * wire::line_bytes, h.block_bytes);
    }
}

TEST_F(LinkTest, PeerThatRefusesUsIsToldOnce)
{
    ASSERT_EQ(a.start(), 0);
    wire::Hello hello = sizes();
    hello.state = wire::HelloState::refused;
    hello.epoch = 3;
    pmd::seal(hello);
    a.inbox = hello;
    run(3);
    EXPECT_EQ(a.link.state(), LinkState::refused);
    EXPECT_EQ(a.events, std::vector<LinkEvent>{LinkEvent::refused});
}

TEST_F(LinkTest, ProtocolBreakTakesTheConnectionDownAndUp)
{
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    run(4);
    a.link.distrust();
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

TEST_F(LinkTest, QueuesThatDoNotOpenAreToldOnceAndTriedAgain)
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
    EXPECT_EQ(a.events, (std::vector<LinkEvent>{LinkEvent::refused, LinkEvent::back}));
}

TEST_F(LinkTest, WhoStoodStillHasNotListened)
{
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    run(4);
    world.now_us += 5'000'000; // the whole machine: neither side has run
    a.link.tick();
    EXPECT_EQ(a.link.state(), LinkState::connected) << "the peer gets its turn first";
    run(4);
    expect_joined();
    EXPECT_EQ(a.events, std::vector<LinkEvent>{LinkEvent::back});
    EXPECT_EQ(b.events, std::vector<LinkEvent>{LinkEvent::back});
}

TEST_F(LinkTest, AControlThreadThatIsLateStillLosesADeadPeer)
{
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    run(4);
    b.mute = true;
    const uint64_t since = world.now_us;
    while (a.link.state() != LinkState::waiting && world.now_us - since < 60'000'000) {
        world.now_us += 250'000; // each tick comes a quarter of a second late
        a.link.tick();
    }
    EXPECT_TRUE(a.saw(LinkEvent::silent));
    EXPECT_TRUE(a.saw(LinkEvent::lost));
    EXPECT_LE(world.now_us - since, 7'500'000u) << "lost_us in pieces of look_us";
}

TEST_F(LinkTest, StopThatFailedIsRepeated)
{
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    run(4);
    a.deaf = true;
    EXPECT_FALSE(a.link.stop());
    EXPECT_FALSE(a.link.stop());
    EXPECT_EQ(a.link.state(), LinkState::stopping);
    a.deaf = false;
    EXPECT_TRUE(a.link.stop());
    EXPECT_FALSE(a.saw(LinkEvent::lost)) << "who stops is not told";
    ASSERT_EQ(a.start(), 0);
    run(8);
    expect_joined();
}

TEST_F(LinkTest, AChipThatIsGoneIsALossWithoutAWayBack)
{
    ASSERT_EQ(a.start(), 0);
    ASSERT_EQ(b.start(), 0);
    run(4);
    a.gone = true;
    a.deaf = true;
    run(100);
    EXPECT_EQ(a.events, (std::vector<LinkEvent>{LinkEvent::back, LinkEvent::lost}));
    EXPECT_STREQ(a.link.why(), "the chip does not answer");
    EXPECT_EQ(a.link.state(), LinkState::fencing) << "nothing is reused";
    EXPECT_FALSE(a.link.stop());
    EXPECT_EQ(a.link.state(), LinkState::stopping);
}

/// On the twin a fence moves the block, and the peer's window follows some time later.
TEST_F(LinkTest, NobodyIsAnsweredWhoseStoresDoNotArriveYet)
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
