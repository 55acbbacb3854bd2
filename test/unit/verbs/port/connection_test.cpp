// SPDX-License-Identifier: BSD-3-Clause
#include "../../../daemon/hosts.hpp"

#include "../../../verbs/memory_files.hpp"
#include "client/client.hpp"
#include "port/connection.hpp"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/uio.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace ntbd::test;
using ntb::verbs::Connection;
using ntb::verbs::Port;

namespace
{

class Connections : public testing::Test
{
protected:
    void make(std::uint32_t ring = 32768)
    {
        daemon.config.ring_bytes = ring;
        daemon.start();
        client = std::make_unique<Client>(daemon);
        ntbclient_options options;
        ntbclient_options_init(&options);
        options.local = 1;
        ntbclient_listener *listener;
        ASSERT_EQ(ntbclient_listen(*client, "port", &options, &listener), 0);
        ASSERT_EQ(ntbclient_connect(*client, "port", &options, &conns[0]), 0);
        ASSERT_TRUE(await([&] { return ntbclient_accept(listener, &conns[1]) == 0; }));
        ASSERT_EQ(ntbclient_wait(conns[0], NTBCLIENT_WRITABLE, long_ms), int{NTBCLIENT_WRITABLE});
        ntbclient_listener_close(listener);
    }
    void make_ports(std::uint32_t ring = 32768)
    {
        make(ring);
        for (int i = 0; i < 2; i++) {
            ports[i] = Connection::create(conns[i]);
            ASSERT_NE(ports[i], nullptr);
        }
    }
    /// @param alone  where it goes, if it can
    static bool put(Port &port, std::uint32_t bytes, std::uint64_t value, bool alone = false)
    {
        std::byte *message = alone ? port.place(bytes) : nullptr;
        const bool placed = message != nullptr;
        if (!placed)
            message = port.reserve(bytes);
        if (message == nullptr)
            return false;
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(message) % 8, 0u);
        memset(message, static_cast<int>(value), bytes);
        memcpy(message, &value, sizeof(value));
        if (placed) {
            port.placed(bytes);
        } else {
            port.commit(bytes);
            port.publish();
        }
        return true;
    }
    /// By its mark every other time, as who polls does, if it has one.
    bool find(Port &port, Port::Incoming &message)
    {
        const Port::Watch &watch = port.watch();
        const bool by_mark = finds_++ % 2 != 0 && watch.is_of_mark() && !watch.is_quiet();
        return (by_mark && port.receive_marked(message)) || port.receive(message);
    }
    void expect_next(Port &port, std::uint32_t bytes, std::uint64_t value)
    {
        Port::Incoming message;
        ASSERT_TRUE(find(port, message));
        EXPECT_EQ(message.bytes, bytes);
        std::uint64_t got;
        memcpy(&got, message.data, sizeof(got));
        EXPECT_EQ(got, value);
        EXPECT_EQ(std::to_integer<std::uint8_t>(message.data[bytes - 1]),
                  bytes == 8 ? 0 : value & 0xff);
        port.release();
    }
    bool receives(Port &port)
    {
        Port::Incoming message;
        const bool any = find(port, message);
        if (any)
            port.release();
        return any;
    }
    static bool is_rung(const Port &port)
    {
        pollfd fd = {port.bell(), POLLIN, 0};
        return poll(&fd, 1, 0) == 1;
    }

    Folder folder;
    Daemon daemon{folder.path + "/d.sock"};
    std::unique_ptr<Client> client;
    ntbclient_conn *conns[2] = {nullptr, nullptr};
    std::unique_ptr<Connection> ports[2];
    unsigned finds_ = 0;
};

TEST_F(Connections, RingsWithoutRoomForADatagramAreRefused)
{
    make(16384);
    EXPECT_EQ(Connection::create(conns[0]), nullptr);
    EXPECT_EQ(errno, EMSGSIZE);
    for (ntbclient_conn *conn : conns)
        ntbclient_close(conn);
}

TEST_F(Connections, MessagesOfEverySizeArriveInOrderBothWays)
{
    make_ports();
    for (std::uint32_t i = 0; i < 20000; i++) {
        const std::uint32_t bytes = 8 + i * 7 % (ports[0]->longest() - 7);
        ASSERT_TRUE(put(*ports[i % 2], bytes, i, i % 3 != 0));
        expect_next(*ports[1 - i % 2], bytes, i);
    }
    EXPECT_FALSE(receives(*ports[0]));
    EXPECT_EQ(ports[0]->longest(), ports[1]->longest());
    EXPECT_EQ(ports[0]->reserve(ports[0]->longest() + 1), nullptr);
}

class Marks : public Connections
{
protected:
    void SetUp() override
    {
        make_ports();
        for (auto &port : ports)
            port->leave(1);
    }
    bool looks_at_count(int side) const
    {
        return ports[side]->watch().word ==
               &conns[side]->page->direction[1 - conns[side]->index].published;
    }
    ntbc::Direction &direction(int side) const
    {
        return conns[side]->page->direction[conns[side]->index];
    }
    bool receives_marked(int side) const
    {
        Port::Incoming message;
        return ports[side]->watch().is_of_mark() && ports[side]->receive_marked(message);
    }
    /// By hand, as a peer may. @return what the ring begins with
    std::byte *put_prefix(std::size_t at, std::uint32_t bytes, std::uint32_t mark)
    {
        std::byte *const ring = reinterpret_cast<std::byte *>(conns[0]->page) + ntbc::page_bytes +
                                conns[0]->index * std::size_t{conns[0]->ring_bytes};
        ntbc::store(*reinterpret_cast<std::uint64_t *>(ring + at),
                    bytes | std::uint64_t{mark} << 32);
        return ring;
    }
};

TEST_F(Marks, AreFoundWithoutACount)
{
    ASSERT_TRUE(put(*ports[0], 8, 1, true));
    EXPECT_TRUE(looks_at_count(1)); // it has seen no mark yet
    expect_next(*ports[1], 8, 1);
    EXPECT_FALSE(looks_at_count(1));
    for (std::uint64_t i = 0; i < 5; i++) {
        EXPECT_TRUE(ports[1]->watch().is_quiet());
        const std::uint64_t before = ntbc::load(direction(0).published);
        ASSERT_TRUE(put(*ports[0], 8 + static_cast<std::uint32_t>(i) * 60, i, true));
        const std::uint64_t behind = ntbc::load(direction(0).published);
        ntbc::store(direction(0).published, before);
        EXPECT_FALSE(ports[1]->watch().is_quiet());
        expect_next(*ports[1], 8 + static_cast<std::uint32_t>(i) * 60, i);
        // Before the count is there the peer sleeps and wakes, and finds nothing else.
        EXPECT_FALSE(receives(*ports[1]));
        EXPECT_TRUE(ports[1]->arm(false));
        ports[1]->disarm();
        ntbc::store(direction(0).published, behind);
        EXPECT_FALSE(receives(*ports[1]));
        EXPECT_TRUE(ports[1]->alive());
    }
    EXPECT_TRUE(ports[1]->watch().is_quiet());
}

TEST_F(Marks, EveryKindOfMessageIsSeenBehindOne)
{
    std::byte parts[5000] = {};
    const iovec part = {parts, sizeof(parts)};
    for (std::uint64_t i = 0; i < 2000; i++) {
        ASSERT_TRUE(put(*ports[0], 8 + static_cast<std::uint32_t>(i) * 13 % 440, i, true));
        expect_next(*ports[1], 8 + static_cast<std::uint32_t>(i) * 13 % 440, i);
        EXPECT_TRUE(ports[1]->watch().is_quiet());
        if (i % 3 == 0) { // a burst
            for (std::uint64_t n = 0; n < 3; n++) {
                ASSERT_NE(ports[0]->reserve(100), nullptr);
                ports[0]->commit(100, nullptr, 0);
            }
            ports[0]->publish();
            EXPECT_FALSE(ports[1]->watch().is_quiet());
            for (std::uint64_t n = 0; n < 3; n++)
                EXPECT_TRUE(receives(*ports[1]));
            EXPECT_TRUE(looks_at_count(1));
        } else if (i % 3 == 1) { // a long one
            ASSERT_NE(ports[0]->reserve(8 + sizeof(parts)), nullptr);
            ports[0]->commit(8, &part, 1);
            ports[0]->publish();
            EXPECT_FALSE(ports[1]->watch().is_quiet());
            EXPECT_TRUE(receives(*ports[1]));
            EXPECT_TRUE(looks_at_count(1));
        }
        EXPECT_FALSE(receives(*ports[1]));
        EXPECT_TRUE(ports[1]->watch().is_quiet());
    }
    EXPECT_TRUE(ports[0]->alive() && ports[1]->alive());
}

/// The zero behind a message may be there already: not what lay there before the ring went round.
TEST_F(Marks, HaveAZeroBehindThemEachTimeRound)
{
    constexpr std::uint64_t ones = UINT64_MAX;
    for (const std::uint32_t bytes : {8u, 64u, 100u}) {
        ASSERT_TRUE(put(*ports[0], bytes, 1, true));
        expect_next(*ports[1], bytes, 1);
        for (unsigned i = 0; i < 32768 / 128; i++) {
            ASSERT_TRUE(put(*ports[0], 100, ones));
            expect_next(*ports[1], 100, ones);
        }
        for (const std::uint64_t value : {2u, 3u}) {
            ASSERT_TRUE(put(*ports[0], bytes, value, true));
            expect_next(*ports[1], bytes, value);
            EXPECT_FALSE(looks_at_count(1));
            EXPECT_TRUE(ports[1]->watch().is_quiet());
        }
    }
}

TEST_F(Marks, WaitForNoStoreBehindThem)
{
    ASSERT_TRUE(put(*ports[0], 8, 1, true));
    std::byte *const ring = put_prefix(192, 7, 3);
    const auto word = [ring](std::size_t at) {
        std::uint64_t value;
        memcpy(&value, ring + at, sizeof(value));
        return value;
    };
    EXPECT_EQ(word(128), 0u);
    put_prefix(128, 7, 3);
    ASSERT_TRUE(put(*ports[0], 8, 2, true)); // from 64 on
    EXPECT_EQ(word(128), 7 | std::uint64_t{3} << 32) << "it was zero when the first one had gone";
    EXPECT_EQ(word(192), 0u) << "for the next one";
}

TEST_F(Marks, HaveToBeWithinTheRingAndCounted)
{
    ASSERT_TRUE(put(*ports[0], 8, 1, true));
    expect_next(*ports[1], 8, 1);
    put_prefix(64, ports[0]->longest() + 1, 1);
    EXPECT_FALSE(receives_marked(1));
    EXPECT_FALSE(receives(*ports[1]));
    put_prefix(64, UINT32_MAX, 1);
    EXPECT_FALSE(receives_marked(1));
    EXPECT_FALSE(receives(*ports[1]));
    put_prefix(64, 8, 3); // unknown
    EXPECT_FALSE(receives_marked(1));
    EXPECT_FALSE(receives(*ports[1]));
    EXPECT_TRUE(ports[1]->alive());
    std::size_t at = 64;
    for (; at < 32768 - 64 && ports[1]->alive(); at += 64) {
        put_prefix(at + 64, 0, 0);
        put_prefix(at, 8, 1);
        receives(*ports[1]);
    }
    EXPECT_LT(at, 16384u); // it takes a quarter to see that nothing of it is counted
    EXPECT_FALSE(receives(*ports[1]));
}

TEST_F(Marks, DoNotReachBeyondTheRing)
{
    ASSERT_TRUE(put(*ports[0], 8, 1, true));
    expect_next(*ports[1], 8, 1);
    // All but its last line, in long messages with a mark.
    std::size_t at = 64;
    for (const std::uint32_t bytes : {8184u, 8184u, 8184u, 8056u}) {
        put_prefix(at, bytes, 1);
        at += (bytes + 8 + 63) / 64 * 64;
        put_prefix(at, 0, 0);
        ntbc::store(direction(0).published, at);
        EXPECT_TRUE(receives(*ports[1]));
    }
    ASSERT_EQ(at, 32768u - 64);
    put_prefix(at, 64, 1);
    EXPECT_FALSE(receives_marked(1));
    EXPECT_FALSE(receives(*ports[1]));
    put_prefix(at, 8, 1); // up to the end: what is behind that is not looked at
    ntbc::store(direction(0).published, at + 64);
    EXPECT_FALSE(receives_marked(1)); // it goes round
    EXPECT_TRUE(receives(*ports[1]));
    EXPECT_TRUE(looks_at_count(1));
}

TEST_F(Marks, AreSeenByAnotherThread)
{
    constexpr std::uint64_t messages = 3000;
    std::thread sender([&] {
        for (std::uint64_t i = 0; i < messages;) {
            const bool alone = i % 7 < 4;
            if (put(*ports[0], 8 + static_cast<std::uint32_t>(i % 11 == 0 ? 3000 : i % 400), i,
                    alone))
                i++;
            else
                std::this_thread::yield();
        }
    });
    for (std::uint64_t i = 0, polls = 0; i < messages; polls++) {
        if (ports[1]->watch().is_quiet() && polls % 32 != 0) {
            std::this_thread::yield();
            continue;
        }
        Port::Incoming message;
        if (!find(*ports[1], message)) {
            ASSERT_TRUE(ports[1]->alive());
            continue;
        }
        std::uint64_t got;
        memcpy(&got, message.data, sizeof(got));
        ASSERT_EQ(got, i);
        ASSERT_EQ(message.bytes, 8 + (i % 11 == 0 ? 3000 : i % 400));
        ports[1]->release();
        i++;
    }
    sender.join();
}

TEST_F(Connections, NothingIsMarkedWithoutAWordOfThePeer)
{
    make_ports();
    for (std::uint64_t i = 0; i < 3; i++) {
        ASSERT_TRUE(put(*ports[0], 8, i, true));
        expect_next(*ports[1], 8, i);
        EXPECT_EQ(ports[1]->watch().word,
                  &conns[1]->page->direction[1 - conns[1]->index].published);
    }
}

// As what is sent lies in several places of a program, and is received in one piece from wherever
// it lies in the ring.
TEST_F(Connections, WhatFillsTheLastLineUpIsZero)
{
    make();
    ports[0] = Connection::create(conns[0]);
    // Of short messages and long ones, of which all that was reserved is sent, or less.
    for (const std::uint32_t reserved : {8u, 56u, 57u, 120u, 200u, 504u, 505u, 1000u}) {
        for (std::uint32_t bytes = 8; bytes <= reserved; bytes += 11) {
            std::byte *message = ports[0]->reserve(reserved);
            ASSERT_NE(message, nullptr);
            memset(message, 0xff, bytes);
            ports[0]->commit(bytes, nullptr, 0);
            ports[0]->publish();
            // Where it goes, if it can.
            std::byte *const place = ports[0]->place(bytes);
            message = place ? place : ports[0]->reserve(reserved);
            ASSERT_NE(message, nullptr);
            memset(message, 0xee, bytes);
            if (place)
                ports[0]->placed(bytes);
            else
                ports[0]->commit(bytes, nullptr, 0);
            ports[0]->publish();
            for (const int fill : {0xff, 0xee}) {
                std::vector<std::uint8_t> got((8 + bytes + 63) / 64 * 64);
                ASSERT_EQ(ntbclient_recv(conns[1], got.data(), got.size(), 0),
                          static_cast<ssize_t>(got.size()));
                for (std::size_t i = 8; i < got.size(); i++)
                    ASSERT_EQ(got[i], i < 8 + bytes ? fill : 0) << reserved << " " << bytes;
            }
        }
    }
    ports[0].reset();
    ntbclient_close(conns[1]);
}

TEST_F(Connections, SayWhetherMoreHasComeAndWhetherItIsQuiet)
{
    make_ports();
    Port::Incoming message;
    ASSERT_TRUE(put(*ports[0], 8, 1));
    ASSERT_TRUE(ports[1]->receive(message));
    EXPECT_FALSE(message.more);
    ports[1]->release();
    EXPECT_FALSE(ports[1]->receive(message));
    EXPECT_TRUE(ports[1]->watch().is_quiet());
    ASSERT_TRUE(put(*ports[0], 8, 2));
    ASSERT_TRUE(put(*ports[0], 100, 3));
    EXPECT_FALSE(ports[1]->watch().is_quiet());
    ASSERT_TRUE(ports[1]->receive(message));
    EXPECT_TRUE(message.more);
    ports[1]->release();
    ASSERT_TRUE(ports[1]->receive(message));
    EXPECT_FALSE(message.more);
    ports[1]->release();
    EXPECT_FALSE(ports[1]->receive(message));
    EXPECT_TRUE(ports[1]->watch().is_quiet());
    ports[0]->close();
    EXPECT_FALSE(ports[1]->watch().is_quiet()) << "it says so";
    EXPECT_FALSE(ports[1]->receive(message));
    EXPECT_FALSE(ports[1]->alive());
}

// Wherever in the ring it lies: what follows each other in memory ends with the ring.
TEST_F(Connections, AreNotQuietWhileAMessageIsThere)
{
    make_ports();
    Port::Incoming message;
    for (const std::uint32_t bytes : {8u, 100u}) {
        for (unsigned i = 0; i < 2 * 32768 / 64; i++) {
            ASSERT_TRUE(put(*ports[0], bytes, 1));
            ASSERT_TRUE(put(*ports[0], bytes, 2));
            ASSERT_TRUE(ports[1]->receive(message));
            ports[1]->release();
            const Port::Watch watch = ports[1]->watch();
            ASSERT_TRUE(watch.word == nullptr || !watch.is_quiet()) << bytes << " " << i;
            ASSERT_TRUE(ports[1]->receive(message));
            ports[1]->release();
            if (i % 300 == 0) { // from now on the first of two ends where the second one did
                ASSERT_TRUE(put(*ports[0], bytes, 3));
                ASSERT_TRUE(ports[1]->receive(message));
                ports[1]->release();
            }
        }
    }
}

TEST_F(Connections, BringTheWordOfThePeer)
{
    make_ports();
    EXPECT_EQ(ports[1]->left(), 0u);
    ports[0]->leave(77);
    EXPECT_EQ(ports[1]->left(), 77u);
    EXPECT_EQ(ports[0]->left(), 0u);
    ports[0].reset();
    EXPECT_EQ(ports[1]->left(), 77u);
}

TEST_F(Connections, PartsArriveAsOneMessage)
{
    make_ports();
    std::vector<std::uint8_t> data(ports[0]->longest());
    for (std::size_t i = 0; i < data.size(); i++)
        data[i] = static_cast<std::uint8_t>(i * 7 + (i >> 8));
    for (std::uint32_t i = 0; i < 2000; i++) {
        constexpr std::uint32_t head = 48;
        const int n = static_cast<int>(i % (Port::max_parts + 1));
        const std::uint32_t each = i * 31 % (i % 2 != 0 ? 40 : 500);
        const std::uint32_t bytes = head + static_cast<std::uint32_t>(n) * each;
        iovec parts[Port::max_parts];
        for (int part = 0; part < n; part++)
            parts[part] = {&data[static_cast<std::uint32_t>(part) * each], each};
        std::byte *message = ports[0]->reserve(bytes);
        ASSERT_NE(message, nullptr);
        memset(message, static_cast<int>(i), head);
        ports[0]->commit(head, parts, n);
        ports[0]->publish();
        Port::Incoming got;
        ASSERT_TRUE(ports[1]->receive(got));
        ASSERT_EQ(got.bytes, bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(got.data) % 8, 0u);
        EXPECT_EQ(got.data[head - 1], static_cast<std::byte>(i));
        EXPECT_EQ(memcmp(got.data + head, data.data(), bytes - head), 0);
        ports[1]->release();
    }
}

// No long message lies on both sides of the ring's end but where little is left of it, as it would
// be copied once more.
TEST_F(Connections, LongMessagesEndWhereTheRingDoes)
{
    constexpr std::uint32_t ring = 65536, line = 64, prefix = 8, head = 48;
    make_ports(ring);
    std::vector<std::uint8_t> data(ring);
    for (std::size_t i = 0; i < data.size(); i++)
        data[i] = static_cast<std::uint8_t>(i * 7 + (i >> 8));
    std::uint32_t at = 0, divided = 0;
    for (std::uint32_t i = 0; i < 3000; i++) {
        const std::uint32_t wanted =
            Port::undivided + 1 + i * 977 % (ports[0]->longest() - Port::undivided);
        const std::uint32_t bytes = ports[0]->suitable(wanted);
        ASSERT_LE(bytes, wanted);
        ASSERT_GT(bytes, head);
        const std::uint32_t whole = (bytes + prefix + line - 1) / line * line;
        if (bytes != wanted) {
            ASSERT_EQ(at + whole, ring);
            divided++;
        } else if (at + whole > ring) {
            ASSERT_LT(ring - at, 2048u);
        }
        at = (at + whole) % ring;
        std::byte *message = ports[0]->reserve(bytes);
        ASSERT_NE(message, nullptr);
        memset(message, static_cast<int>(i), head);
        // From several places, some of which are short.
        const std::uint32_t first = i % 3 == 0 ? bytes - head : i * 13 % (bytes - head);
        const iovec parts[2] = {{data.data(), first}, {data.data() + first, bytes - head - first}};
        ports[0]->commit(head, parts, i % 3 == 0 ? 1 : 2);
        ports[0]->publish();
        Port::Incoming got;
        ASSERT_TRUE(ports[1]->receive(got));
        ASSERT_EQ(got.bytes, bytes);
        EXPECT_EQ(got.data[head - 1], static_cast<std::byte>(i));
        ASSERT_EQ(memcmp(got.data + head, data.data(), bytes - head), 0);
        ports[1]->release();
        if (i % 5 == 0) { // and what is short, in turn
            const std::uint32_t few = 8 + i % 300;
            ASSERT_TRUE(put(*ports[0], few, i, i % 2 == 0));
            expect_next(*ports[1], few, i);
            at = (at + (few + prefix + line - 1) / line * line) % ring;
        }
    }
    EXPECT_GT(divided, 100u);
}

// Short ones are seen together, at the end of a burst or once there are enough of them; a long one
// is seen at once, behind those before it.
TEST_F(Connections, ABurstIsShownAtItsEnd)
{
    make_ports();
    Port &sender = *ports[0];
    const auto commit = [&](std::uint32_t bytes, std::uint64_t value) {
        std::byte *message = sender.reserve(bytes);
        ASSERT_NE(message, nullptr);
        memset(message, static_cast<int>(value), bytes);
        memcpy(message, &value, sizeof(value));
        sender.commit(bytes);
    };
    commit(100, 1);
    commit(200, 2);
    EXPECT_FALSE(receives(*ports[1]));
    sender.publish();
    expect_next(*ports[1], 100, 1);
    expect_next(*ports[1], 200, 2);
    commit(100, 3);
    commit(700, 4);
    expect_next(*ports[1], 100, 3);
    expect_next(*ports[1], 700, 4);
    for (std::uint64_t i = 5; i < 25; i++)
        commit(100, i);
    expect_next(*ports[1], 100, 5);
    sender.publish();
    sender.publish();
    for (std::uint64_t i = 6; i < 25; i++)
        expect_next(*ports[1], 100, i);
    EXPECT_FALSE(receives(*ports[1]));
}

// In the ring those alone, in private memory the others.
TEST_F(Connections, ShowInOrderWhatGoesAloneAndWhatDoesNot)
{
    make_ports();
    for (std::uint64_t i = 0; i < 5000; i += 4) {
        for (std::uint64_t k = i; k < i + 4; k++) {
            const auto bytes = static_cast<std::uint32_t>(8 + k * 13 % 500);
            if ((k * k / 7) % 3 == 0) {
                ports[0]->publish();
                ASSERT_TRUE(put(*ports[0], bytes, k, true));
                continue;
            }
            std::byte *message = ports[0]->reserve(bytes);
            ASSERT_NE(message, nullptr);
            memset(message, static_cast<int>(k), bytes);
            memcpy(message, &k, sizeof(k));
            ports[0]->commit(bytes, nullptr, 0);
            EXPECT_EQ(ports[0]->place(bytes), nullptr) << "it would overtake";
        }
        ports[0]->publish();
        for (std::uint64_t k = i; k < i + 4; k++)
            expect_next(*ports[1], static_cast<std::uint32_t>(8 + k * 13 % 500), k);
    }
    std::uint64_t sent = 0;
    while (put(*ports[0], 100, sent, true))
        sent++;
    EXPECT_GE(sent, 32768 / 128 * 3 / 4) << "a quarter may not have come back";
    for (std::uint64_t k = 0; k < sent; k++)
        expect_next(*ports[1], 100, k);
}

TEST_F(Connections, WhatIsNotShownTakesRoom)
{
    make_ports();
    Port &sender = *ports[0];
    std::uint32_t sent = 0;
    for (; sender.reserve(100) != nullptr; sent++)
        sender.commit(100);
    sender.publish();
    std::uint32_t received = 0;
    while (receives(*ports[1]))
        received++;
    EXPECT_EQ(received, sent);
}

// A carrier may bring a message piece by piece, and a peer may stop anywhere.
TEST_F(Connections, PiecesAreCollected)
{
    make_ports();
    std::vector<std::uint32_t> message(1024);
    message[0] = 4000;
    message[1023 - 24] = 77;
    const auto *at = reinterpret_cast<const char *>(message.data());
    std::size_t sent = 0;
    for (const std::size_t piece : {4, 60, 64, 100, 3000, 804}) {
        EXPECT_FALSE(receives(*ports[1]));
        ASSERT_TRUE(ports[1]->arm(false)) << "half a message is nothing to do";
        ASSERT_EQ(ntbclient_send(conns[0], at + sent, piece, 0), static_cast<ssize_t>(piece));
        EXPECT_TRUE(is_rung(*ports[1]));
        ports[1]->disarm();
        sent += piece;
    }
    Port::Incoming got;
    ASSERT_TRUE(ports[1]->receive(got));
    EXPECT_EQ(got.bytes, 4000u);
    EXPECT_EQ(memcmp(got.data, at + 8, 4000), 0);
    ports[1]->release();
    EXPECT_FALSE(receives(*ports[1]));
}

TEST_F(Connections, FullSaysSoAndWhoWaitsForRoomIsRung)
{
    make_ports();
    Port &sender = *ports[0], &receiver = *ports[1];
    EXPECT_FALSE(sender.arm(true)) << "there is room";
    std::uint64_t sent = 0;
    while (put(sender, sender.longest() - 5, sent))
        sent++;
    EXPECT_EQ(sent, 4u);
    ASSERT_TRUE(sender.arm(true));
    EXPECT_FALSE(is_rung(sender));
    for (std::uint64_t i = 0; i < sent; i++)
        expect_next(receiver, sender.longest() - 5, i);
    EXPECT_TRUE(is_rung(sender));
    sender.disarm();
    EXPECT_FALSE(is_rung(sender));
    EXPECT_NE(sender.reserve(sender.longest()), nullptr);
}

TEST_F(Connections, RingsForAMessageOnceArmed)
{
    make_ports();
    Port &port = *ports[1];
    ASSERT_TRUE(put(*ports[0], 8, 1));
    ASSERT_TRUE(put(*ports[0], 8, 2));
    EXPECT_FALSE(is_rung(port));
    expect_next(port, 8, 1);
    EXPECT_FALSE(port.arm(false)) << "there is one more";
    expect_next(port, 8, 2);
    ASSERT_TRUE(port.arm(false));
    ASSERT_TRUE(put(*ports[0], 8, 3));
    EXPECT_TRUE(is_rung(port));
    port.disarm();
    expect_next(port, 8, 3);
}

TEST_F(Connections, WhatHasArrivedComesBeforeTheEnd)
{
    make_ports();
    ASSERT_TRUE(put(*ports[0], 100, 1));
    ASSERT_TRUE(put(*ports[0], 200, 2));
    ports[0].reset();
    EXPECT_TRUE(ports[1]->alive());
    expect_next(*ports[1], 100, 1);
    expect_next(*ports[1], 200, 2);
    EXPECT_TRUE(ports[1]->alive());
    EXPECT_FALSE(receives(*ports[1]));
    EXPECT_FALSE(ports[1]->alive());
    EXPECT_FALSE(ports[1]->arm(false));
    EXPECT_FALSE(ports[1]->is_closed());
    ports[1]->close();
    EXPECT_TRUE(ports[1]->is_closed());
}

// What was received is kept back from the ring for a while, and is no reason to reset.
TEST_F(Connections, AnEndBehindWhatWasReceivedIsAnOrderlyOne)
{
    make();
    ports[1] = Connection::create(conns[1]);
    const std::uint32_t line[16] = {8};
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(ntbclient_send(conns[0], line, sizeof(line), 0), ssize_t{sizeof(line)});
        ASSERT_TRUE(receives(*ports[1]));
    }
    ports[1].reset();
    std::uint32_t bytes;
    EXPECT_EQ(ntbclient_recv(conns[0], &bytes, sizeof(bytes), 0), 0);
    ntbclient_close(conns[0]);
}

// Nor is it kept back from a peer that needs the room: a quarter at most is.
TEST_F(Connections, WhatWasReceivedIsRoomAgain)
{
    constexpr std::uint32_t ring = 32768, line = 64, prefix = 8;
    make_ports(ring);
    std::uint64_t sent = 0, received = 0;
    for (const std::uint32_t bytes : {100u, 3000u}) {
        const std::uint32_t each = (bytes + prefix + line - 1) / line * line;
        for (int round = 0; round < 1000; round++) {
            for (int i = 0; i < 1 + round % 3; i++)
                ASSERT_TRUE(put(*ports[0], bytes, sent++));
            while (received < sent)
                expect_next(*ports[1], bytes, received++);
            if (round % 5 == 0) {
                while (put(*ports[0], bytes, sent))
                    sent++;
                EXPECT_GE(sent - received, ring * 3 / 4 / each);
                while (received < sent)
                    expect_next(*ports[1], bytes, received++);
            }
        }
    }
}

/// A peer that stores counts as it likes.
class CountsOfAPeer : public Connections
{
protected:
    void SetUp() override
    {
        make_ports();
        const std::uint32_t line[16] = {8};
        for (int i = 0; i < 4; i++)
            ASSERT_EQ(ntbclient_send(conns[0], line, sizeof(line), 0), ssize_t{sizeof(line)});
        for (int i = 0; i < 3; i++)
            ASSERT_TRUE(receives(*ports[1]));
    }
    void store(std::uint64_t count)
    {
        ntbc::store(conns[0]->page->direction[conns[0]->index].published, count);
    }
    void expect_end()
    {
        for (int i = 0; i < 600; i++) // more than lie in the ring
            receives(*ports[1]);
        EXPECT_FALSE(ports[1]->alive());
        EXPECT_FALSE(ports[1]->arm(false));
    }
};

// Who only waits for room sends nothing that would find it.
TEST_F(CountsOfAPeer, OfWhatItHasTakenMayNotBeMoreThanWasSent)
{
    ASSERT_TRUE(put(*ports[1], 8, 1));
    ntbc::store(conns[0]->page->direction[conns[1]->index].consumed, std::uint64_t{1} << 40);
    for (int i = 0; i < 600 && put(*ports[1], 8, 1); i++) {
    }
    EXPECT_FALSE(ports[1]->reaches());
    expect_end();
}

TEST_F(CountsOfAPeer, MayNotGoBack)
{
    store(2 * 64); // of which three were received
    expect_end();
}

TEST_F(CountsOfAPeer, MayNotGoBackBeforeASleep)
{
    store(64);
    EXPECT_FALSE(ports[1]->arm(false));
    expect_end();
}

TEST_F(CountsOfAPeer, MayNotBeMoreThanTheRing)
{
    store(4 * 64 + 32768 + 64);
    expect_end();
}

TEST_F(CountsOfAPeer, MayNotGoOnBehindAnEnd)
{
    store(4 * 64 | ntbc::mark_end);
    EXPECT_TRUE(receives(*ports[1]));
    EXPECT_FALSE(receives(*ports[1]));
    store(8 * 64 | ntbc::mark_end);
    expect_end();
}

// Nothing says that it is wrong, so what lies in the ring is received, whatever it is.
TEST_F(CountsOfAPeer, MaySayThatTheRingIsFull)
{
    store(3 * 64 + 32768);
    for (int i = 0; i < 600; i++)
        receives(*ports[1]);
    EXPECT_FALSE(receives(*ports[1]));
}

TEST_F(Connections, ALengthThatCannotBeEndsIt)
{
    make_ports();
    const std::uint32_t line[16] = {ports[0]->longest() + 1};
    ASSERT_EQ(ntbclient_send(conns[0], line, sizeof(line), 0), ssize_t{sizeof(line)});
    EXPECT_FALSE(receives(*ports[1]));
    EXPECT_FALSE(ports[1]->alive());
    EXPECT_FALSE(receives(*ports[0]));
    EXPECT_FALSE(ports[0]->alive());
}

TEST_F(Connections, AMessageThatIsCutShortNeverArrives)
{
    make_ports();
    const std::uint32_t line[16] = {4000};
    ASSERT_EQ(ntbclient_send(conns[0], line, sizeof(line), 0), ssize_t{sizeof(line)});
    EXPECT_FALSE(receives(*ports[1]));
    EXPECT_TRUE(ports[1]->alive());
    EXPECT_TRUE(ports[1]->arm(false)) << "half a message is nothing to do";
    ports[1]->disarm();
    ports[0].reset();
    EXPECT_FALSE(receives(*ports[1]));
    EXPECT_FALSE(ports[1]->alive());
}

// ---- memory

// No one is asked: who may wait does it.
TEST_F(Connections, WhatTheDaemonIsAskedIsLeftToOthers)
{
    make_ports();
    ntb::verbs::MemoryFiles files;
    const std::shared_ptr<ntb::verbs::Segment> own = files.create(8192);
    Connection::Order order;
    EXPECT_FALSE(ports[0]->take(order));
    EXPECT_EQ(ports[0]->grant(own, true), Port::later);
    const Port::Opening opening = ports[0]->open(77);
    EXPECT_TRUE(opening.later);
    EXPECT_EQ(opening.segment, nullptr);
    ASSERT_TRUE(ports[0]->take(order));
    EXPECT_EQ(order.segment, own);
    EXPECT_TRUE(order.writable);
    ASSERT_TRUE(ports[0]->take(order));
    EXPECT_EQ(order.segment, nullptr);
    EXPECT_EQ(order.number, 77u);
    EXPECT_FALSE(ports[0]->take(order));
    for (std::size_t i = 0; i < Connection::max_orders; ++i)
        EXPECT_TRUE(ports[0]->open(i).later);
    EXPECT_FALSE(ports[0]->open(1).later) << "so many are kept";
    EXPECT_EQ(ports[0]->grant(own, true), 0u);
    ports[1]->close();
    EXPECT_FALSE(receives(*ports[1]));
    EXPECT_EQ(ports[1]->grant(own, true), 0u) << "no one is there";
    EXPECT_FALSE(ports[1]->open(1).later);
}

} // namespace
