// SPDX-License-Identifier: BSD-3-Clause
// The daemon's sockets: strangers, clients that lie, and how two daemons find each other.
#include "hosts.hpp"
#include "raw.hpp"

#include "wire/message.hpp"
#include "wire/sealed.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <random>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

using namespace ntbd;
using namespace ntbd::test;
using ntbc::Message;
using ntbc::Parcel;
using ntbc::Received;
using ntbc::Type;

namespace
{
class Servers : public testing::Test
{
protected:
    static constexpr uint32_t clients_max = 20;

    void SetUp() override
    {
        one.config.quota.clients = clients_max;
        one.start();
        other.start();
    }
    // Whatever a test did, another client is served.
    void TearDown() override
    {
        Client good(one);
        ntbclient_entry entries[1];
        entries[0].size = sizeof(entries[0]);
        EXPECT_GE(ntbclient_list(good, 0, entries, 1), 0);
    }

    Folder folder;
    Daemon one{folder.path + "/one.sock"};
    Daemon other{folder.path + "/other.sock"};
};

TEST_F(Servers, DropWhoDoesNotKeepToTheProtocol)
{
    Message hello;
    hello.type = Type::hello;
    {
        Raw raw(one); // not greeted
        Message m;
        m.type = Type::list;
        raw.send(m);
        raw.expect_dropped();
    }
    {
        Raw raw(one);
        raw.hello();
        raw.send(hello); // twice
        raw.expect_dropped();
    }
    {
        Raw raw(one);
        raw.hello();
        Message m;
        m.type = Type::matched; // a daemon's
        raw.send(m);
        raw.expect_dropped();
    }
    {
        Raw raw(one);
        raw.hello();
        Message m;
        m.type = Type::list;
        const int fds[] = {raw.fd, raw.fd};
        raw.send(m, fds, 2); // descriptors that no one asked for
        raw.expect_dropped();
    }
    {
        Raw raw(one);
        raw.hello();
        EXPECT_EQ(::send(raw.fd, &hello, sizeof(hello) - 1, 0),
                  static_cast<ssize_t>(sizeof(hello) - 1));
        raw.expect_dropped();
    }
}

TEST_F(Servers, TellAnotherVersionSo)
{
    Raw raw(one);
    Message m;
    m.type = Type::hello;
    m.version++;
    m.request = 7;
    Parcel parcel;
    raw.send(m);
    ASSERT_EQ(raw.receive(&parcel), Received::message);
    EXPECT_EQ(parcel.message.status, -EPROTO);
    EXPECT_EQ(parcel.message.request, 7u);
    raw.expect_dropped();
}

TEST_F(Servers, AdmitAsManyStrangersOfAUserAsClients)
{
    {
        std::vector<std::unique_ptr<Raw>> strangers;
        for (uint32_t i = 0; i < clients_max; i++)
            strangers.push_back(std::make_unique<Raw>(one));
        Raw late(one);
        late.expect_dropped();
    }
    EXPECT_TRUE(await([&] {
        ntbclient *client;
        const int status = ntbclient_attach(one.config.socket.c_str(), &client);
        if (status == 0)
            ntbclient_detach(client);
        return status == 0;
    }));
}

TEST_F(Servers, AdmitTheUsersThatAreAllowed)
{
    one.reload([](Config &config) { config.allowed.emplace({getuid() + 1}); });
    EXPECT_TRUE(await([&] {
        ntbclient *client;
        const int status = ntbclient_attach(one.config.socket.c_str(), &client);
        if (status == 0)
            ntbclient_detach(client);
        return status == -EACCES;
    }));
    one.reload([](Config &config) { config.allowed.reset(); });
    EXPECT_TRUE(await([&] {
        ntbclient *client;
        const int status = ntbclient_attach(one.config.socket.c_str(), &client);
        if (status == 0)
            ntbclient_detach(client);
        return status == 0;
    }));
}

TEST_F(Servers, DoNotWaitForAClientThatDoesNotRead)
{
    Raw deaf(one);
    deaf.hello();
    Message m;
    m.type = Type::unlisten;
    Client good(one);
    ntbclient_entry entries[1];
    entries[0].size = sizeof(entries[0]);
    // Its answers pile up, until it is dropped.
    for (int status = 0; status != -EPIPE && status != -ECONNRESET;) {
        status = message_send(deaf.fd, m);
        ASSERT_GE(ntbclient_list(good, 0, entries, 1), 0);
    }
}

TEST_F(Servers, ReplaceADeadSocketAndNothingElse)
{
    const std::string path = folder.path + "/again.sock";
    std::string error;
    close(listen_at(path));
    {
        ListeningSocket first;
        EXPECT_TRUE(first.open(path, 0600, &error)) << error;
        struct stat st;
        ASSERT_EQ(stat(path.c_str(), &st), 0);
        EXPECT_EQ(st.st_mode & 0777, 0600u);
        ListeningSocket second;
        EXPECT_FALSE(second.open(path, 0600, &error));
        EXPECT_EQ(error, path + ": another daemon is there");
    }
    EXPECT_FALSE(std::filesystem::exists(path));
    close(open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    ListeningSocket third;
    EXPECT_FALSE(third.open(path, 0600, &error));
    EXPECT_EQ(error, path + ": what is there is no socket");
    EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(Servers, FindEachOtherAgain)
{
    for (int i = 0; i < 20; i++)
        ASSERT_NO_FATAL_FAILURE(join(one, other));
    // The link is lost for one alone.
    one.mailbox().put({LinkNews::Kind::lost, {}, {}});
    EXPECT_TRUE(await([&] { return !one.now().peer && !other.now().peer; }));
    ASSERT_NO_FATAL_FAILURE(join(one, other));
    // A daemon that returns is introduced anew.
    other.stop();
    EXPECT_TRUE(await([&] { return !one.now().peer; }));
    other.start();
    ASSERT_NO_FATAL_FAILURE(join(one, other));
}

TEST_F(Servers, DoNotJoinWhoDoesNotKnowTheSecret)
{
    Introduction own;
    Peer peer = {};
    ASSERT_TRUE(introduce_self(one.config.socket, CarrierChoice::automatic, &own));
    own.token.fill(0xFF); // it waits for the other one
    peer.machine = own.machine;
    peer.host = 1;
    one.mailbox().put({LinkNews::Kind::introducing, own, {}});
    one.mailbox().put({LinkNews::Kind::introduced, {}, peer});
    Message m;
    m.type = Type::introduce;
    for (const uint32_t bytes : {0u, 8u, 16u, 64u}) {
        Raw raw(one);
        m.key_bytes = bytes;
        memset(m.key, 0xFF, sizeof(m.key));
        m.key[7] ^= 1;
        raw.send(m);
        raw.expect_dropped();
    }
    EXPECT_FALSE(one.now().peer);
    Raw raw(one);
    m.key_bytes = 16;
    m.key[7] ^= 1;
    Parcel parcel;
    // It may not know its own secret yet.
    raw.send(m);
    ASSERT_EQ(raw.receive(&parcel), Received::message);
    EXPECT_EQ(parcel.message.type, Type::introduced);
    EXPECT_TRUE(await([&] { return one.now().peer; }));
}

TEST_F(Servers, DoNotJoinAcrossMachinesWhereOneIsDirect)
{
    Introduction own;
    Peer peer;
    ASSERT_TRUE(introduce_self(one.config.socket, CarrierChoice::direct, &own));
    ASSERT_TRUE(introduction_of(&own, sizeof(own), &peer));
    peer.machine[0] ^= 1;
    peer.token.fill(0xFF);
    own.token.fill(0);
    peer.path = other.config.socket;
    one.mailbox().put({LinkNews::Kind::introducing, own, {}});
    one.mailbox().put({LinkNews::Kind::introduced, {}, peer});
    Client a(one);
    ntbclient_conn *conn;
    ASSERT_EQ(ntbclient_connect(a, "there", nullptr, &conn), 0);
    EXPECT_TRUE(await([&] {
        ntbclient_wait(conn, NTBCLIENT_READABLE, 1);
        return info_of(conn).error == -EHOSTUNREACH;
    }));
    ntbclient_close(conn);
    EXPECT_FALSE(one.now().peer);
}

TEST_F(Servers, GoOnWhenDescriptorsAreFreeAgain)
{
    rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    Raw early(one);
    early.hello();
    Client running(other); // so it has the descriptors that it starts with
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const sockaddr_un address = address_of(one.config.socket);
    const rlimit few = {static_cast<rlim_t>(fd) + 1, limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof(address)), 0);
    Message m;
    m.type = Type::hello;
    EXPECT_EQ(message_send(fd, m), 0);
    // Served, though without the new one.
    m.type = Type::unlisten;
    early.send(m);
    Parcel parcel;
    EXPECT_EQ(early.receive(&parcel), Received::message);
    setrlimit(RLIMIT_NOFILE, &limit);
    pollfd one_fd = {fd, POLLIN, 0};
    EXPECT_EQ(poll(&one_fd, 1, 30000), 1);
    EXPECT_EQ(message_receive(fd, &parcel), Received::message);
    close(fd);
}

/// A TCP connection. The last close of one end waits for as long as the other end reads nothing.
struct Lingering {
    Lingering()
    {
        const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address = {};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t bytes = sizeof(address);
        auto *name = reinterpret_cast<sockaddr *>(&address);
        EXPECT_EQ(bind(listener, name, bytes), 0);
        EXPECT_EQ(listen(listener, 1), 0);
        EXPECT_EQ(getsockname(listener, name, &bytes), 0);
        lingers = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT_EQ(::connect(lingers, name, bytes), 0);
        reads_nothing = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        EXPECT_GE(reads_nothing, 0);
        close(listener);
        const std::vector<char> data(65536);
        while (::send(lingers, data.data(), data.size(), MSG_DONTWAIT) > 0) {
        }
        const linger hour = {1, 3600};
        EXPECT_EQ(setsockopt(lingers, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)), 0);
    }
    ~Lingering() { close(reads_nothing); }
    Lingering(const Lingering &) = delete;
    Lingering &operator=(const Lingering &) = delete;

    int lingers;
    int reads_nothing;
};

/// A user with many clients. Three hand in descriptors whose last holder the daemon then is: in a
/// claim, in a message with too many, and in one that the daemon drops unread. The others claim,
/// too, more than may be pending.
class OfAnotherUser : public Servers
{
protected:
    void SetUp() override
    {
        if (getuid() != 0)
            GTEST_SKIP() << "only root becomes another user";
        Servers::SetUp();
        std::filesystem::permissions(folder.path, std::filesystem::perms(0711));
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control), 0);
        address = address_of(one.config.socket);
        // Nothing is read before all is sent and closed.
        one.reload([&](Config &config) {
            config.quota.clients = 2 * clients_max;
            await([&] { return sent.load(); });
        });
        for (auto &lingering : connections)
            lingering.emplace();
        child = fork();
        ASSERT_GE(child, 0);
        if (child == 0)
            _exit(run());
        for (auto &lingering : connections)
            close(lingering->lingers);
        char byte;
        ASSERT_EQ(recv(control[0], &byte, 1, 0), 1);
        sent = true;
    }
    void TearDown() override
    {
        if (child <= 0)
            return;
        for (auto &lingering : connections)
            lingering.reset();
        EXPECT_EQ(::send(control[0], "", 1, MSG_NOSIGNAL), 1);
        int result = -1;
        EXPECT_EQ(waitpid(child, &result, 0), child);
        EXPECT_EQ(result == 0, answered) << result;
        for (const int fd : control)
            close(fd);
    }

    std::optional<Lingering> connections[3];
    bool answered = true; ///< the claim is to be

private:
    static constexpr size_t clients = 3 + Closer::pending_max + 4;
    static_assert(clients <= 2 * clients_max);

    // Only calls that need no lock. @return 0: each claim is answered once its socket is closed
    int run()
    {
        if (setgid(65534) != 0 || setuid(65534) != 0)
            return 1;
        int to[clients];
        for (int &fd : to) {
            fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
            if (::connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof(address)) != 0)
                return 2;
        }
        Message hello;
        hello.type = Type::hello;
        Message list;
        list.type = Type::list;
        Message claim;
        claim.type = Type::claim;
        claim.timeout_ms = 1;
        const int shown = connections[0]->lingers;
        const int many[] = {control[1], control[1], control[1], connections[1]->lingers};
        const int unread = connections[2]->lingers;
        if (message_send(to[0], hello) != 0 || message_send(to[0], claim, &shown, 1) != 0 ||
            send_many(to[1], claim, many) != 0 || message_send(to[2], list) != 0 ||
            message_send(to[2], claim, &unread, 1) != 0)
            return 3;
        for (size_t i = 3; i < clients; i++)
            if (message_send(to[i], hello) != 0 || message_send(to[i], claim, &control[1], 1) != 0)
                return 3;
        for (auto &lingering : connections) {
            close(lingering->reads_nothing);
            close(lingering->lingers);
        }
        char byte;
        if (::send(control[1], "", 1, MSG_NOSIGNAL) != 1 || recv(control[1], &byte, 1, 0) != 1)
            return 4;
        for (size_t i = 0; i < clients; i++)
            if (i != 1 && i != 2 && !is_answered(to[i]))
                return 5;
        return 0;
    }
    static bool is_answered(int fd)
    {
        Message m;
        for (const Type type : {Type::answer, Type::unclaimed})
            if (recv(fd, &m, sizeof(m), 0) != sizeof(m) || m.type != type)
                return false;
        return true;
    }
    static int send_many(int fd, const Message &m, const int (&fds)[4])
    {
        iovec part = {const_cast<Message *>(&m), sizeof(m)};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(fds))] = {};
        msghdr header = {};
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        header.msg_control = control;
        header.msg_controllen = sizeof(control);
        cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(fds));
        memcpy(CMSG_DATA(rights), fds, sizeof(fds));
        return sendmsg(fd, &header, 0) == static_cast<ssize_t>(sizeof(m)) ? 0 : -errno;
    }

    sockaddr_un address = {};
    int control[2];
    std::atomic<bool> sent{false};
    pid_t child = -1;
};

TEST_F(OfAnotherUser, ACloseThatWaitsStallsNobodyElse)
{
    for (int i = 0; i < 10; i++) {
        Client good(one);
        ntbclient_entry entries[1];
        entries[0].size = sizeof(entries[0]);
        ASSERT_GE(ntbclient_list(good, 0, entries, 1), 0);
    }
}

TEST_F(OfAnotherUser, ACloseThatWaitsDoesNotHoldUpTheEnd)
{
    {
        Client good(one);
    }
    answered = false;
    one.stop();
}

// The library under an end that writes whatever it likes into all the memory it has.
TEST_F(Servers, CarryHostileEndsWithoutHarmToTheOther)
{
    std::mt19937_64 random(7);
    for (int round = 0; round < 300; round++) {
        Client good(one);
        ntbclient_options options;
        ntbclient_options_init(&options);
        options.local = 1;
        ntbclient_listener *listener;
        ASSERT_EQ(ntbclient_listen(good, "good", &options, &listener), 0);
        Raw hostile(one);
        hostile.hello();
        Message m;
        m.type = Type::connect;
        m.flags = ntbc::flag_local;
        m.timeout_ms = 1000;
        m.key_bytes = 4;
        memcpy(m.key, "good", 4);
        Parcel parcel;
        hostile.send(m);
        while (parcel.message.type != Type::connected)
            ASSERT_EQ(hostile.receive(&parcel), Received::message);
        const size_t bytes = ntbc::memory_bytes(parcel.message.ring_bytes);
        auto *memory = static_cast<uint64_t *>(ntbc::sealed_map(parcel.fd(0), bytes));
        ntbclient_conn *conn;
        ASSERT_TRUE(await([&] { return ntbclient_accept(listener, &conn) == 0; }));
        char buffer[3000];
        for (int i = 0; i < 40; i++) {
            for (int k = 0; k < 4; k++)
                memory[random() % (ntbc::page_bytes / 8)] = random() >> random() % 64;
            if (random() % 4 == 0)
                send(parcel.fd(1), buffer, random() % sizeof(buffer), MSG_DONTWAIT | MSG_NOSIGNAL);
            const ssize_t sent = ntbclient_send(conn, buffer, random() % sizeof(buffer), 0);
            EXPECT_TRUE(sent >= 0 || sent == -EAGAIN || sent == -EPIPE || sent == -ECONNRESET)
                << sent;
            const ssize_t got = ntbclient_recv(conn, buffer, random() % sizeof(buffer), 0);
            EXPECT_TRUE(got >= 0 || got == -EAGAIN || got == -ECONNRESET) << got;
            EXPECT_LE(ntbclient_readable(conn), parcel.message.ring_bytes);
            EXPECT_LE(ntbclient_writable(conn), parcel.message.ring_bytes);
            EXPECT_GE(ntbclient_wait(conn, 3, 0), 0);
        }
        ntbclient_close(conn);
        ntbclient_listener_close(listener);
        munmap(memory, bytes);
    }
    EXPECT_TRUE(await([&] { return one.now().figures.open == 0; }));
}
} // namespace
