// SPDX-License-Identifier: BSD-3-Clause
#include "network/segments.hpp"

#include "../../../daemon/hosts.hpp"

#include <cerrno>
#include <memory>
#include <optional>
#include <vector>

using namespace ntbd::test;
using ntb::verbs::ClientSegments;
using ntb::verbs::Segment;

namespace
{

struct Waker final : ntb::verbs::Service {
    void seek(ntb::verbs::Address) override {}
    void wake() override { ++wakes; }
    int wakes = 0;
};

class SegmentsOfAClient : public testing::Test
{
protected:
    void SetUp() override
    {
        daemon.config.quota.segments = 200;
        daemon.start();
        client.emplace(daemon);
        segments.begin(*client);
        ntbclient_options options;
        ntbclient_options_init(&options);
        options.local = 1;
        connect_clients(*client, *client, options, &from, &to);
    }
    void TearDown() override { segments.end(); }
    bool becomes(std::size_t count)
    {
        return await([&] { return daemon.now().figures.segments == count; });
    }

    Folder folder;
    Daemon daemon{folder.path + "/d.sock"};
    std::optional<Client> client;
    Waker waker;
    ClientSegments segments{waker};
    ntbclient_conn *from = nullptr, *to = nullptr;
};

TEST_F(SegmentsOfAClient, AreOneMemoryAtBothEnds)
{
    const auto own = segments.create(8192);
    ASSERT_NE(own, nullptr);
    EXPECT_EQ(own->bytes(), 8192u);
    bool writable = false;
    const auto peers = segments.open(to, segments.grant(from, *own, true), writable);
    ASSERT_NE(peers, nullptr);
    EXPECT_TRUE(writable);
    EXPECT_EQ(peers->bytes(), 8192u);
    peers->data()[8191] = std::byte{5};
    EXPECT_EQ(own->data()[8191], std::byte{5});
    EXPECT_NE(segments.open(to, segments.grant(from, *own, false), writable), nullptr);
    EXPECT_FALSE(writable);
    EXPECT_EQ(segments.open(to, 12345, writable), nullptr);
}

// Whoever lets go of one does not wait: it goes later, by who may.
TEST_F(SegmentsOfAClient, GoWhenTheyAreBuried)
{
    auto own = segments.create(4096);
    ASSERT_NE(own, nullptr);
    ASSERT_TRUE(becomes(1));
    own.reset();
    EXPECT_EQ(waker.wakes, 1);
    EXPECT_EQ(daemon.now().figures.segments, 1u);
    segments.destroy_gone();
    EXPECT_TRUE(becomes(0));
    segments.create(4096).reset();
    own = segments.create(4096); // what has gone makes room
    EXPECT_TRUE(becomes(1));
}

TEST_F(SegmentsOfAClient, AreAsManyAsTheyMay)
{
    std::vector<std::shared_ptr<Segment>> all;
    while (auto one = segments.create(4096))
        all.push_back(std::move(one));
    EXPECT_EQ(errno, EDQUOT);
    EXPECT_EQ(all.size(), 64u);
    all.pop_back();
    EXPECT_NE(segments.create(4096), nullptr);
}

TEST_F(SegmentsOfAClient, TakeNoMoreThanThereIs)
{
    // So many that the daemon would refuse them for another reason: a test must not take all memory
    // where this is broken.
    EXPECT_EQ(segments.create(std::uint64_t{1} << 62), nullptr);
    EXPECT_EQ(errno, EDQUOT);
    EXPECT_NE(segments.create(4096), nullptr);
}

TEST_F(SegmentsOfAClient, AreNoMoreWithoutADaemon)
{
    const auto own = segments.create(4096);
    daemon.stop();
    EXPECT_TRUE(await([&] { return ntbclient_process(*client) == -ECONNRESET; }));
    EXPECT_EQ(segments.create(4096), nullptr);
    EXPECT_EQ(errno, ECONNRESET);
    EXPECT_EQ(segments.grant(from, *own, true), 0u);
    own->data()[4095] = std::byte{1};
}

} // namespace
