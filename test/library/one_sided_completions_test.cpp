// SPDX-License-Identifier: BSD-3-Clause
// Completions of one-sided operations: back-pressure, and those reported by callbacks.
#include "one_sided.hpp"

namespace
{

// ---- back-pressure

TEST_P(OneSided, OperationsUnderWayAreBounded)
{
    close_channel();
    ntbmsg_channel_options mine = channel_options(here_);
    mine.operations = 5;
    ASSERT_NO_FATAL_FAILURE(open_channel(mine, channel_options(there_)));
    std::vector<uint8_t> memory(64), data = pattern(64, 17);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    const ntbmsg_sge sge = piece(data);
    const std::vector<ntbmsg_work> works(9, work(NTBMSG_OP_WRITE, remote, 0, &sge, 1));
    EXPECT_EQ(ntbmsg_channel_post_burst(here_.channel, works.data(), 9), 5);
    EXPECT_EQ(ntbmsg_channel_post_burst(here_.channel, works.data(), 9), 0);
    for (unsigned i = 0; i < 5; ++i)
        EXPECT_EQ(next(here_).status, 0);
    EXPECT_EQ(ntbmsg_channel_post_burst(here_.channel, works.data(), 1), 1);
    EXPECT_EQ(next(here_).status, 0);
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_release(region), 0);
}

TEST_P(OneSided, MoreThanThePeerKeepsIsHeldBackHere)
{
    close_channel();
    ntbmsg_cq *small = std::exchange(here_.cq, nullptr);
    ASSERT_EQ(ntbmsg_cq_create(4096, nullptr, nullptr, &here_.cq), 0);
    ntbmsg_channel_options mine = channel_options(here_);
    mine.operations = 4096;
    ASSERT_NO_FATAL_FAILURE(open_channel(mine, channel_options(there_)));
    std::vector<uint8_t> memory(4096 * 8);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    std::vector<ntbmsg_work> works;
    for (unsigned i = 0; i < 4096; ++i) {
        works.push_back(work(NTBMSG_OP_FETCH_ADD, remote, 8 * i));
        works.back().operand = i;
    }
    ASSERT_EQ(ntbmsg_channel_post_burst(here_.channel, works.data(), 4096), 4096);
    for (const ntbmsg_work &w : works) {
        const ntbmsg_completion c = next(here_);
        ASSERT_EQ(c.id, w.id);
        ASSERT_EQ(c.status, 0);
    }
    for (uint64_t i = 0; i < 4096; ++i)
        ASSERT_EQ(std::memcmp(&memory[8 * i], &i, 8), 0) << i;
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_release(region), 0);
    EXPECT_EQ(ntbmsg_cq_destroy(small), 0);
}

// Semantics: one-sided-9
TEST_P(OneSided, NoCompletionIsLostWhereTheQueueIsFull)
{
    std::vector<uint8_t> memory(64), data = pattern(64, 18);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    const ntbmsg_sge sge = piece(data);
    ntbmsg_cq *mine = std::exchange(here_.cq, nullptr); // not polled by turn()
    ntbmsg_cq *theirs = std::exchange(there_.cq, nullptr);
    unsigned posted = 0;
    ntbmsg_work w = work(NTBMSG_OP_WRITE_IMM, remote, 0, &sge, 1);
    for (unsigned idle = 0; idle < 1000;) {
        w.imm = posted;
        const int rc = post(w);
        ASSERT_GE(rc, 0);
        posted += static_cast<unsigned>(rc);
        idle = rc == 1 ? 0 : idle + 1;
        turn();
    }
    EXPECT_EQ(posted, 256u) << "what their queue has room for, then what ours has";
    // One more is under way than was reported: it waits for room over there.
    ntbmsg_completion got[256];
    EXPECT_EQ(ntbmsg_cq_poll(theirs, got, 256), 256);
    for (unsigned i = 0; i < 256; ++i)
        ASSERT_EQ(got[i].imm, i);
    settle();
    EXPECT_EQ(ntbmsg_cq_poll(mine, got, 256), 256);
    EXPECT_EQ(ntbmsg_cq_poll(mine, got, 256), 0);
    here_.cq = mine;
    there_.cq = theirs;
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_release(region), 0);
}

// Semantics: one-sided-9
TEST_P(OneSided, ADirectWriteIsNotStoredWithoutRoomForItsCompletion)
{
    ntbmsg_region *region = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 4096, NTBMSG_RIGHT_WRITE, &region), 0);
    ntbmsg_remote *remote = open_remote(token_of(region));
    ASSERT_TRUE(becomes_direct(remote, region));
    std::vector<uint8_t> data = pattern(64, 19);
    const ntbmsg_sge sge = piece(data);
    // Short ones, of which only the second asks for a completion.
    ntbmsg_work works[3];
    for (uint64_t i = 0; i < 3; ++i)
        works[i] = work(NTBMSG_OP_WRITE, remote, i * 64, &sge, 1);
    works[0].flags = works[2].flags = 0;
    ntbmsg_cq *mine = std::exchange(here_.cq, nullptr); // not polled by turn()
    for (unsigned i = 0; i < 256; ++i) {
        works[1].id = i;
        ASSERT_EQ(ntbmsg_channel_post_burst(here_.channel, works, 3), 3) << i;
    }
    auto *memory = static_cast<uint8_t *>(info_of(region).address);
    std::memset(memory, 0, 192);
    EXPECT_EQ(ntbmsg_channel_post_burst(here_.channel, works, 3), 1);
    EXPECT_EQ(ntbmsg_channel_post_burst(here_.channel, works + 1, 2), 0);
    EXPECT_EQ(std::memcmp(memory, data.data(), 64), 0);
    EXPECT_EQ(std::count(memory + 64, memory + 192, 0), 128) << "neither it nor what is behind it";
    ntbmsg_completion got[256];
    ASSERT_EQ(ntbmsg_cq_poll(mine, got, 1), 1);
    EXPECT_EQ(got[0].id, 0u);
    works[1].id = 256;
    EXPECT_EQ(ntbmsg_channel_post_burst(here_.channel, works + 1, 2), 2);
    EXPECT_EQ(std::memcmp(memory + 64, data.data(), 64), 0);
    EXPECT_EQ(std::memcmp(memory + 128, data.data(), 64), 0);
    ASSERT_EQ(ntbmsg_cq_poll(mine, got, 256), 256);
    for (unsigned i = 0; i < 256; ++i)
        ASSERT_EQ(got[i].id, i + 1);
    EXPECT_EQ(ntbmsg_cq_poll(mine, got, 256), 0);
    here_.cq = mine;
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_release(region), 0);
}

// Semantics: one-sided-9
TEST_P(OneSided, ImmediateDataWaitForRoomInTheCompletionQueue)
{
    close_channel();
    ntbmsg_cq *usual = std::exchange(there_.cq, nullptr);
    ntbmsg_cq *tiny = nullptr;
    ASSERT_EQ(ntbmsg_cq_create(2, nullptr, nullptr, &tiny), 0);
    ntbmsg_channel_options theirs = channel_options(there_);
    theirs.cq = tiny;
    ASSERT_NO_FATAL_FAILURE(open_channel(channel_options(here_), theirs));
    std::vector<uint8_t> memory(64), data = pattern(64, 19);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    const ntbmsg_sge sge = piece(data);
    for (unsigned i = 0; i < 5; ++i) {
        ntbmsg_work w = work(NTBMSG_OP_WRITE_IMM, remote, 0, &sge, 1);
        w.imm = i;
        ASSERT_EQ(post(w), 1);
    }
    settle();
    EXPECT_EQ(here_.seen.size(), 2u) << "the others are not done before they are reported";
    for (unsigned i = 0; i < 5; ++i) {
        ntbmsg_completion c{};
        ASSERT_EQ(ntbmsg_cq_poll(tiny, &c, 1), 1);
        EXPECT_EQ(c.imm, i);
        settle();
    }
    EXPECT_EQ(here_.seen.size(), 5u);
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_release(region), 0);
    close_with(there_, tiny);
    there_.cq = usual;
}

TEST_P(OneSided, WithoutAQueueThereIsNoCompletion)
{
    close_channel();
    ntbmsg_channel_options theirs = channel_options(there_);
    theirs.cq = nullptr;
    ASSERT_NO_FATAL_FAILURE(open_channel(channel_options(here_), theirs));
    std::vector<uint8_t> memory(64), data = pattern(64, 20);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    const ntbmsg_sge sge = piece(data);
    EXPECT_EQ(run(work(NTBMSG_OP_WRITE, remote, 0, &sge, 1)).status, 0);
    EXPECT_EQ(memory, data);
    std::memset(data.data(), 0xaa, data.size());
    EXPECT_EQ(run(work(NTBMSG_OP_WRITE_IMM, remote, 0, &sge, 1)).status, -EACCES);
    EXPECT_EQ(memory, pattern(64, 20)) << "what is refused is not written";
    ntbmsg_remote *none = nullptr;
    const ntbmsg_region_token token = token_of(region);
    EXPECT_EQ(ntbmsg_remote_open(there_.channel, &token, &none), -EINVAL) << "nor can it post";
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_release(region), 0);
}

// ---- callbacks

struct Chain {
    ntbmsg_channel *channel = nullptr;
    ntbmsg_work next{};
    unsigned left = 0;
    unsigned told = 0;
};

void on_completion(const ntbmsg_completion *completion, void *arg)
{
    auto &chain = *static_cast<Chain *>(arg);
    EXPECT_EQ(completion->status, 0);
    ++chain.told;
    if (chain.left == 0)
        return;
    --chain.left;
    EXPECT_EQ(ntbmsg_channel_post_burst(chain.channel, &chain.next, 1), 1);
}

// What is cancelled by a close is reported by calls too, and they are behind the end of the handle.
TEST_P(OneSided, ACallbackCannotPostOnWhatIsBeingClosed)
{
    close_channel();
    struct Told {
        ntbmsg_channel *channel = nullptr;
        ntbmsg_work again{};
        unsigned count = 0;
    } told;
    const auto on_cancelled = [](const ntbmsg_completion *completion, void *arg) {
        auto &t = *static_cast<Told *>(arg);
        EXPECT_EQ(completion->status, -ECANCELED);
        EXPECT_EQ(ntbmsg_channel_post_burst(t.channel, &t.again, 1), -ESHUTDOWN);
        ++t.count;
    };
    ntbmsg_cq *calls = nullptr;
    ASSERT_EQ(ntbmsg_cq_create(1, on_cancelled, &told, &calls), 0);
    ntbmsg_channel_options mine = channel_options(here_);
    mine.cq = calls;
    ASSERT_NO_FATAL_FAILURE(open_channel(mine, channel_options(there_)));
    std::vector<uint8_t> memory(64), data(64);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    const ntbmsg_sge sge = piece(data);
    told.channel = here_.channel;
    told.again = work(NTBMSG_OP_READ, remote, 0, &sge, 1);
    for (unsigned i = 0; i < 3; ++i)
        ASSERT_EQ(post(told.again), 1);
    EXPECT_EQ(ntbmsg_channel_close(here_.channel), 0);
    here_.channel = nullptr;
    get_to_closes();
    EXPECT_EQ(told.count, 3u);
    settle();
    EXPECT_EQ(told.count, 3u);
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_release(region), 0);
    EXPECT_EQ(ntbmsg_cq_destroy(calls), 0);
}

TEST_P(OneSided, ACallbackMayPost)
{
    close_channel();
    Chain chain;
    ntbmsg_cq *calls = nullptr;
    ASSERT_EQ(ntbmsg_cq_create(1, on_completion, &chain, &calls), 0);
    ntbmsg_channel_options mine = channel_options(here_);
    mine.cq = calls;
    ASSERT_NO_FATAL_FAILURE(open_channel(mine, channel_options(there_)));
    ntbmsg_region *region = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 4096, every_right, &region), 0);
    ntbmsg_remote *remote = open_remote(token_of(region));
    settle();
    std::vector<uint8_t> data = pattern(64, 21);
    const ntbmsg_sge sge = piece(data);
    chain.channel = here_.channel;
    for (const ntbmsg_op op : {NTBMSG_OP_WRITE, NTBMSG_OP_READ, NTBMSG_OP_WRITE_IMM}) {
        chain.next = work(op, remote, 0, &sge, 1);
        chain.left = 1000;
        chain.told = 0;
        ASSERT_EQ(post_patiently(chain.next), 1);
        EXPECT_TRUE(await([&] { return chain.told == 1001; })) << chain.told;
    }
    ntbmsg_completion none;
    EXPECT_EQ(ntbmsg_cq_poll(calls, &none, 1), 0);
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_release(region), 0);
    close_with(here_, calls);
}

// A direct write is complete when it is posted: a callback that posts the next one must not keep
// the worker, nor what it has left to be done keep the slot.
// Semantics: dedicated-5
TEST_P(OneSided, ACallbackThatAlwaysPostsLeavesThePollAndTheChannel)
{
    close_channel();
    constexpr unsigned most = 100000;
    struct Again {
        ntbmsg_channel *channel = nullptr;
        ntbmsg_work work{};
        unsigned told = 0;
        bool closing = false;
    } again;
    const auto post_again = [](const ntbmsg_completion *completion, void *arg) {
        auto &a = *static_cast<Again *>(arg);
        EXPECT_TRUE(completion->status == 0 || (a.closing && completion->status == -ECANCELED));
        if (++a.told < most) {
            EXPECT_EQ(ntbmsg_channel_post_burst(a.channel, &a.work, 1), a.closing ? -ESHUTDOWN : 1);
        }
    };
    ntbmsg_cq *calls = nullptr;
    ASSERT_EQ(ntbmsg_cq_create(1, post_again, &again, &calls), 0);
    ntbmsg_channel_options mine = channel_options(here_);
    mine.cq = calls;
    ntbmsg_region *region = nullptr;
    ASSERT_EQ(ntbmsg_region_alloc(far_, 4096, every_right, &region), 0);
    std::vector<uint8_t> data = pattern(64, 22);
    const ntbmsg_sge sge = piece(data);
    for (unsigned i = 0; i < 2; ++i) { // the second one goes on by polls behind the first one's end
        ASSERT_NO_FATAL_FAILURE(open_channel(mine, channel_options(there_)));
        ntbmsg_remote *remote = open_remote(token_of(region));
        settle();
        again.channel = here_.channel;
        again.work = work(NTBMSG_OP_WRITE, remote, 0, &sge, 1);
        again.told = 0;
        again.closing = false;
        ASSERT_EQ(post_patiently(again.work), 1);
        ASSERT_TRUE(await([&] { return again.told > 3; }));
        EXPECT_LT(again.told, 1000u);
        ASSERT_EQ(ntbmsg_channel_close(there_.channel), 0);
        ASSERT_TRUE(await(
            [&] { return ntbmsg_channel_state_get(here_.channel) == NTBMSG_CHANNEL_PEER_CLOSED; }));
        again.closing = true;
        ASSERT_EQ(ntbmsg_channel_close(here_.channel), 0);
        settle();
        ntbmsg_remote_close(remote);
    }
    here_.channel = there_.channel = nullptr;
    EXPECT_EQ(ntbmsg_region_release(region), 0);
    EXPECT_EQ(ntbmsg_cq_destroy(calls), 0);
}

// Semantics: dedicated-5
TEST_P(OneSided, ACallbackMayResetTheChannelOfItsImmediateData)
{
    close_channel();
    unsigned told = 0;
    const auto reset = [](const ntbmsg_completion *completion, void *arg) {
        ++*static_cast<unsigned *>(arg);
        EXPECT_EQ(ntbmsg_channel_reset(completion->channel, 5), 0);
    };
    ntbmsg_cq *calls = nullptr;
    ASSERT_EQ(ntbmsg_cq_create(1, reset, &told, &calls), 0);
    ntbmsg_channel_options theirs = channel_options(there_);
    theirs.cq = calls;
    ASSERT_NO_FATAL_FAILURE(open_channel(channel_options(here_), theirs));
    std::vector<uint8_t> memory(64), data = pattern(64, 23);
    ntbmsg_region *region = serve(memory);
    ntbmsg_remote *remote = open_remote(token_of(region));
    const ntbmsg_sge sge = piece(data);
    for (unsigned i = 0; i < 4; ++i)
        ASSERT_EQ(post(work(NTBMSG_OP_WRITE_IMM, remote, 0, &sge, 1)), 1);
    // A dedicated worker gets to a reset behind what it is at.
    for (unsigned i = 0; i < 4; ++i) {
        const int status = next(here_).status;
        EXPECT_TRUE(status == -ECONNRESET || (GetParam() && status == 0)) << status;
    }
    EXPECT_GE(told, 1u);
    EXPECT_LE(told, GetParam() ? 4u : 1u);
    settle();
    EXPECT_EQ(ntbmsg_channel_state_get(here_.channel), NTBMSG_CHANNEL_RESET);
    for (unsigned i = 0; i < 100; ++i) {
        EXPECT_EQ(ntbmsg_worker_poll(there_.worker), 0);
        EXPECT_EQ(ntbmsg_worker_poll(here_.worker), 0) << "nothing is answered any more";
    }
    ntbmsg_remote_close(remote);
    EXPECT_EQ(ntbmsg_region_release(region), 0);
    close_with(there_, calls);
}

} // namespace
