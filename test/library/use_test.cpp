// SPDX-License-Identifier: BSD-3-Clause
// Handles that were given back, and two threads in one object: what each build knows of them.
#include "channels.hpp"

#include <thread>

#include <sys/resource.h>

namespace
{

class Use : public Channels
{
protected:
    static ntbmsg_endpoint_options few_channels()
    {
        ntbmsg_endpoint_options options = worker_options();
        options.channels = 16;
        return options;
    }
    static void expect_refused(ntbmsg_channel *gone)
    {
        rte_mbuf *mbuf = nullptr;
        ntbmsg_channel_info info{};
        info.size = sizeof(info);
        const ntbmsg_work work{};
        const ntbmsg_region_token token{};
        ntbmsg_remote *remote = nullptr;
        EXPECT_EQ(ntbmsg_channel_state_get(gone), NTBMSG_CHANNEL_CLOSED);
        EXPECT_EQ(ntbmsg_channel_info_get(gone, &info), -EINVAL);
        EXPECT_EQ(ntbmsg_channel_wait_open(gone, 0), -EINVAL);
        EXPECT_EQ(ntbmsg_channel_send_burst(gone, &mbuf, nullptr, 1), -EINVAL);
        EXPECT_EQ(ntbmsg_channel_recv_burst(gone, &mbuf, nullptr, 1), -EINVAL);
        EXPECT_EQ(ntbmsg_channel_post_burst(gone, &work, 1), -EINVAL);
        EXPECT_EQ(ntbmsg_remote_open(gone, &token, &remote), -EINVAL);
        EXPECT_EQ(ntbmsg_channel_shutdown(gone), -EINVAL);
        EXPECT_EQ(ntbmsg_channel_reset(gone, 0), -EINVAL);
        EXPECT_EQ(ntbmsg_channel_close(gone), 0);
    }
};

TEST_F(Use, AChannelThatWasClosedIsRefused)
{
    ASSERT_NO_FATAL_FAILURE(bring_up(few_channels()));
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    give_back({near, far});
    expect_refused(near);
    settle();
    expect_refused(near); // its slot is free now
}

TEST_F(Use, ARevokedRegionIsRefused)
{
    ASSERT_NO_FATAL_FAILURE(bring_up(few_channels()));
    uint8_t memory[64];
    ntbmsg_region *first = nullptr, *second = nullptr;
    ASSERT_EQ(ntbmsg_region_register(near_, memory, 64, NTBMSG_RIGHT_READ, &first), 0);
    ASSERT_EQ(ntbmsg_region_release(first), 0);
    ASSERT_EQ(ntbmsg_region_register(near_, memory, 64, NTBMSG_RIGHT_READ, &second), 0);
    ntbmsg_region_info info{};
    info.size = sizeof(info);
    ntbmsg_region_token token{};
    EXPECT_EQ(ntbmsg_region_info_get(first, &info), -EINVAL);
    EXPECT_EQ(ntbmsg_region_token_get(first, &token), -EINVAL);
    EXPECT_EQ(ntbmsg_region_release(first), -EINVAL);
    EXPECT_EQ(ntbmsg_region_info_get(second, &info), 0);
    EXPECT_EQ(ntbmsg_region_release(second), 0);
}

#ifdef NTBMSG_CHECKS

TEST_F(Use, AChannelThatWasClosedIsRefusedWhenItsSlotIsUsedAgain)
{
    ASSERT_NO_FATAL_FAILURE(bring_up(few_channels()));
    ntbmsg_channel *first = nullptr, *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(first, far));
    const uint16_t id = info(first).id;
    give_back({first, far});
    for (unsigned i = 0; i < 2 * few_channels().channels; ++i) {
        settle();
        ASSERT_NO_FATAL_FAILURE(join(near, far));
        if (info(near).id == id)
            break;
        give_back({near, far});
    }
    ASSERT_EQ(info(near).id, id);
    expect_refused(first);
    EXPECT_EQ(ntbmsg_channel_state_get(near), NTBMSG_CHANNEL_OPEN);
    give_back({near, far});
}

TEST_F(Use, WhateverElseWasClosedIsRefused)
{
    ASSERT_NO_FATAL_FAILURE(bring_up(few_channels()));
    ntbmsg_poll_set *set = nullptr;
    ntbmsg_cq *cq = nullptr;
    ASSERT_EQ(ntbmsg_poll_set_create(near_worker_, &set), 0);
    ASSERT_EQ(ntbmsg_cq_create(1, nullptr, nullptr, &cq), 0);
    ntbmsg_listener *listener = listener_;
    ntbmsg_listener_close(listener);
    listener_ = nullptr;
    EXPECT_EQ(ntbmsg_poll_set_destroy(set), 0);
    EXPECT_EQ(ntbmsg_cq_destroy(cq), 0);
    ntbmsg_endpoint *endpoint = near_;
    ASSERT_NO_FATAL_FAILURE(close(near_));

    ntbmsg_ready ready;
    ntbmsg_completion completion;
    ntbmsg_request request{};
    ntbmsg_channel *channel = nullptr;
    rte_mbuf *mbuf = nullptr;
    request.worker = near_worker_;
    EXPECT_EQ(ntbmsg_poll_set_poll(set, &ready, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_poll_set_destroy(set), 0);
    EXPECT_EQ(ntbmsg_cq_poll(cq, &completion, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_cq_event_fd(cq), -EINVAL);
    EXPECT_EQ(ntbmsg_cq_arm(cq), -EINVAL);
    EXPECT_EQ(ntbmsg_cq_destroy(cq), 0);
    EXPECT_EQ(ntbmsg_listener_poll(listener, far_worker_, &request), -EINVAL);
    ntbmsg_listener_close(listener);
    EXPECT_EQ(ntbmsg_channel_accept(&request, nullptr, &channel), -EINVAL);
    EXPECT_EQ(ntbmsg_request_reject(&request, 0, nullptr, 0), -EINVAL);
    EXPECT_EQ(ntbmsg_channel_connect(near_worker_, port, nullptr, &channel), -EINVAL);
    EXPECT_EQ(ntbmsg_worker_poll(near_worker_), -EINVAL);
    EXPECT_EQ(ntbmsg_worker_arm(near_worker_), -EINVAL);
    EXPECT_EQ(ntbmsg_worker_disarm(near_worker_), -EINVAL);
    EXPECT_EQ(ntbmsg_worker_event_fd(near_worker_), -EINVAL);
    EXPECT_EQ(ntbmsg_endpoint_worker(endpoint, 0), nullptr);
    EXPECT_EQ(ntbmsg_queue_send_burst(endpoint, 0, &mbuf, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_queue_recv_burst(endpoint, 0, &mbuf, nullptr, 1), -EINVAL);
    EXPECT_EQ(ntbmsg_endpoint_wait_connected(endpoint, 0), -EINVAL);
    EXPECT_EQ(ntbmsg_endpoint_pool(endpoint), nullptr);
    EXPECT_EQ(ntbmsg_endpoint_close(endpoint), 0);
}

/// Each of these ends the process, so it runs in one of its own.
class TwoThreads : public Use
{
protected:
    static void SetUpTestSuite()
    {
        testing::FLAGS_gtest_death_test_style = "threadsafe";
        const rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none); // these deaths leave no core behind
    }

    /// Two threads make calls until one finds the other inside, which it does not survive.
    template <class One, class Other>
    static void meet(One one, Other other)
    {
        const uint64_t end = now_ms() + patience_ms;
        std::thread thread([=] {
            while (now_ms() < end)
                one();
        });
        while (now_ms() < end)
            other();
        thread.join();
    }
    void bring_up_dedicated()
    {
        ntbmsg_endpoint_options options = few_channels();
        options.dedicated = 1;
        bring_up(options);
    }
    ntbmsg_channel *connecting()
    {
        ntbmsg_channel_options options = channel_options();
        options.timeout_ms = patience_ms;
        ntbmsg_channel *channel = nullptr;
        EXPECT_EQ(ntbmsg_channel_connect(near_worker_, port, &options, &channel), 0);
        return channel;
    }

    static constexpr const char *told = "one thread at a time uses a";
};

TEST_F(TwoThreads, PollOneWorker)
{
    ASSERT_NO_FATAL_FAILURE(bring_up(few_channels()));
    ntbmsg_worker *worker = near_worker_;
    const auto poll = [=] { ntbmsg_worker_poll(worker); };
    EXPECT_DEATH(meet(poll, poll), told);
}

TEST_F(TwoThreads, UseChannelsOfOneWorkerThatRunsToCompletion)
{
    ASSERT_NO_FATAL_FAILURE(bring_up(few_channels()));
    ntbmsg_channel *one = connecting(), *other = connecting();
    EXPECT_DEATH(meet([=] { ntbmsg_channel_wait_open(one, patience_ms); },
                      [=] { ntbmsg_channel_shutdown(other); }),
                 "ntbmsg_channel_(wait_open|shutdown)\\(\\) while thread .* one thread at a time");
    give_back({one, other});
}

TEST_F(TwoThreads, UseOneChannelOfADedicatedWorker)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_dedicated());
    ntbmsg_channel *channel = connecting();
    EXPECT_DEATH(meet([=] { ntbmsg_channel_wait_open(channel, patience_ms); },
                      [=] { ntbmsg_channel_shutdown(channel); }),
                 told);
    give_back({channel});
}

TEST_F(TwoThreads, UseOnePollSet)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_dedicated());
    ntbmsg_poll_set *set = nullptr;
    ASSERT_EQ(ntbmsg_poll_set_create(nullptr, &set), 0);
    const auto poll = [=] {
        ntbmsg_ready ready;
        ntbmsg_poll_set_poll(set, &ready, 1);
    };
    EXPECT_DEATH(meet(poll, poll), told);
    EXPECT_EQ(ntbmsg_poll_set_destroy(set), 0);
}

TEST_F(TwoThreads, UseOneCompletionQueue)
{
    ntbmsg_cq *cq = nullptr;
    ASSERT_EQ(ntbmsg_cq_create(1, nullptr, nullptr, &cq), 0);
    const auto poll = [=] {
        ntbmsg_completion completion;
        ntbmsg_cq_poll(cq, &completion, 1);
    };
    EXPECT_DEATH(meet(poll, poll), told);
    EXPECT_EQ(ntbmsg_cq_destroy(cq), 0);
}

/// Not one of the rules: these do not meet.
TEST_F(TwoThreads, MayUseTwoChannelsOfADedicatedWorker)
{
    ASSERT_NO_FATAL_FAILURE(bring_up_dedicated());
    ntbmsg_channel *one = connecting(), *other = connecting();
    std::atomic<bool> done{false};
    std::thread thread([&] {
        while (!done)
            EXPECT_EQ(ntbmsg_channel_wait_open(one, 0), -ETIMEDOUT);
    });
    for (unsigned i = 0; i < 1000; ++i)
        EXPECT_EQ(ntbmsg_channel_wait_open(other, 0), -ETIMEDOUT);
    done = true;
    thread.join();
    give_back({one, other});
}

#endif

} // namespace
