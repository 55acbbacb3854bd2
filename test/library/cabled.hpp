// SPDX-License-Identifier: BSD-3-Clause
// Two devices in one process, joined by a cable, for endpoints to stand on.
#ifndef CABLED_HPP
#define CABLED_HPP

#include <algorithm>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include <rte_bus_vdev.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>

#include <ntbmsg.h>

/// A cable of its own per test: nothing is left over from the one before.
class Cabled : public testing::Test
{
protected:
    static constexpr const char *near_device = "raw_plx_ntb0";
    static constexpr const char *far_device = "raw_plx_ntb1";
    static constexpr uint32_t patience_ms = 30'000;
    /// No heartbeat is missed by these, however busy the machine.
    static constexpr const char *patient = ",heartbeat_ms=30000,lost_ms=60000";

    void SetUp() override
    {
        static unsigned cables = 0;
        const std::string arguments = "cable=mem:ntbmsg" + std::to_string(++cables) + patient +
                                      ",linger_ms=" + std::to_string(linger_ms()) +
                                      extra_arguments();
        ASSERT_EQ(rte_vdev_init(near_device, arguments.c_str()), 0);
        ASSERT_EQ(rte_vdev_init(far_device, arguments.c_str()), 0);
    }

    /// What a test leaves unread is not waited for at its end.
    virtual unsigned linger_ms() const { return 0; }
    /// Of both devices.
    virtual const char *extra_arguments() const { return ""; }

    void TearDown() override
    {
        EXPECT_EQ(ntbmsg_endpoint_close(near_), 0);
        EXPECT_EQ(ntbmsg_endpoint_close(far_), 0);
        EXPECT_EQ(rte_vdev_uninit(near_device), 0);
        EXPECT_EQ(rte_vdev_uninit(far_device), 0);
    }

    /// Small enough for many of them in a process without hugepages.
    static ntbmsg_endpoint_options small_options()
    {
        ntbmsg_endpoint_options options;
        ntbmsg_endpoint_options_init(&options);
        options.ring_lines = 128;
        options.buffers = 512;
        options.queue_buffers = 28;
        options.tx_mbufs = 512;
        return options;
    }

    static void open(const char *device, ntbmsg_endpoint *&out,
                     const ntbmsg_endpoint_options &options = small_options())
    {
        ASSERT_EQ(ntbmsg_endpoint_open(device, &options, &out), 0);
    }

    void connect(const ntbmsg_endpoint_options &options = small_options())
    {
        ASSERT_NO_FATAL_FAILURE(open(near_device, near_, options));
        ASSERT_NO_FATAL_FAILURE(open(far_device, far_, options));
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(near_, patience_ms), 0);
        ASSERT_EQ(ntbmsg_endpoint_wait_connected(far_, patience_ms), 0);
    }

    static void close(ntbmsg_endpoint *&endpoint)
    {
        ASSERT_EQ(ntbmsg_endpoint_close(endpoint), 0);
        endpoint = nullptr;
    }

    /// A message of @p bytes, all of them @p fill, chained where it has to be.
    static rte_mbuf *message(ntbmsg_endpoint *endpoint, size_t bytes, int fill)
    {
        rte_mbuf *head = nullptr;
        do {
            rte_mbuf *piece = rte_pktmbuf_alloc(ntbmsg_endpoint_pool(endpoint));
            if (piece == nullptr)
                break;
            const size_t n = std::min<size_t>(bytes, rte_pktmbuf_tailroom(piece));
            std::memset(rte_pktmbuf_append(piece, static_cast<uint16_t>(n)), fill, n);
            bytes -= n;
            if (head == nullptr)
                head = piece;
            else
                rte_pktmbuf_chain(head, piece);
        } while (bytes != 0);
        return head;
    }

    static uint64_t now_ms() { return rte_get_timer_cycles() * 1000 / rte_get_timer_hz(); }

    /// Sends one message. Buffers for large ones are posted by a receiver that polls, so it does
    /// here.
    /// @return 1, or what the last try gave
    static int send(ntbmsg_endpoint *from, ntbmsg_endpoint *to, rte_mbuf *mbuf)
    {
        rte_mbuf *none = nullptr;
        int sent = 0;
        for (const uint64_t end = now_ms() + patience_ms; sent == 0 && now_ms() < end;) {
            sent = ntbmsg_queue_send_burst(from, 0, &mbuf, nullptr, 1);
            if (sent == 0 && ntbmsg_queue_recv_burst(to, 0, &none, nullptr, 1) != 0)
                ADD_FAILURE() << "a message came that was not sent";
        }
        return sent;
    }

    /// Polls for one message. @return NULL: none came
    static rte_mbuf *receive(ntbmsg_endpoint *endpoint, uint16_t queue = 0,
                             ntbmsg_meta *meta = nullptr)
    {
        rte_mbuf *got = nullptr;
        for (const uint64_t end = now_ms() + patience_ms; now_ms() < end;) {
            if (ntbmsg_queue_recv_burst(endpoint, queue, &got, meta, 1) == 1)
                return got;
        }
        return nullptr;
    }

    /// Polls until @p wanted comes; others are dropped.
    static bool await_event(ntbmsg_endpoint *endpoint, ntbmsg_event wanted)
    {
        ntbmsg_event event;
        for (const uint64_t end = now_ms() + patience_ms; now_ms() < end;) {
            if (ntbmsg_endpoint_event_poll(endpoint, &event) == 1 && event == wanted)
                return true;
        }
        return false;
    }

    static ntbmsg_endpoint_stats stats(const ntbmsg_endpoint *endpoint)
    {
        ntbmsg_endpoint_stats s{};
        s.size = sizeof(s);
        EXPECT_EQ(ntbmsg_endpoint_stats_get(endpoint, &s), 0);
        return s;
    }

    ntbmsg_endpoint *near_ = nullptr;
    ntbmsg_endpoint *far_ = nullptr;
};

#endif
