// SPDX-License-Identifier: BSD-3-Clause
// Two endpoints of one process with a worker each, driven by turns from the test's thread.
#ifndef CHANNELS_HPP
#define CHANNELS_HPP

#include <cerrno>
#include <vector>

#include "cabled.hpp"

class Channels : public Cabled
{
protected:
    static constexpr uint16_t port = 7;

    static ntbmsg_endpoint_options worker_options()
    {
        ntbmsg_endpoint_options options = small_options();
        options.queues = 0;
        options.workers = 1;
        options.channels = 64;
        options.rx_mbufs = 1024;
        return options;
    }

    void bring_up(const ntbmsg_endpoint_options &options = worker_options())
    {
        ASSERT_NO_FATAL_FAILURE(connect(options));
        near_worker_ = ntbmsg_endpoint_worker(near_, 0);
        far_worker_ = ntbmsg_endpoint_worker(far_, 0);
        ASSERT_NE(near_worker_, nullptr);
        ASSERT_NE(far_worker_, nullptr);
        ASSERT_EQ(ntbmsg_listener_open(port, 0, &listener_), 0);
    }

    void TearDown() override
    {
        ntbmsg_listener_close(listener_);
        Cabled::TearDown();
    }

    /// One poll of each worker.
    virtual void turn()
    {
        ntbmsg_worker_poll(near_worker_);
        ntbmsg_worker_poll(far_worker_);
    }
    /// Both workers turn until @p fact holds. @return whether it did
    template <class Fact>
    bool await(Fact fact)
    {
        for (const uint64_t end = now_ms() + patience_ms; now_ms() < end; turn()) {
            if (fact())
                return true;
        }
        return fact();
    }
    /// Lets everything that is under way arrive.
    void settle()
    {
        for (int quiet = 0; quiet < 100;) {
            const bool busy =
                ntbmsg_worker_poll(near_worker_) > 0 || ntbmsg_worker_poll(far_worker_) > 0;
            quiet = busy ? 0 : quiet + 1;
        }
    }

    static ntbmsg_channel_options channel_options()
    {
        ntbmsg_channel_options options;
        ntbmsg_channel_options_init(&options);
        return options;
    }

    bool await_request(ntbmsg_request &request)
    {
        return await([&] { return ntbmsg_listener_poll(listener_, far_worker_, &request) == 1; });
    }

    /// A channel from near to far, open at both ends.
    void join(ntbmsg_channel *&near, ntbmsg_channel *&far,
              const ntbmsg_channel_options &near_options = channel_options(),
              const ntbmsg_channel_options &far_options = channel_options())
    {
        ASSERT_EQ(ntbmsg_channel_connect(near_worker_, port, &near_options, &near), 0);
        ntbmsg_request request;
        ASSERT_TRUE(await_request(request));
        ASSERT_EQ(ntbmsg_channel_accept(&request, &far_options, &far), 0);
        ASSERT_TRUE(await_state(near, NTBMSG_CHANNEL_OPEN));
        ASSERT_EQ(ntbmsg_channel_state_get(far), NTBMSG_CHANNEL_OPEN);
    }

    bool await_state(const ntbmsg_channel *channel, enum ntbmsg_channel_state state)
    {
        return await([=] { return ntbmsg_channel_state_get(channel) == state; });
    }

    static ntbmsg_channel_info info(const ntbmsg_channel *channel)
    {
        ntbmsg_channel_info info{};
        info.size = sizeof(info);
        EXPECT_EQ(ntbmsg_channel_info_get(channel, &info), 0);
        return info;
    }

    /// Sends one message of @p bytes bytes, all @p fill. @return what the call gave
    static int send_one(ntbmsg_endpoint *from, ntbmsg_channel *channel, size_t bytes, int fill,
                        uint32_t imm = 0)
    {
        rte_mbuf *mbuf = message(from, bytes, fill);
        if (mbuf == nullptr)
            return -ENOMEM;
        const int rc = ntbmsg_channel_send_burst(channel, &mbuf, &imm, 1);
        if (rc != 1)
            rte_pktmbuf_free(mbuf);
        return rc;
    }

    /// Polls for one message, both workers turning. @return NULL: none came
    rte_mbuf *receive_one(ntbmsg_channel *channel, uint32_t *imm = nullptr)
    {
        rte_mbuf *got = nullptr;
        await([&] { return ntbmsg_channel_recv_burst(channel, &got, imm, 1) != 0; });
        return got;
    }

    /// Both ends given back.
    static void give_back(std::initializer_list<ntbmsg_channel *> channels)
    {
        for (ntbmsg_channel *channel : channels)
            EXPECT_EQ(ntbmsg_channel_close(channel), 0);
    }

    ntbmsg_worker *near_worker_ = nullptr;
    ntbmsg_worker *far_worker_ = nullptr;
    ntbmsg_listener *listener_ = nullptr;
};

#endif
