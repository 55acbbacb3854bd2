// SPDX-License-Identifier: BSD-3-Clause
// The client library with daemons: hosts, bytes, and how a connection closes.
#include "clients.hpp"
#include "wire/message.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace ntbd;
using namespace ntbd::test;

namespace
{

TEST_P(Clients, OfAHostHaveItsNumber)
{
    Client first(one);
    Client second(one);
    EXPECT_EQ(ntbclient_host(nullptr), 0);
    EXPECT_NE(ntbclient_host(first), 0);
    EXPECT_EQ(ntbclient_host(first), ntbclient_host(second));
}

TEST_P(Clients, LearnTheNumberOfThePeerHost)
{
    Client early(one);
    EXPECT_EQ(ntbclient_peer_host(nullptr), 0);
    if (is_local()) {
        EXPECT_EQ(ntbclient_peer_host(early), 0);
        return;
    }
    Client there(other);
    const uint16_t number = ntbclient_host(there);
    EXPECT_NE(number, ntbclient_host(early));
    EXPECT_EQ(ntbclient_peer_host(early), number);
    EXPECT_EQ(ntbclient_peer_host(there), ntbclient_host(early));
    // Sleeps until it has changed.
    const auto becomes = [](ntbclient *client, uint16_t wanted) {
        pollfd readable = {ntbclient_fd(client), POLLIN, 0};
        return await([&] {
            poll(&readable, 1, 1);
            ntbclient_process(client);
            return ntbclient_peer_host(client) == wanted;
        });
    };
    one.mailbox().put({LinkNews::Kind::lost, {}, {}});
    EXPECT_TRUE(becomes(early, 0));
    ASSERT_NO_FATAL_FAILURE(join(one, other));
    EXPECT_TRUE(becomes(early, number));
    one.stop();
    EXPECT_TRUE(await([&] { return ntbclient_process(early) == -ECONNRESET; }));
    EXPECT_EQ(ntbclient_peer_host(early), 0);
}

// A daemon that answers the first message with those numbers of its host and the peer's.
int attach_to(const std::string &path, uint64_t number, uint64_t peer, uint16_t *host)
{
    const int listener = listen_at(path);
    std::thread daemon([&] {
        const int client = accept(listener, nullptr, nullptr);
        ntbc::Parcel parcel;
        EXPECT_TRUE(await(
            [&] { return ntbc::message_receive(client, &parcel) != ntbc::Received::nothing; }));
        ntbc::Message answer;
        answer.request = parcel.message.request;
        answer.id = number;
        answer.other = peer;
        EXPECT_EQ(ntbc::message_send(client, answer), 0);
        close(client);
    });
    ntbclient *client = nullptr;
    const int status = ntbclient_attach(path.c_str(), &client);
    *host = ntbclient_host(client);
    ntbclient_detach(client);
    daemon.join();
    close(listener);
    unlink(path.c_str());
    return status;
}

TEST(Attaching, RefusesWhatIsNoNumberOfAHost)
{
    const Folder folder;
    const std::string path = folder.path + "/liar.sock";
    uint16_t host;
    for (const uint64_t number : {uint64_t{0}, uint64_t{NTBCLIENT_MAX_HOST} + 1, ~uint64_t{0}}) {
        EXPECT_EQ(attach_to(path, number, 0, &host), -EPROTO) << number;
        EXPECT_EQ(attach_to(path, 1, number, &host), number != 0 ? -EPROTO : 0) << number;
    }
    EXPECT_EQ(attach_to(path, NTBCLIENT_MAX_HOST, NTBCLIENT_MAX_HOST, &host), 0);
    EXPECT_EQ(host, NTBCLIENT_MAX_HOST);
}

TEST_P(Clients, ExchangeBytesBothWays)
{
    Pair pair(one, far(), options);
    char got[64];
    EXPECT_EQ(ntbclient_recv(pair.to, got, sizeof(got), 0), -EAGAIN);
    EXPECT_EQ(ntbclient_send(pair.from, "question", 8, 0), 8);
    EXPECT_TRUE(
        soon([&] { return ntbclient_recv(pair.to, got, sizeof(got), NTBCLIENT_PEEK) == 8; }));
    EXPECT_EQ(ntbclient_readable(pair.to), 8u);
    EXPECT_EQ(ntbclient_recv(pair.to, got, 3, 0), 3);
    EXPECT_EQ(ntbclient_recv(pair.to, nullptr, 2, 0), 2);
    EXPECT_EQ(ntbclient_recv(pair.to, got, sizeof(got), 0), 3);
    EXPECT_EQ(std::string(got, 3), "ion");
    const iovec parts[] = {
        {const_cast<char *>("ans"), 3}, {nullptr, 0}, {const_cast<char *>("wer"), 3}};
    EXPECT_EQ(ntbclient_sendv(pair.to, parts, 3, 0), 6);
    char first[2];
    const iovec places[] = {{first, 2}, {got, 62}};
    EXPECT_TRUE(soon([&] { return ntbclient_readable(pair.from) == 6; }));
    EXPECT_EQ(ntbclient_recvv(pair.from, places, 2, 0), 6);
    EXPECT_EQ(std::string(got, 4), "swer");
    EXPECT_EQ(info_of(pair.from).sent, 8u);
    EXPECT_EQ(info_of(pair.from).received, 6u);
    if (!is_carried()) {
        EXPECT_EQ(info_of(pair.from).rings, 0u); // both polled
    }
    EXPECT_EQ(info_of(pair.to).peer_uid, getuid());
    EXPECT_EQ(info_of(pair.to).accepted, 1u);
    EXPECT_EQ(info_of(pair.to).ring_bytes, 16384u);
    ntbclient_close(pair.from);
    ntbclient_close(pair.to);
}

TEST_P(Clients, FillTheRingAndGoOn)
{
    if (is_carried())
        GTEST_SKIP() << "the daemons take on from a full ring: see HoldASlowReadersWriterBack";
    Pair pair(one, far(), options);
    const std::vector<char> bytes(20000, 'x');
    EXPECT_EQ(ntbclient_send(pair.from, bytes.data(), bytes.size(), 0), 16384);
    EXPECT_EQ(ntbclient_send(pair.from, bytes.data(), 1, 0), -EAGAIN);
    EXPECT_EQ(ntbclient_writable(pair.from), 0u);
    EXPECT_EQ(ntbclient_wait(pair.from, NTBCLIENT_WRITABLE, 0), 0);
    EXPECT_EQ(ntbclient_recv(pair.to, nullptr, 4096, 0), 4096);
    EXPECT_EQ(ntbclient_wait(pair.from, NTBCLIENT_WRITABLE, 0), int{NTBCLIENT_WRITABLE});
    EXPECT_EQ(ntbclient_send(pair.from, bytes.data(), bytes.size(), 0), 4096);
    ntbclient_close(pair.from);
    ntbclient_close(pair.to);
}

TEST_P(Clients, AreShownWhatIsNext)
{
    Client a(one);
    Client b(far());
    ntbclient_conn *from, *to;
    connect_clients(a, b, options, &from, &to);
    const void *data = nullptr;
    EXPECT_EQ(ntbclient_view(nullptr, &data), -EINVAL);
    EXPECT_EQ(ntbclient_view(to, nullptr), -EINVAL);
    EXPECT_EQ(ntbclient_view(to, &data), -EAGAIN);
    EXPECT_EQ(data, nullptr);
    // Round the ring, so that some are not in one piece.
    const uint32_t ring = info_of(to).ring_bytes;
    std::vector<uint8_t> bytes(ring / 3);
    uint8_t next = 0;
    bool in_parts = false;
    for (int i = 0; i < 20; i++) {
        for (uint8_t &byte : bytes)
            byte = next++;
        ASSERT_EQ(ntbclient_send(from, bytes.data(), bytes.size(), 0),
                  static_cast<ssize_t>(bytes.size()));
        ASSERT_TRUE(await([&] { return ntbclient_readable(to) == bytes.size(); }));
        for (size_t seen = 0; seen < bytes.size();) {
            const ssize_t shown = ntbclient_view(to, &data);
            ASSERT_GT(shown, 0);
            EXPECT_EQ(ntbclient_view(to, &data), shown) << "it stays";
            const auto n = static_cast<size_t>(shown);
            ASSERT_LE(n, bytes.size() - seen);
            EXPECT_EQ(memcmp(data, &bytes[seen], n), 0);
            in_parts = in_parts || n < bytes.size();
            EXPECT_EQ(ntbclient_recv(to, nullptr, n, 0), shown);
            seen += n;
        }
    }
    EXPECT_TRUE(in_parts);
    ntbclient_close(from);
    EXPECT_TRUE(await([&] { return ntbclient_view(to, &data) == 0; }));
    ntbclient_close(to);
}

TEST_P(Clients, PutBytesTogetherWhereTheyLieInTheRing)
{
    Pair pair(one, far(), options);
    void *place = nullptr;
    EXPECT_EQ(ntbclient_place(nullptr, 1, &place), -EINVAL);
    EXPECT_EQ(ntbclient_place(pair.from, 1, nullptr), -EINVAL);
    EXPECT_EQ(ntbclient_placed(nullptr, 1, 0), -EINVAL);
    EXPECT_EQ(ntbclient_placed(pair.from, 1, ~0u), -EINVAL);
    const uint32_t ring = info_of(pair.to).ring_bytes;
    EXPECT_EQ(ntbclient_place(pair.from, 1, &place), static_cast<ssize_t>(ring));
    EXPECT_EQ(ntbclient_placed(pair.from, ring + 1, 0), -EINVAL) << "no room";
    // Round the ring, where less follows than is wanted, and some of it before the rest is shown.
    std::vector<uint8_t> sent(ring / 3), got(sent.size());
    uint8_t next = 0;
    bool in_parts = false;
    for (int i = 0; i < 20; i++) {
        for (uint8_t &byte : sent)
            byte = next++;
        for (size_t done = 0; done < sent.size();) {
            const size_t left = sent.size() - done;
            const ssize_t room = ntbclient_place(pair.from, left, &place);
            if (room == -EAGAIN)
                continue; // those of the last turn have not come back yet
            ASSERT_GT(room, 0);
            const size_t n = std::min(left, static_cast<size_t>(room));
            in_parts = in_parts || n < left;
            memcpy(place, &sent[done], n);
            ASSERT_EQ(ntbclient_placed(pair.from, n / 2, NTBCLIENT_MORE),
                      static_cast<ssize_t>(n / 2));
            ASSERT_EQ(ntbclient_placed(pair.from, n - n / 2, 0), static_cast<ssize_t>(n - n / 2));
            done += n;
        }
        ASSERT_TRUE(await([&] { return ntbclient_readable(pair.to) == sent.size(); }));
        EXPECT_EQ(ntbclient_recv(pair.to, got.data(), got.size(), 0),
                  static_cast<ssize_t>(got.size()));
        EXPECT_EQ(got, sent);
    }
    EXPECT_TRUE(in_parts);
    ntbclient_close(pair.to);
    EXPECT_TRUE(soon([&] { return ntbclient_place(pair.from, 1, &place) < 0; }));
    EXPECT_LT(ntbclient_placed(pair.from, 1, 0), 0);
    ntbclient_close(pair.from);
}

TEST_P(Clients, LookAtOneWordForWhatComes)
{
    Pair pair(one, far(), options);
    std::uint64_t value;
    EXPECT_EQ(ntbclient_monitor(nullptr, &value), nullptr);
    EXPECT_EQ(ntbclient_monitor(pair.to, nullptr), nullptr);
    const auto changes = [&] {
        const uint64_t *const word = ntbclient_monitor(pair.to, &value);
        return __atomic_load_n(word, __ATOMIC_RELAXED) != value;
    };
    EXPECT_FALSE(changes());
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(ntbclient_send(pair.from, "bytes", 5, 0), 5);
        EXPECT_TRUE(soon(changes));
        EXPECT_EQ(ntbclient_readable(pair.to), 5u);
        EXPECT_EQ(ntbclient_recv(pair.to, nullptr, 5, 0), 5);
        EXPECT_FALSE(changes());
    }
    ntbclient_close(pair.from);
    EXPECT_TRUE(soon(changes)) << "the end";
    EXPECT_EQ(ntbclient_readable(pair.to), 0u);
    EXPECT_FALSE(changes());
    ntbclient_close(pair.to);
}

// Without a call, once the place is known. The ring is gone round twice.
TEST_P(Clients, FindWhatComesByThatWord)
{
    Pair pair(one, far(), options);
    const uint32_t ring = info_of(pair.to).ring_bytes;
    uint64_t value;
    const uint64_t *const word = ntbclient_monitor(pair.to, &value);
    const auto come = [&] { return __atomic_load_n(word, __ATOMIC_ACQUIRE) - value; };
    const auto await_bytes = [&](uint64_t n) { ASSERT_TRUE(await([&] { return come() == n; })); };
    ASSERT_EQ(ntbclient_send(pair.from, "bytes", 5, 0), 5);
    await_bytes(5);
    const void *data = nullptr;
    ASSERT_EQ(ntbclient_view(pair.to, &data), 5);
    const auto *const begin = static_cast<const char *>(data) - value % ring;
    std::vector<char> sent(ring / 3);
    size_t held = 0;
    for (uint64_t n = 0; n < 2 * ring; n += sent.size()) {
        held += come();
        value += come();
        EXPECT_EQ(ntbclient_recv(pair.to, nullptr, held, 0), static_cast<ssize_t>(held));
        held = 0;
        for (char &byte : sent)
            byte = static_cast<char>(&byte - sent.data() + static_cast<ssize_t>(n));
        for (size_t done = 0; done < sent.size();) {
            const ssize_t some =
                ntbclient_send(pair.from, sent.data() + done, sent.size() - done, 0);
            if (some > 0)
                done += static_cast<size_t>(some);
            else
                ASSERT_EQ(some, -EAGAIN);
        }
        await_bytes(sent.size());
        for (size_t i = 0; i < sent.size(); i++)
            ASSERT_EQ(begin[(value + i) % ring], sent[i]) << n << " " << i;
    }
    ntbclient_close(pair.from);
    EXPECT_TRUE(soon([&] { return come() > ring; })) << "the end";
    ntbclient_close(pair.to);
}

TEST_P(Clients, LeaveAWordForThePeer)
{
    const bool arrives = GetParam() != Way::carried;
    Pair pair(one, far(), options);
    EXPECT_EQ(ntbclient_word_set(nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbclient_word(nullptr), nullptr);
    EXPECT_EQ(ntbclient_peer_word(nullptr), 0u);
    EXPECT_EQ(ntbclient_peer_word(pair.to), 0u);
    EXPECT_EQ(ntbclient_word_set(pair.from, 1), 0);
    EXPECT_EQ(ntbclient_word_set(pair.to, 3), 0);
    EXPECT_EQ(ntbclient_word_set(pair.from, ~uint64_t{0}), 0);
    EXPECT_EQ(*ntbclient_word(pair.from), ~uint64_t{0});
    EXPECT_EQ(ntbclient_peer_word(pair.to), arrives ? ~uint64_t{0} : 0);
    EXPECT_EQ(ntbclient_peer_word(pair.from), arrives ? 3u : 0u);
    ntbclient_close(pair.from);
    EXPECT_TRUE(soon([&] { return ntbclient_wait(pair.to, NTBCLIENT_READABLE, 0) != 0; }));
    EXPECT_EQ(ntbclient_peer_word(pair.to), arrives ? ~uint64_t{0} : 0) << "it stays";
    ntbclient_close(pair.to);
}

TEST_P(Clients, KeepBytesBackWhileMoreFollows)
{
    Pair pair(one, far(), options);
    EXPECT_EQ(ntbclient_send(pair.from, "he", 2, NTBCLIENT_MORE), 2);
    EXPECT_EQ(ntbclient_readable(pair.to), 0u);
    EXPECT_EQ(ntbclient_send(pair.from, "ad", 2, 0), 2);
    EXPECT_TRUE(soon([&] { return ntbclient_readable(pair.to) == 4; }));
    EXPECT_EQ(ntbclient_send(pair.from, "x", 1, NTBCLIENT_MORE), 1);
    EXPECT_EQ(ntbclient_shutdown(pair.from), 0);
    EXPECT_TRUE(soon([&] { return ntbclient_readable(pair.to) == 5; }));
    ntbclient_close(pair.from);
    ntbclient_close(pair.to);
}

TEST_P(Clients, CloseOneDirectionByItself)
{
    Pair pair(one, far(), options);
    char got[8];
    EXPECT_EQ(ntbclient_send(pair.from, "last", 4, 0), 4);
    EXPECT_EQ(ntbclient_shutdown(pair.from), 0);
    EXPECT_EQ(ntbclient_shutdown(pair.from), 0);
    EXPECT_EQ(ntbclient_send(pair.from, "x", 1, 0), -EPIPE);
    EXPECT_EQ(receive(pair.to, got, 8), 4);
    EXPECT_EQ(receive(pair.to, got, 8), 0);
    EXPECT_EQ(receive(pair.to, got, 8), 0);
    EXPECT_EQ(ntbclient_send(pair.to, "still", 5, 0), 5);
    ntbclient_close(pair.to);
    EXPECT_EQ(receive(pair.from, got, 8), 5);
    EXPECT_EQ(receive(pair.from, got, 8), 0);
    ntbclient_close(pair.from);
}

TEST_P(Clients, SeeAnOrderlyCloseAsAnEnd)
{
    Pair pair(one, far(), options);
    char got[8];
    EXPECT_EQ(ntbclient_send(pair.from, "last", 4, 0), 4);
    ntbclient_close(pair.from);
    EXPECT_EQ(receive(pair.to, got, 8), 4);
    EXPECT_EQ(receive(pair.to, got, 8), 0);
    EXPECT_EQ(ntbclient_send(pair.to, "x", 1, 0), -EPIPE);
    EXPECT_EQ(ntbclient_wait(pair.to, NTBCLIENT_READABLE | NTBCLIENT_WRITABLE, long_ms), 3);
    EXPECT_EQ(info_of(pair.to).error, 0);
    ntbclient_close(pair.to);
    EXPECT_TRUE(await([&] {
        const Server::Snapshot now = one.now();
        return now.figures.open == 0 && !charges(now);
    }));
}

TEST_P(Clients, SeeACloseWithUnreadBytesAsAReset)
{
    Pair pair(one, far(), options);
    char got[8];
    EXPECT_EQ(ntbclient_send(pair.to, "unread", 6, 0), 6);
    EXPECT_TRUE(soon([&] { return ntbclient_readable(pair.from) == 6; }));
    EXPECT_EQ(ntbclient_send(pair.from, "last", 4, 0), 4);
    ntbclient_close(pair.from);
    EXPECT_EQ(receive(pair.to, got, 8), 4);
    EXPECT_EQ(receive(pair.to, got, 8), -ECONNRESET);
    EXPECT_EQ(ntbclient_send(pair.to, "x", 1, 0), -ECONNRESET);
    ntbclient_close(pair.to);
}

TEST_P(Clients, ResetAtBothEnds)
{
    Pair pair(one, far(), options);
    char got[8];
    EXPECT_EQ(ntbclient_send(pair.to, "unread", 6, 0), 6);
    ntbclient_reset(pair.from);
    EXPECT_EQ(ntbclient_recv(pair.from, got, 8, 0), -ECONNRESET);
    EXPECT_EQ(ntbclient_send(pair.from, got, 8, 0), -ECONNRESET);
    EXPECT_EQ(ntbclient_shutdown(pair.from), -ECONNRESET);
    EXPECT_TRUE(soon([&] { return ntbclient_send(pair.to, "x", 1, 0) == -ECONNRESET; }));
    EXPECT_EQ(ntbclient_recv(pair.to, got, 8, 0), -ECONNRESET);
    ntbclient_close(pair.from);
    ntbclient_close(pair.to);
}

TEST_P(Clients, AreRefusedWhereNobodyListens)
{
    Client a(one);
    ntbclient_conn *conn;
    ASSERT_EQ(ntbclient_connect(a, "nobody", &options, &conn), 0);
    expect_error(conn, -ECONNREFUSED);
    char got;
    EXPECT_EQ(ntbclient_recv(conn, &got, 1, 0), -ECONNREFUSED);
    EXPECT_EQ(ntbclient_send(conn, &got, 1, 0), -ECONNREFUSED);
    EXPECT_EQ(ntbclient_conn_fd(conn), -ENOTCONN);
    ntbclient_close(conn);
}

TEST_P(Clients, WaitForAListener)
{
    Client a(one);
    Client b(far());
    options.wait = 1;
    ntbclient_conn *conns[2];
    for (ntbclient_conn *&conn : conns)
        ASSERT_EQ(ntbclient_connect(a, "later", &options, &conn), 0);
    EXPECT_EQ(ntbclient_send(conns[0], "x", 1, 0), -ENOTCONN);
    EXPECT_EQ(ntbclient_shutdown(conns[0]), -ENOTCONN);
    EXPECT_EQ(info_of(conns[0]).state, NTBCLIENT_CONNECTING);
    EXPECT_TRUE(await([&] { return one.now().figures.connecting == 2; }));
    options.once = 1;
    ntbclient_listener *listener;
    ASSERT_EQ(ntbclient_listen(b, "later", &options, &listener), 0);
    ntbclient_conn *to;
    EXPECT_TRUE(await([&] { return ntbclient_accept(listener, &to) == 0; }));
    EXPECT_EQ(ntbclient_accept(listener, &to), -EAGAIN);
    EXPECT_TRUE(await([&] { return far().now().figures.listeners == 0; })); // it was for one
    EXPECT_TRUE(await([&] {
        ntbclient_process(a);
        return info_of(conns[0]).state == NTBCLIENT_OPEN;
    }));
    EXPECT_EQ(info_of(conns[1]).state, NTBCLIENT_CONNECTING);
    for (ntbclient_conn *conn : conns)
        ntbclient_close(conn);
    ntbclient_close(to);
    ntbclient_listener_close(listener);
}

std::string way_of(const testing::TestParamInfo<Way> &way)
{
    return way.param == Way::local ? "Local" : way.param == Way::direct ? "Peer" : "Carried";
}
INSTANTIATE_TEST_SUITE_P(, Clients, testing::Values(Way::local, Way::direct, Way::carried), way_of);

} // namespace
