// SPDX-License-Identifier: BSD-3-Clause
// Ways between connection managers of two hosts and of one, and strangers at a port.
#include "../../../daemon/hosts.hpp"

#include "cm/network.hpp"

#include <cstring>
#include <mutex>
#include <vector>

using namespace ntbd::test;
using namespace ntb::verbs::cm;

namespace
{
constexpr ntb::verbs::cm::Port port = {0x0106, 7000};

Message message_with(Kind kind, std::uint32_t number)
{
    Message message = message_of(kind);
    message.type = type_rc;
    message.lid = 1;
    message.reason = number;
    return message;
}

/// A carrier of a process, and all that it brought.
class Process final : private Audience
{
public:
    explicit Process(const Daemon &daemon, std::uint64_t patience = 0) : network(mutex, patience)
    {
        EXPECT_EQ(network.open(daemon.config.socket.c_str()), 0);
        EXPECT_EQ(network.start(*this), 0);
    }
    ~Process() override { network.stop(); }

    template <typename Call>
    auto call(Call make)
    {
        pthread_mutex_lock(&mutex);
        const auto result = make(network);
        pthread_mutex_unlock(&mutex);
        return result;
    }
    int claim()
    {
        return call([](Network &one) { return one.claim(port); });
    }
    Link connect(bool here)
    {
        return call(
            [=](Network &one) { return one.connect(port, here, message_with(Kind::Req, 1)); });
    }
    bool send(Link link, Kind kind, std::uint32_t number)
    {
        return call([=](Network &one) { return one.send(link, message_with(kind, number)); });
    }
    Link locate(bool here, std::uint32_t timeout_ms)
    {
        return call([=](Network &one) { return one.locate(port, here, timeout_ms); });
    }
    std::uint16_t expect_lid(Link link)
    {
        std::uint16_t lid = 0;
        EXPECT_TRUE(await([&] {
            pthread_mutex_lock(&mutex);
            if (const auto at = lids.find(link); at != lids.end())
                lid = at->second;
            pthread_mutex_unlock(&mutex);
            return lid != 0;
        }));
        return lid;
    }
    void close(Link link)
    {
        call([=](Network &one) {
            one.close(link);
            return 0;
        });
    }
    /// What has come so far, once it is so much.
    std::vector<std::pair<Link, std::uint32_t>> expect(std::size_t n)
    {
        std::vector<std::pair<Link, std::uint32_t>> seen;
        EXPECT_TRUE(await([&] {
            pthread_mutex_lock(&mutex);
            seen = brought;
            pthread_mutex_unlock(&mutex);
            return seen.size() >= n;
        }));
        return seen;
    }
    int expect_loss(Link link)
    {
        int error = 0;
        EXPECT_TRUE(await([&] {
            pthread_mutex_lock(&mutex);
            for (const auto &[which, why] : losses)
                if (which == link)
                    error = why;
            pthread_mutex_unlock(&mutex);
            return error != 0;
        }));
        return error;
    }
    std::size_t requests()
    {
        pthread_mutex_lock(&mutex);
        const std::size_t n = asked;
        pthread_mutex_unlock(&mutex);
        return n;
    }

private:
    void request(Link link, ntb::verbs::cm::Port to, const Message &message) override
    {
        EXPECT_EQ(to, port);
        asked++;
        brought.emplace_back(link, message.reason);
    }
    void message(Link link, const Message &message) override
    {
        brought.emplace_back(link, message.reason);
    }
    void located(Link link, std::uint16_t lid) override { lids[link] = lid; }
    void lost(Link link, int error) override { losses.emplace_back(link, error); }
    void notify() override {}

    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    Network network;
    std::size_t asked = 0;
    std::vector<std::pair<Link, std::uint32_t>> brought;
    std::vector<std::pair<Link, int>> losses;
    std::map<Link, std::uint16_t> lids;
};

class CmNetworks : public testing::Test
{
protected:
    void SetUp() override
    {
        one.config.ring_bytes = other.config.ring_bytes = 65536;
        one.start();
        other.start();
        join(one, other);
    }

    Folder folder;
    Daemon one{folder.path + "/a.sock"}, other{folder.path + "/b.sock"};
};

TEST_F(CmNetworks, WithoutADaemonThereIsNone)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    Network network(mutex);
    EXPECT_EQ(network.open((folder.path + "/none").c_str()), -ENOENT);
}

TEST_F(CmNetworks, MessagesGoBothWaysAndTheEndIsSeen)
{
    Process client(one), server(other), second(one);
    EXPECT_EQ(server.claim(), 0);
    EXPECT_EQ(second.claim(), 0) << "of another host";
    for (const bool here : {false, true}) {
        Process &listener = here ? second : server;
        const std::size_t before = listener.expect(0).size(), heard = client.expect(0).size();
        const Link link = client.connect(here);
        const Link back = listener.expect(before + 1).back().first;
        EXPECT_TRUE(listener.send(back, Kind::Rep, 2));
        EXPECT_EQ(client.expect(heard + 1).back(), std::make_pair(link, 2u));
        EXPECT_TRUE(client.send(link, Kind::Rtu, 3));
        EXPECT_EQ(listener.expect(before + 2).back(), std::make_pair(back, 3u));
        EXPECT_TRUE(listener.send(back, Kind::Dreq, 4));
        listener.close(back);
        EXPECT_EQ(client.expect(heard + 2).back(), std::make_pair(link, 4u))
            << "sent before the end";
        EXPECT_EQ(client.expect_loss(link), -ECONNRESET);
        EXPECT_FALSE(client.send(link, Kind::Drep, 5));
    }
}

TEST_F(CmNetworks, WhoIsNotHereIsSoughtAtThePeer)
{
    Process client(one), server(other);
    EXPECT_EQ(server.claim(), 0);
    client.connect(true);
    server.expect(1);
}

TEST_F(CmNetworks, TheHostOfAPortIsFound)
{
    Process process(one), second(one);
    const Client here(one), there(other);
    EXPECT_EQ(process.expect_lid(process.locate(false, long_ms)), ntbclient_host(there));
    EXPECT_EQ(process.expect_lid(process.locate(true, long_ms)), ntbclient_host(there))
        << "no one has claimed it here";
    EXPECT_EQ(second.claim(), 0);
    EXPECT_EQ(process.expect_lid(process.locate(true, long_ms)), ntbclient_host(here));
    EXPECT_EQ(process.expect_lid(process.locate(false, long_ms)), ntbclient_host(there));
    EXPECT_EQ(second.requests(), 0u);
}

TEST_F(CmNetworks, TheHostOfAPortIsAwaited)
{
    one.mailbox().put({ntbd::LinkNews::Kind::lost, {}, {}});
    ASSERT_TRUE(await([&] { return !one.now().peer; }));
    Process process(one);
    EXPECT_EQ(process.expect_loss(process.locate(false, 1)), -EHOSTUNREACH);
    const Link link = process.locate(false, long_ms);
    process.close(process.locate(true, long_ms));
    ASSERT_NO_FATAL_FAILURE(join(one, other));
    EXPECT_EQ(process.expect_lid(link), ntbclient_host(Client(other)));
    const Link last = process.locate(true, long_ms);
    process.expect_lid(last);
    one.stop();
    EXPECT_EQ(process.expect_loss(process.locate(false, long_ms)), -EHOSTUNREACH);
}

TEST_F(CmNetworks, WhereNobodyListensTheWayIsRefused)
{
    Process client(one);
    EXPECT_EQ(client.expect_loss(client.connect(false)), -ECONNREFUSED);
    EXPECT_EQ(client.expect_loss(client.connect(true)), -ECONNREFUSED);
}

// Who listens a little later, or has claimed the port and does not listen yet.
TEST_F(CmNetworks, ARefusalIsTriedAgainForAWhile)
{
    Process client(one, std::uint64_t{30} << 30), server(other);
    client.connect(false);
    EXPECT_EQ(server.claim(), 0);
    const Link back = server.expect(1).front().first;
    EXPECT_TRUE(server.send(back, Kind::Rej, reason::invalid_service));
    const Link again = server.expect(2).back().first;
    EXPECT_NE(again, back);
    EXPECT_EQ(client.expect(0).size(), 0u);
    EXPECT_TRUE(server.send(again, Kind::Rej, reason::consumer_defined));
    EXPECT_EQ(client.expect(1).front().second, reason::consumer_defined);
}

TEST_F(CmNetworks, APortIsClaimedOnce)
{
    Process process(one), second(one);
    EXPECT_EQ(process.claim(), 0);
    EXPECT_EQ(process.claim(), -EADDRINUSE);
    EXPECT_EQ(second.claim(), -EADDRINUSE);
    process.call([](Network &network) {
        network.release(port);
        return 0;
    });
    EXPECT_EQ(second.claim(), 0);
}

TEST_F(CmNetworks, AProcessReachesItself)
{
    Process process(one);
    EXPECT_EQ(process.claim(), 0);
    process.connect(true);
    process.expect(1);
}

TEST_F(CmNetworks, StrangersAreSentAway)
{
    Process server(one), client(other);
    EXPECT_EQ(server.claim(), 0);
    Client stranger(one);
    ntbclient_options options;
    ntbclient_options_init(&options);
    options.local = 1;
    Message wrong = message_with(Kind::Req, 1);
    wrong.private_bytes = 255;
    ntbclient_conn *conn, *silent;
    ASSERT_EQ(ntbclient_connect(stranger, "rdmacm/262/7000", &options, &silent), 0);
    ASSERT_EQ(ntbclient_connect(stranger, "rdmacm/262/7000", &options, &conn), 0);
    ASSERT_EQ(ntbclient_wait(conn, NTBCLIENT_WRITABLE, long_ms), int{NTBCLIENT_WRITABLE});
    EXPECT_EQ(ntbclient_send(conn, &wrong, sizeof(wrong), 0), static_cast<ssize_t>(sizeof(wrong)));
    char byte;
    ssize_t got = -EAGAIN;
    EXPECT_TRUE(await([&] { return (got = ntbclient_recv(conn, &byte, 1, 0)) != -EAGAIN; }));
    EXPECT_LE(got, 0) << "an answer";
    ntbclient_close(conn);
    EXPECT_EQ(server.requests(), 0u);
    client.connect(false);
    server.expect(1);
    ntbclient_close(silent);
}

// Who has said nothing yet may be without a CPU: only others make it lose its place.
TEST_F(CmNetworks, OfTheSilentTheOldestGoesFirst)
{
    constexpr std::size_t kept = 256;
    Process server(one);
    EXPECT_EQ(server.claim(), 0);
    Client stranger(one);
    ntbclient_options options;
    ntbclient_options_init(&options);
    options.local = 1;
    std::vector<ntbclient_conn *> silent(kept + 2);
    for (ntbclient_conn *&conn : silent)
        ASSERT_TRUE(await([&] {
            EXPECT_EQ(ntbclient_connect(stranger, "rdmacm/262/7000", &options, &conn), 0);
            EXPECT_EQ(ntbclient_wait(conn, NTBCLIENT_WRITABLE, long_ms), int{NTBCLIENT_WRITABLE});
            const bool is_open = info_of(conn).state == NTBCLIENT_OPEN;
            if (!is_open) // more wait than the daemon lets
                ntbclient_close(conn);
            return is_open;
        }));
    char byte;
    for (int i = 0; i < 2; i++)
        EXPECT_TRUE(await([&] { return ntbclient_recv(silent[i], &byte, 1, 0) != -EAGAIN; }));
    const Message request = message_with(Kind::Req, 7);
    for (const std::size_t i : {std::size_t{2}, kept + 1})
        EXPECT_EQ(ntbclient_send(silent[i], &request, sizeof(request), 0),
                  static_cast<ssize_t>(sizeof(request)));
    server.expect(2);
    for (ntbclient_conn *conn : silent)
        ntbclient_close(conn);
}

TEST_F(CmNetworks, TheDaemonsEndIsTheEndOfAllWays)
{
    Process client(one), server(other);
    EXPECT_EQ(server.claim(), 0);
    const Link link = client.connect(false);
    server.expect(1);
    one.stop();
    EXPECT_LT(client.expect_loss(link), 0);
    EXPECT_LT(client.expect_loss(client.connect(false)), 0);
}

} // namespace
