// SPDX-License-Identifier: BSD-3-Clause
// Two daemons of one machine, with messages handed over one by one: so they may cross.
#include "broker/bells.hpp"
#include "broker/broker.hpp"

#include "wire/sealed.hpp"

#include <cerrno>
#include <deque>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

using namespace ntbd;
using ntbc::Message;
using ntbc::Parcel;
using ntbc::Type;

namespace
{
std::unique_ptr<Parcel> parcel_of(const Message &m, const int *fds, int count)
{
    auto parcel = std::make_unique<Parcel>();
    parcel->message = m;
    for (int i = 0; i < count; i++)
        parcel->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
    parcel->count = count;
    return parcel;
}

struct Host : Outbox {
    Host() : broker(config, *this, 50)
    {
        config.ring_bytes = 4096;
        broker.attach(1, {100, 100, 11});
    }
    void to_client(ClientId, const Message &m, const int *fds, int count) override
    {
        said.push_back(parcel_of(m, fds, count));
    }
    void to_peer(const Message &m, const int *fds, int count) override
    {
        on_way.push_back(parcel_of(m, fds, count));
    }
    void to_carrier(RelayOrder &&order) override { orders.push_back(std::move(order)); }
    CloseCall closer_of(uid_t uid) override
    {
        return [this, uid](int fd) {
            closed_for.insert(uid);
            ::close(fd);
        };
    }
    void ask(Type type, uint32_t flags = 0, ClientId client = 1)
    {
        Message m;
        m.type = type;
        m.flags = flags;
        m.backlog = 8;
        m.timeout_ms = 1000;
        m.key_bytes = 1;
        m.key[0] = 'k';
        EXPECT_TRUE(broker.take(client, m));
    }
    void close(uint64_t id)
    {
        Message m;
        m.type = Type::close;
        m.id = id;
        EXPECT_TRUE(broker.take(1, m));
    }
    Message last() const { return said.empty() ? Message{} : said.back()->message; }

    Config config;
    std::multiset<uid_t> closed_for;
    std::vector<RelayOrder> orders;
    std::deque<std::unique_ptr<Parcel>> on_way; ///< to the other host
    std::vector<std::unique_ptr<Parcel>> said;  ///< to the client
    Broker broker;
};

class Match : public testing::Test
{
protected:
    void SetUp() override
    {
        here.broker.peer_up();
        there.broker.peer_up();
    }
    static void hand_over(Host &from, Host &to)
    {
        while (!from.on_way.empty()) {
            EXPECT_TRUE(to.broker.take_from_peer(from.on_way.front().get()));
            from.on_way.pop_front();
        }
    }
    void settle()
    {
        while (!here.on_way.empty() || !there.on_way.empty()) {
            hand_over(here, there);
            hand_over(there, here);
        }
    }
    void expect_nothing_left()
    {
        for (Host *host : {&here, &there}) {
            const auto &used = host->broker.accounts().used();
            EXPECT_EQ(used.at(100).connections, 0u);
            EXPECT_EQ(used.at(100).bytes, 0u);
            EXPECT_EQ(host->broker.figures().open + host->broker.figures().connecting, 0u);
        }
    }

    Host here; ///< connects
    Host there;
};

TEST_F(Match, GivesBothTheSameMemory)
{
    there.ask(Type::listen);
    here.ask(Type::connect);
    settle();
    ASSERT_EQ(here.last().type, Type::connected);
    ASSERT_EQ(there.last().type, Type::accepted);
    auto *one = static_cast<ntbc::Page *>(
        ntbc::sealed_map(here.said.back()->fd(0), ntbc::memory_bytes(4096)));
    auto *other = static_cast<ntbc::Page *>(
        ntbc::sealed_map(there.said.back()->fd(0), ntbc::memory_bytes(4096)));
    one->gone = 77;
    EXPECT_EQ(other->gone, 77u);
    EXPECT_EQ(send(here.said.back()->fd(1), "x", 1, 0), 1);
    char byte;
    EXPECT_EQ(recv(there.said.back()->fd(1), &byte, 1, MSG_DONTWAIT), 1);
    here.close(here.last().id);
    there.close(there.last().id);
    settle();
    expect_nothing_left();
}

// Its close may wait for what that user has put into it, where the kernel does not refuse that.
TEST_F(Match, ClosesABellForWhoRingsIt)
{
    here.broker.attach(2, {101, 101, 12});
    here.ask(Type::listen, ntbc::flag_local);
    here.ask(Type::connect, ntbc::flag_local, 2);
    ASSERT_EQ(here.last().type, Type::accepted);
    EXPECT_EQ(here.closed_for, (std::multiset<uid_t>{100, 101}));
    const int bell = here.said.back()->fd(1);
    int rights = 0;
    socklen_t bytes = sizeof(rights);
    if (getsockopt(bell, SOL_SOCKET, SO_PASSRIGHTS, &rights, &bytes) != 0)
        GTEST_SKIP() << "this kernel refuses no descriptors";
    EXPECT_EQ(ntbc::message_send(bell, {}, &bell, 1), -EPERM);
    EXPECT_EQ(ntbc::message_send(bell, {}), 0);
}

// ---- segments of a connection between the two

class SharedSegments : public Match
{
protected:
    static constexpr uint64_t page = ntbc::segment_page_bytes;

    void SetUp() override
    {
        Match::SetUp();
        there.ask(Type::listen);
        here.ask(Type::connect);
        settle();
        heres = here.last().id;
        theres = there.last().id;
    }
    static void say(Host &host, Type type, uint64_t id, uint64_t other = 0, uint32_t flags = 0)
    {
        Message m;
        m.type = type;
        m.id = id;
        m.other = other;
        m.flags = flags;
        EXPECT_TRUE(host.broker.take(1, m));
    }
    /// One page of the host that connects, made and granted.
    uint64_t grant(uint32_t flags = 0)
    {
        say(here, Type::make_segment, page);
        made = here.last().id;
        say(here, Type::grant, heres, made, flags);
        EXPECT_EQ(here.last().status, 0);
        return here.last().id;
    }
    int open(uint64_t number)
    {
        say(there, Type::open_segment, theres, number);
        settle();
        EXPECT_EQ(there.last().type, Type::answer);
        return there.last().status;
    }
    uint32_t segments_there() { return there.broker.accounts().used().at(100).segments; }

    uint64_t heres = 0;
    uint64_t theres = 0;
    uint64_t made = 0;
};

TEST_F(SharedSegments, AreOpenedByTheOtherEnd)
{
    ASSERT_EQ(open(grant()), 0);
    EXPECT_EQ(there.last().other, page);
    const int fd = there.said.back()->fd(0);
    EXPECT_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    EXPECT_TRUE(ntbc::sealed_check(fd, page));
    EXPECT_EQ(segments_there(), 1u);
    ASSERT_EQ(open(grant(ntbc::flag_writable)), 0);
    EXPECT_EQ(fcntl(there.said.back()->fd(0), F_GETFL) & O_ACCMODE, O_RDWR);
    // Its pages go with their owner, below one that keeps a descriptor.
    EXPECT_EQ(write(there.said.back()->fd(0), "x", 1), 1);
    say(here, Type::end_segment, made);
    char byte = 'y';
    EXPECT_EQ(pread(there.said.back()->fd(0), &byte, 1, 0), 1);
    EXPECT_EQ(byte, 0);
    there.close(theres);
    EXPECT_EQ(segments_there(), 0u);
}

TEST_F(SharedSegments, AreThatEndsAlone)
{
    const uint64_t number = grant();
    for (const uint64_t guess : {uint64_t{0}, number - 1, number + 1, UINT64_MAX})
        EXPECT_EQ(open(guess), -ENOENT);
    // A daemon that asks for what is not joined with it.
    for (const uint64_t id : {uint64_t{0}, heres + 100, made, UINT64_MAX}) {
        Message m;
        m.type = Type::find_segment;
        m.id = id;
        m.other = number;
        EXPECT_TRUE(here.broker.take_from_peer(parcel_of(m, nullptr, 0).get()));
        EXPECT_EQ(here.on_way.back()->message.status, -ENOENT);
        EXPECT_EQ(here.on_way.back()->count, 0);
        here.on_way.clear();
    }
    there.config.quotas[100] = {10, 10, 10, uint64_t{1} << 30, 0};
    EXPECT_EQ(open(number), -EDQUOT);
    EXPECT_EQ(segments_there(), 0u);
}

TEST_F(SharedSegments, AreNotOpenedAnyMore)
{
    const uint64_t first = grant();
    say(here, Type::ungrant, heres, first);
    EXPECT_EQ(open(first), -ENOENT);
    const uint64_t second = grant();
    say(here, Type::end_segment, made);
    EXPECT_EQ(open(second), -ENOENT);
    const uint64_t third = grant();
    // Revoked there, which is on its way when the question passes it.
    say(here, Type::revoke, heres);
    say(there, Type::open_segment, theres, third);
    hand_over(there, here);
    hand_over(here, there);
    EXPECT_EQ(there.last().status, -ECONNRESET);
    EXPECT_EQ(open(third), -ECONNRESET);
    EXPECT_EQ(segments_there(), 0u);
}

TEST_F(SharedSegments, AreAskedForOneByOneAndNotForEver)
{
    const uint64_t number = grant();
    say(there, Type::open_segment, theres, number);
    say(there, Type::open_segment, theres, number);
    EXPECT_EQ(there.last().status, -EBUSY);
    const int64_t until = there.broker.next_deadline();
    there.broker.expire(until - 1);
    EXPECT_EQ(there.last().status, -EBUSY);
    there.broker.expire(until);
    EXPECT_EQ(there.last().status, -ETIMEDOUT);
    settle(); // the answer comes too late
    EXPECT_EQ(there.last().status, -ETIMEDOUT);
    EXPECT_EQ(segments_there(), 0u);
    EXPECT_EQ(open(number), 0);
    // Of a connection that is closed meanwhile, and of a daemon that goes.
    say(there, Type::open_segment, theres, number);
    there.broker.peer_down();
    EXPECT_EQ(there.said[there.said.size() - 2]->message.status, -ECONNRESET);
    EXPECT_EQ(there.broker.next_deadline(), INT64_MAX);
    there.close(theres);
}

TEST_F(SharedSegments, AreLetGoOfByAClientThatHasGone)
{
    const uint64_t number = grant();
    say(there, Type::open_segment, theres, number);
    there.close(theres);
    EXPECT_EQ(there.last().status, -ECONNRESET);
    settle();
    EXPECT_EQ(there.last().status, -ECONNRESET);
    say(here, Type::end_segment, made);
    here.close(heres);
    settle();
    expect_nothing_left();
}

TEST_F(SharedSegments, AreWhatADaemonSends)
{
    const int is_a_bell = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int file = ntbc::sealed_create("test", page);
    const int bare = memfd_create("test", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(bare, page), 0);
    const auto takes = [&](int status, uint64_t bytes, const std::vector<int> &fds) {
        Message m;
        m.type = Type::segment_found;
        m.request = 99; // no one waits for it
        m.status = status;
        m.other = bytes;
        return there.broker.take_from_peer(
            parcel_of(m, fds.data(), static_cast<int>(fds.size())).get());
    };
    EXPECT_TRUE(takes(0, page, {file}));
    EXPECT_TRUE(takes(-ENOENT, 0, {}));
    EXPECT_FALSE(takes(1, 0, {}));
    EXPECT_FALSE(takes(-ENOENT, page, {file}));
    EXPECT_FALSE(takes(0, page, {}));
    EXPECT_FALSE(takes(0, page, {file, file}));
    EXPECT_FALSE(takes(0, 2 * page, {file}));
    EXPECT_FALSE(takes(0, page - 1, {file}));
    EXPECT_FALSE(takes(0, 0, {file}));
    EXPECT_FALSE(takes(0, page, {bare}));
    EXPECT_FALSE(takes(0, page, {is_a_bell}));
    close(is_a_bell);
    close(file);
    close(bare);
    // Two daemons of two machines have no memory in common.
    there.broker.peer_up(Carriage::daemon);
    EXPECT_FALSE(takes(-ENOENT, 0, {}));
}

TEST_F(Match, KeepsUnreadBytesUntilBothHaveClosed)
{
    there.ask(Type::listen);
    here.ask(Type::connect);
    settle();
    auto *memory =
        static_cast<uint8_t *>(ntbc::sealed_map(here.said.back()->fd(0), ntbc::memory_bytes(4096)));
    memory[ntbc::page_bytes] = 42;
    there.close(there.last().id);
    settle();
    EXPECT_EQ(memory[ntbc::page_bytes], 42);
    here.close(here.last().id);
    settle();
    EXPECT_EQ(memory[ntbc::page_bytes], 0); // given back
    expect_nothing_left();
}

TEST_F(Match, LetsGoOfWhatWasClosedMeanwhile)
{
    there.ask(Type::listen);
    here.ask(Type::connect);
    hand_over(here, there); // matched, and on its way back
    here.close(here.last().id);
    settle();
    ASSERT_GE(there.said.size(), 3u);
    EXPECT_EQ(there.last().type, Type::ended);
    there.close(there.last().id);
    settle();
    expect_nothing_left();
}

TEST_F(Match, WithdrawsWhatHasRunOutOfTime)
{
    here.ask(Type::connect, ntbc::flag_wait);
    settle();
    EXPECT_EQ(here.broker.next_deadline(), 1000);
    here.broker.expire(999);
    EXPECT_EQ(here.last().type, Type::answer);
    here.broker.expire(1000);
    EXPECT_EQ(here.last().type, Type::failed);
    EXPECT_EQ(here.last().status, -ETIMEDOUT);
    settle();
    there.ask(Type::listen);
    EXPECT_EQ(there.last().type, Type::answer); // no one waits any more
    here.close(here.last().id);
    expect_nothing_left();
}

TEST_F(Match, OffersAgainWhenThePeerReturns)
{
    here.broker.peer_down();
    there.broker.peer_down();
    here.ask(Type::connect);
    EXPECT_EQ(here.last().status, -EHOSTUNREACH);
    here.ask(Type::connect, ntbc::flag_wait);
    EXPECT_TRUE(here.on_way.empty());
    there.ask(Type::listen);
    here.broker.peer_up();
    there.broker.peer_up();
    settle();
    EXPECT_EQ(here.last().type, Type::connected);
}

TEST_F(Match, EndsAllWhenThePeerIsLost)
{
    there.ask(Type::listen);
    here.ask(Type::connect);
    settle();
    auto *page = static_cast<ntbc::Page *>(
        ntbc::sealed_map(here.said.back()->fd(0), ntbc::memory_bytes(4096)));
    here.broker.peer_down();
    EXPECT_EQ(here.last().type, Type::ended);
    EXPECT_EQ(here.last().status, -ECONNRESET);
    EXPECT_NE(page->gone & ntbc::gone_revoked, 0u);
    here.close(here.last().id);
    there.close(there.last().id); // before it has learnt
    there.broker.peer_down();
    here.on_way.clear();
    expect_nothing_left();
}

TEST_F(Match, RefusesMemoryThatCouldShrink)
{
    here.ask(Type::connect, ntbc::flag_wait);
    const uint64_t id = here.last().id;
    const int fd = memfd_create("open", MFD_ALLOW_SEALING);
    ASSERT_EQ(ftruncate(fd, static_cast<off_t>(ntbc::memory_bytes(4096))), 0);
    int bells[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, bells), 0);
    Message m;
    m.type = Type::matched;
    m.id = id;
    m.other = 9;
    m.ring_bytes = 4096;
    const int fds[] = {fd, bells[0]};
    here.on_way.clear();
    EXPECT_TRUE(here.broker.take_from_peer(parcel_of(m, fds, 2).get()));
    EXPECT_EQ(here.last().type, Type::failed);
    EXPECT_EQ(here.last().status, -EPROTO);
    EXPECT_EQ(here.on_way.front()->message.type, Type::gone);
    close(fd);
    close(bells[0]);
    close(bells[1]);
}

TEST_F(Match, DropsADaemonThatSaysWhatNoneSays)
{
    Message m;
    for (const Type type : {Type::hello, Type::connect, Type::answer, Type::introduce}) {
        m.type = type;
        EXPECT_FALSE(here.broker.take_from_peer(parcel_of(m, nullptr, 0).get()));
    }
    m.type = Type::offer; // without a key, without an id, twice
    EXPECT_FALSE(here.broker.take_from_peer(parcel_of(m, nullptr, 0).get()));
    m.key_bytes = 1;
    EXPECT_FALSE(here.broker.take_from_peer(parcel_of(m, nullptr, 0).get()));
    m.id = 1;
    m.flags = ntbc::flag_wait;
    EXPECT_TRUE(here.broker.take_from_peer(parcel_of(m, nullptr, 0).get()));
    EXPECT_FALSE(here.broker.take_from_peer(parcel_of(m, nullptr, 0).get()));
    // Ids that mean nothing.
    for (const Type type : {Type::matched, Type::refused, Type::gone, Type::withdraw}) {
        m.type = type;
        m.id = 12345;
        EXPECT_TRUE(here.broker.take_from_peer(parcel_of(m, nullptr, 0).get()));
    }
}

// ---- through the daemons

class CarriedMatch : public Match
{
protected:
    void SetUp() override
    {
        here.broker.peer_up(Carriage::daemon);
        there.broker.peer_up(Carriage::daemon);
    }
    void meet()
    {
        there.ask(Type::listen);
        here.ask(Type::connect);
        settle();
        ASSERT_EQ(here.last().type, Type::connected);
        ASSERT_EQ(there.last().type, Type::accepted);
    }
};

TEST_F(CarriedMatch, TellsBothCarriersOneSecret)
{
    there.ask(Type::listen);
    here.ask(Type::connect);
    hand_over(here, there);
    // The daemon that is named to knows first, and no descriptor goes to the other one.
    ASSERT_EQ(there.orders.size(), 1u);
    ASSERT_EQ(there.on_way.size(), 1u);
    EXPECT_EQ(there.on_way.front()->count, 0);
    hand_over(there, here);
    ASSERT_EQ(here.orders.size(), 1u);
    const RelayOrder &expects = there.orders[0];
    const RelayOrder &connects = here.orders[0];
    EXPECT_EQ(expects.kind, RelayOrder::Kind::expect);
    EXPECT_EQ(connects.kind, RelayOrder::Kind::connect);
    EXPECT_EQ(expects.token, connects.token);
    EXPECT_NE(expects.token, Token{});
    EXPECT_EQ(connects.peer_id, expects.id);
    EXPECT_EQ(expects.peer_id, connects.id);
    EXPECT_EQ(connects.peer_ring_bytes, 4096u);
    EXPECT_NE(expects.client_end, connects.client_end);
    EXPECT_EQ(here.broker.figures().carried, 1u);
    // The carrier has the other end of the client's bell, and its memory.
    EXPECT_EQ(send(here.said.back()->fd(1), "x", 1, 0), 1);
    char byte;
    EXPECT_EQ(recv(connects.bell.get(), &byte, 1, MSG_DONTWAIT), 1);
    auto *page = static_cast<ntbc::Page *>(
        ntbc::sealed_map(here.said.back()->fd(0), ntbc::memory_bytes(4096)));
    page->gone = 77;
    EXPECT_EQ(connects.memory->page().gone, 77u);
    EXPECT_EQ(expects.memory->page().gone, 0u);
}

TEST_F(CarriedMatch, ChargesUntilTheLastByteHasArrived)
{
    meet();
    here.close(here.last().id);
    EXPECT_EQ(here.orders.back().kind, RelayOrder::Kind::let_go);
    EXPECT_EQ(here.broker.accounts().used().at(100).connections, 1u);
    EXPECT_TRUE(here.on_way.empty());
    here.broker.relay_ended(here.orders[0].id, 0);
    EXPECT_EQ(here.broker.figures().carried, 0u);
    there.broker.relay_ended(there.orders[0].id, 0);
    EXPECT_EQ(there.last().type, Type::accepted); // it reads, and sees the end there
    EXPECT_EQ(there.broker.accounts().used().at(100).connections, 1u);
    there.close(there.last().id);
    expect_nothing_left();
}

TEST_F(CarriedMatch, AbandonsWhatWasClosedMeanwhile)
{
    there.ask(Type::listen);
    here.ask(Type::connect);
    hand_over(here, there);
    here.close(here.last().id);
    settle();
    ASSERT_EQ(there.orders.back().kind, RelayOrder::Kind::abandon);
    there.broker.relay_ended(there.orders[0].id, -ECONNRESET);
    EXPECT_EQ(there.last().type, Type::ended);
    there.close(there.last().id);
    settle();
    expect_nothing_left();
}

TEST_F(CarriedMatch, LeavesWhatHasArrivedToBeReadWhenThePeerIsLost)
{
    meet();
    here.broker.peer_down();
    EXPECT_EQ(here.last().type, Type::connected);
    // One that was not joined yet never is.
    EXPECT_EQ(here.orders.back().kind, RelayOrder::Kind::abandon);
    EXPECT_EQ(here.orders[0].memory->page().gone, 0u);
    here.broker.relay_ended(here.orders[0].id, -ECONNRESET);
    EXPECT_EQ(here.last().type, Type::ended);
    EXPECT_EQ(here.orders[0].memory->page().gone, ntbc::gone_revoked);
    EXPECT_TRUE(here.on_way.empty());
}

TEST_F(CarriedMatch, RefusesMatchesThatNameNothing)
{
    here.ask(Type::connect, ntbc::flag_wait);
    Message m;
    m.type = Type::matched;
    m.id = here.last().id;
    m.other = 9;
    m.key_bytes = 15;
    m.ring_bytes = 4096;
    here.on_way.clear();
    EXPECT_TRUE(here.broker.take_from_peer(parcel_of(m, nullptr, 0).get()));
    EXPECT_EQ(here.last().status, -EPROTO);
    EXPECT_EQ(here.on_way.front()->message.type, Type::gone);
    here.ask(Type::connect, ntbc::flag_wait);
    m.id = here.last().id;
    m.key_bytes = 16;
    m.ring_bytes = 4097;
    EXPECT_TRUE(here.broker.take_from_peer(parcel_of(m, nullptr, 0).get()));
    EXPECT_EQ(here.last().status, -EPROTO);
    EXPECT_TRUE(here.orders.empty());
}

// ---- claims of sockets

class CarriedClaims : public CarriedMatch
{
protected:
    static void claim(Host &host, bool accepted)
    {
        Shown shown;
        shown.cookie = accepted ? 9 : 8;
        shown.local = std::string(18, accepted ? 'b' : 'a');
        shown.remote = std::string(18, accepted ? 'a' : 'b');
        Message m;
        m.type = Type::claim;
        m.other = 1;
        m.timeout_ms = 1000;
        m.flags = accepted ? ntbc::flag_accepted : 0;
        EXPECT_TRUE(host.broker.take_claim(1, m, shown));
    }
    void meet_claims()
    {
        claim(here, false);
        claim(there, true);
        settle();
        ASSERT_EQ(here.last().type, Type::claimed);
        ASSERT_EQ(there.last().type, Type::claimed);
    }
};

TEST_F(CarriedClaims, HaveMemoryOfTheirOwnAndOneSecret)
{
    there.config.ring_bytes = 8192;
    claim(there, true);
    claim(here, false);
    hand_over(here, there);
    ASSERT_EQ(there.orders.size(), 1u);
    EXPECT_EQ(there.on_way.front()->count, 0);
    hand_over(there, here);
    ASSERT_EQ(here.orders.size(), 1u);
    const RelayOrder &expects = there.orders[0];
    const RelayOrder &connects = here.orders[0];
    EXPECT_EQ(expects.kind, RelayOrder::Kind::expect);
    EXPECT_EQ(connects.kind, RelayOrder::Kind::connect);
    EXPECT_TRUE(expects.is_claim && connects.is_claim);
    EXPECT_EQ(expects.client_end, 1u);
    EXPECT_EQ(connects.client_end, 0u);
    EXPECT_EQ(connects.peer_id, expects.id);
    EXPECT_EQ(connects.token, expects.token);
    EXPECT_NE(connects.token, Token{});
    // Each byte has the same place in both: the connecting daemon takes the other's size.
    EXPECT_EQ(connects.memory->ring_bytes(), 8192u);
    for (Host *host : {&here, &there}) {
        EXPECT_EQ(host->last().flags, ntbc::flag_carried);
        EXPECT_EQ(host->last().ring_bytes, 8192u);
        EXPECT_EQ(host->broker.figures().claimed, 1u);
        EXPECT_EQ(host->broker.figures().carried, 1u);
        // The client's bell is the other end of the carrier's.
        EXPECT_EQ(send(host->said.back()->fd(1), "x", 1, 0), 1);
        char byte;
        EXPECT_EQ(recv(host->orders[0].bell.get(), &byte, 1, MSG_DONTWAIT), 1);
    }
}

TEST_F(CarriedClaims, AreChargedUntilTheCarrierIsDone)
{
    meet_claims();
    here.close(here.last().id);
    EXPECT_EQ(here.orders.back().kind, RelayOrder::Kind::let_go);
    EXPECT_TRUE(here.on_way.empty()); // the other end hears it behind the bytes
    EXPECT_EQ(here.broker.accounts().used().at(100).connections, 1u);
    here.broker.relay_ended(here.orders[0].id, 0);
    // That of the other end was lost before it has closed.
    there.broker.relay_ended(there.orders[0].id, -ECONNRESET);
    EXPECT_EQ(there.last().type, Type::ended);
    there.close(there.orders[0].id);
    settle();
    expect_nothing_left();
    EXPECT_EQ(here.broker.figures().carried + there.broker.figures().carried, 0u);
}

TEST_F(CarriedClaims, PassAFinOnBehindTheWords)
{
    meet_claims();
    Message m;
    m.type = Type::fin_seen;
    m.id = here.last().id;
    m.other = 1;
    EXPECT_TRUE(here.broker.take(1, m));
    EXPECT_EQ(here.orders.back().kind, RelayOrder::Kind::fin);
    EXPECT_EQ(here.orders.back().generation, 1u);
    EXPECT_TRUE(here.on_way.empty());
    there.broker.relay_fin(there.orders[0].id, 1);
    there.broker.relay_fin(77, 1); // of one that is gone meanwhile
    Message fin;
    fin.type = Type::fin;
    fin.key_kind = ntbc::key_tuple;
    fin.id = there.orders[0].id;
    EXPECT_FALSE(there.broker.take_from_peer(parcel_of(fin, nullptr, 0).get()));
}

TEST_F(CarriedClaims, AMatchThatCrossesACloseIsLetGo)
{
    claim(there, true);
    claim(here, false);
    hand_over(here, there);
    Message m;
    m.type = Type::unclaim;
    m.other = 1;
    EXPECT_TRUE(here.broker.take(1, m));
    settle();
    EXPECT_TRUE(here.orders.empty());
    ASSERT_EQ(there.orders.back().kind, RelayOrder::Kind::abandon);
    there.broker.relay_ended(there.orders[0].id, -ECONNRESET);
    EXPECT_EQ(there.last().type, Type::ended);
    there.close(there.orders[0].id);
    settle();
    expect_nothing_left();
}

TEST_F(CarriedClaims, EndBehindWhatHasArrivedWhereTheLinkIsLost)
{
    meet_claims();
    for (Host *host : {&here, &there}) {
        host->broker.peer_down();
        EXPECT_EQ(host->last().type, Type::claimed);
        EXPECT_EQ(host->orders.back().kind, RelayOrder::Kind::abandon);
        host->broker.relay_ended(host->orders[0].id, -ECONNRESET);
        EXPECT_EQ(host->last().type, Type::ended);
        host->close(host->orders[0].id);
    }
    expect_nothing_left();
}

TEST_F(CarriedClaims, AMatchThatNoDaemonSendsIsRefused)
{
    for (const int wrong : {0, 1, 2}) {
        claim(here, false);
        here.on_way.clear();
        Message m;
        m.type = Type::matched;
        m.key_kind = ntbc::key_tuple;
        m.id = 1 + static_cast<uint64_t>(wrong);
        m.other = wrong == 0 ? 0 : 5;
        m.ring_bytes = wrong == 1 ? 4097 : 4096;
        m.key_bytes = wrong == 2 ? 15 : 16;
        EXPECT_TRUE(here.broker.take_from_peer(parcel_of(m, nullptr, 0).get()));
        EXPECT_EQ(here.last().type, Type::unclaimed);
        EXPECT_EQ(here.on_way.front()->message.type, Type::gone);
    }
    // Rings that are more than its user may have.
    here.config.quotas[100] = {10, 10, 10, 100000, 0};
    claim(here, false);
    Message m;
    m.type = Type::matched;
    m.key_kind = ntbc::key_tuple;
    m.id = 4;
    m.other = 5;
    m.ring_bytes = 1 << 20;
    m.key_bytes = 16;
    EXPECT_TRUE(here.broker.take_from_peer(parcel_of(m, nullptr, 0).get()));
    EXPECT_EQ(here.last().type, Type::unclaimed);
    EXPECT_TRUE(here.orders.empty());
    expect_nothing_left();
}
} // namespace
