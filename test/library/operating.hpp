// SPDX-License-Identifier: BSD-3-Clause
// Two endpoints in one thread, with a channel between their workers and a completion queue at each
// end: what is posted here is done by the polls of the other end, one after the other.
#ifndef OPERATING_HPP
#define OPERATING_HPP

#include "cabled.hpp"

#include <cerrno>
#include <functional>
#include <vector>

/// One end.
struct End {
    ntbmsg_endpoint *endpoint = nullptr;
    ntbmsg_worker *worker = nullptr;
    ntbmsg_channel *channel = nullptr;
    ntbmsg_cq *cq = nullptr;
    std::vector<ntbmsg_completion> seen; ///< taken from its queue, oldest first
};

class Operating : public Cabled
{
protected:
    static constexpr uint16_t port = 7;
    static constexpr uint32_t every_right =
        NTBMSG_RIGHT_WRITE | NTBMSG_RIGHT_READ | NTBMSG_RIGHT_ATOMIC;

    static ntbmsg_endpoint_options worker_options()
    {
        ntbmsg_endpoint_options options = small_options();
        options.queues = 0;
        options.workers = 1;
        options.channels = 16;
        options.rx_mbufs = 512;
        return options;
    }
    /// What both endpoints are opened with.
    virtual ntbmsg_endpoint_options options() const { return worker_options(); }
    static ntbmsg_channel_options channel_options(const End &end)
    {
        ntbmsg_channel_options options;
        ntbmsg_channel_options_init(&options);
        options.cq = end.cq;
        options.user = const_cast<End *>(&end);
        return options;
    }

    void SetUp() override
    {
        Cabled::SetUp();
        ASSERT_NO_FATAL_FAILURE(connect(options()));
        begin(here_, near_);
        begin(there_, far_);
        ASSERT_NO_FATAL_FAILURE(open_channel());
    }
    void TearDown() override
    {
        close_channel();
        get_to_closes();
        for (End *end : {&here_, &there_})
            EXPECT_EQ(ntbmsg_cq_destroy(end->cq), 0);
        Cabled::TearDown();
    }
    static void begin(End &end, ntbmsg_endpoint *endpoint, uint32_t completions = 256)
    {
        end.endpoint = endpoint;
        end.worker = ntbmsg_endpoint_worker(endpoint, 0);
        ASSERT_EQ(ntbmsg_cq_create(completions, nullptr, nullptr, &end.cq), 0);
    }
    void open_channel() { open_channel(channel_options(here_), channel_options(there_)); }
    void open_channel(const ntbmsg_channel_options &mine, const ntbmsg_channel_options &theirs)
    {
        ntbmsg_listener *listener = nullptr;
        ASSERT_EQ(ntbmsg_listener_open(port, 0, &listener), 0);
        ASSERT_EQ(ntbmsg_channel_connect(here_.worker, port, &mine, &here_.channel), 0);
        ntbmsg_request request{};
        ASSERT_TRUE(
            await([&] { return ntbmsg_listener_poll(listener, there_.worker, &request) == 1; }));
        ASSERT_EQ(ntbmsg_channel_accept(&request, &theirs, &there_.channel), 0);
        ASSERT_TRUE(
            await([&] { return ntbmsg_channel_state_get(here_.channel) == NTBMSG_CHANNEL_OPEN; }));
        ntbmsg_listener_close(listener);
    }

    /// Both ends of it.
    void close_channel()
    {
        for (End *end : {&here_, &there_})
            EXPECT_EQ(ntbmsg_channel_close(end->channel), 0);
    }
    /// One end of the channel, and then the queue that was for it alone.
    void close_with(End &end, ntbmsg_cq *cq)
    {
        EXPECT_EQ(ntbmsg_channel_close(end.channel), 0);
        end.channel = nullptr;
        get_to_closes();
        EXPECT_EQ(ntbmsg_cq_destroy(cq), 0);
    }

    /// One poll at each end.
    void turn()
    {
        for (End *end : {&here_, &there_}) {
            ntbmsg_worker_poll(end->worker);
            ntbmsg_completion got[32];
            const int n = end->cq != nullptr ? ntbmsg_cq_poll(end->cq, got, 32) : 0;
            end->seen.insert(end->seen.end(), got, got + n);
        }
    }
    bool await(const std::function<bool()> &fact)
    {
        for (const uint64_t end = now_ms() + patience_ms; now_ms() < end;) {
            if (fact())
                return true;
            turn();
        }
        return fact();
    }
    /// The next completion that was not taken yet; op 0: none came.
    ntbmsg_completion next(End &end)
    {
        if (!await([&] { return !end.seen.empty(); }))
            return {};
        const ntbmsg_completion first = end.seen.front();
        end.seen.erase(end.seen.begin());
        return first;
    }
    /// Enough polls for whatever was under way to be done, where nothing shows that it is.
    void settle()
    {
        for (unsigned i = 0; i < 100; ++i)
            turn();
    }

    /// A close is done at once, but by a dedicated worker: that gets to it with its polls.
    void get_to_closes()
    {
        if (options().dedicated != 0)
            settle();
    }

    static ntbmsg_region_token token_of(const ntbmsg_region *region)
    {
        ntbmsg_region_token token{};
        EXPECT_EQ(ntbmsg_region_token_get(region, &token), 0);
        return token;
    }
    static ntbmsg_region_info info_of(const ntbmsg_region *region)
    {
        ntbmsg_region_info info{};
        info.size = sizeof(info);
        EXPECT_EQ(ntbmsg_region_info_get(region, &info), 0);
        return info;
    }
    /// The slot of a channel: one that is open later may have it again.
    static uint16_t id_of(const ntbmsg_channel *channel)
    {
        ntbmsg_channel_info info{};
        info.size = sizeof(info);
        EXPECT_EQ(ntbmsg_channel_info_get(channel, &info), 0);
        return info.id;
    }
    ntbmsg_remote *open_remote(const ntbmsg_region_token &token)
    {
        ntbmsg_remote *remote = nullptr;
        EXPECT_EQ(ntbmsg_remote_open(here_.channel, &token, &remote), 0);
        return remote;
    }
    /// Memory of the far end, served.
    ntbmsg_region *serve(std::vector<uint8_t> &memory, uint32_t rights = every_right)
    {
        ntbmsg_region *region = nullptr;
        EXPECT_EQ(ntbmsg_region_register(far_, memory.data(), memory.size(), rights, &region), 0);
        return region;
    }
    static ntbmsg_work work(ntbmsg_op op, ntbmsg_remote *remote, uint64_t offset,
                            const ntbmsg_sge *sges = nullptr, uint16_t sge_count = 0)
    {
        ntbmsg_work w{};
        w.id = ++last_id_;
        w.remote = remote;
        w.offset = offset;
        w.sges = sges;
        w.sge_count = sge_count;
        w.op = static_cast<uint8_t>(op);
        w.flags = NTBMSG_WORK_SIGNAL;
        return w;
    }
    int post(const ntbmsg_work &w) { return ntbmsg_channel_post_burst(here_.channel, &w, 1); }
    /// Posts until it is taken: polls make room.
    int post_patiently(const ntbmsg_work &w)
    {
        int rc = 0;
        await([&] { return (rc = post(w)) != 0; });
        return rc;
    }
    /// Posts one operation and waits for what becomes of it.
    ntbmsg_completion run(const ntbmsg_work &w)
    {
        EXPECT_EQ(post_patiently(w), 1);
        const ntbmsg_completion c = next(here_);
        EXPECT_EQ(c.id, w.id);
        EXPECT_EQ(c.op, w.op);
        EXPECT_EQ(c.channel, here_.channel);
        EXPECT_EQ(c.user, &here_);
        return c;
    }
    static std::vector<uint8_t> pattern(size_t bytes, unsigned seed)
    {
        std::vector<uint8_t> out(bytes);
        for (size_t i = 0; i < bytes; ++i)
            out[i] = static_cast<uint8_t>((i * 31 + i / 251 + seed) & 0xff);
        return out;
    }

    End here_, there_;
    static inline uint64_t last_id_ = 0;
};

#endif
