// SPDX-License-Identifier: BSD-3-Clause
// Clients that lie: to the daemon about sockets, to the other end in the lines, to the daemon in
// the record. The good ones beside them go on.
#include "tcp.hpp"

#include "wire/message.hpp"
#include "wire/sealed.hpp"

#include <random>
#include <sys/mman.h>

using namespace ntb::socket;
using namespace ntb::socket::test;
using ntbc::Message;
using ntbc::Parcel;
using ntbc::Type;
using ntbd::test::Daemon;
using ntbd::test::Folder;

namespace
{

constexpr std::uint32_t ring_bytes = 4096;

/// A client that says what it likes.
struct Raw {
    explicit Raw(const Daemon &daemon) : fd(ntbd::connect_to_daemon(daemon.config.socket))
    {
        EXPECT_GE(fd, 0);
        Message hello;
        hello.type = Type::hello;
        send(hello);
        EXPECT_EQ(next(), Type::answer);
    }
    ~Raw() { ::close(fd); }
    void send(const Message &m, int shown = -1) const
    {
        EXPECT_EQ(message_send(fd, m, &shown, shown >= 0 ? 1 : 0), 0);
    }
    Message claim(int shown, bool accepted, std::uint32_t timeout = ntbd::test::long_ms)
    {
        Message m;
        m.type = Type::claim;
        m.other = ++token;
        m.flags = accepted ? ntbc::flag_accepted : 0;
        m.timeout_ms = timeout;
        send(m, shown);
        return m;
    }
    Type next()
    {
        ntbc::Received received = ntbc::Received::nothing;
        EXPECT_TRUE(await([&] {
            received = message_receive(fd, &parcel);
            return received != ntbc::Received::nothing;
        }));
        return received == ntbc::Received::message ? parcel.message.type : Type{};
    }
    int refusal()
    {
        EXPECT_EQ(next(), Type::unclaimed);
        EXPECT_EQ(parcel.message.other, token);
        return parcel.message.status;
    }

    int fd;
    std::uint64_t token = 0;
    Parcel parcel;
};

class Hostile : public testing::Test
{
protected:
    Hostile()
    {
        daemon.config.ring_bytes = ring_bytes;
        daemon.start();
    }
    /// Maps what a claim has brought.
    template <typename T>
    static T *map(Raw &raw, int index, std::size_t bytes)
    {
        return static_cast<T *>(ntbc::sealed_map(raw.parcel.fd(index), bytes));
    }

    Folder folder;
    Daemon daemon{folder.path + "/ntbd.sock"};
};

TEST_F(Hostile, OnlyAnEstablishedTcpSocketIsClaimed)
{
    Raw raw(daemon);
    Tcp tcp;
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    const int file = memfd_create("file", MFD_CLOEXEC);
    const int udp = ::socket(AF_INET, SOCK_DGRAM, 0);
    const int fresh = ::socket(AF_INET, SOCK_STREAM, 0);
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(listen(listener, 1), 0);
    const struct {
        int fd;
        int status;
    } cases[] = {{pair[0], -EPROTONOSUPPORT}, {file, -ENOTSOCK},     {udp, -EPROTONOSUPPORT},
                 {fresh, -ENOTCONN},          {listener, -ENOTCONN}, {-1, -EMFILE}};
    for (const auto &one : cases) {
        raw.claim(one.fd, false);
        EXPECT_EQ(raw.refusal(), one.status);
    }
    raw.claim(tcp.fd[0], false, 0);
    EXPECT_EQ(raw.refusal(), -EINVAL);
    for (const int fd : {pair[0], pair[1], file, udp, fresh, listener})
        ::close(fd);
    // It may still claim what it has.
    raw.claim(tcp.fd[0], false);
    raw.claim(tcp.fd[1], true);
    EXPECT_EQ(raw.next(), Type::claimed);
    EXPECT_EQ(raw.next(), Type::claimed);
}

TEST_F(Hostile, NoMirrorWithinTheTime)
{
    Raw raw(daemon);
    Tcp tcp;
    raw.claim(tcp.fd[0], false, 20);
    EXPECT_EQ(raw.refusal(), -ETIMEDOUT);
    EXPECT_TRUE(await([&] { return daemon.now().figures.claimed == 0; }));
}

TEST_F(Hostile, TheSameEndTwiceIsNoMirror)
{
    Raw raw(daemon);
    Tcp tcp;
    raw.claim(tcp.fd[0], false);
    raw.claim(tcp.fd[1], false); // it was accepted
    raw.claim(tcp.fd[0], false, 20);
    // The first is of a process that handed it on.
    EXPECT_EQ(raw.next(), Type::unclaimed);
    EXPECT_EQ(raw.parcel.message.other, 1u);
    EXPECT_EQ(raw.parcel.message.status, -ECANCELED);
    EXPECT_EQ(raw.next(), Type::unclaimed);
    EXPECT_EQ(raw.parcel.message.status, -ETIMEDOUT);
}

TEST_F(Hostile, AMatchedOneIsNotClaimedAgain)
{
    Raw raw(daemon);
    Tcp tcp;
    raw.claim(tcp.fd[0], false);
    raw.claim(tcp.fd[1], true);
    EXPECT_EQ(raw.next(), Type::claimed);
    EXPECT_EQ(raw.next(), Type::claimed);
    Raw other(daemon);
    other.claim(tcp.fd[0], false);
    EXPECT_EQ(other.refusal(), -EALREADY);
}

TEST_F(Hostile, AClaimThatWasWithdrawnMatchesNothing)
{
    Raw raw(daemon);
    Tcp tcp;
    Message m = raw.claim(tcp.fd[0], false);
    m.type = Type::unclaim;
    raw.send(m);
    raw.claim(tcp.fd[1], true, 20);
    EXPECT_EQ(raw.refusal(), -ETIMEDOUT);
}

TEST_F(Hostile, TheQuotaOfAUserBoundsClaims)
{
    daemon.reload([](ntbd::Config &config) { config.quota.connections = 1; });
    Raw raw(daemon);
    Tcp tcp;
    Tcp another;
    ASSERT_TRUE(await([&] {
        raw.claim(tcp.fd[0], false);
        raw.claim(another.fd[0], false);
        Message m;
        m.type = Type::unclaim;
        m.other = raw.token - 1;
        raw.send(m);
        m.other = raw.token;
        raw.send(m);
        raw.claim(-1, false); // the answer is behind the others
        bool refused = false;
        while (raw.next() == Type::unclaimed && raw.parcel.message.status != -EMFILE)
            refused = refused || raw.parcel.message.status == -EDQUOT;
        return refused;
    }));
}

// Whatever stands in the lines: the other end ends with what it has, or is reset, and returns.
void any_words_in_the_lines(const Daemon &daemon, const Daemon &of_the_other)
{
    std::mt19937_64 random(7);
    Attachment *at = attach(of_the_other.config.socket);
    for (std::uint64_t round = 0; round < 300; round++) {
        Raw raw(daemon);
        Tcp tcp;
        const Side side = {Connection::claim(*at, tcp.fd[1], true), tcp.fd[1]};
        raw.claim(tcp.fd[0], false);
        ASSERT_EQ(raw.next(), Type::claimed);
        auto *page =
            static_cast<Page *>(ntbc::sealed_map(raw.parcel.fd(0), ntbc::memory_bytes(ring_bytes)));
        ASSERT_NE(page, nullptr);
        ASSERT_TRUE(await([&] {
            at->process();
            return at->figures().matched == round + 1;
        }));
        char bytes[512];
        for (int i = 0; i < 40; i++) {
            auto *words = reinterpret_cast<std::uint32_t *>(page->direction);
            const std::size_t at_word = random() % (sizeof(page->direction) / 4);
            const std::uint64_t small = random() % 5;
            ntbc::store(words[at_word],
                        static_cast<std::uint32_t>(random() % 3 == 0 ? random() : small));
            if (i % 4 == 0)
                ::send(tcp.fd[0], bytes, 10, MSG_DONTWAIT | MSG_NOSIGNAL);
            const ssize_t got = side.receive(bytes, sizeof(bytes));
            EXPECT_LE(got, static_cast<ssize_t>(sizeof(bytes)));
            EXPECT_GE(got, -ECONNRESET);
            side.send(std::string(random() % 600, 'x'));
            side.connection->look(tcp.fd[1]);
            side.connection->readable_bytes(tcp.fd[1]);
        }
        side.connection->close(tcp.fd[1], true);
        munmap(page, ntbc::memory_bytes(ring_bytes));
    }
}

TEST_F(Hostile, AnyWordsInTheLines)
{
    any_words_in_the_lines(daemon, daemon);
}

// Then each has memory of its own, with a daemon as the other end.
class HostileAtADistance : public testing::Test
{
protected:
    void SetUp() override
    {
        plug(cable, near, far);
        for (Daemon *one : {&near, &far}) {
            one->config.ring_bytes = ring_bytes;
            one->start();
        }
        join(near, far);
    }
    /// Both daemons are there for the next connection, and nothing is left of those before.
    void TearDown() override
    {
        EXPECT_TRUE(await([&] {
            return near.now().figures.claimed + far.now().figures.claimed == 0 &&
                   near.now().figures.carried + far.now().figures.carried == 0;
        }));
        Tcp tcp;
        Raw one(near), other(far);
        one.claim(tcp.fd[0], false);
        other.claim(tcp.fd[1], true);
        EXPECT_EQ(one.next(), Type::claimed);
        EXPECT_EQ(other.next(), Type::claimed);
    }

    Folder folder;
    ntbd::test::Cable cable;
    Daemon near{folder.path + "/near.sock"}, far{folder.path + "/far.sock"};
};

TEST_F(HostileAtADistance, AnyWordsInTheLines)
{
    any_words_in_the_lines(near, far);
}

// Of two clients that know nothing of each other, and write at once.
TEST_F(HostileAtADistance, AnyWordsInTheLinesOfBoth)
{
    std::mt19937_64 random(13);
    for (int round = 0; round < 100; round++) {
        Tcp tcp;
        Raw liars[] = {Raw(near), Raw(far)};
        std::uint32_t *words[2];
        for (const int end : {0, 1})
            liars[end].claim(tcp.fd[end], end == 1);
        for (const int end : {0, 1}) {
            ASSERT_EQ(liars[end].next(), Type::claimed);
            words[end] = static_cast<std::uint32_t *>(
                ntbc::sealed_map(liars[end].parcel.fd(0), ntbc::memory_bytes(ring_bytes)));
            ASSERT_NE(words[end], nullptr);
        }
        for (int i = 0; i < 200; i++) {
            const unsigned end = random() % 2;
            const std::uint64_t small = random() % 3;
            ntbc::store(words[end][random() % (sizeof(Page::direction) / 4)],
                        static_cast<std::uint32_t>(random() % 6 == 0 ? random() : small));
            ::send(liars[end].parcel.fd(1), "\1", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
            Message fin;
            fin.type = Type::fin_seen;
            fin.id = liars[end].parcel.message.id;
            fin.other = small;
            if (i % 16 == 0)
                liars[end].send(fin);
        }
        for (const int end : {0, 1})
            munmap(words[end], ntbc::memory_bytes(ring_bytes));
    }
}

// The daemon takes a record for what it is, and serves the next one.
TEST_F(Hostile, AnyWordsInTheRecord)
{
    std::mt19937_64 random(11);
    for (int round = 0; round < 100; round++) {
        Tcp tcp;
        auto liar = std::make_unique<Raw>(daemon);
        Raw other(daemon);
        liar->claim(tcp.fd[0], false);
        other.claim(tcp.fd[1], true);
        ASSERT_EQ(liar->next(), Type::claimed);
        ASSERT_EQ(other.next(), Type::claimed);
        auto *record = map<std::uint32_t>(*liar, 2, record_bytes);
        ASSERT_NE(record, nullptr);
        for (std::size_t i = 0; i < record_bytes / 4; i++)
            record[i] = static_cast<std::uint32_t>(random() % 3 == 0 ? random() : random() % 4);
        Message fin;
        fin.type = Type::fin_seen;
        fin.id = other.parcel.message.id;
        for (fin.other = 0; fin.other < 4; fin.other++)
            other.send(fin);
        Message list;
        list.type = Type::list;
        list.backlog = 8;
        other.send(list);
        while (other.next() != Type::answer)
            EXPECT_EQ(other.parcel.message.type, Type::entry);
        munmap(record, record_bytes);
        liar.reset(); // and its daemon says what it left
    }
    EXPECT_TRUE(await([&] { return daemon.now().figures.claimed == 0; }));
}

TEST_F(Hostile, OthersConnectionsAreNotReachedByNumber)
{
    Raw raw(daemon);
    Raw liar(daemon);
    Tcp tcp;
    raw.claim(tcp.fd[0], false);
    raw.claim(tcp.fd[1], true);
    ASSERT_EQ(raw.next(), Type::claimed);
    const std::uint64_t id = raw.parcel.message.id;
    ASSERT_EQ(raw.next(), Type::claimed);
    for (const Type type : {Type::close, Type::fin_seen, Type::unclaim}) {
        Message m;
        m.type = type;
        m.id = id;
        m.other = 1;
        liar.send(m);
    }
    Message list;
    list.type = Type::list;
    list.backlog = 8;
    liar.send(list);
    while (liar.next() != Type::answer) {
    }
    EXPECT_TRUE(await([&] { return daemon.now().figures.claimed == 2; }));
}

} // namespace
