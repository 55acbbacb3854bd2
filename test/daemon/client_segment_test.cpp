// SPDX-License-Identifier: BSD-3-Clause
// The client library with daemons: segments.
#include "client_process.hpp"
#include "clients.hpp"
#include "raw.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace ntbd;
using namespace ntbd::test;

namespace
{
constexpr uint64_t bytes = 64 << 10;

ntbclient_segment_info seen(const ntbclient_segment *segment)
{
    ntbclient_segment_info info;
    info.size = sizeof(info);
    EXPECT_EQ(ntbclient_segment_info_get(segment, &info), 0);
    return info;
}

char *data_of(const ntbclient_segment *segment)
{
    return static_cast<char *>(seen(segment).data);
}

TEST_P(Clients, ShareSegmentsOnOneMachine)
{
    Pair pair(one, far(), options);
    ntbclient_segment *made;
    ntbclient_segment *opened = nullptr;
    uint64_t number = 0;
    ASSERT_EQ(ntbclient_segment_create(pair.a, bytes, &made), 0);
    EXPECT_EQ(seen(made).bytes, bytes);
    EXPECT_EQ(seen(made).writable, 1u);
    const int status =
        ntbclient_segment_grant(pair.from, made, NTBCLIENT_SEGMENT_WRITABLE, &number);
    if (is_carried()) {
        EXPECT_EQ(status, -EOPNOTSUPP);
        EXPECT_EQ(ntbclient_segment_open(pair.to, 1, &opened), -EOPNOTSUPP);
        ntbclient_segment_destroy(made);
        return;
    }
    ASSERT_EQ(status, 0);
    ASSERT_EQ(ntbclient_segment_open(pair.to, number, &opened), 0);
    EXPECT_EQ(seen(opened).bytes, bytes);
    EXPECT_EQ(seen(opened).writable, 1u);
    strcpy(data_of(made), "from its owner");
    EXPECT_STREQ(data_of(opened), "from its owner");
    data_of(opened)[bytes - 1] = 7;
    EXPECT_EQ(data_of(made)[bytes - 1], 7);
    // At another address, too.
    void *again = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, seen(opened).fd, 0);
    ASSERT_NE(again, MAP_FAILED);
    EXPECT_EQ(static_cast<char *>(again)[bytes - 1], 7);
    munmap(again, bytes);
    ntbclient_entry entries[2] = {};
    entries[0].size = sizeof(entries[0]);
    ASSERT_EQ(ntbclient_list(pair.b, 0, entries, 2), is_local() ? 2 : 1);
    EXPECT_EQ(entries[0].segment_bytes + entries[1].segment_bytes, bytes);
    EXPECT_EQ(ntbclient_segment_grant(pair.to, opened, 0, &number), -EINVAL);
    EXPECT_EQ(ntbclient_segment_revoke(pair.from, number), 0);
    EXPECT_EQ(ntbclient_segment_revoke(pair.from, number), -ENOENT);
    ntbclient_segment *late;
    EXPECT_EQ(ntbclient_segment_open(pair.to, number, &late), -ENOENT);
    EXPECT_EQ(data_of(opened)[bytes - 1], 7);
    // Its end takes the pages away, and no access fails.
    ntbclient_segment_destroy(made);
    EXPECT_TRUE(await([&] { return data_of(opened)[bytes - 1] == 0; }));
    data_of(opened)[0] = 1;
    ntbclient_segment_destroy(opened);
    EXPECT_TRUE(await([&] { return one.now().figures.segments == 0; }));
    EXPECT_TRUE(await([&] { return far().now().figures.segments == 0; }));
}

// Connects to the test, grants a page that says so, and stores what the test will find until it is
// killed.
const ClientTask grant_and_die([](const char *socket, const ntbclient_options &options, int) {
    ntbclient *client;
    ntbclient_conn *conn;
    ntbclient_segment *made;
    uint64_t number;
    if (ntbclient_attach(socket, &client) != 0 ||
        ntbclient_connect(client, "doomed", &options, &conn) != 0 ||
        ntbclient_wait(conn, NTBCLIENT_WRITABLE, long_ms) <= 0 ||
        ntbclient_segment_create(client, bytes, &made) != 0 ||
        ntbclient_segment_grant(conn, made, NTBCLIENT_SEGMENT_WRITABLE, &number) != 0)
        return;
    data_of(made)[0] = 42;
    ntbclient_send(conn, &number, sizeof(number), 0);
    pause();
});

// Connects to the test, opens what it grants, and writes there until it is killed.
const ClientTask open_and_die([](const char *socket, const ntbclient_options &options, int) {
    ntbclient *client;
    ntbclient_conn *conn;
    ntbclient_segment *opened;
    uint64_t number;
    if (ntbclient_attach(socket, &client) != 0 ||
        ntbclient_connect(client, "doomed", &options, &conn) != 0 ||
        ntbclient_wait(conn, NTBCLIENT_READABLE, long_ms) <= 0 ||
        ntbclient_recv(conn, &number, sizeof(number), 0) != sizeof(number) ||
        ntbclient_segment_open(conn, number, &opened) != 0)
        return;
    for (;;)
        for (uint64_t i = 0; i < bytes; i++)
            __atomic_store_n(&data_of(opened)[i], 1, __ATOMIC_RELAXED);
});

/// A client process that has connected to this one, until it is killed.
struct Doomed {
    Doomed(const ClientTask &task, const Daemon &near, const Daemon &far,
           const ntbclient_options &options)
        : client(near)
    {
        ntbclient_listener *listener;
        EXPECT_EQ(ntbclient_listen(client, "doomed", &options, &listener), 0);
        process.emplace(task, far, options);
        EXPECT_TRUE(await([&] { return ntbclient_accept(listener, &conn) == 0; }));
        ntbclient_listener_close(listener);
    }
    void kill()
    {
        process->kill();
        EXPECT_TRUE(WIFSIGNALED(process->wait()));
    }

    Client client;
    std::optional<ClientProcess> process;
    ntbclient_conn *conn = nullptr;
};

// Who has opened it finds zeros, and stores without harm.
TEST_P(Clients, LoseTheSegmentsOfAClientThatIsKilled)
{
    if (is_carried())
        return;
    Doomed doomed(grant_and_die, one, far(), options);
    uint64_t number = 0;
    ASSERT_GT(ntbclient_wait(doomed.conn, NTBCLIENT_READABLE, long_ms), 0);
    ASSERT_EQ(ntbclient_recv(doomed.conn, &number, sizeof(number), 0), ssize_t{sizeof(number)});
    ntbclient_segment *opened;
    ASSERT_EQ(ntbclient_segment_open(doomed.conn, number, &opened), 0);
    EXPECT_EQ(data_of(opened)[0], 42);
    doomed.kill();
    EXPECT_TRUE(await([&] { return __atomic_load_n(data_of(opened), __ATOMIC_RELAXED) == 0; }));
    data_of(opened)[bytes - 1] = 1;
    ntbclient_segment *again;
    EXPECT_TRUE(
        await([&] { return ntbclient_segment_open(doomed.conn, number, &again) == -ECONNRESET; }));
    ntbclient_segment_destroy(opened);
    EXPECT_TRUE(await([&] { return one.now().figures.segments == 0; }));
    EXPECT_TRUE(await([&] { return far().now().figures.segments == 0; }));
    EXPECT_TRUE(ends(doomed.conn));
    ntbclient_close(doomed.conn);
}

// Who has made it keeps it.
TEST_P(Clients, KeepWhatAClientHasOpenedThatIsKilled)
{
    if (is_carried())
        return;
    Doomed doomed(open_and_die, one, far(), options);
    ntbclient_segment *made;
    uint64_t number;
    ASSERT_EQ(ntbclient_segment_create(doomed.client, bytes, &made), 0);
    ASSERT_EQ(ntbclient_segment_grant(doomed.conn, made, NTBCLIENT_SEGMENT_WRITABLE, &number), 0);
    ASSERT_EQ(ntbclient_send(doomed.conn, &number, sizeof(number), 0), ssize_t{sizeof(number)});
    EXPECT_TRUE(
        await([&] { return __atomic_load_n(data_of(made) + bytes - 1, __ATOMIC_RELAXED) != 0; }));
    doomed.kill();
    const char last = data_of(made)[bytes - 1];
    EXPECT_NE(data_of(made)[0], 0);
    // Its opening is charged no longer, and nothing more is granted to it.
    EXPECT_TRUE(await([&] { return one.now().figures.segments == 1; }));
    EXPECT_TRUE(await(
        [&] { return ntbclient_segment_grant(doomed.conn, made, 0, &number) == -ECONNRESET; }));
    EXPECT_EQ(data_of(made)[bytes - 1], last);
    ntbclient_segment_destroy(made);
    ntbclient_close(doomed.conn);
}

// The other end's process, of another user, has nothing but its descriptor.
TEST_P(Clients, CannotWriteWhatTheyMayRead)
{
    if (is_carried())
        return;
    Pair pair(one, far(), options);
    ntbclient_segment *made;
    ntbclient_segment *opened;
    uint64_t number;
    ASSERT_EQ(ntbclient_segment_create(pair.a, bytes, &made), 0);
    ASSERT_EQ(ntbclient_segment_grant(pair.from, made, 0, &number), 0);
    ASSERT_EQ(ntbclient_segment_open(pair.to, number, &opened), 0);
    EXPECT_EQ(seen(opened).writable, 0u);
    data_of(made)[5] = 9;
    EXPECT_EQ(data_of(opened)[5], 9);
    const int fd = seen(opened).fd;
    EXPECT_EQ(mmap(nullptr, bytes, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    EXPECT_NE(mprotect(data_of(opened), bytes, PROT_READ | PROT_WRITE), 0);
    EXPECT_NE(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, bytes), 0);
    if (getuid() != 0)
        GTEST_SKIP() << "only root becomes another user";
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        // Only calls that need no lock.
        const bool is_other = setgid(65534) == 0 && setuid(65534) == 0;
        const bool is_refused = open(path.c_str(), O_RDWR) < 0 && errno == EACCES;
        _exit(is_other && is_refused && fchmod(fd, 0666) != 0 ? 0 : 1);
    }
    int result = -1;
    ASSERT_EQ(waitpid(child, &result, 0), child);
    EXPECT_EQ(result, 0);
}

TEST_P(Clients, LeaveNoSegmentBehind)
{
    ntbclient_segment *made;
    uint64_t number;
    {
        Client last(one);
        {
            Pair pair(one, one, [&] {
                ntbclient_options local = options;
                local.local = 1;
                return local;
            }());
            ntbclient_segment *opened;
            for (int i = 0; i < 10; i++) {
                ASSERT_EQ(ntbclient_segment_create(pair.a, bytes, &made), 0);
                ASSERT_EQ(ntbclient_segment_grant(pair.from, made, 0, &number), 0);
                ASSERT_EQ(ntbclient_segment_open(pair.to, number, &opened), 0);
            }
            EXPECT_TRUE(await([&] { return one.now().figures.segments == 20; }));
        }
        EXPECT_TRUE(await([&] { return one.now().figures.segments == 0 && !charges(one.now()); }));
        ntbclient_segment *none;
        EXPECT_EQ(ntbclient_segment_create(nullptr, bytes, &none), -EINVAL);
        for (const uint64_t wrong : {uint64_t{0}, bytes + 1, uint64_t{NTBCLIENT_MAX_SEGMENT} * 2})
            EXPECT_EQ(ntbclient_segment_create(last, wrong, &none), -EINVAL);
        EXPECT_EQ(one.now().figures.open, 0u);
    }
    EXPECT_TRUE(await([&] { return one.now().figures.segments == 0; }));
}

// The daemon's end ends no mapping.
TEST_P(Clients, KeepSegmentsMappedWithoutADaemon)
{
    Client a(one);
    ntbclient_segment *made;
    ntbclient_segment *none;
    ASSERT_EQ(ntbclient_segment_create(a, bytes, &made), 0);
    one.stop();
    EXPECT_TRUE(await([&] { return ntbclient_process(a) == -ECONNRESET; }));
    data_of(made)[bytes - 1] = 3;
    EXPECT_EQ(data_of(made)[bytes - 1], 3);
    EXPECT_EQ(ntbclient_segment_create(a, bytes, &none), -ECONNRESET);
    ntbclient_segment_destroy(made);
}

TEST_P(Clients, WithoutTheLibraryGetNoSegmentOfOthers)
{
    Client a(one);
    ntbclient_segment *made;
    ASSERT_EQ(ntbclient_segment_create(a, bytes, &made), 0);
    Raw raw(one);
    raw.hello();
    Parcel end;
    raw.connect(&end);
    const auto ask = [&](Type type, uint64_t id, uint64_t of) {
        Message m;
        m.type = type;
        m.request = 77;
        m.id = id;
        m.other = of;
        raw.send(m);
        Parcel answer;
        do
            EXPECT_EQ(raw.receive(&answer), Received::message);
        while (answer.message.type != Type::answer || answer.message.request != 77);
        EXPECT_EQ(answer.count, 0);
        return answer.message.status;
    };
    const uint64_t own = end.message.id;
    for (uint64_t id = 0; id < own + 4; id++) {
        EXPECT_EQ(ask(Type::grant, own, id), -ENOENT);
        EXPECT_EQ(ask(Type::open_segment, own, id), -ENOENT);
        EXPECT_EQ(ask(Type::ungrant, own, id), -ENOENT);
    }
    for (const uint64_t size : {uint64_t{1}, UINT64_MAX, uint64_t{1} << 63})
        EXPECT_EQ(ask(Type::make_segment, size, 0), -EINVAL);
    Message m;
    m.type = Type::end_segment;
    for (m.id = 0; m.id < own + 4; m.id++)
        raw.send(m);
    EXPECT_EQ(ask(Type::list, own + 100, 0), 0);
    EXPECT_EQ(one.now().figures.segments, 1u);
    data_of(made)[0] = 1;
}
} // namespace
