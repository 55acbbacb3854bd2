// SPDX-License-Identifier: BSD-3-Clause
// The orderly end: nothing that was sent is lost when its sender closes, and what a close, a linger
// and a flush wait for. A close runs in a thread of its own, as on another host.
#include <atomic>
#include <csignal>
#include <tuple>

#include <pthread.h>

#include <ntbmsg_test.h>
#include <rte_cycles.h>

#include "dedicated.hpp"

namespace
{

constexpr uint32_t long_ms = 600'000;

std::atomic<uint64_t> ticks_us;

/// Each look at it takes a millisecond.
uint64_t ticking_clock()
{
    return ticks_us += 1000;
}

void ignore_signal(int) {}

/// A call in a thread of its own, until it goes out of scope.
class Meanwhile
{
public:
    template <class Call>
    explicit Meanwhile(Call call)
        : thread_([this, call] {
              result_ = call();
              done_.store(true, std::memory_order_release);
          })
    {
    }
    ~Meanwhile() { thread_.join(); }
    bool done() const { return done_.load(std::memory_order_acquire); }
    int result() const { return result_; }
    /// Interrupts what it waits in.
    void interrupt() { pthread_kill(thread_.native_handle(), SIGUSR1); }

private:
    std::atomic<bool> done_{false};
    int result_ = 0;
    std::thread thread_;
};

/// How slow a receiver is: a close that did not wait for it would be over long before.
constexpr unsigned slow_us = 50'000;

/// Receivers have as long as a test may take.
constexpr unsigned long_enough_ms = 600'000;

/// On bare queues, with messages of a length.
class ClosingQueue : public Cabled, public testing::WithParamInterface<size_t>
{
protected:
    unsigned linger_ms() const override { return long_enough_ms; }
    void TearDown() override
    {
        for (ntbmsg_endpoint **endpoint : {&near_, &far_}) {
            EXPECT_EQ(ntbmsg_endpoint_close_linger(*endpoint, 0, nullptr), 0);
            *endpoint = nullptr;
        }
        Cabled::TearDown();
    }
    /// Sends until the far end has no more room. @return how many
    uint32_t fill()
    {
        rte_mbuf *none = nullptr;
        EXPECT_EQ(ntbmsg_queue_recv_burst(far_, 0, &none, nullptr, 1), 0); // offers its buffers
        for (uint32_t sent = 0;; ++sent) {
            rte_mbuf *m = message(near_, GetParam(), static_cast<int>(sent % 251));
            if (m == nullptr)
                return sent;
            if (ntbmsg_queue_send_burst(near_, 0, &m, nullptr, 1) != 1) {
                rte_pktmbuf_free(m);
                return sent;
            }
        }
    }
    /// Receives @p count messages, one by one. No end is to be seen before.
    void receive_slowly(uint32_t count)
    {
        for (uint32_t i = 0; i < count; ++i) {
            EXPECT_NE(ntbmsg_endpoint_link_state_get(far_), NTBMSG_LINK_WAITING) << i;
            rte_mbuf *got = receive(far_);
            ASSERT_NE(got, nullptr) << i;
            EXPECT_EQ(got->pkt_len, GetParam());
            EXPECT_TRUE(GetParam() == 0 || *rte_pktmbuf_mtod(got, uint8_t *) == i % 251) << i;
            rte_pktmbuf_free(got);
        }
    }
    void poll_until(const Meanwhile &call)
    {
        rte_mbuf *none = nullptr;
        while (!call.done()) {
            EXPECT_EQ(ntbmsg_queue_recv_burst(far_, 0, &none, nullptr, 1), 0);
            sched_yield();
        }
    }
    uint32_t unconfirmed(int expected = 0)
    {
        uint32_t count = 0;
        EXPECT_EQ(ntbmsg_queue_unconfirmed(near_, 0, &count), expected);
        return count;
    }
};

// Semantics: close-1
TEST_P(ClosingQueue, WhatLiesInTheReceiversMemoryIsReceivedBeforeTheEnd)
{
    ASSERT_NO_FATAL_FAILURE(connect());
    const uint32_t sent = fill();
    ASSERT_GT(sent, 2U);
    EXPECT_EQ(unconfirmed(), sent);
    uint64_t left = 0;
    ASSERT_EQ(ntbmsg_endpoint_close_linger(near_, 0, &left), 0);
    near_ = nullptr;
    EXPECT_EQ(left, sent);
    EXPECT_TRUE(await_event(far_, NTBMSG_EVENT_CLOSING));
    EXPECT_EQ(ntbmsg_endpoint_link_state_get(far_), NTBMSG_LINK_CLOSING);
    EXPECT_EQ(ntbmsg_endpoint_wait_connected(far_, 0), -ETIMEDOUT) << "nothing can be sent";
    ASSERT_NO_FATAL_FAILURE(receive_slowly(sent));
    EXPECT_TRUE(await_event(far_, NTBMSG_EVENT_LOST));
}

// Semantics: close-2
TEST_P(ClosingQueue, ACloseWaitsForASlowReceiver)
{
    ASSERT_NO_FATAL_FAILURE(connect());
    const uint32_t sent = fill();
    uint64_t left = 1;
    {
        const Meanwhile close([&] { return ntbmsg_endpoint_close_linger(near_, long_ms, &left); });
        rte_delay_us_sleep(slow_us);
        ASSERT_NO_FATAL_FAILURE(receive_slowly(sent));
        poll_until(close);
        EXPECT_EQ(close.result(), 0);
    }
    near_ = nullptr;
    EXPECT_EQ(left, 0U);
    EXPECT_TRUE(await_event(far_, NTBMSG_EVENT_LOST));
}

// Semantics: flush-1
TEST_P(ClosingQueue, AFlushEndsOnceAllWasReceived)
{
    ASSERT_NO_FATAL_FAILURE(connect());
    EXPECT_EQ(ntbmsg_queue_flush(near_, 0, 0), 0) << "there is nothing to wait for";
    const uint32_t sent = fill();
    const Meanwhile flush([&] { return ntbmsg_queue_flush(near_, 0, long_ms); });
    ASSERT_NO_FATAL_FAILURE(receive_slowly(sent));
    poll_until(flush);
    EXPECT_EQ(flush.result(), 0);
    EXPECT_EQ(unconfirmed(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Lengths, ClosingQueue, testing::Values(0, 40, 700, 1500, 9000));

using ClosingQueueOnce = ClosingQueue;
INSTANTIATE_TEST_SUITE_P(Once, ClosingQueueOnce, testing::Values(40));

// Semantics: flush-2
TEST_P(ClosingQueueOnce, AFlushTakesNoLongerThanItMay)
{
    ASSERT_NO_FATAL_FAILURE(connect());
    fill();
    EXPECT_EQ(ntbmsg_queue_flush(near_, 0, 0), -ETIMEDOUT);
    ntbmsg_clock_set(ticking_clock);
    EXPECT_EQ(ntbmsg_queue_flush(near_, 0, 30), -ETIMEDOUT);
    ntbmsg_clock_set(nullptr);
}

// Semantics: flush-3
TEST_P(ClosingQueueOnce, AFlushEndsWithItsPeer)
{
    ASSERT_NO_FATAL_FAILURE(connect());
    const uint32_t sent = fill();
    const Meanwhile flush([&] { return ntbmsg_queue_flush(near_, 0, long_ms); });
    ASSERT_EQ(ntbmsg_endpoint_close_linger(far_, 0, nullptr), 0);
    far_ = nullptr;
    while (!flush.done())
        sched_yield();
    EXPECT_EQ(flush.result(), -ENOTCONN);
    EXPECT_EQ(unconfirmed(-ENOTCONN), sent);
    EXPECT_EQ(ntbmsg_queue_flush(near_, 0, long_ms), -ENOTCONN);
}

// Semantics: flush-3
TEST_P(ClosingQueueOnce, ASignalEndsAFlush)
{
    ASSERT_NO_FATAL_FAILURE(connect());
    fill();
    const auto before = std::signal(SIGUSR1, ignore_signal);
    {
        Meanwhile flush([&] { return ntbmsg_queue_flush(near_, 0, long_ms); });
        while (!flush.done()) {
            flush.interrupt();
            sched_yield();
        }
        EXPECT_EQ(flush.result(), -EINTR);
    }
    std::signal(SIGUSR1, before);
}

/// Channels on workers of both kinds, and messages of a length; true: dedicated.
class Closing : public Dedicated, public testing::WithParamInterface<std::tuple<bool, size_t>>
{
protected:
    unsigned linger_ms() const override { return long_enough_ms; }
    void TearDown() override
    {
        near_poller_.reset();
        far_poller_.reset();
        for (ntbmsg_endpoint **endpoint : {&near_, &far_}) {
            EXPECT_EQ(ntbmsg_endpoint_close_linger(*endpoint, 0, nullptr), 0);
            *endpoint = nullptr;
        }
        Dedicated::TearDown();
    }
    static bool dedicated() { return std::get<0>(GetParam()); }
    static size_t length() { return std::get<1>(GetParam()); }
    void join_up()
    {
        ntbmsg_endpoint_options options = dedicated() ? dedicated_options() : worker_options();
        options.queues = bare_queues_;
        ASSERT_NO_FATAL_FAILURE(Channels::bring_up(options));
        if (dedicated()) {
            near_poller_ = std::make_unique<Poller>(near_worker_);
            far_poller_ = std::make_unique<Poller>(far_worker_);
        }
        ASSERT_NO_FATAL_FAILURE(join(near_channel_, far_channel_));
    }
    /// Another thread uses the near end from now on.
    void near_is_used() { near_used_ = true; }
    void turn() override
    {
        if (dedicated()) {
            sched_yield();
            return;
        }
        ntbmsg_worker_poll(far_worker_);
        if (!near_used_)
            ntbmsg_worker_poll(near_worker_);
    }
    /// Sends up to 50 messages. @return how many were taken
    uint32_t send_some()
    {
        for (int i = 0; i < 100; ++i)
            turn(); // the far end offers its buffers
        uint32_t sent = 0;
        while (sent < 50 && send_one(near_, near_channel_, length(), static_cast<int>(sent)) == 1)
            ++sent;
        EXPECT_GT(sent, 1U);
        return sent;
    }
    void receive_slowly(uint32_t count)
    {
        for (uint32_t i = 0; i < count; ++i) {
            for (int turns = 0; turns < 3; ++turns)
                turn();
            rte_mbuf *got = nullptr;
            int rc = 0;
            ASSERT_TRUE(await([&] {
                return rc != 0 || (rc = ntbmsg_channel_recv_burst(far_channel_, &got, nullptr, 1));
            }));
            ASSERT_EQ(rc, 1) << i;
            EXPECT_EQ(got->pkt_len, length());
            EXPECT_EQ(*rte_pktmbuf_mtod(got, uint8_t *), i);
            rte_pktmbuf_free(got);
        }
    }
    /// All @p count messages are received, then the end of them, and turns go on until @p call
    /// ends.
    void receive_to_the_end(uint32_t count, const Meanwhile &call)
    {
        ASSERT_NO_FATAL_FAILURE(receive_slowly(count));
        rte_mbuf *got = nullptr;
        ASSERT_TRUE(await([&] {
            return ntbmsg_channel_recv_burst(far_channel_, &got, nullptr, 1) == -ESHUTDOWN;
        }));
        EXPECT_TRUE(await([&] { return call.done(); }));
        EXPECT_EQ(call.result(), 0);
    }
    int close_near(uint32_t linger_ms, uint64_t &left)
    {
        near_poller_.reset();
        const int rc = ntbmsg_endpoint_close_linger(near_, linger_ms, &left);
        near_ = rc == 0 ? nullptr : near_;
        return rc;
    }

    uint32_t bare_queues_ = 0;
    ntbmsg_channel *near_channel_ = nullptr, *far_channel_ = nullptr;
    std::atomic<bool> near_used_{false};
};

// Semantics: close-1, close-3
TEST_P(Closing, WhatAChannelSentIsReceivedBeforeTheEnd)
{
    ASSERT_NO_FATAL_FAILURE(join_up());
    const uint32_t sent = send_some();
    ASSERT_EQ(ntbmsg_channel_shutdown(near_channel_), 0);
    ASSERT_EQ(ntbmsg_channel_close(near_channel_), 0);
    near_is_used();
    uint64_t left = 1;
    {
        const Meanwhile close([&] { return close_near(long_ms, left); });
        ASSERT_NO_FATAL_FAILURE(receive_to_the_end(sent, close));
    }
    EXPECT_EQ(left, 0U);
    give_back({far_channel_});
}

// Semantics: close-2
TEST_P(Closing, AChannelsCloseWaitsForASlowReceiver)
{
    ASSERT_NO_FATAL_FAILURE(join_up());
    const uint32_t sent = send_some();
    near_is_used();
    uint64_t left = 1;
    {
        const Meanwhile close(
            [&] { return ntbmsg_channel_close_linger(near_channel_, long_ms, &left); });
        ASSERT_NO_FATAL_FAILURE(receive_to_the_end(sent, close));
    }
    EXPECT_EQ(left, 0U);
    give_back({far_channel_});
}

// Semantics: flush-1
TEST_P(Closing, AFlushEndsOnceAllWasReceived)
{
    ASSERT_NO_FATAL_FAILURE(join_up());
    EXPECT_EQ(ntbmsg_channel_flush(near_channel_, 0), 0) << "there is nothing to wait for";
    const uint32_t sent = send_some();
    near_is_used();
    {
        const Meanwhile flush([&] { return ntbmsg_channel_flush(near_channel_, long_ms); });
        ASSERT_NO_FATAL_FAILURE(receive_slowly(sent));
        EXPECT_TRUE(await([&] { return flush.done(); }));
        EXPECT_EQ(flush.result(), 0);
    }
    EXPECT_EQ(info(near_channel_).unconfirmed, 0U);
    near_used_ = false;
    // Nothing has ended.
    ASSERT_EQ(send_one(near_, near_channel_, length(), 0), 1);
    ASSERT_NO_FATAL_FAILURE(receive_slowly(1));
    give_back({near_channel_, far_channel_});
}

INSTANTIATE_TEST_SUITE_P(Workers, Closing,
                         testing::Combine(testing::Bool(), testing::Values(40, 500, 5000)),
                         [](const auto &test) {
                             return (std::get<0>(test.param) ? std::string("Dedicated")
                                                             : std::string("RunToCompletion")) +
                                    std::to_string(std::get<1>(test.param));
                         });

using ClosingOnce = Closing;
INSTANTIATE_TEST_SUITE_P(Workers, ClosingOnce,
                         testing::Combine(testing::Bool(), testing::Values(40)),
                         [](const auto &test) {
                             return std::get<0>(test.param) ? "Dedicated" : "RunToCompletion";
                         });

// Semantics: flush-2
TEST_P(ClosingOnce, AFlushTakesNoLongerThanItMay)
{
    ASSERT_NO_FATAL_FAILURE(join_up());
    const uint32_t sent = send_some();
    EXPECT_EQ(ntbmsg_channel_flush(near_channel_, 0), -ETIMEDOUT);
    ntbmsg_clock_set(ticking_clock);
    EXPECT_EQ(ntbmsg_channel_flush(near_channel_, 30), -ETIMEDOUT);
    ntbmsg_clock_set(nullptr);
    uint64_t left = 0;
    EXPECT_EQ(ntbmsg_channel_close_linger(near_channel_, 0, &left), 0);
    EXPECT_EQ(left, sent);
    ASSERT_NO_FATAL_FAILURE(receive_slowly(sent));
    give_back({far_channel_});
}

// Semantics: flush-3
TEST_P(ClosingOnce, AFlushEndsWhenThePeerClosesWithoutReceiving)
{
    ASSERT_NO_FATAL_FAILURE(join_up());
    const uint32_t sent = send_some();
    ASSERT_NO_FATAL_FAILURE(receive_slowly(sent / 2));
    near_is_used();
    {
        const Meanwhile flush([&] { return ntbmsg_channel_flush(near_channel_, long_ms); });
        EXPECT_EQ(ntbmsg_channel_close(far_channel_), 0);
        EXPECT_TRUE(await([&] { return flush.done(); }));
        EXPECT_EQ(flush.result(), -ECONNRESET);
    }
    near_used_ = false;
    EXPECT_EQ(info(near_channel_).unconfirmed, sent - sent / 2) << "what it had received is known";
    give_back({near_channel_});
}

// Semantics: flush-3
TEST_P(ClosingOnce, AFlushEndsWithItsPeer)
{
    ASSERT_NO_FATAL_FAILURE(join_up());
    const uint32_t sent = send_some();
    near_is_used();
    {
        const Meanwhile flush([&] { return ntbmsg_channel_flush(near_channel_, long_ms); });
        far_poller_.reset();
        EXPECT_EQ(ntbmsg_endpoint_close_linger(far_, 0, nullptr), 0);
        far_ = nullptr;
        while (!flush.done())
            sched_yield();
        EXPECT_EQ(flush.result(), -ECONNRESET);
    }
    EXPECT_EQ(info(near_channel_).unconfirmed, sent);
    give_back({near_channel_});
}

/// What is unread on another queue keeps the connection; the peer confirms nothing more.
// Semantics: flush-3
TEST_P(ClosingOnce, AFlushEndsThoughSomethingElseIsUnread)
{
    bare_queues_ = 1;
    ASSERT_NO_FATAL_FAILURE(join_up());
    const uint32_t sent = send_some();
    near_is_used();
    rte_mbuf *unread = message(far_, 64, 1);
    ASSERT_EQ(ntbmsg_queue_send_burst(far_, 0, &unread, nullptr, 1), 1);
    far_poller_.reset();
    EXPECT_EQ(ntbmsg_endpoint_close_linger(far_, 0, nullptr), 0);
    far_ = nullptr;
    EXPECT_TRUE(await_event(near_, NTBMSG_EVENT_CLOSING));
    EXPECT_EQ(ntbmsg_channel_flush(near_channel_, long_ms), -ECONNRESET);
    EXPECT_EQ(info(near_channel_).unconfirmed, sent);
    ntbmsg_channel *none = nullptr;
    EXPECT_EQ(ntbmsg_channel_connect(near_worker_, port, nullptr, &none), -ENOTCONN);
    EXPECT_EQ(ntbmsg_endpoint_link_state_get(near_), NTBMSG_LINK_CLOSING);
    rte_mbuf *got = receive(near_);
    ASSERT_NE(got, nullptr);
    rte_pktmbuf_free(got);
    EXPECT_TRUE(await_event(near_, NTBMSG_EVENT_LOST));
    near_poller_.reset();
    give_back({near_channel_});
}

// Semantics: close-4
TEST_P(ClosingOnce, WhoClosesConfirmsWhatWasReceived)
{
    ASSERT_NO_FATAL_FAILURE(join_up());
    const uint32_t sent = send_some();
    ASSERT_NO_FATAL_FAILURE(receive_slowly(sent - 1));
    near_is_used();
    uint64_t left = 0;
    {
        const Meanwhile close([&] { return close_near(long_ms, left); });
        far_poller_.reset();
        EXPECT_EQ(ntbmsg_endpoint_close_linger(far_, long_ms, nullptr), 0);
        far_ = nullptr;
        while (!close.done())
            sched_yield();
    }
    EXPECT_EQ(left, 1U) << "one was not received";
}

// Semantics: close-4
TEST_P(ClosingOnce, TwoThatCloseAtOnceWaitForNobody)
{
    ASSERT_NO_FATAL_FAILURE(join_up());
    const uint32_t sent = send_some();
    ASSERT_EQ(send_one(far_, far_channel_, length(), 0), 1);
    uint64_t left = 0, far_left = 0;
    {
        const Meanwhile close([&] { return close_near(long_ms, left); });
        far_poller_.reset();
        EXPECT_EQ(ntbmsg_endpoint_close_linger(far_, long_ms, &far_left), 0);
        far_ = nullptr;
        while (!close.done())
            sched_yield();
        EXPECT_EQ(close.result(), 0);
    }
    EXPECT_EQ(left, sent);
    EXPECT_EQ(far_left, 1U);
}

/// Endpoints with a bare queue and a worker.
class ClosingBoth : public Cabled
{
protected:
    unsigned linger_ms() const override { return long_enough_ms; }
};

// Semantics: close-4
TEST_F(ClosingBoth, AWorkerIsNotWaitedForOnceThePeerHasStopped)
{
    ntbmsg_endpoint_options options = small_options();
    options.queues = 1;
    options.workers = 1;
    ASSERT_NO_FATAL_FAILURE(connect(options));
    ASSERT_EQ(send(far_, near_, message(far_, 100, 1)), 1);
    uint64_t left = 0;
    EXPECT_EQ(ntbmsg_endpoint_close_linger(far_, 0, &left), 0);
    far_ = nullptr;
    EXPECT_EQ(left, 1U);
    // The message lies there unread, so the connection goes on, but nothing can be sent.
    rte_mbuf *none = nullptr;
    int rc = 0;
    for (const uint64_t end = now_ms() + patience_ms; rc != -ENOTCONN && now_ms() < end;)
        rc = ntbmsg_queue_send_burst(near_, 0, &none, nullptr, 0);
    EXPECT_EQ(rc, -ENOTCONN);
    EXPECT_EQ(ntbmsg_endpoint_close_linger(near_, long_ms, &left), 0);
    near_ = nullptr;
    EXPECT_EQ(left, 0U);
}

} // namespace
