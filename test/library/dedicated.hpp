// SPDX-License-Identifier: BSD-3-Clause
// Workers that a thread of their own drives, channels used by other threads.
#ifndef DEDICATED_HPP
#define DEDICATED_HPP

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include <sched.h>

#include "channels.hpp"

/// No one but these threads polls the workers.
class Dedicated : public Channels
{
protected:
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
        std::thread::id id() const { return thread_.get_id(); }
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
        ASSERT_NO_FATAL_FAILURE(Channels::bring_up(options));
        near_poller_ = std::make_unique<Poller>(near_worker_);
        far_poller_ = std::make_unique<Poller>(far_worker_);
    }
    void TearDown() override
    {
        near_poller_.reset();
        far_poller_.reset();
        Channels::TearDown();
    }
    void turn() override { sched_yield(); }

    static uint32_t short_size(uint32_t number) { return number % 101 == 0 ? 3000 : number % 90; }
    static uint32_t long_size(uint32_t number)
    {
        constexpr uint32_t sizes[] = {100 * 1024, 8, 70 * 1024 + 1, 3000, 300 * 1024};
        return sizes[number % std::size(sizes)];
    }
    /// Sends @p total messages, numbered. @return whether all went
    bool send_all(ntbmsg_endpoint *from, ntbmsg_channel *channel, uint32_t total)
    {
        uint32_t sent = 0;
        return await([&] {
                   rte_mbuf *mbuf = message(from, short_size(sent), static_cast<int>(sent % 251));
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
    bool receive_all(ntbmsg_channel *channel, uint32_t total)
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
    bool exchange(ntbmsg_endpoint *from, ntbmsg_channel *channel, uint32_t total)
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

    /// What a thread does at one end of a channel. @return whether all was well
    using Work = std::function<bool(ntbmsg_channel *)>;
    /// Runs a thread at each end of each of @p pairs channels; @p total messages are to come to
    /// each far end.
    void run_pairs(int pairs, uint32_t total, const Work &near_work, const Work &far_work,
                   const ntbmsg_channel_options &options = channel_options())
    {
        std::vector<ntbmsg_channel *> near(static_cast<size_t>(pairs)), far(near);
        for (size_t i = 0; i < near.size(); ++i)
            ASSERT_NO_FATAL_FAILURE(join(near[i], far[i], options, options));
        std::vector<std::thread> threads;
        std::atomic<int> good{0};
        for (size_t i = 0; i < near.size(); ++i) {
            threads.emplace_back([&, i] { good += near_work(near[i]); });
            threads.emplace_back([&, i] { good += far_work(far[i]); });
        }
        for (std::thread &thread : threads)
            thread.join();
        EXPECT_EQ(good.load(), 2 * pairs);
        for (size_t i = 0; i < near.size(); ++i) {
            EXPECT_EQ(info(far[i]).rx_messages, total);
            give_back({near[i], far[i]});
        }
        EXPECT_EQ(stats(near_).bad_peer + stats(far_).bad_peer, 0U);
    }

    std::unique_ptr<Poller> near_poller_, far_poller_;
};

#endif
