// SPDX-License-Identifier: BSD-3-Clause
// Messages through workers that a thread of their own drives: many threads, ends, losses, sets, and
// services of DPDK as the ones that drive.
#include <poll.h>

#include <rte_lcore.h>
#include <rte_rawdev.h>
#include <rte_service.h>
#include <rte_service_component.h>

#include "dedicated.hpp"

namespace
{

TEST_F(Dedicated, ManyThreadsEachTheirChannelBothWays)
{
    bring_up();
    constexpr uint32_t total = 2000;
    run_pairs(
        3, total, [&](ntbmsg_channel *channel) { return send_all(near_, channel, total); },
        [&](ntbmsg_channel *channel) { return receive_all(channel, total); });
}

TEST_F(Dedicated, LongMessagesOfManyThreadsBothWays)
{
    ntbmsg_endpoint_options options = dedicated_options();
    options.buf_bytes = 32 << 10;
    options.tx_room = 65280;
    options.tx_mbufs = 256;
    bring_up(options);
    ntbmsg_channel_options options_of_each = channel_options();
    options_of_each.credit_bytes = 2 << 20;
    constexpr int pairs = 2;
    constexpr uint32_t total = 60;
    run_pairs(
        pairs, total, [&](ntbmsg_channel *channel) { return exchange(near_, channel, total); },
        [&](ntbmsg_channel *channel) { return exchange(far_, channel, total); }, options_of_each);
}

TEST_F(Dedicated, ShutdownComesBehindTheData)
{
    bring_up();
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    // More than the peer grants: the rest waits in the ring when the channel is closed.
    constexpr uint32_t total = 100;
    ASSERT_TRUE(send_all(near_, near, total));
    ASSERT_EQ(ntbmsg_channel_shutdown(near), 0);
    rte_mbuf *mbuf = message(near_, 8, 0);
    EXPECT_EQ(ntbmsg_channel_send_burst(near, &mbuf, nullptr, 1), -ESHUTDOWN);
    rte_pktmbuf_free(mbuf);
    ASSERT_EQ(ntbmsg_channel_close(near), 0);
    uint32_t next = 0;
    int rc = 0;
    ASSERT_TRUE(await([&] {
        rte_mbuf *got = nullptr;
        uint32_t imm = 0;
        rc = ntbmsg_channel_recv_burst(far, &got, &imm, 1);
        if (rc == 1) {
            EXPECT_EQ(imm, next++);
            rte_pktmbuf_free(got);
        }
        return rc < 0;
    }));
    EXPECT_EQ(rc, -ESHUTDOWN);
    EXPECT_EQ(next, total);
    give_back({far});
}

ntbmsg_channel_options with_set(ntbmsg_poll_set *set)
{
    ntbmsg_channel_options options;
    ntbmsg_channel_options_init(&options);
    options.set = set;
    return options;
}

TEST_F(Dedicated, APollSetReportsAllItsChannels)
{
    bring_up();
    ntbmsg_poll_set *set = nullptr;
    ASSERT_EQ(ntbmsg_poll_set_create(near_worker_, &set), -EINVAL);
    ASSERT_EQ(ntbmsg_poll_set_create(nullptr, &set), 0);
    constexpr int pairs = 4;
    constexpr uint32_t total = 500;
    ntbmsg_channel *near[pairs] = {}, *far[pairs] = {};
    for (int i = 0; i < pairs; ++i)
        ASSERT_NO_FATAL_FAILURE(join(near[i], far[i], channel_options(), with_set(set)));
    std::atomic<int> good{0};
    std::thread sender([&] {
        for (int i = 0; i < pairs; ++i) {
            good += send_all(near_, near[i], total);
            ntbmsg_channel_close(near[i]);
        }
    });
    uint32_t next[pairs] = {};
    int ended = 0;
    EXPECT_TRUE(await([&] {
        ntbmsg_ready ready[2];
        const int n = ntbmsg_poll_set_poll(set, ready, 2);
        for (int i = 0; i < n; ++i) {
            const auto which = std::find(far, far + pairs, ready[i].channel) - far;
            EXPECT_LT(which, pairs);
            EXPECT_TRUE(receive_some(ready[i].channel, next[which]));
            ended += (ready[i].events & NTBMSG_PEER_SHUT) != 0;
        }
        return ended == pairs &&
               std::all_of(next, next + pairs, [](uint32_t k) { return k == total; });
    }));
    sender.join();
    EXPECT_EQ(good.load(), pairs);
    for (ntbmsg_channel *channel : far)
        EXPECT_EQ(ntbmsg_channel_close(channel), 0);
    EXPECT_TRUE(await([&] { return ntbmsg_poll_set_destroy(set) == 0; }));
}

TEST_F(Dedicated, ASenderIsNotifiedWhenItCanGoOn)
{
    bring_up();
    ntbmsg_poll_set *set = nullptr;
    ASSERT_EQ(ntbmsg_poll_set_create(nullptr, &set), 0);
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far, with_set(set)));
    uint32_t sent = 0, received = 0;
    const uint32_t held = 64 + 64; // credit, and the ring
    ASSERT_TRUE(send_all(near_, near, held));
    rte_mbuf *mbuf = message(near_, 8, 1);
    ASSERT_TRUE(await([&] { return ntbmsg_channel_send_burst(near, &mbuf, &sent, 1) == 0; }));
    ASSERT_TRUE(await([&] { return receive_some(far, received) && received == held; }));
    uint32_t events = 0;
    EXPECT_TRUE(await([&] {
        ntbmsg_ready ready{};
        if (ntbmsg_poll_set_poll(set, &ready, 1) == 1)
            events |= ready.events;
        return (events & NTBMSG_WRITABLE) != 0;
    }));
    EXPECT_EQ(ntbmsg_channel_send_burst(near, &mbuf, &held, 1), 1);
    give_back({near, far});
    EXPECT_TRUE(await([&] { return ntbmsg_poll_set_destroy(set) == 0; }));
}

TEST_F(Dedicated, CreditGrowsAndNothingWaitsForTheRestOfIt)
{
    ntbmsg_endpoint_options options = dedicated_options();
    options.ring_lines = 1024;
    ASSERT_NO_FATAL_FAILURE(bring_up(options));
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    uint32_t sent = 0, received = 0;
    const auto send_some = [&] {
        while (send_one(near_, near, 8, static_cast<int>(sent % 251), sent) == 1)
            ++sent;
    };
    // All that was granted, and what waits to be sent.
    ASSERT_TRUE(await([&] {
        send_some();
        return sent == 128;
    }));
    ASSERT_TRUE(await([&] {
        if (sent < 20000)
            send_some();
        EXPECT_TRUE(receive_some(far, received));
        return sent >= 20000 && received == sent;
    }));
    EXPECT_GE(info(near).credit_messages, 256U);
    give_back({near, far});
}

TEST_F(Dedicated, SlotsComeBackFromResetsRejectionsAndStorms)
{
    bring_up();
    for (int round = 0; round < 100; ++round) {
        ntbmsg_channel *near = nullptr, *far = nullptr;
        ASSERT_EQ(ntbmsg_channel_connect(near_worker_, port, nullptr, &near), 0) << round;
        ntbmsg_request request;
        ASSERT_TRUE(await_request(request)) << round;
        if (round % 4 == 3) {
            ASSERT_EQ(ntbmsg_request_reject(&request, 3, nullptr, 0), 0);
            ASSERT_EQ(ntbmsg_channel_wait_open(near, patience_ms), -ECONNREFUSED);
            give_back({near});
            continue;
        }
        ASSERT_EQ(ntbmsg_channel_accept(&request, nullptr, &far), 0);
        ASSERT_EQ(ntbmsg_channel_wait_open(near, patience_ms), 0);
        ASSERT_TRUE(send_all(near_, near, 5));
        if (round % 2 == 0) {
            ASSERT_EQ(ntbmsg_channel_reset(near, 4), 0);
            ASSERT_TRUE(await_state(far, NTBMSG_CHANNEL_RESET));
            EXPECT_EQ(info(far).reason, 4);
        }
        give_back({near, far});
    }
    EXPECT_EQ(stats(near_).bad_peer + stats(far_).bad_peer, 0U);
}

TEST_F(Dedicated, TheLossOfThePeerIsSeenByEveryThread)
{
    bring_up();
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    ASSERT_TRUE(send_all(near_, near, 50));
    far_poller_.reset();
    ASSERT_EQ(ntbmsg_endpoint_close(far_), 0);
    far_ = nullptr;
    ASSERT_TRUE(await_state(near, NTBMSG_CHANNEL_LOST));
    rte_mbuf *none = nullptr;
    EXPECT_EQ(ntbmsg_channel_recv_burst(near, &none, nullptr, 1), -ECONNRESET);
    give_back({near});

    ASSERT_NO_FATAL_FAILURE(open(far_device, far_, dedicated_options()));
    far_worker_ = ntbmsg_endpoint_worker(far_, 0);
    far_poller_ = std::make_unique<Poller>(far_worker_);
    ASSERT_EQ(ntbmsg_endpoint_wait_connected(near_, patience_ms), 0);
    ASSERT_EQ(ntbmsg_endpoint_wait_connected(far_, patience_ms), 0);
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    ASSERT_TRUE(send_all(near_, near, 50));
    give_back({near, far});
}

// Semantics: lost-5
TEST_F(Dedicated, ADeviceThatIsStoppedAndStartedUnderThreads)
{
    bring_up();
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    ASSERT_TRUE(send_all(near_, near, 50));
    const uint16_t device = rte_rawdev_get_dev_id(near_device);
    rte_rawdev_stop(device); // both pollers go on
    EXPECT_TRUE(await_state(near, NTBMSG_CHANNEL_LOST));
    EXPECT_TRUE(await_state(far, NTBMSG_CHANNEL_LOST));
    EXPECT_EQ(ntbmsg_channel_close(near), 0);
    EXPECT_EQ(ntbmsg_channel_close(far), 0);
    ASSERT_EQ(rte_rawdev_start(device), 0);
    ASSERT_EQ(ntbmsg_endpoint_wait_connected(near_, patience_ms), 0);
    ASSERT_EQ(ntbmsg_endpoint_wait_connected(far_, patience_ms), 0);
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    ASSERT_TRUE(send_all(near_, near, 50));
    EXPECT_EQ(ntbmsg_channel_close(near), 0);
    EXPECT_EQ(ntbmsg_channel_close(far), 0);
}

/// Polls until there is nothing to do, and arms. @return what arming gave last
int poll_and_arm(ntbmsg_worker *worker)
{
    int armed = 1;
    for (unsigned i = 0; i < 1'000'000 && armed == 1; ++i) {
        ntbmsg_worker_poll(worker);
        armed = ntbmsg_worker_arm(worker);
    }
    return armed;
}

bool is_readable(int fd, int timeout_ms)
{
    pollfd waiting{fd, POLLIN, 0};
    return ::poll(&waiting, 1, timeout_ms) == 1;
}

// Semantics: dedicated-4
TEST_F(Dedicated, ACallWakesAThreadThatSleeps)
{
    bring_up();
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    near_poller_.reset(); // this thread drives that worker from here on
    const int fd = ntbmsg_worker_event_fd(near_worker_);
    ASSERT_EQ(poll_and_arm(near_worker_), 0);
    std::thread([&] { EXPECT_EQ(send_one(near_, near, 8, 1), 1); }).join();
    EXPECT_TRUE(is_readable(fd, patience_ms));
    EXPECT_EQ(ntbmsg_worker_arm(near_worker_), 1) << "and it is still to be done";
    EXPECT_EQ(ntbmsg_worker_disarm(near_worker_), 0);
    EXPECT_FALSE(is_readable(fd, 0));
    ASSERT_EQ(poll_and_arm(near_worker_), 0);
    EXPECT_EQ(ntbmsg_worker_disarm(near_worker_), 0);
    std::thread([&] { EXPECT_EQ(ntbmsg_channel_close(near), 0); }).join();
    EXPECT_FALSE(is_readable(fd, 0)) << "no one sleeps";
    ntbmsg_worker_poll(near_worker_);
    EXPECT_EQ(ntbmsg_channel_close(far), 0);
}

// Semantics: dedicated-4
TEST_F(Dedicated, NoCallIsSleptThrough)
{
    bring_up();
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    near_poller_.reset();
    std::atomic<bool> done{false};
    std::thread sleeper([&] {
        const int fd = ntbmsg_worker_event_fd(near_worker_);
        while (!done) {
            const bool armed = poll_and_arm(near_worker_) == 0;
            // What was done by the last call may be seen before the descriptor is armed.
            EXPECT_TRUE(!armed || done || is_readable(fd, patience_ms));
            ntbmsg_worker_disarm(near_worker_);
        }
    });
    for (unsigned i = 0; i < 300; ++i) { // each waits for the one before
        EXPECT_TRUE(send_all(near_, near, 1));
        EXPECT_TRUE(receive_all(far, 1));
    }
    done = true;
    EXPECT_EQ(ntbmsg_channel_close(near), 0); // wakes it
    sleeper.join();
    EXPECT_EQ(ntbmsg_channel_close(far), 0);
}

TEST_F(Dedicated, AServiceDrivesAWorker)
{
    ntbmsg_endpoint_options options = dedicated_options();
    options.service = 1;
    ASSERT_NO_FATAL_FAILURE(Channels::bring_up(options));
    const char *names[] = {"ntbmsg_raw_plx_ntb0_0", "ntbmsg_raw_plx_ntb1_0"};
    uint32_t services[2] = {};
    for (int i = 0; i < 2; ++i) {
        ASSERT_EQ(rte_service_get_by_name(names[i], &services[i]), 0) << names[i];
        ASSERT_EQ(rte_service_set_runstate_mapped_check(services[i], 0), 0);
        ASSERT_EQ(rte_service_runstate_set(services[i], 1), 0);
    }
    std::atomic<bool> stop{false};
    std::thread lcore([&] {
        ASSERT_EQ(rte_thread_register(), 0);
        // What a service lcore does.
        while (!stop.load(std::memory_order_acquire)) {
            for (const uint32_t service : services)
                rte_service_run_iter_on_app_lcore(service, 1);
            sched_yield();
        }
        rte_thread_unregister();
    });
    ntbmsg_channel *near = nullptr, *far = nullptr;
    join(near, far);
    EXPECT_TRUE(send_all(near_, near, 40));
    uint32_t next = 0;
    EXPECT_TRUE(await([&] { return !receive_some(far, next) || next == 40; }));
    EXPECT_EQ(next, 40U);
    give_back({near, far});
    stop.store(true, std::memory_order_release);
    lcore.join();
    close(near_);
    EXPECT_NE(rte_service_get_by_name(names[0], &services[0]), 0);
}

} // namespace
