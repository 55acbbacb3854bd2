// SPDX-License-Identifier: BSD-3-Clause
// Long reads that are served: a part with each poll, in turns with other channels.
#include "one_sided.hpp"

namespace
{

/// With room towards the peer for far more than one poll copies.
class LongReads : public OneSided
{
protected:
    static constexpr uint32_t read_bytes = 1 << 20;
    static constexpr unsigned reads = 4;
    static constexpr uint64_t a_poll = 256 * 1024;

    ntbmsg_endpoint_options options() const override
    {
        ntbmsg_endpoint_options options = OneSided::options();
        options.ring_lines = 1024;
        options.buffers = 2100;
        options.queue_buffers = 1022;
        return options;
    }
    void SetUp() override
    {
        OneSided::SetUp();
        memory_ = pattern(reads * read_bytes, 9);
        got_.resize(memory_.size());
        region_ = serve(memory_);
        remote_ = open_remote(token_of(region_));
    }
    void TearDown() override
    {
        ntbmsg_remote_close(remote_);
        EXPECT_EQ(ntbmsg_region_release(region_), 0);
        OneSided::TearDown();
    }
    /// They are asked for before anything that is posted later.
    void post_reads()
    {
        for (unsigned i = 0; i < reads; ++i) {
            const size_t at = size_t{i} * read_bytes;
            const ntbmsg_sge sge = piece(got_, at, read_bytes);
            ASSERT_EQ(post(work(NTBMSG_OP_READ, remote_, at, &sge, 1)), 1);
        }
        ntbmsg_worker_poll(here_.worker);
    }

    std::vector<uint8_t> memory_, got_;
    ntbmsg_region *region_ = nullptr;
    ntbmsg_remote *remote_ = nullptr;
};

// Semantics: one-sided-11
TEST_P(LongReads, APollCopiesAPartOfThem)
{
    ASSERT_NO_FATAL_FAILURE(post_reads());
    uint64_t most = 0;
    ASSERT_TRUE(await([&] {
        const uint64_t before = stats(far_).tx_bytes;
        ntbmsg_worker_poll(there_.worker);
        most = std::max(most, stats(far_).tx_bytes - before);
        return here_.seen.size() == reads;
    }));
    EXPECT_GE(most, a_poll / 4) << "and not by crumbs";
    EXPECT_LE(most, a_poll + 1024) << "answers included";
    for (unsigned i = 0; i < reads; ++i) {
        EXPECT_EQ(here_.seen[i].bytes, read_bytes);
        EXPECT_EQ(here_.seen[i].id, here_.seen[0].id + i);
    }
    EXPECT_EQ(got_, memory_);
}

// Semantics: one-sided-11
TEST_P(LongReads, OtherChannelsDoNotWaitForThem)
{
    ntbmsg_channel *other_mine = here_.channel, *other_theirs = there_.channel;
    ASSERT_NO_FATAL_FAILURE(open_channel());
    ntbmsg_remote *other = open_remote(token_of(region_));
    settle();
    std::swap(here_.channel, other_mine);
    std::swap(there_.channel, other_theirs);
    ASSERT_NO_FATAL_FAILURE(post_reads());
    uint64_t word = 0;
    const ntbmsg_sge sge = {&word, sizeof(word), 0};
    const ntbmsg_work small = work(NTBMSG_OP_READ, other, 8, &sge, 1);
    ASSERT_EQ(ntbmsg_channel_post_burst(other_mine, &small, 1), 1);
    ASSERT_TRUE(await([&] { return here_.seen.size() == reads + 1; }));
    EXPECT_EQ(here_.seen[0].id, small.id);
    EXPECT_EQ(std::memcmp(&word, memory_.data() + 8, sizeof(word)), 0);
    EXPECT_EQ(got_, memory_);
    ntbmsg_remote_close(other);
    EXPECT_EQ(ntbmsg_channel_close(other_mine), 0);
    EXPECT_EQ(ntbmsg_channel_close(other_theirs), 0);
}

/// With room for less than what one channel may copy in its turn.
class LongReadsInLittleRoom : public LongReads
{
protected:
    ntbmsg_endpoint_options options() const override
    {
        ntbmsg_endpoint_options options = LongReads::options();
        options.queue_buffers = 28;
        return options;
    }
};

TEST_P(LongReadsInLittleRoom, TheFirstToHaveItIsAnotherEachTime)
{
    ntbmsg_channel *const mine = here_.channel, *const theirs = there_.channel;
    ASSERT_NO_FATAL_FAILURE(open_channel());
    ntbmsg_channel *const idle_mine = here_.channel, *const idle_theirs = there_.channel;
    ASSERT_NO_FATAL_FAILURE(open_channel());
    ntbmsg_channel *const other_mine = here_.channel, *const other_theirs = there_.channel;
    ntbmsg_remote *other = open_remote(token_of(region_));
    settle();
    here_.channel = mine;
    there_.channel = theirs;
    ASSERT_NO_FATAL_FAILURE(post_reads());
    std::vector<uint8_t> bytes(16 * 1024);
    const ntbmsg_sge sge = piece(bytes, 0, static_cast<uint32_t>(bytes.size()));
    const ntbmsg_work few = work(NTBMSG_OP_READ, other, 0, &sge, 1);
    ASSERT_EQ(ntbmsg_channel_post_burst(other_mine, &few, 1), 1);
    ASSERT_TRUE(await([&] { return here_.seen.size() == reads + 1; }));
    EXPECT_EQ(here_.seen[0].id, few.id);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory_.begin()));
    ntbmsg_remote_close(other);
    for (ntbmsg_channel *channel : {idle_mine, idle_theirs, other_mine, other_theirs})
        EXPECT_EQ(ntbmsg_channel_close(channel), 0);
}

INSTANTIATE_TEST_SUITE_P(Workers, LongReadsInLittleRoom, testing::Bool(), [](const auto &worker) {
    return worker.param ? "Dedicated" : "RunToCompletion";
});

INSTANTIATE_TEST_SUITE_P(Workers, LongReads, testing::Bool(), [](const auto &worker) {
    return worker.param ? "Dedicated" : "RunToCompletion";
});

} // namespace
