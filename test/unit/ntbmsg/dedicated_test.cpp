// SPDX-License-Identifier: BSD-3-Clause
// Workers that a thread of their own drives, channels used by other threads.
#include <atomic>
#include <memory>
#include <thread>

#include <sched.h>

#include <rte_lcore.h>
#include <rte_service.h>
#include <rte_service_component.h>

#include "channels.hpp"

namespace
{

class Dedicated : public Cabled
{
protected:
    static constexpr uint16_t port = 9;

    static ntbmsg_endpoint_options dedicated_options()
    {
        ntbmsg_endpoint_options options = small_options();
        options.queues = 0;
        options.workers = 1;
        options.dedicated = 1;
        options.channels = 64;
        options.rx_mbufs = 4096;
        options.tx_mbufs = 2048;
        return options;
    }

    /// A worker and the thread that drives it, until it goes out of scope.
    class Poller
    {
    public:
        explicit Poller(ntbmsg_worker *worker)
            : thread_([this, worker] {
                  while (!stop_.load(std::memory_order_acquire)) {
                      if (ntbmsg_worker_poll(worker) == 0)
                          sched_yield();
                  }
              })
        {
        }
        ~Poller()
        {
            stop_.store(true, std::memory_order_release);
            thread_.join();
        }

    private:
        std::atomic<bool> stop_{false};
        std::thread thread_;
    };

    void bring_up(const ntbmsg_endpoint_options &options = dedicated_options())
    {
        ASSERT_NO_FATAL_FAILURE(connect(options));
        near_worker_ = ntbmsg_worker_get(near_, 0);
        far_worker_ = ntbmsg_worker_get(far_, 0);
        near_poller_ = std::make_unique<Poller>(near_worker_);
        far_poller_ = std::make_unique<Poller>(far_worker_);
        ASSERT_EQ(ntbmsg_listen(port, 0, &listener_), 0);
    }

    void TearDown() override
    {
        near_poller_.reset();
        far_poller_.reset();
        ntbmsg_listener_close(listener_);
        Cabled::TearDown();
    }

    template <class Fact>
    static bool await(Fact fact)
    {
        for (const uint64_t end = now_ms() + patience_ms; now_ms() < end; sched_yield()) {
            if (fact())
                return true;
        }
        return fact();
    }

    static ntbmsg_channel_options channel_options(ntbmsg_poll_set *set = nullptr)
    {
        ntbmsg_channel_options options;
        ntbmsg_channel_options_init(&options);
        options.set = set;
        return options;
    }

    void join(ntbmsg_channel *&near, ntbmsg_channel *&far,
              const ntbmsg_channel_options &near_options = channel_options(),
              const ntbmsg_channel_options &far_options = channel_options())
    {
        ASSERT_EQ(ntbmsg_connect(near_worker_, port, &near_options, &near), 0);
        ntbmsg_request request;
        ASSERT_TRUE(
            await([&] { return ntbmsg_listener_poll(listener_, far_worker_, &request) == 1; }));
        ASSERT_EQ(ntbmsg_accept(&request, &far_options, &far), 0);
        ASSERT_EQ(ntbmsg_channel_wait_open(near, patience_ms), 0);
    }

    static bool await_state(const ntbmsg_channel *channel, enum ntbmsg_channel_state state)
    {
        return await([=] { return ntbmsg_channel_state(channel) == state; });
    }

    static ntbmsg_channel_info info(const ntbmsg_channel *channel)
    {
        ntbmsg_channel_info info{};
        info.size = sizeof(info);
        EXPECT_EQ(ntbmsg_channel_info_get(channel, &info), 0);
        return info;
    }

    static uint32_t short_size(uint32_t number) { return number % 101 == 0 ? 3000 : number % 90; }
    static uint32_t long_size(uint32_t number)
    {
        constexpr uint32_t sizes[] = {100 * 1024, 8, 70 * 1024 + 1, 3000, 300 * 1024};
        return sizes[number % std::size(sizes)];
    }
    /// Sends @p total messages, numbered. @return whether all went
    static bool send_all(ntbmsg_endpoint *from, ntbmsg_channel *channel, uint32_t total,
                         uint32_t (*size_of)(uint32_t) = short_size)
    {
        uint32_t sent = 0;
        return await([&] {
                   rte_mbuf *mbuf = message(from, size_of(sent), static_cast<int>(sent % 251));
                   if (mbuf == nullptr)
                       return false; // others have them all
                   const int rc = ntbmsg_channel_send_burst(channel, &mbuf, &sent, 1);
                   if (rc == 1)
                       ++sent;
                   else
                       rte_pktmbuf_free(mbuf);
                   return rc < 0 || sent == total;
               }) &&
               sent == total;
    }
    /// Receives what is there. @return false: something was out of order
    static bool receive_some(ntbmsg_channel *channel, uint32_t &next)
    {
        rte_mbuf *got[16];
        uint32_t imm[16];
        const int n = ntbmsg_channel_recv_burst(channel, got, imm, 16);
        bool in_order = true;
        for (int i = 0; i < n; ++i) {
            in_order = in_order && imm[i] == next++ && is_all(got[i], imm[i] % 251);
            rte_pktmbuf_free(got[i]);
        }
        return in_order;
    }
    /// Whether all its bytes are @p fill.
    static bool is_all(const rte_mbuf *m, uint32_t fill)
    {
        for (; m != nullptr; m = m->next) {
            const auto *data = rte_pktmbuf_mtod(m, const uint8_t *);
            if (std::any_of(data, data + m->data_len, [=](uint8_t byte) { return byte != fill; }))
                return false;
        }
        return true;
    }
    /// Receives @p total messages. @return whether they came, whole and in order
    static bool receive_all(ntbmsg_channel *channel, uint32_t total)
    {
        uint32_t next = 0;
        bool in_order = true;
        return await([&] {
                   in_order = in_order && receive_some(channel, next);
                   return !in_order || next == total;
               }) &&
               in_order;
    }

    /// Sends and receives @p total messages, long and short ones. @return whether all went and came
    static bool exchange(ntbmsg_endpoint *from, ntbmsg_channel *channel, uint32_t total)
    {
        uint32_t received = 0, sent = 0;
        rte_mbuf *mbuf = nullptr;
        bool in_order = true;
        const bool done = await([&] {
            if (mbuf == nullptr && sent < total)
                mbuf = message(from, long_size(sent), static_cast<int>(sent % 251));
            if (mbuf != nullptr && ntbmsg_channel_send_burst(channel, &mbuf, &sent, 1) == 1) {
                mbuf = nullptr;
                ++sent;
            }
            in_order = in_order && receive_some(channel, received);
            return !in_order || (received == total && sent == total);
        });
        rte_pktmbuf_free(mbuf);
        return done && in_order;
    }

    ntbmsg_worker *near_worker_ = nullptr, *far_worker_ = nullptr;
    ntbmsg_listener *listener_ = nullptr;
    std::unique_ptr<Poller> near_poller_, far_poller_;
};

TEST_F(Dedicated, ManyThreadsEachTheirChannelBothWays)
{
    bring_up();
    constexpr int pairs = 3;
    constexpr uint32_t total = 2000;
    ntbmsg_channel *near[pairs] = {}, *far[pairs] = {};
    for (int i = 0; i < pairs; ++i)
        ASSERT_NO_FATAL_FAILURE(join(near[i], far[i]));
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int i = 0; i < pairs; ++i) {
        threads.emplace_back([&, i] { good += send_all(near_, near[i], total); });
        threads.emplace_back([&, i] { good += receive_all(far[i], total); });
    }
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(good.load(), 2 * pairs);
    for (int i = 0; i < pairs; ++i) {
        EXPECT_EQ(info(far[i]).rx_messages, total);
        EXPECT_EQ(ntbmsg_channel_close(near[i]), 0);
        EXPECT_EQ(ntbmsg_channel_close(far[i]), 0);
    }
    EXPECT_EQ(stats(near_).bad_peer + stats(far_).bad_peer, 0U);
}

TEST_F(Dedicated, LongMessagesOfManyThreadsBothWays)
{
    ntbmsg_endpoint_options options = dedicated_options();
    options.rendezvous_bytes = 4 << 20;
    options.tx_room = 65280;
    options.tx_mbufs = 256;
    bring_up(options);
    constexpr int pairs = 2;
    constexpr uint32_t total = 60;
    ntbmsg_channel *near[pairs] = {}, *far[pairs] = {};
    for (int i = 0; i < pairs; ++i)
        ASSERT_NO_FATAL_FAILURE(join(near[i], far[i]));
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int i = 0; i < pairs; ++i) {
        threads.emplace_back([&, i] { good += exchange(near_, near[i], total); });
        threads.emplace_back([&, i] { good += exchange(far_, far[i], total); });
    }
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(good.load(), 2 * pairs);
    EXPECT_EQ(stats(near_).tx_long, pairs * total * 3 / 5);
    for (int i = 0; i < pairs; ++i) {
        EXPECT_EQ(info(far[i]).rx_messages, total);
        EXPECT_EQ(ntbmsg_channel_close(near[i]), 0);
        EXPECT_EQ(ntbmsg_channel_close(far[i]), 0);
    }
    EXPECT_EQ(stats(near_).bad_peer + stats(far_).bad_peer, 0U);
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
    EXPECT_EQ(ntbmsg_channel_close(far), 0);
}

TEST_F(Dedicated, APollSetHearsOfAllItsChannels)
{
    bring_up();
    ntbmsg_poll_set *set = nullptr;
    ASSERT_EQ(ntbmsg_poll_set_create(near_worker_, &set), -EINVAL);
    ASSERT_EQ(ntbmsg_poll_set_create(nullptr, &set), 0);
    constexpr int pairs = 4;
    constexpr uint32_t total = 500;
    ntbmsg_channel *near[pairs] = {}, *far[pairs] = {};
    for (int i = 0; i < pairs; ++i)
        ASSERT_NO_FATAL_FAILURE(join(near[i], far[i], channel_options(), channel_options(set)));
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
        const int n = ntbmsg_poll(set, ready, 2);
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
    EXPECT_TRUE(await([=] { return ntbmsg_poll_set_destroy(set) == 0; }));
}

TEST_F(Dedicated, AWriterIsToldWhenItCanGoOn)
{
    bring_up();
    ntbmsg_poll_set *set = nullptr;
    ASSERT_EQ(ntbmsg_poll_set_create(nullptr, &set), 0);
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far, channel_options(set)));
    uint32_t sent = 0, received = 0;
    const uint32_t held = 64 + 64; // credit, and the ring
    ASSERT_TRUE(send_all(near_, near, held));
    rte_mbuf *mbuf = message(near_, 8, 1);
    ASSERT_TRUE(await([&] { return ntbmsg_channel_send_burst(near, &mbuf, &sent, 1) == 0; }));
    ASSERT_TRUE(await([&] { return receive_some(far, received) && received == held; }));
    uint32_t events = 0;
    EXPECT_TRUE(await([&] {
        ntbmsg_ready ready{};
        if (ntbmsg_poll(set, &ready, 1) == 1)
            events |= ready.events;
        return (events & NTBMSG_WRITABLE) != 0;
    }));
    EXPECT_EQ(ntbmsg_channel_send_burst(near, &mbuf, &held, 1), 1);
    EXPECT_EQ(ntbmsg_channel_close(near), 0);
    EXPECT_EQ(ntbmsg_channel_close(far), 0);
    EXPECT_TRUE(await([=] { return ntbmsg_poll_set_destroy(set) == 0; }));
}

TEST_F(Dedicated, SlotsComeBackFromResetsRejectionsAndStorms)
{
    bring_up();
    for (int round = 0; round < 100; ++round) {
        ntbmsg_channel *near = nullptr, *far = nullptr;
        if (round % 4 == 3) {
            ASSERT_EQ(ntbmsg_connect(near_worker_, port, nullptr, &near), 0) << round;
            ntbmsg_request request;
            ASSERT_TRUE(
                await([&] { return ntbmsg_listener_poll(listener_, far_worker_, &request) == 1; }));
            ASSERT_EQ(ntbmsg_reject(&request, 3, nullptr, 0), 0);
            ASSERT_EQ(ntbmsg_channel_wait_open(near, patience_ms), -ECONNREFUSED);
            EXPECT_EQ(ntbmsg_channel_close(near), 0);
            continue;
        }
        ASSERT_NO_FATAL_FAILURE(join(near, far)) << round;
        ASSERT_TRUE(send_all(near_, near, 5));
        if (round % 2 == 0) {
            ASSERT_EQ(ntbmsg_channel_reset(near, 4), 0);
            ASSERT_TRUE(await_state(far, NTBMSG_CHANNEL_RESET));
            EXPECT_EQ(info(far).reason, 4U);
        }
        EXPECT_EQ(ntbmsg_channel_close(near), 0);
        EXPECT_EQ(ntbmsg_channel_close(far), 0);
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
    EXPECT_EQ(ntbmsg_channel_close(near), 0);

    ASSERT_NO_FATAL_FAILURE(open(far_device, far_, dedicated_options()));
    far_worker_ = ntbmsg_worker_get(far_, 0);
    far_poller_ = std::make_unique<Poller>(far_worker_);
    ASSERT_EQ(ntbmsg_wait_connected(near_, patience_ms), 0);
    ASSERT_EQ(ntbmsg_wait_connected(far_, patience_ms), 0);
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    ASSERT_TRUE(send_all(near_, near, 50));
    EXPECT_EQ(ntbmsg_channel_close(near), 0);
    EXPECT_EQ(ntbmsg_channel_close(far), 0);
}

TEST_F(Dedicated, AServiceDrivesAWorker)
{
    ntbmsg_endpoint_options options = dedicated_options();
    options.service = 1;
    ASSERT_NO_FATAL_FAILURE(connect(options));
    near_worker_ = ntbmsg_worker_get(near_, 0);
    far_worker_ = ntbmsg_worker_get(far_, 0);
    ASSERT_EQ(ntbmsg_listen(port, 0, &listener_), 0);
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
    EXPECT_EQ(ntbmsg_channel_close(near), 0);
    EXPECT_EQ(ntbmsg_channel_close(far), 0);
    stop.store(true, std::memory_order_release);
    lcore.join();
    close(near_);
    EXPECT_NE(rte_service_get_by_name(names[0], &services[0]), 0);
}

} // namespace
