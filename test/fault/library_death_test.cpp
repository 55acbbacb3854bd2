// SPDX-License-Identifier: BSD-3-Clause
// A peer that is killed with one-sided operations and long messages under way in both directions:
// whatever was taken completes once, everything comes back, and the next peer finds a sound host.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rte_bus_vdev.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>

#include <ntbmsg.h>

#include "host.hpp"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

namespace
{

constexpr uint16_t port = 7;
constexpr uint64_t patience_ms = 60'000;

uint64_t now_ms()
{
    return rte_get_timer_cycles() * 1000 / rte_get_timer_hz();
}

/// On workers of both kinds, driven by turns from the test's thread; true: dedicated.
class LibraryDeath : public testing::TestWithParam<bool>
{
protected:
    void SetUp() override
    {
        const std::string arguments = "cable=" + cable_;
        ASSERT_EQ(rte_vdev_init("raw_plx_ntb0", arguments.c_str()), 0);
        ntbmsg_endpoint_options options;
        ntbmsg_endpoint_options_init(&options);
        options.queues = 0;
        options.workers = 1;
        options.dedicated = GetParam();
        options.channels = 16;
        options.rx_mbufs = 512;
        ASSERT_EQ(ntbmsg_endpoint_open("raw_plx_ntb0", &options, &endpoint_), 0);
        worker_ = ntbmsg_endpoint_worker(endpoint_, 0);
        ASSERT_EQ(ntbmsg_cq_create(4096, nullptr, nullptr, &cq_), 0);
        ASSERT_EQ(ntbmsg_region_register(endpoint_, memory_.data(), memory_.size(), 7, &region_),
                  0);
    }
    void TearDown() override
    {
        end_peer();
        EXPECT_EQ(ntbmsg_region_release(region_), 0);
        EXPECT_EQ(ntbmsg_endpoint_close(endpoint_), 0) << "mbufs are missing";
        EXPECT_EQ(ntbmsg_cq_destroy(cq_), 0);
        EXPECT_EQ(rte_vdev_uninit("raw_plx_ntb0"), 0);
    }
    void begin_peer()
    {
        std::string program = LIBRARY_PEER_PROGRAM, cable = cable_;
        char *arguments[] = {program.data(), cable.data(), nullptr};
        ASSERT_EQ(posix_spawn(&peer_, program.c_str(), nullptr, nullptr, arguments, environ), 0);
    }
    void end_peer()
    {
        if (peer_ <= 0)
            return;
        kill(peer_, SIGKILL);
        EXPECT_EQ(waitpid(peer_, nullptr, 0), peer_);
        peer_ = -1;
    }
    void turn()
    {
        ntbmsg_worker_poll(worker_);
        ntbmsg_completion done[64];
        const int n = ntbmsg_cq_poll(cq_, done, 64);
        for (int i = 0; i < n; ++i) {
            if (done[i].op == NTBMSG_OP_RECV_IMM)
                continue;
            EXPECT_EQ(under_way_.erase(done[i].id), 1U) << "it completes once";
            EXPECT_TRUE(done[i].status == 0 || done[i].status == -ECONNRESET) << done[i].status;
            failed_ += done[i].status != 0 ? 1U : 0U;
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
    void connect()
    {
        ASSERT_NO_FATAL_FAILURE(begin_peer());
        ASSERT_TRUE(await([&] { return ntbmsg_endpoint_wait_connected(endpoint_, 0) == 0; }));
        ntbmsg_channel_options options;
        ntbmsg_channel_options_init(&options);
        options.credit_bytes = 1 << 20; // for long messages
        options.cq = cq_;
        // The peer listens a moment after its device is there.
        ASSERT_TRUE(await([&] {
            if (channel_ == nullptr &&
                ntbmsg_channel_connect(worker_, port, &options, &channel_) != 0)
                return false;
            const auto state = ntbmsg_channel_state_get(channel_);
            if (state == NTBMSG_CHANNEL_CONNECTING || state == NTBMSG_CHANNEL_OPEN)
                return state == NTBMSG_CHANNEL_OPEN;
            ntbmsg_channel_close(channel_);
            channel_ = nullptr;
            return false;
        }));
        rte_mbuf *m = nullptr;
        ASSERT_TRUE(
            await([&] { return ntbmsg_channel_recv_burst(channel_, &m, nullptr, 1) == 1; }));
        ntbmsg_region_token tokens[2];
        ASSERT_EQ(m->pkt_len, sizeof(tokens));
        std::memcpy(tokens, rte_pktmbuf_mtod(m, void *), sizeof(tokens));
        rte_pktmbuf_free(m);
        for (unsigned i = 0; i < 2; ++i)
            ASSERT_EQ(ntbmsg_remote_open(channel_, &tokens[i], &remotes_[i]), 0);
        ntbmsg_region_token mine;
        ASSERT_EQ(ntbmsg_region_token_get(region_, &mine), 0);
        m = rte_pktmbuf_alloc(ntbmsg_endpoint_pool(endpoint_));
        std::memcpy(rte_pktmbuf_append(m, sizeof(mine)), &mine, sizeof(mine));
        ASSERT_EQ(ntbmsg_channel_send_burst(channel_, &m, nullptr, 1), 1);
    }
    void post(std::mt19937 &random)
    {
        const ntbmsg_sge sge{own_.data(), static_cast<uint32_t>(random() % own_.size()), 0};
        ntbmsg_work w{};
        w.id = ++last_id_;
        w.remote = remotes_[random() % 2];
        w.op = static_cast<uint8_t>(1 + random() % 5);
        if (w.op < NTBMSG_OP_FETCH_ADD) {
            w.sges = &sge;
            w.sge_count = 1;
        }
        w.flags = NTBMSG_WORK_SIGNAL | (random() % 2 != 0 ? NTBMSG_WORK_CONFIRM : 0);
        if (ntbmsg_channel_post_burst(channel_, &w, 1) == 1) {
            under_way_[w.id] = true;
            ++taken_;
        }
    }
    void send_long(std::mt19937 &random)
    {
        rte_mbuf *head = nullptr;
        for (uint32_t left = static_cast<uint32_t>(100'000 + random() % 400'000); left > 0;) {
            rte_mbuf *m = rte_pktmbuf_alloc(ntbmsg_endpoint_pool(endpoint_));
            if (m == nullptr)
                break;
            const auto n = std::min<uint32_t>(left, 2048);
            rte_pktmbuf_append(m, static_cast<uint16_t>(n));
            left -= n;
            if (head == nullptr)
                head = m;
            else
                rte_pktmbuf_chain(head, m);
        }
        if (head != nullptr && ntbmsg_channel_send_burst(channel_, &head, nullptr, 1) != 1)
            rte_pktmbuf_free(head);
    }

    test::Folder folder_;
    const std::string cable_ = folder_.file("cable");
    std::vector<uint8_t> memory_ = std::vector<uint8_t>(1 << 20);
    std::vector<uint8_t> own_ = std::vector<uint8_t>(1 << 18);
    ntbmsg_endpoint *endpoint_ = nullptr;
    ntbmsg_worker *worker_ = nullptr;
    ntbmsg_cq *cq_ = nullptr;
    ntbmsg_region *region_ = nullptr;
    ntbmsg_channel *channel_ = nullptr;
    ntbmsg_remote *remotes_[2] = {};
    std::map<uint64_t, bool> under_way_;
    uint64_t last_id_ = 0, taken_ = 0;
    unsigned failed_ = 0;
    pid_t peer_ = -1;
};

// Semantics: one-sided-5
TEST_P(LibraryDeath, KilledWithEverythingUnderWay)
{
    for (unsigned seed = 1; seed <= 4; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 random(seed);
        ASSERT_NO_FATAL_FAILURE(connect());
        const uint64_t enough = taken_ + 1000 + random() % 1000;
        // Until a good deal was taken, and then some.
        ASSERT_TRUE(await([&] {
            post(random);
            if (random() % 16 == 0)
                send_long(random);
            return taken_ > enough;
        }));
        kill(peer_, SIGKILL);
        for (unsigned i = 0; i < 200; ++i)
            post(random); // not reported yet
        ASSERT_TRUE(
            await([&] { return ntbmsg_channel_state_get(channel_) == NTBMSG_CHANNEL_LOST; }));
        EXPECT_TRUE(await([&] { return under_way_.empty(); })) << under_way_.size();
        for (ntbmsg_remote *&remote : remotes_) {
            ntbmsg_remote_close(remote);
            remote = nullptr;
        }
        EXPECT_EQ(ntbmsg_channel_close(channel_), 0);
        channel_ = nullptr;
        end_peer();
    }
    EXPECT_GT(failed_, 0U) << "no operation was under way";
}

INSTANTIATE_TEST_SUITE_P(Workers, LibraryDeath, testing::Bool(), [](const auto &worker) {
    return worker.param ? "Dedicated" : "RunToCompletion";
});

} // namespace
