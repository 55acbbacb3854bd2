// SPDX-License-Identifier: BSD-3-Clause
// Claimed connections through two daemons, without them: two relays with a pipe between, and the
// clients' memory as clients would write it, and as they should not.
#include "carrier/line_relay.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <poll.h>
#include <random>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

using namespace ntbd;
using namespace ntb::socket;
using ntbc::load;
using ntbc::store;
using SocketMark = ntb::socket::Mark;

namespace
{

constexpr std::uint32_t ring_bytes = 32768;
constexpr std::uint32_t narrow = ntb::socket::narrow_bytes(ring_bytes);
constexpr std::size_t longest = 1000;

using Parcel = std::vector<std::uint8_t>;

struct Wire {
    std::deque<Parcel> under_way[2]; ///< by who receives
    std::size_t credit = 1000;
    bool is_reset = false;
};

class FakePipe : public Pipe
{
public:
    FakePipe(Wire &wire, unsigned own) : wire_(wire), own_(own) {}
    std::size_t longest() const override { return ::longest; }
    ssize_t send(const ntbc::Receiver &, std::size_t) override { return -EPROTO; }
    int send(const ntbd::Mark &) override { return -EPROTO; }
    Got receive(ntbc::Sender *, std::size_t) override { return {Got::Kind::wrong}; }
    ssize_t send(const LineWords &words, const Ring &ring, std::uint64_t position,
                 std::size_t bytes) override
    {
        if (wire_.under_way[1 - own_].size() >= wire_.credit)
            return 0;
        bytes = std::min(bytes, ::longest - sizeof(words));
        Parcel parcel(sizeof(words) + bytes);
        memcpy(parcel.data(), &words, sizeof(words));
        ring.copy_out(parcel.data() + sizeof(words), position, bytes);
        wire_.under_way[1 - own_].push_back(parcel);
        return static_cast<ssize_t>(parcel.size());
    }
    Got receive(LineWords *words) override
    {
        if (wire_.under_way[own_].empty())
            return {Got::Kind::nothing};
        held_ = wire_.under_way[own_].front();
        wire_.under_way[own_].pop_front();
        memcpy(words, held_.data(), sizeof(*words));
        return {Got::Kind::words, held_.size() - sizeof(*words)};
    }
    void copy(std::size_t from, const Ring &ring, std::uint64_t position,
              std::size_t bytes) override
    {
        ASSERT_LE(sizeof(LineWords) + from + bytes, held_.size());
        ring.copy_in(position, held_.data() + sizeof(LineWords) + from, bytes);
    }
    void reset() override { wire_.is_reset = true; }

private:
    Wire &wire_;
    unsigned own_;
    Parcel held_;
};

/// A client's end: memory, bell and relay.
struct Host {
    Host(Wire &wire, unsigned own) : end(own)
    {
        int fd = -1, pair[2];
        memory = Memory::create(ring_bytes, &fd);
        ::close(fd);
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
        bell = Descriptor(pair[0]);
        RelayOrder order;
        order.kind = RelayOrder::Kind::connect;
        order.id = 7;
        order.memory = memory;
        order.is_claim = true;
        order.client_end = end;
        order.bell = Descriptor(pair[1]);
        relay = std::make_unique<LineRelay>(std::move(order), traffic, mailbox);
        relay->join(std::make_unique<FakePipe>(wire, end), true, ring_bytes);
    }
    Page &page() { return reinterpret_cast<Page &>(memory->page()); }
    Lines &out() { return page().direction[end]; }
    Lines &in() { return page().direction[1 - end]; }
    /// What a receiver does that has a ring to grant.
    void grant(std::uint32_t generation, std::uint64_t taken)
    {
        store_grant(in(), {generation, false, false, taken}, ring_bytes);
    }
    /// Stores so many bytes of the stream behind the head, as a sender does that knows the room.
    void write(SenderWords &words, std::size_t bytes)
    {
        for (std::size_t i = 0; i < bytes; i++) {
            const SenderWords::Place place = words.place_of(words.head, ring_bytes);
            const char byte = byte_at(words.head++);
            ntb::socket::ring_of(&page(), ring_bytes, end, place.used)
                .copy_in(place.position, &byte, 1);
        }
        store_words(out().sender, words);
    }
    /// What a receiver finds from an offset up to the head.
    std::string read(std::uint64_t from)
    {
        const SenderWords words = load_words(in().sender);
        std::string got;
        for (std::uint64_t at = from; at < words.head; at++) {
            const SenderWords::Place place = words.place_of(at, ring_bytes);
            char byte;
            ntb::socket::ring_of(&page(), ring_bytes, 1 - end, place.used)
                .copy_out(&byte, place.position, 1);
            got += byte;
        }
        return got;
    }
    static char byte_at(std::uint64_t offset)
    {
        return static_cast<char>(offset * 131 + (offset >> 9));
    }
    static std::string stream(std::uint64_t from, std::uint64_t to)
    {
        std::string made;
        for (; from < to; from++)
            made += byte_at(from);
        return made;
    }
    bool is_rung()
    {
        char bytes[16];
        return recv(bell.get(), bytes, sizeof(bytes), MSG_DONTWAIT) > 0;
    }

    unsigned end;
    std::shared_ptr<Memory> memory;
    Descriptor bell;
    Relay::Traffic traffic = {};
    Mailbox mailbox;
    std::unique_ptr<LineRelay> relay;
};

/// Two hosts, and a pipe between their daemons.
struct Two {
    void turn()
    {
        for (bool worked = true; worked;) {
            worked = false;
            for (Host *host : {&a, &b}) {
                host->relay->ready(Pipe::readable | Pipe::writable);
                worked = host->relay->turn() || worked;
            }
        }
    }
    /// A ring from a to b, from this offset on.
    SenderWords open(std::uint32_t generation, std::uint64_t start)
    {
        store(a.out().sender_asks.want, generation);
        turn();
        b.grant(generation, start);
        turn();
        SenderWords words;
        words.generation = generation;
        words.started = true;
        words.start = words.head = start;
        words.narrow = narrow;
        return words;
    }
    /// As its daemon's peer; bytes are those of the stream from an offset on.
    void say(Host &to, const LineWords &words, std::size_t bytes = 0, std::uint64_t from = 0)
    {
        Parcel parcel(sizeof(words));
        memcpy(parcel.data(), &words, sizeof(words));
        for (const char byte : Host::stream(from, from + bytes))
            parcel.push_back(static_cast<std::uint8_t>(byte));
        wire.under_way[to.end].push_back(parcel);
        to.relay->ready(Pipe::readable);
        to.relay->turn();
    }
    /// Ends that ring, and wants the next.
    void end(SenderWords &words, SocketMark mark)
    {
        words.mark = mark;
        words.mark_offset = words.head;
        a.write(words, 0);
        store(a.out().sender_asks.want, words.generation + 1);
        turn();
    }
    void expect_failed(Host &host)
    {
        EXPECT_TRUE(host.relay->has_ended());
        EXPECT_EQ(host.relay->status(), -EPROTO);
        EXPECT_TRUE(wire.is_reset);
    }

    Wire wire;
    Host a{wire, 0}, b{wire, 1};
};

// Of a client that does what none of ours does.
TEST(LineRelayBells, KeepDescriptorsUntilTheyAreClosed)
{
    Wire wire;
    Host host(wire, 0);
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    ASSERT_EQ(send(host.bell.get(), "x", 1, 0), 1);
    ASSERT_EQ(ntbc::message_send(host.bell.get(), {}, &ends[1], 1), 0);
    close(ends[1]);
    host.relay->rung();
    pollfd end = {ends[0], POLLIN, 0};
    EXPECT_EQ(poll(&end, 1, 0), 0);
    host.relay.reset();
    EXPECT_EQ(poll(&end, 1, 0), 1);
    close(ends[0]);
}

class LineRelays : public testing::Test, public Two
{
};

TEST_F(LineRelays, NothingIsSaidOfWhatHasNotChanged)
{
    turn();
    EXPECT_EQ(a.traffic.messages_out + b.traffic.messages_out, 0u);
    store(a.out().sender_asks.want, 1u);
    turn();
    EXPECT_EQ(a.traffic.messages_out, 1u);
    EXPECT_EQ(load(b.in().sender_asks.want), 1u);
    turn();
    EXPECT_EQ(a.traffic.messages_out, 1u);
}

TEST_F(LineRelays, ByteForByteThroughTheNarrowRingAndTheWholeOne)
{
    SenderWords words = open(1, 100);
    EXPECT_EQ(load(a.out().receiver_asks.generation), 1u);
    EXPECT_EQ(load(a.out().receiver_asks.ring_bytes), ring_bytes);
    EXPECT_EQ(load(a.out().receiver.taken), 100u);
    std::uint64_t taken = 100;
    for (int round = 0; round < 50; round++) {
        const std::uint64_t room = words.end_of_room(taken, ring_bytes) - words.head;
        if (room == 0 && words.wide == 0)
            words.wide = words.head;
        a.write(words, std::min<std::uint64_t>(room, round % 5 == 0 ? 700 : 3000));
        if (round % 7 > 3)
            continue; // more at a time, through both parts
        turn();
        ASSERT_EQ(load_words(b.in().sender).head, words.head);
        EXPECT_TRUE(b.read(taken) == Host::stream(taken, words.head));
        if (round % 3 != 2)
            continue;
        store(b.in().receiver.taken, taken = words.head - static_cast<std::uint64_t>(round));
        turn();
        EXPECT_EQ(load(a.out().receiver.taken), taken);
    }
    EXPECT_NE(words.wide, 0u);
    EXPECT_EQ(a.traffic.bytes_out, words.head - 100);
}

TEST_F(LineRelays, AMessageMayReachFromThePartThatIsNarrowIntoTheWholeRing)
{
    open(1, 100);
    LineWords words;
    words.bits = LineWords::started;
    words.want = words.generation = 1;
    words.start = 100;
    words.narrow = narrow;
    words.wide = 100 + narrow;
    say(b, words, narrow + 500, 100);
    ASSERT_FALSE(b.relay->has_ended());
    EXPECT_TRUE(b.read(100) == Host::stream(100, 600 + narrow));
}

TEST_F(LineRelays, WhatIsNotReadOutlastsARest)
{
    SenderWords words = open(1, 0);
    a.write(words, narrow);
    words.wide = words.head;
    a.write(words, 9000);
    turn();
    store(b.in().receiver.taken, std::uint64_t{narrow - 100});
    b.relay->rest();
    EXPECT_TRUE(b.read(narrow - 100) == Host::stream(narrow - 100, narrow + 9000));
    char byte = 1;
    ntb::socket::ring_of(&b.page(), ring_bytes, 0).copy_out(&byte, ring_bytes - 1, 1);
    EXPECT_EQ(byte, 0);
    // Of a client that says it has taken less than it said before.
    store(b.in().receiver.taken, std::uint64_t{narrow + 9000});
    turn();
    a.write(words, 20000);
    turn();
    store(b.in().receiver.taken, std::uint64_t{0});
    b.relay->rest();
    EXPECT_FALSE(b.relay->has_ended());
}

TEST_F(LineRelays, AMarkComesBehindTheLastByteWhateverThePipeTakes)
{
    SenderWords words = open(1, 0);
    wire.credit = 1;
    words.mark = SocketMark::End;
    words.mark_offset = 3500;
    store(a.out().sender_asks.want, 0u + 1);
    a.write(words, 3500);
    for (int i = 0; i < 20; i++) {
        a.relay->ready(Pipe::writable);
        a.relay->turn();
        const SenderWords before = load_words(b.in().sender);
        EXPECT_EQ(before.mark, before.head == 3500 ? before.mark : SocketMark::None);
        b.relay->ready(Pipe::readable);
        b.relay->turn();
    }
    const SenderWords got = load_words(b.in().sender);
    EXPECT_EQ(got.mark, SocketMark::End);
    EXPECT_EQ(got.mark_offset, 3500u);
    EXPECT_TRUE(b.read(0) == Host::stream(0, 3500));
}

TEST_F(LineRelays, AnotherRingIsWantedBehindTheMarkOfTheOneBefore)
{
    SenderWords words = open(1, 0);
    words.mark = SocketMark::Revert;
    words.mark_offset = 2500;
    a.write(words, 2500);
    store(a.out().sender_asks.want, 2u); // before the daemon has looked
    wire.credit = 2;                     // which is not enough for all of it
    a.relay->turn();
    for (b.relay->ready(Pipe::readable); b.relay->turn();)
        EXPECT_EQ(load(b.in().sender_asks.want), 1u);
    wire.credit = 1000;
    turn();
    EXPECT_EQ(load_words(b.in().sender).mark, SocketMark::Revert);
    EXPECT_EQ(load(b.in().sender_asks.want), 2u);
    // The grant finds the line at the sender's host clear.
    b.grant(2, 2600);
    turn();
    EXPECT_EQ(load(a.out().receiver_asks.generation), 2u);
    EXPECT_EQ(load_words(a.out().sender).mark, SocketMark::None);
    EXPECT_EQ(load_words(a.out().sender).generation, 0u);
}

// The receiver has granted the next ring, and its daemon has not looked yet.
TEST_F(LineRelays, WordsOfARingThatIsOverAreNotStoredAgain)
{
    SenderWords words = open(1, 0);
    a.write(words, 10);
    end(words, SocketMark::Revert);
    wire.credit = 0;
    store(b.in().receiver.taken, std::uint64_t{10});
    b.relay->turn(); // finds no room, and waits for it
    b.grant(2, 10);
    LineWords again;
    again.bits = LineWords::started;
    again.want = 2;
    again.generation = 1;
    again.mark = static_cast<std::uint32_t>(SocketMark::Revert);
    again.narrow = narrow;
    say(b, again);
    EXPECT_FALSE(b.relay->has_ended());
    EXPECT_EQ(load_words(b.in().sender), SenderWords{});
    wire.credit = 1000;
    turn();
    say(b, again); // and when it has
    EXPECT_FALSE(b.relay->has_ended());
    EXPECT_EQ(load_words(b.in().sender), SenderWords{});
}

// By TCP, once a ring is over.
TEST_F(LineRelays, AReceiverTakesMoreThanTheRingHad)
{
    SenderWords words = open(1, 0);
    a.write(words, 10);
    end(words, SocketMark::Revert);
    store(b.in().receiver.taken, std::uint64_t{50});
    turn();
    turn();
    EXPECT_EQ(load(a.out().receiver.taken), 50u);
    EXPECT_FALSE(a.relay->has_ended());
}

TEST_F(LineRelays, WordsOfTheReceiverArriveWithTheirGeneration)
{
    SenderWords words = open(1, 0);
    a.write(words, 10);
    turn();
    store_words(b.in().receiver_asks, {1, true, false, 0});
    turn();
    EXPECT_EQ(load(a.out().receiver_asks.seen), 1u);
    EXPECT_FALSE(a.is_rung());
    store_words(b.in().receiver_asks, {1, true, true, 0});
    turn();
    EXPECT_EQ(load(a.out().receiver_asks.ask), 1u);
    EXPECT_TRUE(a.is_rung());
    store(b.in().receiver.taken, std::uint64_t{10});
    store(b.in().receiver_asks.gone, 1u);
    turn();
    EXPECT_EQ(load(a.out().receiver.taken), 10u);
    EXPECT_EQ(load(a.out().receiver_asks.gone), 1u);
}

TEST_F(LineRelays, WhoSleepsIsRungOnceForEachSleep)
{
    SenderWords words = open(1, 0);
    store(b.in().receiver_asks.wants_data, 5u);
    a.write(words, 10);
    turn();
    EXPECT_TRUE(b.is_rung());
    a.write(words, 10);
    turn();
    EXPECT_FALSE(b.is_rung());
    store(a.out().sender_asks.wants_room, 9u);
    store(b.in().receiver.taken, std::uint64_t{20});
    turn();
    EXPECT_TRUE(a.is_rung());
    const std::uint32_t before = load(b.in().sender_asks.woken_for_data);
    store(b.in().receiver_asks.dozes_for_data, 3u);
    a.write(words, 10);
    turn();
    EXPECT_EQ(load(b.in().sender_asks.woken_for_data), before + 1);
    EXPECT_FALSE(b.is_rung());
}

TEST_F(LineRelays, SleepsOnlyWhereAllIsSaid)
{
    turn();
    ASSERT_TRUE(a.relay->sleep());
    EXPECT_NE(load(a.out().receiver_asks.wants_data), 0u);
    EXPECT_NE(load(a.in().sender_asks.wants_room), 0u);
    a.relay->wake();
    EXPECT_EQ(load(a.out().receiver_asks.wants_data), 0u);
    store(a.out().sender_asks.want, 1u);
    EXPECT_FALSE(a.relay->sleep());
    turn();
    EXPECT_TRUE(a.relay->sleep());
    a.relay->wake();
    SenderWords words = open(1, 0);
    a.write(words, 1);
    EXPECT_FALSE(a.relay->sleep());
    a.relay->turn();
    EXPECT_TRUE(a.relay->sleep());
    a.relay->wake();
    a.write(words, 1);
    EXPECT_FALSE(a.relay->sleep());
    a.relay->turn();
    words.mark = SocketMark::End;
    words.mark_offset = 2;
    a.write(words, 0);
    EXPECT_FALSE(a.relay->sleep());
}

TEST_F(LineRelays, AFinIsToldOnceAndOfTheRingThatIsGranted)
{
    open(1, 0);
    b.relay->fin_seen(7);
    turn();
    EXPECT_FALSE(a.mailbox.take().has_value());
    for (const std::uint32_t generation : {1u, 1u, 0u}) {
        b.relay->fin_seen(generation);
        store(b.in().receiver.taken, std::uint64_t{generation});
        turn();
    }
    const auto news = a.mailbox.take();
    ASSERT_TRUE(news.has_value());
    EXPECT_EQ(news->kind, LinkNews::Kind::relay_fin);
    EXPECT_EQ(news->id, 7u);
    EXPECT_EQ(news->generation, 1u);
    EXPECT_FALSE(a.mailbox.take().has_value());
    EXPECT_FALSE(a.relay->has_ended());
}

TEST_F(LineRelays, BothHaveToClose)
{
    SenderWords words = open(1, 0);
    b.relay->let_go();
    turn();
    EXPECT_FALSE(a.relay->has_ended());
    // Its daemon may still say the end for who has closed, and who has not goes on.
    a.write(words, 100);
    turn();
    EXPECT_EQ(load_words(b.in().sender).head, 100u);
    a.relay->let_go();
    turn();
    for (Host *host : {&a, &b}) {
        EXPECT_TRUE(host->relay->has_ended());
        EXPECT_EQ(host->relay->status(), 0);
    }
    EXPECT_FALSE(wire.is_reset);
}

TEST_F(LineRelays, WhatIsRevokedEndsBehindWhatWasStored)
{
    SenderWords words = open(1, 0);
    a.write(words, 100);
    ntbc::mark_gone(a.memory->page(), ntbc::gone_revoked);
    turn();
    EXPECT_TRUE(a.relay->has_ended());
    EXPECT_EQ(a.relay->status(), -ECONNRESET);
    EXPECT_EQ(load_words(b.in().sender).head, 100u);
}

TEST_F(LineRelays, ALinkThatIsLostDeliversWhatHasArrived)
{
    SenderWords words = open(1, 0);
    a.write(words, 100);
    a.relay->turn();
    b.relay->lose();
    b.relay->turn();
    EXPECT_EQ(load_words(b.in().sender).head, 100u);
    EXPECT_TRUE(b.relay->has_ended());
    EXPECT_EQ(b.relay->status(), -ECONNRESET);
}

TEST_F(LineRelays, RingsOfAnotherSizeAreRefused)
{
    Wire other;
    Host one(other, 0);
    one.relay->join(std::make_unique<FakePipe>(other, 0), true, ring_bytes / 2);
    EXPECT_TRUE(one.relay->has_ended());
}

// What a client stores is bounded by its own daemon: none of it gets to the other one.
TEST_F(LineRelays, AClientThatLiesAsTheSender)
{
    const auto lies = [](const char *what, auto change) {
        SCOPED_TRACE(what);
        Two two;
        SenderWords words = two.open(1, 100);
        two.a.write(words, 50);
        two.turn();
        const std::uint64_t before = two.a.traffic.messages_out;
        change(two.a, words);
        two.a.relay->turn();
        two.expect_failed(two.a);
        EXPECT_EQ(two.a.traffic.messages_out, before);
    };
    const auto line = [&](const char *what, auto change) {
        lies(what, [&](Host &host, SenderWords words) {
            change(words);
            store_words(host.out().sender, words);
        });
    };
    line("a head beyond the narrow ring", [](SenderWords &w) { w.head = 101 + narrow; });
    line("a head that goes back", [](SenderWords &w) { w.head = 149; });
    line("a head of all bits", [](SenderWords &w) { w.head = ~std::uint64_t{0}; });
    line("another switch", [](SenderWords &w) { w.start = 101; });
    line("no switch any more", [](SenderWords &w) { w.started = false; });
    line("another place", [](SenderWords &w) { w.narrow = narrow / 2; });
    line("wide before what was sent", [](SenderWords &w) { w.wide = 149; });
    line("wide behind the room", [](SenderWords &w) { w.wide = 101 + narrow; });
    line("never used, although it was", [](SenderWords &w) { w.mark = SocketMark::Return; });
    line("a mark before the head", [](SenderWords &w) {
        w.mark = SocketMark::End;
        w.mark_offset = 149;
    });
    line("a mark that there is none of", [](SenderWords &w) {
        w.mark = static_cast<SocketMark>(9);
        w.mark_offset = w.head;
    });
    lies("a ring that is not the next",
         [](Host &host, const SenderWords &) { store(host.out().sender_asks.want, 3u); });
}

TEST_F(LineRelays, AClientThatLiesAsTheReceiver)
{
    const auto lies = [](const char *what, auto change) {
        SCOPED_TRACE(what);
        Two two;
        two.open(1, 100);
        change(two);
        two.b.relay->turn();
        two.expect_failed(two.b);
    };
    lies("a ring that nobody wants", [](Two &two) { two.b.grant(2, 100); });
    lies("a ring before the last is over", [](Two &two) {
        store(two.a.out().sender_asks.want, 2u);
        two.turn();
        two.b.grant(2, 100);
    });
    lies("a ring of long ago", [](Two &two) { two.b.grant(0, 100); });
    const auto lies_then = [&](const char *what, std::uint32_t generation, bool wants) {
        lies(what, [&](Two &two) {
            SenderWords words;
            words.generation = 1;
            words.mark = SocketMark::Return;
            two.a.write(words, 0);
            store(two.a.out().sender_asks.want, wants ? 2u : 1u);
            two.turn();
            two.b.grant(generation, 100);
        });
    };
    lies_then("the next, which nobody wants", 2, false);
    lies_then("the one after the next", 3, true);
    Two two;
    store(two.a.out().sender_asks.want, 1u);
    two.turn();
    store_grant(two.b.in(), {1, false, false, 0}, 2 * ring_bytes);
    two.b.relay->turn();
    two.expect_failed(two.b);
}

// What a receiver says that it has taken is no more than was sent to it.
TEST_F(LineRelays, AReceiverThatHasTakenWhatWasNotSent)
{
    SenderWords words = open(1, 100);
    a.write(words, 50);
    turn();
    store(b.in().receiver.taken, ~std::uint64_t{0});
    turn();
    EXPECT_EQ(load(a.out().receiver.taken), 150u);
    EXPECT_FALSE(a.relay->has_ended() || b.relay->has_ended());
}

TEST_F(LineRelays, ADaemonThatLies)
{
    // As the other daemon sees a sender with a ring from 100 on, and 50 bytes in it.
    LineWords good;
    good.bits = LineWords::started;
    good.want = good.generation = 1;
    good.start = 100;
    good.narrow = narrow;
    const auto lies = [&](const char *what, std::size_t bytes, auto change) {
        SCOPED_TRACE(what);
        Two two;
        two.open(1, 100);
        two.say(two.b, good, 50);
        ASSERT_FALSE(two.b.relay->has_ended());
        ASSERT_EQ(load_words(two.b.in().sender).head, 150u);
        LineWords bad = good;
        change(bad);
        two.say(two.b, bad, bytes);
        two.expect_failed(two.b);
        EXPECT_EQ(load_words(two.b.in().sender).head, 150u);
    };
    lies("unknown bits", 0, [](LineWords &m) { m.bits |= 64; });
    lies("what is reserved", 0, [](LineWords &m) { m.reserved = 1; });
    lies("more than there is room for", narrow - 49, [](LineWords &) {});
    lies("more than the ring has", 4 * ring_bytes, [](LineWords &m) { m.wide = 150; });
    lies("bytes of no ring", 1, [](LineWords &m) { m.generation = 0; });
    lies("a ring that was not granted", 0, [](LineWords &m) { m.generation = 2; });
    lies("a switch elsewhere", 0, [](LineWords &m) { m.start = 99; });
    lies("a switch taken back", 0, [](LineWords &m) { m.bits = 0; });
    lies("another place", 0, [](LineWords &m) { m.narrow = 3; });
    lies("a place beyond the ring", 0, [](LineWords &m) { m.narrow = 2 * ring_bytes; });
    lies("a mark that there is none of", 0, [](LineWords &m) { m.mark = 5; });
    lies("never used, although it was", 0, [](LineWords &m) { m.mark = 3; });
    lies("a ring that is not the next", 0, [](LineWords &m) { m.want = 3; });
    lies("a grant that nobody wanted", 0, [](LineWords &m) { m.granted = 1; });
    lies("a FIN of a ring that is none", 0, [](LineWords &m) { m.fin_seen = 1; });
    {
        // Of a receiver: the next ring, while the sender is in the one before.
        Two two;
        SenderWords words = two.open(1, 100);
        two.a.write(words, 50);
        store(two.a.out().sender_asks.want, 2u);
        two.turn();
        LineWords grant;
        grant.granted = 2;
        two.say(two.a, grant);
        two.expect_failed(two.a);
    }
    Two two;
    LineWords closed;
    closed.bits = LineWords::closed;
    two.say(two.b, closed);
    two.say(two.b, {});
    two.expect_failed(two.b);
}

// Any words in a client's memory, and any message: memory is not left, and it comes to an end.
TEST_F(LineRelays, AnyWordsAndAnyMessages)
{
    std::mt19937_64 random(5);
    for (int round = 0; round < 300; round++) {
        Two two;
        SenderWords words = two.open(1, 100);
        two.a.write(words, 50);
        for (int i = 0; i < 50; i++) {
            Host &host = random() % 2 == 0 ? two.a : two.b;
            auto *at = reinterpret_cast<std::uint32_t *>(host.page().direction);
            const auto any = [&] {
                return static_cast<std::uint32_t>(random() % 8 == 0 ? random() : random() % 4);
            };
            if (random() % 3 != 0) {
                store(at[random() % (sizeof(host.page().direction) / 4)], any());
            } else {
                Parcel parcel(sizeof(LineWords) + random() % 600);
                for (std::size_t byte = 0; byte < sizeof(LineWords); byte += 4) {
                    const std::uint32_t word = any();
                    memcpy(parcel.data() + byte, &word, sizeof(word));
                }
                two.wire.under_way[host.end].push_back(parcel);
            }
            two.turn();
            host.relay->sleep();
            host.relay->wake();
            host.relay->rest();
        }
        two.a.relay->let_go();
        two.b.relay->let_go();
        two.turn();
        EXPECT_TRUE((two.a.relay->has_ended() && two.b.relay->has_ended()) || two.wire.is_reset);
    }
}

} // namespace
