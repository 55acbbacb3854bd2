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
        EXPECT_EQ(ntbmsg_region_revoke(region_), 0);
        Operating::TearDown();
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
    EXPECT_EQ(ntbmsg_connect(here_.worker, port, &options, &channel), -EINVAL);
    options.operations = 1;
    options.cq = nullptr;
    EXPECT_EQ(ntbmsg_connect(here_.worker, port, &options, &channel), -EINVAL) << "needs a queue";
}

TEST_F(CompletionQueue, TheDescriptorTellsWhenItIsArmed)
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
    EXPECT_FALSE(readable(fd)) << "what it told before is forgotten";
}

} // namespace
