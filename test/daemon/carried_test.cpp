// SPDX-License-Identifier: BSD-3-Clause
// Connections through two daemons, with bytes under way: how they end, who waits for whom, and
// clients and daemons that lie. The bridge is one in memory, which the tests can disturb.
#include "client_process.hpp"
#include "hosts.hpp"
#include "raw.hpp"

#include "ring/layout.hpp"
#include "wire/sealed.hpp"

#include <algorithm>
#include <random>
#include <sys/mman.h>
#include <sys/socket.h>

using namespace ntbd;
using namespace ntbd::test;

namespace
{
constexpr uint32_t ring = 16384;

char byte_at(uint64_t place)
{
    return static_cast<char>(place * 131 + (place >> 9));
}

// @return whether some were taken
bool send_some(ntbclient_conn *conn, uint64_t *sent)
{
    std::vector<char> bytes(5000);
    for (size_t i = 0; i < bytes.size(); i++)
        bytes[i] = byte_at(*sent + i);
    const ssize_t some = ntbclient_send(conn, bytes.data(), bytes.size(), 0);
    *sent += some > 0 ? static_cast<uint64_t>(some) : 0;
    return some > 0;
}

// Sends more than a ring holds; with the far ring there is room for it. @return bytes
uint64_t send_more_than_a_ring(ntbclient_conn *conn)
{
    uint64_t sent = 0;
    while (sent <= ring)
        if (!send_some(conn, &sent) && ntbclient_wait(conn, NTBCLIENT_WRITABLE, long_ms) == 0)
            break;
    return sent;
}

// Receives until the end, and checks each byte. @return how it ended: 0 or an error
ssize_t drain(ntbclient_conn *conn, uint64_t *count)
{
    std::vector<char> bytes(3000);
    for (;;) {
        const ssize_t some = ntbclient_recv(conn, bytes.data(), bytes.size(), 0);
        if (some == -EAGAIN) {
            if (ntbclient_wait(conn, NTBCLIENT_READABLE, long_ms) == 0)
                return -ETIMEDOUT;
            continue;
        }
        if (some <= 0)
            return some;
        for (ssize_t i = 0; i < some; i++)
            if (bytes[static_cast<size_t>(i)] != byte_at(*count + static_cast<uint64_t>(i)))
                return -EBADMSG;
        *count += static_cast<uint64_t>(some);
    }
}

// Whether no daemon takes a message out of the pipe for a client with so many bytes in its ring.
bool is_full(size_t unread)
{
    return unread > ring * 3 / 4;
}

// An end of a client without the library, which has connected to that of another client.
class RawEnd
{
public:
    RawEnd(const Daemon &daemon, const std::string &name) : raw_(daemon)
    {
        raw_.hello();
        Message m;
        m.type = Type::connect;
        m.timeout_ms = 10000;
        m.key_bytes = static_cast<uint32_t>(name.size());
        name.copy(reinterpret_cast<char *>(m.key), sizeof(m.key));
        raw_.send(m);
        while (parcel_.message.type != Type::connected)
            if (raw_.receive(&parcel_) != Received::message)
                break;
        page = static_cast<ntbc::Page *>(ntbc::sealed_map(parcel_.fd(0), ntbc::memory_bytes(ring)));
        EXPECT_NE(page, nullptr);
        sender_.open(&page->direction[0], reinterpret_cast<uint8_t *>(page) + ntbc::page_bytes,
                     ring);
    }
    ~RawEnd() { munmap(page, ntbc::memory_bytes(ring)); }

    void ring_bell(const void *bytes, size_t count)
    {
        send(parcel_.fd(1), bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    void send_some()
    {
        const std::vector<char> bytes(1024);
        while (sender_.room(bytes.size()) >= bytes.size())
            sender_.put(bytes.data(), bytes.size());
        if (sender_.publish())
            ring_bell("\1", 1);
    }
    // None was read.
    size_t unread() const { return ntbc::load(page->direction[1].published) & ntbc::count_mask; }

    ntbc::Page *page;

private:
    Raw raw_;
    Parcel parcel_;
    ntbc::Sender sender_;
};

class Carried : public testing::Test
{
protected:
    void SetUp() override
    {
        ntbclient_options_init(&options);
        options.timeout_ms = long_ms;
        options.backlog = 300;
        plug(cable, one, other);
        for (Daemon *daemon : {&one, &other}) {
            daemon->config.ring_bytes = ring;
            daemon->start();
        }
        join(one, other);
    }
    // Whatever a test did: the next connection is carried, and nothing is left behind.
    void TearDown() override
    {
        cable.set_distort({});
        if (!one.now().peer || !other.now().peer)
            join(one, other);
        {
            Pair pair(one, other, options);
            expect_passes(pair.from, pair.to);
            ntbclient_close(pair.from);
            ntbclient_close(pair.to);
        }
        expect_nothing_left();
    }
    static void expect_passes(ntbclient_conn *from, ntbclient_conn *to)
    {
        char got[8];
        EXPECT_EQ(ntbclient_send(from, "pass", 4, 0), 4);
        EXPECT_EQ(ntbclient_wait(to, NTBCLIENT_READABLE, long_ms), int{NTBCLIENT_READABLE});
        EXPECT_EQ(ntbclient_recv(to, got, sizeof(got), 0), 4);
        EXPECT_EQ(std::string(got, 4), "pass");
    }
    void expect_nothing_left()
    {
        for (Daemon *daemon : {&one, &other})
            EXPECT_TRUE(await([&] {
                const Server::Snapshot now = daemon->now();
                const auto used = now.used.find(getuid());
                return now.figures.open == 0 && now.figures.carried == 0 &&
                       (used == now.used.end() || used->second.bytes == 0);
            })) << daemon->config.socket;
    }
    // Both daemons have heard of the loss before they hear of the next introduction.
    void join_again()
    {
        ASSERT_TRUE(await([&] { return !one.now().peer && !other.now().peer; }));
        join(one, other);
    }
    // From a client of `one`, until nothing moves any more. @return bytes
    uint64_t fill_pipe(ntbclient_conn *from, ntbclient_conn *to)
    {
        uint64_t sent = 0;
        EXPECT_TRUE(await([&] {
            while (send_some(from, &sent))
                ;
            return is_full(ntbclient_readable(to)) && cable.is_full(1) &&
                   ntbclient_writable(from) == 0;
        }));
        return sent;
    }
    // Neither is read from, so nothing moves any more.
    void fill_both(ntbclient_conn *from, ntbclient_conn *to)
    {
        uint64_t sent[2] = {};
        ASSERT_TRUE(await([&] {
            send_some(from, &sent[0]);
            send_some(to, &sent[1]);
            return is_full(ntbclient_readable(from)) && is_full(ntbclient_readable(to)) &&
                   cable.is_full(0) && cable.is_full(1);
        }));
    }
    uint32_t charged(const Daemon &daemon) const
    {
        const auto used = daemon.now().used;
        return used.count(getuid()) != 0 ? used.at(getuid()).connections : 0;
    }

    Folder folder;
    Cable cable;
    Daemon one{folder.path + "/one.sock"};
    Daemon other{folder.path + "/other.sock"};
    ntbclient_options options;
};

TEST_F(Carried, HoldASlowReadersWriterBackAndNobodyElse)
{
    Client a(one);
    Client b(other);
    ntbclient_conn *slow[2];
    ntbclient_conn *quick[2];
    connect_clients(a, b, options, &slow[0], &slow[1]);
    const uint64_t sent = fill_pipe(slow[0], slow[1]);
    connect_clients(a, b, options, &quick[0], &quick[1]);
    // Two rings and a pipe, and the reader's at least to three quarters.
    EXPECT_LE(sent, 2 * ring + Cable::credit * Cable::longest);
    EXPECT_GE(ntbclient_readable(slow[1]), ring * 3 / 4);
    for (int i = 0; i < 1000; i++)
        expect_passes(quick[i % 2], quick[1 - i % 2]);
    ntbclient_shutdown(slow[0]);
    uint64_t got = 0;
    EXPECT_EQ(drain(slow[1], &got), 0);
    EXPECT_EQ(got, sent);
    for (ntbclient_conn *conn : {slow[0], slow[1], quick[0], quick[1]})
        ntbclient_close(conn);
}

TEST_F(Carried, CloseOneDirectionBehindBytesUnderWay)
{
    Pair pair(one, other, options);
    const uint64_t sent = fill_pipe(pair.from, pair.to);
    EXPECT_EQ(ntbclient_shutdown(pair.from), 0);
    uint64_t got = 0;
    EXPECT_EQ(drain(pair.to, &got), 0);
    EXPECT_EQ(got, sent);
    expect_passes(pair.to, pair.from);
    ntbclient_close(pair.to);
    char byte;
    EXPECT_TRUE(await([&] { return ntbclient_recv(pair.from, &byte, 1, 0) == 0; }));
    ntbclient_close(pair.from);
}

TEST_F(Carried, DeliverAllBeforeACloseOrAReset)
{
    for (const bool is_reset : {false, true}) {
        Pair pair(one, other, options);
        const uint64_t sent = fill_pipe(pair.from, pair.to);
        if (is_reset)
            ntbclient_reset(pair.from);
        ntbclient_close(pair.from);
        uint64_t got = 0;
        EXPECT_EQ(drain(pair.to, &got), is_reset ? -ECONNRESET : 0);
        EXPECT_EQ(got, sent);
        EXPECT_EQ(ntbclient_send(pair.to, "x", 1, 0), is_reset ? -ECONNRESET : -EPIPE);
        ntbclient_close(pair.to);
    }
}

const ClientTask send_much_and_die([](const char *socket, const ntbclient_options &options,
                                      int control) {
    ntbclient *a;
    ntbclient_conn *conn;
    uint64_t sent = 0;
    if (ntbclient_attach(socket, &a) == 0 && ntbclient_connect(a, "doomed", &options, &conn) == 0 &&
        ntbclient_wait(conn, NTBCLIENT_WRITABLE, long_ms) != 0)
        sent = send_more_than_a_ring(conn);
    if (send(control, &sent, sizeof(sent), MSG_NOSIGNAL) == ssize_t{sizeof(sent)})
        kill(getpid(), SIGKILL);
});

TEST_F(Carried, DeliverAllBehindADeath)
{
    Client b(other);
    ntbclient_listener *listener;
    ASSERT_EQ(ntbclient_listen(b, "doomed", &options, &listener), 0);
    ClientProcess doomed(send_much_and_die, one, options);
    ntbclient_conn *to;
    ASSERT_TRUE(await([&] { return ntbclient_accept(listener, &to) == 0; }));
    uint64_t sent = 0;
    ASSERT_EQ(recv(doomed.control, &sent, sizeof(sent), MSG_WAITALL), ssize_t{sizeof(sent)});
    EXPECT_TRUE(WIFSIGNALED(doomed.wait()));
    uint64_t got = 0;
    EXPECT_EQ(drain(to, &got), -ECONNRESET);
    EXPECT_GT(sent, ring);
    EXPECT_EQ(got, sent);
    ntbclient_close(to);
    ntbclient_listener_close(listener);
}

TEST_F(Carried, ChargeWhoClosedUntilItsBytesHaveArrived)
{
    Pair pair(one, other, options);
    const uint64_t sent = fill_pipe(pair.from, pair.to);
    ntbclient_close(pair.from);
    EXPECT_TRUE(await([&] { return one.now().figures.open == 0; }));
    EXPECT_EQ(charged(one), 1u);
    EXPECT_EQ(one.now().figures.carried, 1u);
    uint64_t got = 0;
    EXPECT_EQ(drain(pair.to, &got), 0);
    EXPECT_EQ(got, sent);
    EXPECT_TRUE(await([&] { return charged(one) == 0; }));
    EXPECT_EQ(charged(other), 1u);
    ntbclient_close(pair.to);
}

// Bytes that were never handed to a client that closed count as unread there.
TEST_F(Carried, TellTheSenderOfBytesThatNobodyWillRead)
{
    Pair pair(one, other, options);
    fill_pipe(pair.from, pair.to);
    while (ntbclient_readable(pair.to) != 0) // all that is in the ring now; more follows
        ntbclient_recv(pair.to, nullptr, ring, 0);
    ntbclient_close(pair.to);
    char byte;
    EXPECT_TRUE(await([&] { return ntbclient_recv(pair.from, &byte, 1, 0) != -EAGAIN; }));
    EXPECT_EQ(ntbclient_recv(pair.from, &byte, 1, 0), -ECONNRESET);
    ntbclient_close(pair.from);
}

TEST_F(Carried, DeliverWhatHasArrivedWhenTheLinkIsLost)
{
    Pair pair(one, other, options);
    const uint64_t sent = fill_pipe(pair.from, pair.to);
    const size_t in_ring = ntbclient_readable(pair.to);
    one.bridge->cut();
    uint64_t got = 0;
    EXPECT_EQ(drain(pair.to, &got), -ECONNRESET);
    EXPECT_GT(got, in_ring); // what was in the pipe as well
    EXPECT_LT(got, sent);
    char byte;
    EXPECT_TRUE(await([&] { return ntbclient_recv(pair.from, &byte, 1, 0) == -ECONNRESET; }));
    ntbclient_conn *late;
    ASSERT_TRUE(await([&] { return !one.now().peer && !other.now().peer; }));
    ASSERT_EQ(ntbclient_connect(pair.a, "late", &options, &late), 0);
    EXPECT_TRUE(await([&] {
        ntbclient_wait(late, NTBCLIENT_READABLE, 1);
        return info_of(late).error == -EHOSTUNREACH;
    }));
    for (ntbclient_conn *conn : {pair.from, pair.to, late})
        ntbclient_close(conn);
}

TEST_F(Carried, EndRevokedOnesBehindTheirBytes)
{
    Pair pair(one, other, options);
    const uint64_t sent = fill_pipe(pair.from, pair.to);
    EXPECT_EQ(ntbclient_revoke(pair.a, info_of(pair.from).id), 0);
    EXPECT_TRUE(await([&] { return ntbclient_send(pair.from, "x", 1, 0) == -ECONNRESET; }));
    uint64_t got = 0;
    EXPECT_EQ(drain(pair.to, &got), -ECONNRESET);
    EXPECT_EQ(got, sent);
    ntbclient_close(pair.from);
    ntbclient_close(pair.to);
}

// Each daemon's word of the end lies behind bytes that the other one's client will never take.
TEST_F(Carried, LetGoOfBothThatClosedWhereNothingMoves)
{
    for (const bool is_reset : {false, true}) {
        Pair pair(one, other, options);
        ASSERT_NO_FATAL_FAILURE(fill_both(pair.from, pair.to));
        for (ntbclient_conn *conn : {pair.from, pair.to}) {
            if (is_reset)
                ntbclient_reset(conn);
            ntbclient_close(conn);
        }
        expect_nothing_left();
    }
}

TEST_F(Carried, LetGoOfOneThatClosedWhenTheLinkIsLost)
{
    for (const bool is_lost_first : {false, true}) {
        Pair pair(one, other, options);
        ASSERT_NO_FATAL_FAILURE(fill_both(pair.from, pair.to));
        const size_t in_ring = ntbclient_readable(pair.to);
        if (is_lost_first)
            one.bridge->cut();
        ntbclient_close(pair.from);
        if (!is_lost_first)
            one.bridge->cut();
        EXPECT_TRUE(await([&] { return charged(one) == 0 && one.now().figures.carried == 0; }));
        EXPECT_EQ(charged(other), 1u);
        uint64_t got = 0;
        EXPECT_EQ(drain(pair.to, &got), -ECONNRESET);
        EXPECT_GT(got, in_ring); // what was in the pipe as well
        ntbclient_close(pair.to);
        ASSERT_NO_FATAL_FAILURE(join_again());
    }
}

TEST_F(Carried, LetGoOfOneThatDiedWhenTheLinkIsLost)
{
    Client b(other);
    ntbclient_listener *listener;
    ASSERT_EQ(ntbclient_listen(b, "doomed", &options, &listener), 0);
    auto doomed = std::make_unique<RawEnd>(one, "doomed");
    ntbclient_conn *to;
    ASSERT_TRUE(await([&] { return ntbclient_accept(listener, &to) == 0; }));
    uint64_t sent = 0;
    ASSERT_TRUE(await([&] {
        send_some(to, &sent);
        doomed->send_some();
        return is_full(doomed->unread()) && is_full(ntbclient_readable(to)) && cable.is_full(0) &&
               cable.is_full(1);
    }));
    doomed.reset();
    one.bridge->cut();
    EXPECT_TRUE(await([&] { return charged(one) == 0 && one.now().figures.carried == 0; }));
    ntbclient_close(to);
    ntbclient_listener_close(listener);
    join_again();
}

// The link is lost at any time between the request and the first byte.
TEST_F(Carried, EndWhereverTheLinkIsLost)
{
    std::mt19937 random(11);
    for (int i = 0; i < 100; i++) {
        Client a(one);
        Client b(other);
        ntbclient_listener *listener;
        ASSERT_EQ(ntbclient_listen(b, "cut", &options, &listener), 0);
        ntbclient_conn *from;
        ASSERT_EQ(ntbclient_connect(a, "cut", &options, &from), 0);
        for (uint64_t pause = random() % 3000; pause > 0; pause--)
            std::atomic_signal_fence(std::memory_order_seq_cst);
        (i % 2 == 0 ? one : other).bridge->cut();
        char byte;
        EXPECT_TRUE(await([&] {
            ntbclient_wait(from, NTBCLIENT_READABLE, 1);
            return ntbclient_recv(from, &byte, 1, 0) < 0 && info_of(from).error != 0;
        }));
        ntbclient_close(from);
        ntbclient_listener_close(listener);
        ASSERT_NO_FATAL_FAILURE(join_again());
    }
}

TEST_F(Carried, CarryTwoHundredAtOnceAndSleepWhenNoneMoves)
{
    constexpr int count = 200;
    Client a(one);
    Client b(other);
    ntbclient_listener *listener;
    ASSERT_EQ(ntbclient_listen(b, "many", &options, &listener), 0);
    std::vector<ntbclient_conn *> from(count);
    std::vector<ntbclient_conn *> to;
    for (ntbclient_conn *&conn : from)
        ASSERT_EQ(ntbclient_connect(a, "many", &options, &conn), 0);
    EXPECT_TRUE(await([&] {
        ntbclient_conn *conn;
        while (ntbclient_accept(listener, &conn) == 0)
            to.push_back(conn);
        return to.size() == count;
    }));
    for (ntbclient_conn *conn : from)
        ASSERT_NE(ntbclient_wait(conn, NTBCLIENT_WRITABLE, long_ms), 0);
    // Each has its own bytes: all meet at once.
    for (uint32_t i = 0; i < count; i++)
        EXPECT_EQ(ntbclient_send(from[i], &i, sizeof(i), 0), 4);
    std::vector<bool> seen(count);
    for (ntbclient_conn *conn : to) {
        uint32_t number = 0;
        EXPECT_EQ(ntbclient_wait(conn, NTBCLIENT_READABLE, long_ms), int{NTBCLIENT_READABLE});
        ASSERT_EQ(ntbclient_recv(conn, &number, sizeof(number), 0), 4);
        ASSERT_LT(number, seen.size());
        EXPECT_FALSE(seen[number]);
        seen[number] = true;
    }
    for (const Daemon *daemon : {&one, &other})
        EXPECT_TRUE(await(
            [&] { return daemon->carried().active == 0 && daemon->carried().relays == count; }));
    // While one moves the others are not looked at.
    uint32_t first = 0;
    ntbclient_send(from[0], &first, sizeof(first), 0);
    for (ntbclient_conn *conn : to)
        if (ntbclient_wait(conn, NTBCLIENT_READABLE, 1) != 0)
            std::swap(*std::find(to.begin(), to.end(), conn), to[0]);
    for (int i = 0; i < 1000; i++) {
        ntbclient_recv(to[0], nullptr, ring, 0);
        expect_passes(from[0], to[0]);
        EXPECT_LE(one.carried().active, 1u);
        EXPECT_LE(other.carried().active, 1u);
    }
    for (int i = 0; i < count; i++) {
        ntbclient_close(from[static_cast<size_t>(i)]);
        ntbclient_close(to[static_cast<size_t>(i)]);
    }
    ntbclient_listener_close(listener);
}

// ---- hostile clients

TEST_F(Carried, OutliveClientsThatWriteAnythingAnywhere)
{
    std::mt19937_64 random(7);
    Client unharmed[2] = {Client(one), Client(other)};
    ntbclient_conn *quick[2];
    connect_clients(unharmed[0], unharmed[1], options, &quick[0], &quick[1]);
    for (int round = 0; round < 200; round++) {
        Client good(other);
        ntbclient_listener *listener;
        ASSERT_EQ(ntbclient_listen(good, "good", &options, &listener), 0);
        RawEnd hostile(one, "good");
        auto *const memory = reinterpret_cast<uint64_t *>(hostile.page);
        ntbclient_conn *conn;
        ASSERT_TRUE(await([&] { return ntbclient_accept(listener, &conn) == 0; }));
        char buffer[3000] = {};
        for (int i = 0; i < 40; i++) {
            for (int k = 0; k < 4; k++)
                memory[random() % (ntbc::page_bytes / 8)] = random() >> random() % 64;
            if (random() % 4 == 0)
                hostile.ring_bell(buffer, random() % sizeof(buffer));
            const ssize_t sent = ntbclient_send(conn, buffer, random() % sizeof(buffer), 0);
            EXPECT_TRUE(sent >= 0 || sent == -EAGAIN || sent == -EPIPE || sent == -ECONNRESET)
                << sent;
            const ssize_t got = ntbclient_recv(conn, buffer, random() % sizeof(buffer), 0);
            EXPECT_TRUE(got >= 0 || got == -EAGAIN || got == -ECONNRESET) << got;
        }
        expect_passes(quick[round % 2], quick[1 - round % 2]);
        ntbclient_close(conn);
        ntbclient_listener_close(listener);
    }
    ntbclient_close(quick[0]);
    ntbclient_close(quick[1]);
}

// Its friend at the other host does not read, so that nothing can be said of its end.
TEST_F(Carried, DoNotPollForAClientThatBroke)
{
    Client good(other);
    ntbclient_listener *listener;
    ASSERT_EQ(ntbclient_listen(good, "good", &options, &listener), 0);
    RawEnd hostile(one, "good");
    ntbclient_conn *conn;
    ASSERT_TRUE(await([&] { return ntbclient_accept(listener, &conn) == 0; }));
    uint64_t sent = 0;
    ASSERT_TRUE(await([&] {
        send_some(conn, &sent);
        hostile.send_some();
        return is_full(hostile.unread()) && is_full(ntbclient_readable(conn)) && cable.is_full(0) &&
               cable.is_full(1);
    }));
    ntbc::store(hostile.page->direction[1].consumed, uint64_t{1} << 40);
    hostile.ring_bell("\3", 1);
    // What is for it is dropped; then the thread sleeps.
    EXPECT_TRUE(await([&] { return ntbclient_writable(conn) == ring; }));
    const uint64_t before = one.carried().sleeps;
    EXPECT_TRUE(await([&] {
        const Carrier::Figures now = one.carried();
        return now.active == 0 && now.sleeps > before + 1;
    }));
    EXPECT_EQ(one.carried().relays, 1u);
    ntbclient_close(conn);
    ntbclient_listener_close(listener);
}

// ---- a hostile daemon

TEST_F(Carried, LetNobodyInWithoutARightTicket)
{
    Pair pair(one, other, options);
    EXPECT_TRUE(await([&] { return cable.last_ticket().id != 0; }));
    expect_passes(pair.from, pair.to);
    const Ticket right = cable.last_ticket();
    std::vector<Ticket> wrong(7, right); // the right one has been used
    wrong[1].magic++;
    wrong[2].version++;
    wrong[3].id++;
    wrong[4].token[15] ^= 1;
    wrong[5].ring_bytes++;
    wrong[6].id = UINT64_MAX;
    for (const Ticket &ticket : wrong) {
        const auto line = one.bridge->ask(ticket);
        EXPECT_TRUE(await([&] { return one.bridge->has_ended(line); }));
    }
    EXPECT_TRUE(await([&] { return other.carried().refused == wrong.size(); }));
    expect_passes(pair.from, pair.to);
    expect_passes(pair.to, pair.from);
    ntbclient_close(pair.from);
    ntbclient_close(pair.to);
}

TEST_F(Carried, EndWhatAPeersDaemonBreaks)
{
    const auto mark = [](uint32_t bits, size_t bytes) {
        return [=](Cable::Parcel *parcel) {
            if (parcel->bits == 0)
                *parcel = {std::vector<uint8_t>(bytes), bits};
        };
    };
    const std::function<void(Cable::Parcel *)> wrong[] = {
        [](Cable::Parcel *parcel) { parcel->bytes.resize(ring / 4 + 1); },
        [](Cable::Parcel *parcel) { parcel->bytes.resize(16777215); },
        [](Cable::Parcel *parcel) { parcel->bytes.clear(); },
        mark(Mark::end, 7),
        mark(Mark::end, 9),
        mark(Mark::closed, 8),
        mark(Mark::end | Mark::reset, 8),
        mark(8, 8),
        mark(UINT32_MAX, 8),
    };
    for (const auto &change : wrong) {
        Pair pair(one, other, options);
        ntbclient_conn *quick[2];
        connect_clients(pair.a, pair.b, options, &quick[0], &quick[1]);
        expect_passes(pair.from, pair.to);
        cable.set_distort(change);
        EXPECT_EQ(ntbclient_send(pair.from, "x", 1, 0), 1);
        char byte;
        for (ntbclient_conn *conn : {pair.to, pair.from})
            EXPECT_TRUE(await([&] { return ntbclient_recv(conn, &byte, 1, 0) == -ECONNRESET; }));
        cable.set_distort({});
        expect_passes(quick[0], quick[1]);
        for (ntbclient_conn *conn : {pair.from, pair.to, quick[0], quick[1]})
            ntbclient_close(conn);
    }
}

TEST_F(Carried, EndWhereBytesFollowAnEnd)
{
    Pair pair(one, other, options);
    cable.set_distort([](Cable::Parcel *parcel) {
        if (parcel->bytes.size() == 3)
            *parcel = {std::vector<uint8_t>(8), Mark::end};
    });
    EXPECT_EQ(ntbclient_send(pair.from, "end", 3, 0), 3);
    char byte;
    EXPECT_TRUE(await([&] { return ntbclient_recv(pair.to, &byte, 1, 0) == 0; }));
    EXPECT_EQ(ntbclient_send(pair.from, "more", 4, 0), 4);
    EXPECT_TRUE(await([&] { return ntbclient_recv(pair.from, &byte, 1, 0) == -ECONNRESET; }));
    EXPECT_LE(ntbclient_recv(pair.to, &byte, 1, 0), 0); // and none of them
    ntbclient_close(pair.from);
    ntbclient_close(pair.to);
}

TEST_F(Carried, DropADaemonThatSaysWhatNoneSays)
{
    Pair pair(one, other, options);
    LinkNews news = {LinkNews::Kind::message};
    news.message.type = Type::hello;
    one.mailbox().put(news);
    char byte;
    for (ntbclient_conn *conn : {pair.to, pair.from})
        EXPECT_TRUE(await([&] { return ntbclient_recv(conn, &byte, 1, 0) == -ECONNRESET; }));
    EXPECT_TRUE(await([&] { return !one.now().peer && !other.now().peer; }));
    ntbclient_close(pair.from);
    ntbclient_close(pair.to);
}
} // namespace
