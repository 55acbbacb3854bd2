// SPDX-License-Identifier: BSD-3-Clause
// Completion queues: their size, their event descriptor, what holds them.
#include "operating.hpp"

#include <poll.h>

namespace
{

class CompletionQueue : public Operating
{
protected:
    void SetUp() override
    {
        Operating::SetUp();
        region_ = serve(memory_);
        remote_ = open_remote(token_of(region_));
    }
    void TearDown() override
    {
        ntbmsg_remote_close(remote_);
        EXPECT_EQ(ntbmsg_region_release(region_), 0);
        Operating::TearDown();
    }
    void open_near_again(const ntbmsg_endpoint_options &options)
    {
        ASSERT_NO_FATAL_FAILURE(close(near_));
        ASSERT_TRUE(await_event(far_, NTBMSG_EVENT_LOST));
        ASSERT_NO_FATAL_FAILURE(open(near_device, near_, options));
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(near_, patience_ms), 0);
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(far_, patience_ms), 0);
        here_.endpoint = near_;
        here_.worker = ntbmsg_endpoint_worker(near_, 0);
    }
    static bool readable(int fd)
    {
        pollfd p{fd, POLLIN, 0};
        return poll(&p, 1, 0) == 1;
    }

    std::vector<uint8_t> memory_ = std::vector<uint8_t>(64);
    ntbmsg_region *region_ = nullptr;
    ntbmsg_remote *remote_ = nullptr;
};

void never(const ntbmsg_completion *, void *)
{
    ADD_FAILURE() << "nothing was posted";
}

TEST_F(CompletionQueue, BadArgumentsAreRefused)
{
    ntbmsg_cq *cq = nullptr;
    EXPECT_EQ(ntbmsg_cq_create(0, nullptr, nullptr, &cq), -EINVAL);
    EXPECT_EQ(ntbmsg_cq_create(65537, nullptr, nullptr, &cq), -EINVAL);
    EXPECT_EQ(ntbmsg_cq_create(1, nullptr, nullptr, nullptr), -EINVAL);
    EXPECT_EQ(cq, nullptr);
    EXPECT_EQ(ntbmsg_cq_destroy(nullptr), 0);
    ntbmsg_completion c;
    EXPECT_EQ(ntbmsg_cq_poll(nullptr, &c, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_cq_poll(here_.cq, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_cq_poll(here_.cq, &c, 0), -EINVAL);
    EXPECT_EQ(ntbmsg_cq_event_fd(nullptr), -EINVAL);
    EXPECT_EQ(ntbmsg_cq_arm(nullptr), -EINVAL);
    EXPECT_EQ(ntbmsg_cq_arm(here_.cq), -EINVAL) << "before there is a descriptor";
    for (const uint32_t entries : {1u, 65536u}) {
        ASSERT_EQ(ntbmsg_cq_create(entries, nullptr, nullptr, &cq), 0);
        EXPECT_EQ(ntbmsg_cq_poll(cq, &c, 1), 0);
        EXPECT_EQ(ntbmsg_cq_destroy(cq), 0);
    }
    ASSERT_EQ(ntbmsg_cq_create(1, never, nullptr, &cq), 0);
    EXPECT_EQ(ntbmsg_cq_event_fd(cq), -EINVAL) << "it calls";
    EXPECT_EQ(ntbmsg_cq_arm(cq), -EINVAL);
    EXPECT_EQ(ntbmsg_cq_destroy(cq), 0);
}

TEST_F(CompletionQueue, AChannelHoldsItAndItsOptionsAreChecked)
{
    EXPECT_EQ(ntbmsg_cq_destroy(here_.cq), -EBUSY);
    ntbmsg_channel *channel = nullptr;
    ntbmsg_channel_options options = channel_options(here_);
    options.operations = 4097;
    EXPECT_EQ(ntbmsg_channel_connect(here_.worker, port, &options, &channel), -EINVAL);
    options.operations = 1;
    options.cq = nullptr;
    EXPECT_EQ(ntbmsg_channel_connect(here_.worker, port, &options, &channel), -EINVAL)
        << "needs a queue";
}

TEST_F(CompletionQueue, TheDescriptorIsReadableWhenArmed)
{
    const int fd = ntbmsg_cq_event_fd(here_.cq);
    ASSERT_GE(fd, 0);
    EXPECT_EQ(ntbmsg_cq_event_fd(here_.cq), fd);
    uint8_t byte = 1;
    const ntbmsg_sge sge{&byte, 1, 0};
    const auto poll_workers = [&](unsigned turns) {
        for (unsigned i = 0; i < turns; ++i) {
            ntbmsg_worker_poll(here_.worker);
            ntbmsg_worker_poll(there_.worker);
        }
    };
    ASSERT_EQ(post(work(NTBMSG_OP_WRITE, remote_, 0, &sge, 1)), 1);
    poll_workers(100);
    EXPECT_FALSE(readable(fd)) << "not armed";
    EXPECT_EQ(ntbmsg_cq_arm(here_.cq), 1) << "there is one";
    EXPECT_FALSE(readable(fd));
    ntbmsg_completion c;
    EXPECT_EQ(ntbmsg_cq_poll(here_.cq, &c, 1), 1);

    EXPECT_EQ(ntbmsg_cq_arm(here_.cq), 0);
    EXPECT_FALSE(readable(fd));
    for (unsigned i = 0; i < 2; ++i)
        ASSERT_EQ(post(work(NTBMSG_OP_WRITE, remote_, 0, &sge, 1)), 1);
    for (const uint64_t end = now_ms() + patience_ms; !readable(fd) && now_ms() < end;)
        poll_workers(1);
    EXPECT_TRUE(readable(fd));
    poll_workers(100);
    EXPECT_EQ(ntbmsg_cq_poll(here_.cq, &c, 1), 1);
    EXPECT_EQ(ntbmsg_cq_arm(here_.cq), 1) << "one is left";
    EXPECT_EQ(ntbmsg_cq_poll(here_.cq, &c, 1), 1);
    EXPECT_EQ(ntbmsg_cq_arm(here_.cq), 0);
    EXPECT_FALSE(readable(fd)) << "what it reported before is forgotten";
}

// The first worker has a way into the queue of its own, the others share one: both report.
TEST_F(CompletionQueue, WorkersShareIt)
{
    close_channel();
    ntbmsg_remote_close(remote_);
    ntbmsg_cq *cq = nullptr;
    ASSERT_EQ(ntbmsg_cq_create(2, nullptr, nullptr, &cq), 0);
    ntbmsg_channel_options mine = channel_options(here_), theirs = channel_options(there_);
    mine.cq = theirs.cq = cq;
    ASSERT_NO_FATAL_FAILURE(open_channel(mine, theirs));
    remote_ = open_remote(token_of(region_));
    const int fd = ntbmsg_cq_event_fd(cq);
    ASSERT_GE(fd, 0);
    EXPECT_EQ(ntbmsg_cq_arm(cq), 0);

    uint8_t byte = 1;
    const ntbmsg_sge sge{&byte, 1, 0};
    ntbmsg_work write = work(NTBMSG_OP_WRITE_IMM, remote_, 0, &sge, 1);
    unsigned told_here = 0, told_there = 0;
    for (write.imm = 0; write.imm < 100; ++write.imm) {
        ASSERT_EQ(post_patiently(write), 1);
        ASSERT_TRUE(await([&] { return readable(fd); }));
        // Where it is full, what is left waits.
        settle();
        ntbmsg_completion got[4];
        while (const int n = ntbmsg_cq_poll(cq, got, 1 + write.imm % 4)) {
            for (int i = 0; i < n; ++i) {
                const bool is_word = got[i].op == NTBMSG_OP_RECV_IMM;
                EXPECT_EQ(got[i].channel, is_word ? there_.channel : here_.channel);
                EXPECT_EQ(is_word ? got[i].imm : 0u, is_word ? told_there : 0u) << "in order";
                ++(is_word ? told_there : told_here);
            }
            settle();
        }
        ASSERT_EQ(ntbmsg_cq_arm(cq), 0);
        ASSERT_EQ(told_here, write.imm + 1);
        ASSERT_EQ(told_there, write.imm + 1);
    }
    // Each of them has its places, and no more.
    unsigned taken = 0;
    while (taken < 8 && post(write) == 1)
        ++taken;
    EXPECT_EQ(taken, 2u);
    EXPECT_EQ(ntbmsg_cq_destroy(cq), -EBUSY);
    close_channel();
    here_.channel = there_.channel = nullptr;
    EXPECT_EQ(ntbmsg_cq_destroy(cq), 0);
}

// A queue outlives an endpoint. A dedicated worker, whose completions many threads put, may lie
// where the worker was that had a lane of the queue: it shares the other one all the same.
TEST_F(CompletionQueue, ADedicatedWorkerInThePlaceOfAnEarlierOneSharesIt)
{
    const auto close_channels = [&] {
        for (End *end : {&here_, &there_}) {
            ASSERT_EQ(ntbmsg_channel_close(end->channel), 0);
            end->channel = nullptr;
        }
        settle();
    };
    ntbmsg_remote_close(remote_);
    remote_ = nullptr;
    ASSERT_NO_FATAL_FAILURE(close_channels());
    // Until the memory of one that was closed is that of the next.
    const ntbmsg_worker *before = nullptr;
    for (unsigned i = 0; i < 16 && before != here_.worker; ++i) {
        before = here_.worker;
        ASSERT_NO_FATAL_FAILURE(open_near_again(worker_options()));
    }
    ntbmsg_cq *cq = nullptr;
    ASSERT_EQ(ntbmsg_cq_create(1, nullptr, nullptr, &cq), 0);
    ntbmsg_channel_options mine = channel_options(here_), theirs = channel_options(there_);
    mine.cq = cq;
    ASSERT_NO_FATAL_FAILURE(open_channel(mine, theirs));
    ASSERT_NO_FATAL_FAILURE(close_channels());
    ntbmsg_endpoint_options dedicated = worker_options();
    dedicated.dedicated = 1;
    ASSERT_NO_FATAL_FAILURE(open_near_again(dedicated));
    theirs.cq = cq;
    ASSERT_NO_FATAL_FAILURE(open_channel(mine, theirs));
    remote_ = open_remote(token_of(region_));
    std::vector<uint8_t> near_memory(64);
    ntbmsg_region *near_region = nullptr;
    ASSERT_EQ(ntbmsg_region_register(near_, near_memory.data(), near_memory.size(), every_right,
                                     &near_region),
              0);
    const ntbmsg_region_token token = token_of(near_region);
    ntbmsg_remote *back = nullptr;
    ASSERT_EQ(ntbmsg_remote_open(there_.channel, &token, &back), 0);

    uint8_t byte = 1;
    const ntbmsg_sge sge{&byte, 1, 0};
    const ntbmsg_work write_back = work(NTBMSG_OP_WRITE, back, 0, &sge, 1);
    ASSERT_EQ(post(work(NTBMSG_OP_WRITE, remote_, 0, &sge, 1)), 1);
    EXPECT_EQ(ntbmsg_channel_post_burst(there_.channel, &write_back, 1), 0)
        << "its one place is taken";
    ntbmsg_completion got{};
    ASSERT_TRUE(await([&] { return ntbmsg_cq_poll(cq, &got, 1) == 1; }));
    EXPECT_EQ(got.channel, here_.channel);
    EXPECT_EQ(got.status, 0);

    ntbmsg_remote_close(back);
    ntbmsg_remote_close(remote_);
    remote_ = nullptr;
    EXPECT_EQ(ntbmsg_region_release(near_region), 0);
    ASSERT_NO_FATAL_FAILURE(close_channels());
    EXPECT_EQ(ntbmsg_cq_destroy(cq), 0);
}

} // namespace
