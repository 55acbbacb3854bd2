// SPDX-License-Identifier: BSD-3-Clause
// Segments of several users, and clients that name what is not theirs.
#include "broker/segments.hpp"

#include "broker/broker.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace ntbd;
using ntbc::Message;
using ntbc::Type;

namespace
{
// Keeps the last answer, and the descriptor that came with it.
class Answers : public Outbox
{
public:
    ~Answers() override { clear(); }
    void to_client(ClientId client, const Message &m, const int *fds, int count) override
    {
        if (m.type == Type::accepted)
            accepted = m.id;
        if (m.type != Type::answer)
            return;
        clear();
        last = m;
        to = client;
        fd = count == 1 ? dup(fds[0]) : -1;
    }
    void to_peer(const Message &m, const int *, int) override
    {
        if (m.type == Type::offer)
            offered = m.id;
    }
    void to_carrier(RelayOrder &&) override {}
    void clear()
    {
        if (fd >= 0)
            close(fd);
        fd = -1;
        last = {};
        to = 0;
    }

    Message last;
    ClientId to = 0;
    int fd = -1;
    uint64_t accepted = 0;
    uint64_t offered = 0;
};

class SegmentsOfUsers : public testing::Test
{
protected:
    static constexpr ClientId ann = 2;
    static constexpr ClientId bob = 3;
    static constexpr ClientId eve = 4;
    static constexpr uint64_t page = ntbc::segment_page_bytes;
    static constexpr uint64_t rings = 3 * 4096;

    void SetUp() override
    {
        config.ring_bytes = 4096;
        ASSERT_TRUE(broker.attach(ann, {100, 100, 11}));
        ASSERT_TRUE(broker.attach(bob, {200, 200, 12}));
        ASSERT_TRUE(broker.attach(eve, {300, 300, 13}));
        Message m;
        m.flags = ntbc::flag_local;
        m.backlog = 8;
        m.timeout_ms = 1000;
        m.key_bytes = 1;
        m.key[0] = 'x';
        m.type = Type::listen;
        ASSERT_TRUE(broker.take(bob, m));
        m.type = Type::connect;
        ASSERT_TRUE(broker.take(ann, m));
        anns = out.last.id;
        bobs = out.accepted;
        ASSERT_NE(bobs, 0u);
    }
    int ask(ClientId client, Type type, uint64_t id, uint64_t other = 0, uint32_t flags = 0)
    {
        Message m;
        m.type = type;
        m.id = id;
        m.other = other;
        m.flags = flags;
        out.clear();
        EXPECT_TRUE(broker.take(client, m));
        EXPECT_EQ(out.to, client);
        return out.last.status;
    }
    void tell(ClientId client, Type type, uint64_t id)
    {
        Message m;
        m.type = type;
        m.id = id;
        EXPECT_TRUE(broker.take(client, m));
    }
    uint64_t make(uint64_t bytes = page)
    {
        EXPECT_EQ(ask(ann, Type::make_segment, bytes), 0);
        return out.last.id;
    }
    uint64_t grant(uint64_t segment, uint32_t flags = 0)
    {
        EXPECT_EQ(ask(ann, Type::grant, anns, segment, flags), 0);
        return out.last.id;
    }
    Quota used(uid_t uid)
    {
        const auto found = broker.accounts().used().find(uid);
        return found != broker.accounts().used().end() ? found->second : Quota{0, 0, 0, 0, 0};
    }

    Config config;
    Answers out;
    Broker broker{config, out, 50};
    uint64_t anns = 0;
    uint64_t bobs = 0;
};

TEST_F(SegmentsOfUsers, AreMemoryThatKeepsItsSize)
{
    make(3 * page);
    EXPECT_EQ(out.last.other, 3 * page);
    struct stat st;
    ASSERT_EQ(fstat(out.fd, &st), 0);
    EXPECT_EQ(st.st_size, static_cast<off_t>(3 * page));
    EXPECT_EQ(st.st_mode & 0777, 0600u);
    EXPECT_NE(ftruncate(out.fd, page), 0);
    EXPECT_NE(fcntl(out.fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST_F(SegmentsOfUsers, AreOpenedByTheOtherEndAlone)
{
    const uint64_t number = grant(make());
    EXPECT_EQ(ask(eve, Type::open_segment, anns, number), -ENOENT);
    EXPECT_EQ(ask(eve, Type::open_segment, bobs, number), -ENOENT);
    EXPECT_EQ(ask(ann, Type::open_segment, anns, number), -ENOENT); // her own
    EXPECT_EQ(ask(bob, Type::open_segment, anns, number), -ENOENT); // not his end
    for (const uint64_t guess : {uint64_t{0}, number - 1, number + 1, UINT64_MAX})
        EXPECT_EQ(ask(bob, Type::open_segment, bobs, guess), -ENOENT);
    EXPECT_EQ(ask(bob, Type::open_segment, bobs, number), 0);
    EXPECT_EQ(fcntl(out.fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    EXPECT_EQ(out.last.other, page);
    // What was opened is not his to grant.
    EXPECT_EQ(ask(bob, Type::grant, bobs, out.last.id), -ENOENT);
}

TEST_F(SegmentsOfUsers, AreWritableIfGrantedSo)
{
    const uint64_t segment = make();
    EXPECT_EQ(write(out.fd, "12345", 5), 5);
    const uint64_t number = grant(segment, ntbc::flag_writable);
    ASSERT_EQ(ask(bob, Type::open_segment, bobs, number), 0);
    EXPECT_EQ(fcntl(out.fd, F_GETFL) & O_ACCMODE, O_RDWR);
    char got[5];
    EXPECT_EQ(pread(out.fd, got, 5, 0), 5);
    EXPECT_EQ(std::string(got, 5), "12345");
}

// A client of the daemon's own user can take a lease; an open would wait until it is broken.
TEST_F(SegmentsOfUsers, HoldNobodyUpByALease)
{
    const uint64_t segment = make();
    const int fd = open(("/proc/self/fd/" + std::to_string(out.fd)).c_str(), O_RDWR);
    const auto before = signal(SIGIO, SIG_IGN); // that the lease is to be given back
    if (fcntl(fd, F_SETLEASE, F_WRLCK) == 0) {
        EXPECT_EQ(ask(bob, Type::open_segment, bobs, grant(segment)), -ENOMEM);
        EXPECT_EQ(used(200).segments, 0u);
    }
    close(fd);
    signal(SIGIO, before);
}

TEST_F(SegmentsOfUsers, AreNotOpenedAfterTheGrantTheSegmentOrTheConnectionHasEnded)
{
    const uint64_t segment = make();
    const uint64_t first = grant(segment);
    EXPECT_EQ(ask(bob, Type::ungrant, bobs, first), -ENOENT); // not his
    EXPECT_EQ(ask(ann, Type::ungrant, anns, first), 0);
    EXPECT_EQ(ask(ann, Type::ungrant, anns, first), -ENOENT);
    EXPECT_EQ(ask(bob, Type::open_segment, bobs, first), -ENOENT);
    const uint64_t second = grant(segment);
    tell(bob, Type::end_segment, segment); // not his: ignored
    EXPECT_EQ(ask(bob, Type::open_segment, bobs, second), 0);
    const int mapped = dup(out.fd);
    tell(ann, Type::end_segment, segment);
    EXPECT_EQ(ask(bob, Type::open_segment, bobs, second), -ENOENT);
    struct stat st;
    EXPECT_EQ(fstat(mapped, &st), 0);
    EXPECT_EQ(st.st_blocks, 0); // its pages are gone
    close(mapped);
    const uint64_t third = grant(make());
    EXPECT_EQ(ask(ann, Type::revoke, anns), 0);
    EXPECT_EQ(ask(bob, Type::open_segment, bobs, third), -ECONNRESET);
    EXPECT_EQ(ask(ann, Type::grant, anns, third), -ECONNRESET);
    tell(ann, Type::close, anns);
    EXPECT_EQ(ask(bob, Type::open_segment, bobs, third), -ECONNRESET);
    tell(bob, Type::close, bobs);
    EXPECT_EQ(ask(bob, Type::open_segment, bobs, third), -ENOENT);
}

TEST_F(SegmentsOfUsers, AreChargedToWhoMakesAndToWhoOpensThem)
{
    const uint64_t segment = make(2 * page);
    const uint64_t number = grant(segment);
    EXPECT_EQ(used(100), (Quota{1, 0, 1, rings + 2 * page, 1}));
    ASSERT_EQ(ask(bob, Type::open_segment, bobs, number), 0);
    const uint64_t opened = out.last.id;
    ASSERT_EQ(ask(bob, Type::open_segment, bobs, number), 0);
    EXPECT_EQ(used(200), (Quota{1, 1, 1, rings + 4 * page, 2}));
    EXPECT_EQ(broker.figures().segments, 3u);
    tell(bob, Type::end_segment, opened);
    tell(bob, Type::end_segment, opened); // once more ends nothing
    EXPECT_EQ(used(200), (Quota{1, 1, 1, rings + 2 * page, 1}));
    tell(ann, Type::end_segment, segment);
    EXPECT_EQ(used(100), (Quota{1, 0, 1, rings, 0}));
    // Bob may have it mapped still.
    EXPECT_EQ(used(200), (Quota{1, 1, 1, rings + 2 * page, 1}));
    tell(bob, Type::close, bobs);
    EXPECT_EQ(used(200), (Quota{1, 1, 0, 0, 0}));
}

TEST_F(SegmentsOfUsers, EndWithTheirClients)
{
    const uint64_t segment = make();
    const uint64_t number = grant(segment);
    ASSERT_EQ(ask(bob, Type::open_segment, bobs, number), 0);
    broker.detach(ann);
    EXPECT_EQ(used(100), (Quota{0, 0, 0, 0, 0}));
    EXPECT_EQ(ask(bob, Type::open_segment, bobs, number), -ECONNRESET);
    broker.detach(bob);
    EXPECT_EQ(used(200), (Quota{0, 0, 0, 0, 0}));
    EXPECT_EQ(broker.figures().segments, 0u);
}

TEST_F(SegmentsOfUsers, HaveQuotas)
{
    config.quotas[100] = {10, 10, 10, uint64_t{1} << 30, 2};
    config.quotas[200] = {10, 10, 10, rings + page, 10};
    const uint64_t small = make();
    const uint64_t large = make(2 * page);
    EXPECT_EQ(ask(ann, Type::make_segment, page), -EDQUOT); // their number
    config.quotas[100] = {10, 10, 10, rings + 4 * page - 1, 10};
    EXPECT_EQ(ask(ann, Type::make_segment, page), -EDQUOT); // bytes
    EXPECT_EQ(used(100), (Quota{1, 0, 1, rings + 3 * page, 2}));
    EXPECT_EQ(ask(bob, Type::open_segment, bobs, grant(large)), -EDQUOT);
    const uint64_t number = grant(small);
    EXPECT_EQ(ask(bob, Type::open_segment, bobs, number), 0);
    EXPECT_EQ(ask(bob, Type::open_segment, bobs, number), -EDQUOT);
}

TEST_F(SegmentsOfUsers, AreGrantedSoManyTimes)
{
    const uint64_t other = make();
    grant(other);
    const uint64_t segment = make();
    for (uint32_t i = 1; i < Segments::grants_max; i++)
        grant(segment);
    EXPECT_EQ(ask(ann, Type::grant, anns, segment), -EDQUOT);
    tell(ann, Type::end_segment, other);
    grant(segment); // what has ended makes room
    EXPECT_EQ(ask(ann, Type::grant, anns, segment), -EDQUOT);
}

TEST_F(SegmentsOfUsers, HaveFieldsThatAreInRange)
{
    for (const uint64_t bytes :
         {uint64_t{0}, page - 1, page + 1, ntbc::segment_bytes_max + page, UINT64_MAX - page + 1})
        EXPECT_EQ(ask(ann, Type::make_segment, bytes), -EINVAL) << bytes;
    const uint64_t segment = make();
    EXPECT_EQ(ask(ann, Type::grant, anns, segment, ~ntbc::flag_writable), -EINVAL);
    EXPECT_EQ(ask(ann, Type::grant, anns, segment + 1), -ENOENT);
    EXPECT_EQ(ask(ann, Type::grant, bobs, segment), -ENOENT);
    EXPECT_EQ(ask(ann, Type::grant, segment, segment), -ENOENT);
    EXPECT_EQ(ask(eve, Type::grant, anns, segment), -ENOENT);
    EXPECT_EQ(used(100).segments, 1u);
}

TEST_F(SegmentsOfUsers, NeedAnOpenConnectionOfThisMachine)
{
    const uint64_t segment = make();
    Message m;
    m.type = Type::connect;
    m.timeout_ms = 1000;
    m.flags = ntbc::flag_local | ntbc::flag_wait;
    m.key_bytes = 1;
    m.key[0] = 'y';
    ASSERT_TRUE(broker.take(ann, m));
    const uint64_t waits = out.last.id;
    EXPECT_EQ(ask(ann, Type::grant, waits, segment), -ENOTCONN);
    EXPECT_EQ(ask(ann, Type::open_segment, waits, 1), -ENOTCONN);
    broker.peer_up();
    m.flags = ntbc::flag_wait;
    ASSERT_TRUE(broker.take(ann, m));
    EXPECT_EQ(ask(ann, Type::grant, out.offered, segment), -ENOTCONN);
    EXPECT_EQ(ask(ann, Type::open_segment, out.offered, 1), -ENOTCONN);
    broker.peer_down();
    broker.peer_up(Carriage::daemon);
    EXPECT_EQ(ask(ann, Type::grant, out.offered, segment), -EOPNOTSUPP);
    EXPECT_EQ(ask(ann, Type::open_segment, out.offered, 1), -EOPNOTSUPP);
}
} // namespace
