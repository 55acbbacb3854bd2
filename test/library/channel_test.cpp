// SPDX-License-Identifier: BSD-3-Clause
// The life of a channel: connect, accept, reject, shut down, close, reset, time out, be lost.
#include "channels.hpp"

#include <ntbmsg_test.h>
#include <rte_malloc.h>
#include <rte_rawdev.h>

namespace
{

using Channel = Channels;

/// The clock of time-outs, in the test's hands.
uint64_t hand_us;

uint64_t hand_clock()
{
    return hand_us;
}

TEST_F(Channel, ConnectAndAcceptCarryPrivateDataBothWays)
{
    bring_up();
    ntbmsg_channel_options options = channel_options();
    options.private_data = "from the near end";
    options.private_bytes = 18;
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_EQ(ntbmsg_channel_connect(near_worker_, port, &options, &near), 0);
    EXPECT_EQ(ntbmsg_channel_state_get(near), NTBMSG_CHANNEL_CONNECTING);
    ntbmsg_request request;
    ASSERT_TRUE(await_request(request));
    EXPECT_EQ(request.worker, far_worker_);
    EXPECT_EQ(request.listener, listener_);
    ASSERT_EQ(request.private_bytes, 18U);
    EXPECT_EQ(std::memcmp(request.private_data, options.private_data, 18), 0);
    const uint8_t most[NTBMSG_MAX_PRIVATE] = {1, 2, 3};
    options.private_data = most;
    options.private_bytes = sizeof(most);
    ASSERT_EQ(ntbmsg_channel_accept(&request, &options, &far), 0);
    EXPECT_EQ(ntbmsg_channel_accept(&request, &options, &far), -ENOENT);
    ASSERT_TRUE(await_state(near, NTBMSG_CHANNEL_OPEN));
    const ntbmsg_channel_info seen = info(near);
    ASSERT_EQ(seen.private_bytes, sizeof(most));
    EXPECT_EQ(std::memcmp(seen.private_data, most, sizeof(most)), 0);
    EXPECT_EQ(seen.port, port);
    EXPECT_EQ(seen.credit_messages, 64U);
    EXPECT_EQ(seen.granted_messages, 64U);
    EXPECT_EQ(info(far).private_bytes, 18U);
    EXPECT_EQ(ntbmsg_channel_wait_open(near, 0), 0);
    give_back({near, far});
}

// Semantics: send-5, receive-2
TEST_F(Channel, MessagesOfEverySizeArriveWithTheirImmediateData)
{
    bring_up();
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    int fill = 0;
    for (const uint32_t size : {0U, 1U, 48U, 64U, 1024U, 1025U, 4097U, 20000U}) {
        ASSERT_TRUE(await([&] { return send_one(near_, near, size, ++fill, 77U + size) == 1; }));
        uint32_t imm = 0;
        rte_mbuf *got = receive_one(far, &imm);
        ASSERT_NE(got, nullptr) << size;
        EXPECT_EQ(got->pkt_len, size);
        EXPECT_EQ(imm, 77U + size);
        EXPECT_EQ(got->packet_type, 0U);
        if (size != 0) {
            EXPECT_EQ(*rte_pktmbuf_mtod(got, uint8_t *), fill);
        }
        rte_pktmbuf_free(got);
    }
    EXPECT_EQ(info(near).tx_messages, 8U);
    EXPECT_EQ(info(far).rx_messages, 8U);
    EXPECT_EQ(info(far).rx_bytes, info(near).tx_bytes);
    EXPECT_EQ(send_one(near_, near, info(near).max_message + 1, 0), -EMSGSIZE);
    give_back({near, far});
}

TEST_F(Channel, RejectionCarriesReasonAndData)
{
    bring_up();
    ntbmsg_channel *near = nullptr;
    ASSERT_EQ(ntbmsg_channel_connect(near_worker_, port, nullptr, &near), 0);
    ntbmsg_request request;
    ASSERT_TRUE(await_request(request));
    ASSERT_EQ(ntbmsg_request_reject(&request, 1234, "no", 2), 0);
    EXPECT_EQ(ntbmsg_request_reject(&request, 1234, "no", 2), -ENOENT);
    ASSERT_TRUE(await_state(near, NTBMSG_CHANNEL_REJECTED));
    EXPECT_EQ(info(near).reason, 1234);
    EXPECT_EQ(info(near).private_bytes, 2U);
    EXPECT_EQ(ntbmsg_channel_wait_open(near, 0), -ECONNREFUSED);
    EXPECT_EQ(send_one(near_, near, 8, 0), -ECONNRESET);
    rte_mbuf *none = nullptr;
    EXPECT_EQ(ntbmsg_channel_recv_burst(near, &none, nullptr, 1), -ECONNRESET);
    give_back({near});
}

TEST_F(Channel, APortWithoutAListenerRefuses)
{
    bring_up();
    ntbmsg_channel *near = nullptr;
    ASSERT_EQ(ntbmsg_channel_connect(near_worker_, port + 1, nullptr, &near), 0);
    ASSERT_TRUE(await_state(near, NTBMSG_CHANNEL_REJECTED));
    EXPECT_EQ(info(near).reason, NTBMSG_REASON_NO_LISTENER);
    give_back({near});
}

TEST_F(Channel, RequestsBeyondTheBacklogAreTurnedAway)
{
    bring_up();
    ntbmsg_listener_close(listener_);
    ASSERT_EQ(ntbmsg_listener_open(port, 2, &listener_), 0);
    ntbmsg_listener *second = nullptr;
    EXPECT_EQ(ntbmsg_listener_open(port, 2, &second), -EADDRINUSE);
    ntbmsg_channel *near[3] = {};
    for (auto &one : near)
        ASSERT_EQ(ntbmsg_channel_connect(near_worker_, port, nullptr, &one), 0);
    ASSERT_TRUE(await_state(near[2], NTBMSG_CHANNEL_REJECTED));
    EXPECT_EQ(info(near[2]).reason, NTBMSG_REASON_BACKLOG);
    EXPECT_EQ(ntbmsg_channel_state_get(near[0]), NTBMSG_CHANNEL_CONNECTING);
    // What waits when the listener goes is rejected.
    ntbmsg_listener_close(listener_);
    listener_ = nullptr;
    ASSERT_TRUE(await_state(near[1], NTBMSG_CHANNEL_REJECTED));
    EXPECT_EQ(info(near[1]).reason, NTBMSG_REASON_CLOSED);
    give_back({near[0], near[1], near[2]});
}

// Semantics: order-2, end-1
TEST_F(Channel, ShutdownIsSeenBehindTheDataAndLeavesTheOtherWayOpen)
{
    bring_up();
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    ASSERT_EQ(send_one(near_, near, 8, 1), 1);
    ASSERT_EQ(ntbmsg_channel_shutdown(near), 0);
    EXPECT_EQ(ntbmsg_channel_shutdown(near), 0);
    EXPECT_EQ(ntbmsg_channel_state_get(near), NTBMSG_CHANNEL_SHUT);
    EXPECT_EQ(send_one(near_, near, 8, 1), -ESHUTDOWN);
    ASSERT_TRUE(await_state(far, NTBMSG_CHANNEL_PEER_CLOSED));
    rte_mbuf *got = receive_one(far);
    ASSERT_NE(got, nullptr);
    rte_pktmbuf_free(got);
    EXPECT_EQ(ntbmsg_channel_recv_burst(far, &got, nullptr, 1), -ESHUTDOWN);
    ASSERT_EQ(send_one(far_, far, 8, 2), 1);
    ASSERT_EQ(ntbmsg_channel_shutdown(far), 0);
    EXPECT_EQ(ntbmsg_channel_state_get(far), NTBMSG_CHANNEL_CLOSED);
    got = receive_one(near);
    ASSERT_NE(got, nullptr);
    rte_pktmbuf_free(got);
    ASSERT_TRUE(await_state(near, NTBMSG_CHANNEL_CLOSED));
    EXPECT_EQ(ntbmsg_channel_recv_burst(near, &got, nullptr, 1), -ESHUTDOWN);
    give_back({near, far});
}

// Semantics: end-1, end-3
TEST_F(Channel, CloseLetsWhatWasSentArrive)
{
    bring_up();
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    for (int i = 0; i < 10; ++i)
        ASSERT_EQ(send_one(near_, near, 100, i), 1);
    ASSERT_EQ(ntbmsg_channel_close(near), 0);
    ASSERT_TRUE(await_state(far, NTBMSG_CHANNEL_PEER_CLOSED));
    for (int i = 0; i < 10; ++i) {
        rte_mbuf *got = receive_one(far);
        ASSERT_NE(got, nullptr);
        EXPECT_EQ(*rte_pktmbuf_mtod(got, uint8_t *), i);
        rte_pktmbuf_free(got);
    }
    // Who goes on sending learns it, and still has what came before.
    ASSERT_EQ(send_one(far_, far, 8, 0), 1);
    ASSERT_TRUE(await_state(far, NTBMSG_CHANNEL_RESET));
    EXPECT_EQ(info(far).reason, NTBMSG_REASON_CLOSED);
    EXPECT_EQ(stats(near_).rx_dropped, 1U);
    give_back({far});
}

// Semantics: end-2
TEST_F(Channel, ResetEndsBothEndsAtOnce)
{
    bring_up();
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    ASSERT_EQ(send_one(near_, near, 8, 0), 1);
    settle();
    ASSERT_EQ(ntbmsg_channel_reset(near, 99), 0);
    EXPECT_EQ(ntbmsg_channel_reset(near, 98), 0);
    ASSERT_TRUE(await_state(far, NTBMSG_CHANNEL_RESET));
    EXPECT_EQ(info(far).reason, 99);
    EXPECT_EQ(info(near).unconfirmed, 1U);
    EXPECT_EQ(stats(far_).rx_dropped, 1U);
    rte_mbuf *got = nullptr;
    EXPECT_EQ(ntbmsg_channel_recv_burst(far, &got, nullptr, 1), -ECONNRESET);
    EXPECT_EQ(send_one(far_, far, 8, 0), -ECONNRESET);
    EXPECT_EQ(ntbmsg_channel_shutdown(far), -ENOTCONN);
    give_back({near, far});
}

TEST_F(Channel, TimeOutsReadTheClockThatWasSet)
{
    hand_us = 1'000'000;
    ntbmsg_clock_set(hand_clock);
    bring_up();
    ntbmsg_channel_options options = channel_options();
    options.timeout_ms = 250;
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_EQ(ntbmsg_channel_connect(near_worker_, port, &options, &near), 0);
    ntbmsg_request request;
    ASSERT_TRUE(await_request(request));
    hand_us += 249'000;
    settle();
    EXPECT_EQ(ntbmsg_channel_state_get(near), NTBMSG_CHANNEL_CONNECTING);
    hand_us += 2'000;
    ASSERT_TRUE(await_state(near, NTBMSG_CHANNEL_TIMED_OUT));
    EXPECT_EQ(ntbmsg_channel_wait_open(near, 0), -ETIMEDOUT);
    settle();
    EXPECT_EQ(ntbmsg_channel_accept(&request, nullptr, &far), -ENOENT);
    give_back({near});
    ntbmsg_clock_set(nullptr);
}

TEST_F(Channel, WhoArmsAfterATimeOutHasLookedAtIt)
{
    hand_us = 1'000'000;
    ntbmsg_clock_set(hand_clock);
    bring_up();
    ASSERT_GE(ntbmsg_worker_event_fd(near_worker_), 0);
    for (int i = 0; i < 20; ++i) { // however many polls went before
        ntbmsg_channel *near = nullptr;
        ASSERT_EQ(ntbmsg_channel_connect(near_worker_, port, nullptr, &near), 0);
        hand_us += 6'000'000;
        EXPECT_GE(ntbmsg_worker_arm(near_worker_), 0);
        EXPECT_EQ(ntbmsg_channel_state_get(near), NTBMSG_CHANNEL_TIMED_OUT) << i;
        EXPECT_EQ(ntbmsg_worker_disarm(near_worker_), 0);
        give_back({near});
        for (int polls = 0; polls < i; ++polls)
            ntbmsg_worker_poll(near_worker_);
    }
    ntbmsg_clock_set(nullptr);
}

/// Loses the peer as soon as the time is asked for.
uint64_t losing_clock()
{
    rte_rawdev_stop(rte_rawdev_get_dev_id("raw_plx_ntb0"));
    return hand_us;
}

TEST_F(Channel, ALossWhileItArmsIsNotSleptThrough)
{
    bring_up();
    ntbmsg_channel *near = nullptr;
    ASSERT_EQ(ntbmsg_channel_connect(near_worker_, port, nullptr, &near), 0); // it has a deadline
    settle();
    ntbmsg_clock_set(losing_clock);
    EXPECT_EQ(ntbmsg_worker_arm(near_worker_), 1);
    ntbmsg_clock_set(nullptr);
    ntbmsg_worker_poll(near_worker_);
    EXPECT_EQ(ntbmsg_channel_state_get(near), NTBMSG_CHANNEL_LOST);
    EXPECT_EQ(ntbmsg_worker_arm(near_worker_), 0) << "nothing to do until somebody comes";
    ntbmsg_worker_disarm(near_worker_);
    give_back({near});
}

TEST_F(Channel, AReplyThatComesTooLateIsUndone)
{
    bring_up();
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_EQ(ntbmsg_channel_connect(near_worker_, port, nullptr, &near), 0);
    ntbmsg_request request;
    ASSERT_TRUE(await_request(request));
    ASSERT_EQ(ntbmsg_channel_close(near), 0);
    ASSERT_EQ(ntbmsg_channel_accept(&request, nullptr, &far), 0);
    ASSERT_TRUE(await_state(far, NTBMSG_CHANNEL_RESET));
    EXPECT_EQ(info(far).reason, NTBMSG_REASON_CLOSED);
    EXPECT_EQ(stats(near_).bad_peer, 0U);
    give_back({far});
}

// Semantics: lost-1, lost-3, lost-6
TEST_F(Channel, LinkLossEndsEveryChannelAndConnectIsAllItTakes)
{
    bring_up();
    ntbmsg_channel *near = nullptr, *far = nullptr, *asking = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    ASSERT_EQ(ntbmsg_channel_connect(near_worker_, port, nullptr, &asking), 0);
    ASSERT_EQ(send_one(near_, near, 8, 3), 1);
    settle();
    ASSERT_EQ(ntbmsg_endpoint_close(far_), 0);
    ASSERT_TRUE(await_event(near_, NTBMSG_EVENT_LOST));
    ntbmsg_worker_poll(near_worker_);
    EXPECT_EQ(ntbmsg_channel_state_get(near), NTBMSG_CHANNEL_LOST);
    EXPECT_EQ(ntbmsg_channel_state_get(asking), NTBMSG_CHANNEL_LOST);
    EXPECT_EQ(info(near).unconfirmed, 1U);
    EXPECT_EQ(send_one(near_, near, 8, 0), -ECONNRESET);
    give_back({near, asking});
    ntbmsg_channel *early = nullptr;
    EXPECT_EQ(ntbmsg_channel_connect(near_worker_, port, nullptr, &early), -ENOTCONN);

    ASSERT_NO_FATAL_FAILURE(open(far_device, far_, worker_options()));
    far_worker_ = ntbmsg_endpoint_worker(far_, 0);
    ASSERT_EQ(ntbmsg_endpoint_wait_connected(near_, patience_ms), 0);
    ASSERT_EQ(ntbmsg_endpoint_wait_connected(far_, patience_ms), 0);
    // No poll between the event and the connect.
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    ASSERT_EQ(send_one(near_, near, 8, 3), 1);
    rte_mbuf *got = receive_one(far);
    ASSERT_NE(got, nullptr);
    rte_pktmbuf_free(got);
    give_back({near, far});
}

// Semantics: lost-5
TEST_F(Channel, ADeviceThatIsStoppedLosesThePeerUntilItIsStarted)
{
    bring_up();
    ntbmsg_channel *near = nullptr, *far = nullptr;
    ASSERT_NO_FATAL_FAILURE(join(near, far));
    const uint16_t device = rte_rawdev_get_dev_id(near_device);
    for (unsigned round = 0; round < 2; ++round) {
        ASSERT_EQ(send_one(near_, near, 8, 3), 1);
        ASSERT_EQ(send_one(far_, far, 8, 4), 1);
        rte_rawdev_stop(device);
        EXPECT_EQ(ntbmsg_endpoint_link_state_get(near_), NTBMSG_LINK_WAITING);
        EXPECT_TRUE(await_event(near_, NTBMSG_EVENT_LOST));
        EXPECT_TRUE(await_event(far_, NTBMSG_EVENT_LOST));
        for (const auto &[end, endpoint] : {std::pair{near, near_}, std::pair{far, far_}}) {
            ASSERT_TRUE(await_state(end, NTBMSG_CHANNEL_LOST));
            EXPECT_EQ(send_one(endpoint, end, 8, 0), -ECONNRESET);
            EXPECT_EQ(info(end).unconfirmed, 1U);
        }
        ntbmsg_channel *early = nullptr;
        EXPECT_EQ(ntbmsg_channel_connect(near_worker_, port, nullptr, &early), -ENOTCONN);
        give_back({near, far});
        ASSERT_EQ(rte_rawdev_start(device), 0);
        ASSERT_TRUE(await_event(near_, NTBMSG_EVENT_CONNECTED));
        ASSERT_TRUE(await_event(far_, NTBMSG_EVENT_CONNECTED));
        ASSERT_NO_FATAL_FAILURE(join(near, far));
        EXPECT_EQ(stats(near_).links, round + 2U);
    }
    give_back({near, far});
    EXPECT_EQ(stats(near_).bad_peer + stats(far_).bad_peer, 0U);
}

TEST_F(Channel, SlotsAndCreditComeBack)
{
    ntbmsg_endpoint_options options = worker_options();
    options.channels = 16;
    options.rx_mbufs = 512;
    bring_up(options);
    for (int round = 0; round < 100; ++round) {
        ntbmsg_channel *near = nullptr, *far = nullptr;
        ASSERT_NO_FATAL_FAILURE(join(near, far));
        if (round % 3 == 0) {
            ASSERT_EQ(ntbmsg_channel_reset(far, 1), 0);
        }
        ntbmsg_channel *first = round % 2 == 0 ? near : far, *last = first == near ? far : near;
        give_back({first, last});
        settle();
    }
    std::vector<ntbmsg_channel *> all;
    ntbmsg_channel_options asking = channel_options();
    asking.credit_messages = 64;
    for (int i = 0; i < 8; ++i) {
        ntbmsg_channel *near = nullptr, *far = nullptr;
        ASSERT_NO_FATAL_FAILURE(join(near, far, asking, asking));
        EXPECT_EQ(info(near).granted_messages, 64U) << i;
        all.insert(all.end(), {near, far});
    }
    ntbmsg_channel *ninth = nullptr;
    EXPECT_EQ(ntbmsg_channel_connect(near_worker_, port, &asking, &ninth), -ENOBUFS);
    for (ntbmsg_channel *channel : all)
        EXPECT_EQ(ntbmsg_channel_close(channel), 0);
}

size_t heap_bytes()
{
    rte_malloc_socket_stats stats{};
    EXPECT_EQ(rte_malloc_get_socket_stats(0, &stats), 0);
    return stats.heap_allocsz_bytes;
}

class ManyChannels : public Channels
{
protected:
    static constexpr uint32_t many = 4096;

    static ntbmsg_endpoint_options options_for(uint32_t channels)
    {
        ntbmsg_endpoint_options options = worker_options();
        options.channels = channels;
        options.rx_mbufs = 0; // the default
        return options;
    }
    /// What an endpoint costs.
    void weigh(uint32_t channels, size_t &bytes)
    {
        const size_t before = heap_bytes();
        ASSERT_NO_FATAL_FAILURE(open(near_device, near_, options_for(channels)));
        bytes = heap_bytes() - before;
        ASSERT_NO_FATAL_FAILURE(close(near_));
    }
    /// Accepts whatever waits. The number of a channel travels as its private data.
    void accept_all()
    {
        ntbmsg_request request;
        while (ntbmsg_listener_poll(listener_, far_worker_, &request) == 1) {
            uint32_t number = many;
            ASSERT_EQ(request.private_bytes, sizeof(number));
            std::memcpy(&number, request.private_data, sizeof(number));
            ASSERT_LT(number, many);
            ASSERT_EQ(ntbmsg_channel_accept(&request, nullptr, &theirs_[number]), 0);
        }
    }
    void connect_all()
    {
        ntbmsg_channel_options options = channel_options();
        options.timeout_ms = 2 * patience_ms;
        options.private_bytes = sizeof(uint32_t);
        for (uint32_t i = 0; i < many; ++i) {
            options.private_data = &i;
            ASSERT_EQ(ntbmsg_channel_connect(near_worker_, port, &options, &ours_[i]), 0) << i;
            turn();
            ASSERT_NO_FATAL_FAILURE(accept_all());
        }
        ASSERT_TRUE(await([&] {
            accept_all();
            return ntbmsg_channel_state_get(ours_[many - 1]) == NTBMSG_CHANNEL_OPEN;
        }));
    }
    /// One message on each, received as it was sent.
    void send_on_all(ntbmsg_endpoint *from, const std::vector<ntbmsg_channel *> &out,
                     const std::vector<ntbmsg_channel *> &in)
    {
        for (uint32_t i = 0; i < many; ++i) {
            int sent = 0;
            ASSERT_TRUE(await([&] { return (sent = send_one(from, out[i], 8, 1, i)) != 0; }));
            ASSERT_EQ(sent, 1) << i;
            uint32_t word = many;
            rte_mbuf *got = receive_one(in[i], &word);
            ASSERT_NE(got, nullptr) << i;
            EXPECT_EQ(word, i);
            rte_pktmbuf_free(got);
        }
    }

    std::vector<ntbmsg_channel *> ours_ = std::vector<ntbmsg_channel *>(many);
    std::vector<ntbmsg_channel *> theirs_ = std::vector<ntbmsg_channel *>(many);
};

// With every default there is: credit is shared out so that it lasts.
TEST_F(ManyChannels, FourThousandAreOpenAtATime)
{
    size_t few_bytes = 0, many_bytes = 0;
    ASSERT_NO_FATAL_FAILURE(weigh(16, few_bytes));
    ASSERT_NO_FATAL_FAILURE(weigh(many, many_bytes));
    ASSERT_NO_FATAL_FAILURE(bring_up(options_for(0)));
    const size_t idle = heap_bytes();
    ASSERT_NO_FATAL_FAILURE(connect_all());
    const size_t opening = (heap_bytes() - idle) / (2 * many);
    EXPECT_LT((many_bytes - few_bytes) / (many - 16) + opening, 1024U) << "an idle channel";
    ntbmsg_channel *more = nullptr;
    EXPECT_EQ(ntbmsg_channel_connect(near_worker_, port, nullptr, &more), -ENOSPC);
    EXPECT_EQ(info(ours_[0]).credit_messages, 64U);
    for (const ntbmsg_channel *channel : ours_)
        EXPECT_GE(info(channel).credit_messages, 2U);
    ASSERT_NO_FATAL_FAILURE(send_on_all(near_, ours_, theirs_));
    ASSERT_NO_FATAL_FAILURE(send_on_all(far_, theirs_, ours_));
    for (uint32_t i = 0; i < many; ++i)
        give_back({ours_[i], theirs_[i]});
    ntbmsg_channel *far = nullptr;
    settle();
    ASSERT_NO_FATAL_FAILURE(join(more, far));
    EXPECT_EQ(info(more).credit_messages, 64U) << "all of it came back";
    give_back({more, far});
}

} // namespace
