// SPDX-License-Identifier: BSD-3-Clause
// The port's promises, through rte_ethdev.h: two ports of one process, joined by a cable.
#include "log_capture.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <ethdev_driver.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_mbuf.h>
#include <rte_pmd_plx_ntb.h>
#include <rte_pmd_plx_ntb_test.h>
#include <rte_power_intrinsics.h>
#include <rte_rawdev.h>

namespace
{

using namespace std::chrono_literals;

constexpr auto patience = 30s;
/// Small, so that a case is short.
const std::string small = ",ring=1024,buffers=512,queue_buffers=112";

bool await(const std::function<bool()> &fact)
{
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!fact()) {
        if (std::chrono::steady_clock::now() > end)
            return false;
        std::this_thread::yield();
    }
    return true;
}

struct PoolDeleter {
    void operator()(rte_mempool *pool) const { rte_mempool_free(pool); }
};
using Pool = std::unique_ptr<rte_mempool, PoolDeleter>;

Pool make_pool(const std::string &name, unsigned mbufs, uint16_t room)
{
    return Pool(rte_pktmbuf_pool_create(name.c_str(), mbufs, 0, 0,
                                        static_cast<uint16_t>(room + RTE_PKTMBUF_HEADROOM),
                                        SOCKET_ID_ANY));
}

std::string vdev_error(const std::string &name, const std::string &args, int *rc)
{
    const test::LogCapture log;
    *rc = rte_vdev_init(name.c_str(), args.c_str());
    return log.text();
}

/// A port under test. Its destructor asserts that nothing is left.
class TestPort
{
public:
    struct Setup {
        uint16_t rx = 1;
        uint16_t tx = 1;
        uint16_t mtu = RTE_ETHER_MTU;
        bool scatter = false;
        bool lsc = false;
        bool interrupts = false;
        bool rmv = false;
        uint16_t room = 2048;
        unsigned mbufs = 1024;
    };

    TestPort(std::string name, const std::string &args) : name_(std::move(name))
    {
        rc_ = rte_vdev_init(name_.c_str(), args.c_str());
        if (rc_ == 0)
            rc_ = rte_eth_dev_get_port_by_name(name_.c_str(), &id_);
    }
    TestPort(const TestPort &) = delete;
    TestPort &operator=(const TestPort &) = delete;
    ~TestPort()
    {
        if (rc_ == 0) {
            rte_eth_dev_stop(id_);
            EXPECT_EQ(rte_vdev_uninit(name_.c_str()), 0);
        }
        if (pool_ != nullptr) {
            EXPECT_EQ(rte_mempool_in_use_count(pool_.get()), 0u) << name_;
        }
    }

    int rc() const { return rc_; }
    uint16_t id() const { return id_; }
    rte_mempool *pool() const { return pool_.get(); }

    int start(const Setup &setup)
    {
        pool_ = make_pool(name_, setup.mbufs, setup.room);
        rte_eth_conf conf{};
        conf.rxmode.mtu = setup.mtu;
        conf.rxmode.offloads = setup.scatter ? RTE_ETH_RX_OFFLOAD_SCATTER : 0;
        conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
        conf.intr_conf.lsc = setup.lsc ? 1 : 0;
        conf.intr_conf.rmv = setup.rmv ? 1 : 0;
        conf.intr_conf.rxq = setup.interrupts ? 1 : 0;
        int rc = rte_eth_dev_configure(id_, setup.rx, setup.tx, &conf);
        for (uint16_t q = 0; rc == 0 && q < setup.rx; ++q)
            rc = rte_eth_rx_queue_setup(id_, q, 128, 0, nullptr, pool_.get());
        for (uint16_t q = 0; rc == 0 && q < setup.tx; ++q)
            rc = rte_eth_tx_queue_setup(id_, q, 128, 0, nullptr);
        return rc != 0 ? rc : rte_eth_dev_start(id_);
    }
    rte_eth_link link() const
    {
        rte_eth_link link{};
        EXPECT_EQ(rte_eth_link_get_nowait(id_, &link), 0);
        return link;
    }
    bool await_link(bool up) const
    {
        return await([&] { return (link().link_status == RTE_ETH_LINK_UP) == up; });
    }
    rte_eth_stats stats() const
    {
        rte_eth_stats stats{};
        EXPECT_EQ(rte_eth_stats_get(id_, &stats), 0);
        return stats;
    }
    uint64_t xstat(const char *name) const
    {
        uint64_t id = 0;
        uint64_t value = 0;
        EXPECT_EQ(rte_eth_xstats_get_id_by_name(id_, name, &id), 0) << name;
        EXPECT_EQ(rte_eth_xstats_get_by_id(id_, &id, &value, 1), 1) << name;
        return value;
    }

private:
    std::string name_;
    int rc_ = 0;
    uint16_t id_ = RTE_MAX_ETHPORTS;
    Pool pool_;
};

uint8_t byte_of(uint32_t seed, uint32_t at)
{
    return static_cast<uint8_t>(seed * 31 + at * 7 + (at >> 8));
}

/// A frame of @p bytes in segments of at most @p segment.
rte_mbuf *make_frame(rte_mempool *pool, uint32_t bytes, uint32_t seed, uint16_t segment = 2048)
{
    rte_mbuf *head = nullptr;
    for (uint32_t at = 0; at < bytes;) {
        rte_mbuf *m = rte_pktmbuf_alloc(pool);
        if (m == nullptr || (head != nullptr && rte_pktmbuf_chain(head, m) != 0)) {
            rte_pktmbuf_free(m);
            rte_pktmbuf_free(head);
            return nullptr;
        }
        const auto part = static_cast<uint16_t>(std::min<uint32_t>(segment, bytes - at));
        for (uint16_t i = 0; i < part; ++i)
            *rte_pktmbuf_mtod_offset(m, uint8_t *, i) = byte_of(seed, at + i);
        m->data_len = part;
        if (head == nullptr) {
            head = m;
            head->pkt_len = part;
        } else {
            head->pkt_len += part;
        }
        at += part;
    }
    return head;
}

/// @return the first byte that differs, or the frame's length
uint32_t same_bytes(const rte_mbuf *frame, uint32_t seed)
{
    uint32_t at = 0;
    for (const rte_mbuf *m = frame; m != nullptr; m = m->next)
        for (uint16_t i = 0; i < m->data_len; ++i, ++at)
            if (*rte_pktmbuf_mtod_offset(m, const uint8_t *, i) != byte_of(seed, at))
                return at;
    return at;
}

rte_mbuf *receive(const TestPort &port, uint16_t queue)
{
    rte_mbuf *frame = nullptr;
    return await([&] { return rte_eth_rx_burst(port.id(), queue, &frame, 1) == 1; }) ? frame
                                                                                     : nullptr;
}

bool send(const TestPort &port, uint16_t queue, rte_mbuf *frame)
{
    return frame != nullptr &&
           await([&] { return rte_eth_tx_burst(port.id(), queue, &frame, 1) == 1; });
}

/// Sends a frame and receives it. The receiver polls meanwhile, which makes its buffers available.
rte_mbuf *exchange(const TestPort &from, const TestPort &to, uint16_t queue, rte_mbuf *frame)
{
    rte_mbuf *received = nullptr;
    bool sent = frame == nullptr;
    await([&] {
        sent = sent || rte_eth_tx_burst(from.id(), queue, &frame, 1) == 1;
        return rte_eth_rx_burst(to.id(), queue, &received, 1) == 1;
    });
    EXPECT_TRUE(sent);
    if (!sent)
        rte_pktmbuf_free(frame);
    return received;
}

class Ports : public testing::Test
{
protected:
    void SetUp() override
    {
        sender = make_pool("sender", 2047, 2048);
        ASSERT_NE(sender, nullptr);
    }
    void TearDown() override
    {
        near.reset();
        far.reset();
        EXPECT_EQ(rte_mempool_in_use_count(sender.get()), 0u);
        EXPECT_EQ(rte_eth_dev_count_avail(), 0u);
    }
    std::string cable() const
    {
        return std::string("cable=mem:") +
               testing::UnitTest::GetInstance()->current_test_info()->name();
    }
    void make(const std::string &near_args = "", const std::string &far_args = "")
    {
        near = std::make_unique<TestPort>("net_plx_ntb0", cable() + small + near_args);
        far = std::make_unique<TestPort>("net_plx_ntb1", cable() + small + far_args);
        ASSERT_EQ(near->rc(), 0);
        ASSERT_EQ(far->rc(), 0);
    }
    void start(const TestPort::Setup &near_setup, const TestPort::Setup &far_setup)
    {
        ASSERT_EQ(near->start(near_setup), 0);
        ASSERT_EQ(far->start(far_setup), 0);
        ASSERT_TRUE(near->await_link(true));
        ASSERT_TRUE(far->await_link(true));
    }
    void one_each_way(uint32_t seed)
    {
        pass(*near, *far, 0, 200, seed);
        pass(*far, *near, 0, 1500, seed + 1);
    }
    void pass(const TestPort &from, const TestPort &to, uint16_t queue, uint32_t bytes,
              uint32_t seed, uint16_t segment = 2048)
    {
        rte_mbuf *frame = exchange(from, to, queue, make_frame(sender.get(), bytes, seed, segment));
        ASSERT_NE(frame, nullptr);
        EXPECT_EQ(frame->pkt_len, bytes);
        EXPECT_EQ(same_bytes(frame, seed), bytes);
        EXPECT_EQ(frame->port, to.id());
        EXPECT_EQ(frame->pool, to.pool());
        rte_pktmbuf_free(frame);
    }

    std::unique_ptr<TestPort> near;
    std::unique_ptr<TestPort> far;
    Pool sender;
};

TEST_F(Ports, FramesOfAllSizesArriveInTheApplicationsPool)
{
    make();
    start({.scatter = true}, {.scatter = true});
    for (const uint32_t bytes : {14u, 60u, 64u, 767u, 768u, 769u, 1024u, 1025u, 1518u, 2048u, 2049u,
                                 9018u, 65535u, 65553u})
        pass(*near, *far, 0, bytes, bytes);
    for (const int segment : {1, 17, 60, 2048})
        pass(*far, *near, 0, 200, static_cast<uint32_t>(segment), static_cast<uint16_t>(segment));
    EXPECT_EQ(near->stats().opackets, 14u);
    EXPECT_EQ(far->stats().ipackets, 14u);
    EXPECT_EQ(near->stats().obytes, far->stats().ibytes);
    EXPECT_EQ(near->stats().ipackets, 4u);
    EXPECT_EQ(near->stats().ibytes, 800u);
}

TEST_F(Ports, AFrameFillsLargeMbufs)
{
    make();
    start({.room = 9216}, {.room = 9216});
    rte_mbuf *frame = exchange(*near, *far, 0, make_frame(sender.get(), 9018, 5));
    ASSERT_NE(frame, nullptr);
    EXPECT_EQ(frame->nb_segs, 1);
    EXPECT_EQ(same_bytes(frame, 5), 9018u);
    rte_pktmbuf_free(frame);
}

TEST_F(Ports, ZeroCopyDeliversLongFramesWhereTheyLie)
{
    make("", ",zero_copy=1");
    start({}, {});
    rte_mbuf *frame = exchange(*near, *far, 0, make_frame(sender.get(), 1518, 3));
    ASSERT_NE(frame, nullptr);
    EXPECT_NE(frame->pool, far->pool());
    EXPECT_EQ(frame->port, far->id());
    EXPECT_EQ(same_bytes(frame, 3), 1518u);
    rte_pktmbuf_free(frame);
    pass(*near, *far, 0, 64, 4); // in the ring: the application's pool
}

TEST_F(Ports, EachQueueDeliversToTheSameNumber)
{
    make();
    start({.rx = 3, .tx = 3}, {.rx = 3, .tx = 3});
    for (uint16_t q = 0; q < 3; ++q)
        pass(*near, *far, q, 100u + q, q);
    for (uint16_t q = 0; q < 3; ++q) {
        EXPECT_EQ(far->stats().q_ipackets[q], 1u) << q;
        EXPECT_EQ(far->stats().q_ibytes[q], 100u + q) << q;
        EXPECT_EQ(near->stats().q_opackets[q], 1u) << q;
    }
    EXPECT_EQ(far->xstat("rx_q1_messages"), 1u);
}

TEST_F(Ports, MoreQueuesThanThePeerHasWorkAsFarAsItHasThem)
{
    make();
    const test::LogCapture log;
    const uint32_t level = rte_log_get_global_level();
    rte_log_set_global_level(RTE_LOG_WARNING);
    start({.rx = 4, .tx = 4}, {});
    EXPECT_TRUE(await([&] {
        return log.text().find("the peer has 1 queues: of 4, those from 1 on send nothing") !=
               std::string::npos;
    })) << log.text();
    rte_log_set_global_level(level);
    one_each_way(7);
    rte_mbuf *frame = make_frame(sender.get(), 100, 1);
    EXPECT_EQ(rte_eth_tx_burst(near->id(), 3, &frame, 1), 0);
    rte_pktmbuf_free(frame);
}

TEST_F(Ports, AFrameThatThePeerCannotTakeIsDroppedAndCounted)
{
    make();
    start({.scatter = true}, {}); // the far side receives into one mbuf of 2048 bytes
    rte_mbuf *frames[] = {make_frame(sender.get(), 2049, 1), make_frame(sender.get(), 64, 2)};
    ASSERT_TRUE(await([&] { return rte_eth_tx_burst(near->id(), 0, frames, 2) == 2; }));
    rte_mbuf *frame = receive(*far, 0);
    ASSERT_NE(frame, nullptr);
    EXPECT_EQ(frame->pkt_len, 64u);
    rte_pktmbuf_free(frame);
    EXPECT_EQ(near->stats().opackets, 1u);
    EXPECT_GE(near->stats().oerrors, 1u);
    EXPECT_EQ(near->xstat("tx_dropped"), 1u);
}

TEST_F(Ports, AnEmptyPoolLosesFramesAndCountsThem)
{
    make();
    start({}, {.mbufs = 15});
    one_each_way(1); // the far side's window buffers are available
    std::vector<rte_mbuf *> held;
    for (rte_mbuf *m = rte_pktmbuf_alloc(far->pool()); m != nullptr;
         m = rte_pktmbuf_alloc(far->pool()))
        held.push_back(m);
    ASSERT_TRUE(send(*near, 0, make_frame(sender.get(), 1518, 1)));
    ASSERT_TRUE(await([&] {
        rte_mbuf *none = nullptr;
        EXPECT_EQ(rte_eth_rx_burst(far->id(), 0, &none, 1), 0);
        return far->stats().rx_nombuf == 1;
    }));
    EXPECT_EQ(far->stats().ipackets, 1u);
    rte_pktmbuf_free_bulk(held.data(), static_cast<unsigned>(held.size()));
    one_each_way(3);
    EXPECT_EQ(rte_eth_stats_reset(far->id()), 0);
    EXPECT_EQ(far->stats().rx_nombuf, 0u);
    EXPECT_EQ(far->stats().ipackets, 0u);
}

/// More long frames in one burst than are freed at once, among short ones; the pool ends in it.
TEST_F(Ports, ABurstOfShortAndLongFramesKeepsItsOrder)
{
    constexpr uint16_t count = 80;
    make();
    start({}, {.mbufs = 127});
    one_each_way(1); // the far side's window buffers are available
    for (const unsigned left : {127u, 127u, 60u}) {
        std::vector<rte_mbuf *> held;
        while (rte_mempool_avail_count(far->pool()) > left)
            held.push_back(rte_pktmbuf_alloc(far->pool()));
        const uint64_t lost = far->stats().rx_nombuf;
        for (uint32_t i = 0; i < count; ++i)
            ASSERT_TRUE(send(*near, 0, make_frame(sender.get(), i % 3 == 0 ? 100 : 1518, i)));
        std::vector<rte_mbuf *> frames(count);
        uint32_t seed = 0;
        uint32_t arrived = 0;
        ASSERT_TRUE(await([&] {
            const uint16_t n = rte_eth_rx_burst(far->id(), 0, frames.data(), count);
            for (uint16_t i = 0; i < n; ++i, ++seed, ++arrived) {
                while (seed < count && same_bytes(frames[i], seed) != frames[i]->pkt_len)
                    ++seed; // it was lost
                EXPECT_LT(seed, count);
                EXPECT_EQ(frames[i]->pkt_len, seed % 3 == 0 ? 100u : 1518u);
                EXPECT_EQ(frames[i]->port, far->id());
                EXPECT_EQ(frames[i]->pool, far->pool());
                rte_pktmbuf_free(frames[i]);
            }
            return arrived + far->stats().rx_nombuf - lost >= count;
        })) << arrived;
        rte_pktmbuf_free_bulk(held.data(), static_cast<unsigned>(held.size()));
        if (left == 127) {
            EXPECT_EQ(arrived, count);
        }
    }
}

std::atomic<unsigned> changes;
int on_change(uint16_t, rte_eth_event_type, void *, void *)
{
    ++changes;
    return 0;
}

TEST_F(Ports, TheLinkFollowsThePeerAndIsReported)
{
    changes = 0;
    make();
    ASSERT_EQ(rte_eth_dev_callback_register(near->id(), RTE_ETH_EVENT_INTR_LSC, on_change, nullptr),
              0);
    ASSERT_EQ(near->start({.lsc = true}), 0);
    EXPECT_EQ(near->link().link_status, RTE_ETH_LINK_DOWN);
    rte_mbuf *frame = make_frame(sender.get(), 64, 1);
    EXPECT_EQ(rte_eth_tx_burst(near->id(), 0, &frame, 1), 0);
    rte_pktmbuf_free(frame);
    ASSERT_EQ(far->start({}), 0);
    ASSERT_TRUE(near->await_link(true));
    ASSERT_TRUE(await([] { return changes == 1; }));
    EXPECT_EQ(near->link().link_duplex, RTE_ETH_LINK_FULL_DUPLEX);
    EXPECT_GE(near->link().link_speed, 2000u);
    ASSERT_TRUE(far->await_link(true));
    one_each_way(1);

    ASSERT_EQ(rte_eth_dev_stop(far->id()), 0);
    ASSERT_TRUE(near->await_link(false));
    ASSERT_TRUE(await([] { return changes == 2; }));
    ASSERT_EQ(rte_eth_dev_start(far->id()), 0);
    ASSERT_TRUE(near->await_link(true));
    ASSERT_TRUE(far->await_link(true));
    one_each_way(2);
    rte_eth_dev_callback_unregister(near->id(), RTE_ETH_EVENT_INTR_LSC, on_change, nullptr);
}

/// rte_eth_dev_start() marks the port as started when the driver's part is over; the peer may be
/// connected before that.
TEST_F(Ports, ALinkThatComesWhileThePortStartsIsReported)
{
    make();
    ASSERT_EQ(near->start({.lsc = true}), 0);
    ASSERT_EQ(far->start({}), 0);
    ASSERT_TRUE(near->await_link(true));
    ASSERT_EQ(rte_eth_dev_stop(near->id()), 0);
    ASSERT_TRUE(far->await_link(false));
    changes = 0;
    ASSERT_EQ(rte_eth_dev_callback_register(near->id(), RTE_ETH_EVENT_INTR_LSC, on_change, nullptr),
              0);
    rte_eth_dev *dev = &rte_eth_devices[near->id()];
    ASSERT_EQ(dev->dev_ops->dev_start(dev), 0);
    EXPECT_TRUE(await([] { return changes == 1; }));
    dev->data->dev_started = 1;
    EXPECT_EQ(near->link().link_status, RTE_ETH_LINK_UP);
    rte_eth_dev_callback_unregister(near->id(), RTE_ETH_EVENT_INTR_LSC, on_change, nullptr);
}

TEST_F(Ports, LinkDownAndUpByHand)
{
    make();
    start({}, {});
    for (uint32_t round = 0; round < 3; ++round) {
        ASSERT_EQ(rte_eth_dev_set_link_down(near->id()), 0);
        ASSERT_EQ(rte_eth_dev_set_link_down(near->id()), 0);
        ASSERT_TRUE(near->await_link(false));
        ASSERT_TRUE(far->await_link(false));
        ASSERT_EQ(rte_eth_dev_set_link_up(near->id()), 0);
        ASSERT_TRUE(near->await_link(true));
        ASSERT_TRUE(far->await_link(true));
        one_each_way(round);
    }
    ASSERT_EQ(rte_eth_dev_set_link_down(near->id()), 0);
    ASSERT_EQ(rte_eth_dev_stop(near->id()), 0);
    ASSERT_EQ(rte_eth_dev_start(near->id()), 0);
    ASSERT_TRUE(near->await_link(true));
}

/// Nothing is left to wait for when both links are up: the first burst is taken, each way.
TEST_F(Ports, TrafficComesBackWithTheLink)
{
    make();
    start({}, {});
    int64_t longest_us = 0;
    for (uint32_t round = 0; round < 20; ++round) {
        ASSERT_EQ(rte_eth_dev_stop(far->id()), 0);
        ASSERT_TRUE(near->await_link(false));
        ASSERT_EQ(rte_eth_dev_start(far->id()), 0);
        ASSERT_TRUE(near->await_link(true));
        ASSERT_TRUE(far->await_link(true));
        const auto up = std::chrono::steady_clock::now();
        const TestPort *ways[][2] = {{near.get(), far.get()}, {far.get(), near.get()}};
        for (const auto &[from, to] : ways) {
            rte_mbuf *frame = make_frame(sender.get(), 64, round);
            ASSERT_EQ(rte_eth_tx_burst(from->id(), 0, &frame, 1), 1) << round;
            frame = receive(*to, 0);
            ASSERT_NE(frame, nullptr);
            EXPECT_EQ(same_bytes(frame, round), 64u);
            rte_pktmbuf_free(frame);
        }
        const auto took = std::chrono::steady_clock::now() - up;
        longest_us = std::max<int64_t>(
            longest_us, std::chrono::duration_cast<std::chrono::microseconds>(took).count());
    }
    RecordProperty("longest_us", std::to_string(longest_us));
}

TEST_F(Ports, StopConfigureAndStartAgain)
{
    make();
    start({}, {});
    one_each_way(1);
    ASSERT_EQ(rte_eth_dev_stop(near->id()), 0);
    const auto sent = near->stats().opackets;
    EXPECT_EQ(sent, 1u);
    ASSERT_EQ(rte_eth_dev_start(near->id()), 0);
    ASSERT_TRUE(near->await_link(true));
    ASSERT_TRUE(far->await_link(true));
    one_each_way(2);
    EXPECT_EQ(near->stats().opackets, 2u);
    ASSERT_EQ(rte_eth_dev_reset(near->id()), 0);
    ASSERT_TRUE(far->await_link(false));
}

TEST_F(Ports, AnInterruptWakesASleeperAlsoForWhatCameBefore)
{
    make();
    start({.interrupts = true}, {});
    ASSERT_EQ(
        rte_eth_dev_rx_intr_ctl_q(near->id(), 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_ADD, nullptr),
        0);
    const auto sleeps = [&] {
        rte_epoll_event event;
        return rte_epoll_wait(RTE_EPOLL_PER_THREAD, &event, 1,
                              static_cast<int>(std::chrono::milliseconds(patience).count()));
    };
    for (const bool before : {true, false}) {
        rte_mbuf *frame = make_frame(sender.get(), 64, 9);
        if (before) {
            ASSERT_TRUE(send(*far, 0, frame));
        }
        ASSERT_EQ(rte_eth_dev_rx_intr_enable(near->id(), 0), 0);
        if (!before) {
            ASSERT_TRUE(send(*far, 0, frame));
        }
        EXPECT_EQ(sleeps(), 1) << before;
        ASSERT_EQ(rte_eth_dev_rx_intr_disable(near->id(), 0), 0);
        frame = receive(*near, 0);
        ASSERT_NE(frame, nullptr);
        rte_pktmbuf_free(frame);
    }
    ASSERT_EQ(
        rte_eth_dev_rx_intr_ctl_q(near->id(), 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_DEL, nullptr),
        0);
}

TEST_F(Ports, AnMtuThatDoesNotFitIsRefusedWithTheLargest)
{
    make();
    start({.scatter = true}, {});
    EXPECT_EQ(rte_eth_dev_set_mtu(near->id(), 1500), 0);
    EXPECT_EQ(rte_eth_dev_set_mtu(near->id(), 2030), 0);
    const test::LogCapture log;
    EXPECT_EQ(rte_eth_dev_set_mtu(near->id(), 2031), -EINVAL);
    EXPECT_NE(log.text().find("MTU 2031 does not fit the peer's buffers: expected at most 2030"),
              std::string::npos)
        << log.text();
    EXPECT_EQ(rte_eth_dev_set_mtu(far->id(), 2031), -EINVAL);
    EXPECT_NE(log.text().find("does not fit this port's buffers: expected at most 2030"),
              std::string::npos)
        << log.text();
}

TEST_F(Ports, PoolsThatAreTooSmallAreRefused)
{
    make();
    const test::LogCapture log;
    EXPECT_EQ(near->start({.room = 1000}), -EINVAL);
    EXPECT_EQ(far->start({.mtu = 9000}), -EINVAL);
    EXPECT_NE(log.text().find("expected larger ones or RTE_ETH_RX_OFFLOAD_SCATTER"),
              std::string::npos)
        << log.text();
}

TEST_F(Ports, APoolOfAFewMbufsReceivesOneByOne)
{
    make();
    start({.mbufs = 3}, {});
    for (uint32_t seed = 0; seed < 50; ++seed)
        pass(*far, *near, 0, seed % 2 == 0 ? 64 : 1518, seed);
    EXPECT_EQ(near->stats().ipackets, 50u);
}

/// The applications of both hosts were set up differently, and the peer anew under traffic.
TEST_F(Ports, APeerThatComesBackWithOtherSettingsIsTaken)
{
    make();
    start({.rx = 2, .tx = 2, .scatter = true}, {.scatter = true});
    pass(*near, *far, 0, 9000, 1);
    const struct {
        const char *args;
        TestPort::Setup setup;
        uint32_t largest;
    } others[] = {
        {",ring=1024,buffers=512,queue_buffers=112,buf=4096",
         {.rx = 3, .tx = 1, .scatter = true},
         65553},
        {",ring=4096,buffers=64,queue_buffers=14,inline=256", {.room = 1600}, 1518},
        {",ring=64,buffers=256,queue_buffers=112,buf=64,inline=1024", {.room = 4096}, 1518},
    };
    for (const auto &other : others) {
        far.reset();
        ASSERT_TRUE(near->await_link(false));
        far = std::make_unique<TestPort>("net_plx_ntb1", cable() + other.args);
        ASSERT_EQ(far->rc(), 0) << other.args;
        ASSERT_EQ(far->start(other.setup), 0) << other.args;
        ASSERT_TRUE(near->await_link(true));
        ASSERT_TRUE(far->await_link(true));
        pass(*near, *far, 0, 64, 2);
        pass(*near, *far, 0, other.largest, 3);
        pass(*far, *near, 0, other.largest, 4);
    }
}

TEST_F(Ports, InformationIsHonest)
{
    make(",mac=02:11:22:33:44:55");
    rte_eth_dev_info info{};
    ASSERT_EQ(rte_eth_dev_info_get(near->id(), &info), 0);
    EXPECT_STREQ(info.driver_name, "net_plx_ntb");
    EXPECT_EQ(info.rx_offload_capa, RTE_ETH_RX_OFFLOAD_SCATTER);
    EXPECT_EQ(info.tx_offload_capa, RTE_ETH_TX_OFFLOAD_MULTI_SEGS);
    EXPECT_EQ(info.max_rx_queues, 64);
    EXPECT_NE(*info.dev_flags & RTE_ETH_DEV_INTR_RMV, 0u);
    EXPECT_EQ(info.max_mtu, info.max_rx_pktlen - 18);
    rte_ether_addr mac;
    rte_ether_addr other;
    ASSERT_EQ(rte_eth_macaddr_get(near->id(), &mac), 0);
    ASSERT_EQ(rte_eth_macaddr_get(far->id(), &other), 0);
    const rte_ether_addr given = {{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}};
    EXPECT_TRUE(rte_is_same_ether_addr(&mac, &given));
    EXPECT_TRUE(rte_is_local_admin_ether_addr(&other));
    EXPECT_TRUE(rte_is_unicast_ether_addr(&other));
    rte_ether_addr third = {{0x02, 0, 0, 0, 0, 3}};
    EXPECT_EQ(rte_eth_dev_mac_addr_add(near->id(), &third, 0), 0);
    EXPECT_EQ(rte_eth_dev_mac_addr_remove(near->id(), &third), 0);
    EXPECT_EQ(rte_eth_dev_default_mac_addr_set(near->id(), &third), 0);
}

/// Rows of the feature matrix that a port has something to show for. Those that are empty there
/// are left out, and so are those about machines and systems.
TEST_F(Ports, TheFeatureMatrixSaysWhatAPortDoes)
{
    std::set<std::string> claimed;
    std::ifstream matrix(FEATURES);
    for (std::string line; std::getline(matrix, line);)
        if (const auto equals = line.find('='); equals != std::string::npos && line[0] != ';')
            if (line.find('Y', equals) != std::string::npos)
                claimed.insert(line.substr(0, line.find_last_not_of(' ', equals - 1) + 1));
    make();
    start({.scatter = true, .interrupts = true}, {});
    const uint16_t id = near->id();
    rte_eth_dev_info info{};
    ASSERT_EQ(rte_eth_dev_info_get(id, &info), 0);
    rte_power_monitor_cond condition{};
    rte_eth_burst_mode mode{};
    const std::map<std::string, bool> shown = {
        {"Speed capabilities", info.speed_capa != 0},
        {"Link status", near->link().link_status == RTE_ETH_LINK_UP},
        {"Link status event", (*info.dev_flags & RTE_ETH_DEV_INTR_LSC) != 0},
        {"Removal event", (*info.dev_flags & RTE_ETH_DEV_INTR_RMV) != 0},
        {"Rx interrupt", rte_eth_dev_rx_intr_enable(id, 0) == 0},
        {"Lock-free Tx queue", (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MT_LOCKFREE) != 0},
        {"Fast mbuf free", (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) != 0},
        {"Free Tx mbuf on demand", rte_eth_tx_done_cleanup(id, 0, 0) != -ENOTSUP},
        {"Queue start/stop", rte_eth_dev_rx_queue_stop(id, 0) != -ENOTSUP},
        {"Runtime Rx queue setup", (info.dev_capa & RTE_ETH_DEV_CAPA_RUNTIME_RX_QUEUE_SETUP) != 0},
        {"Runtime Tx queue setup", (info.dev_capa & RTE_ETH_DEV_CAPA_RUNTIME_TX_QUEUE_SETUP) != 0},
        {"Burst mode info", rte_eth_rx_burst_mode_get(id, 0, &mode) == 0},
        {"Power mgmt address monitor", rte_eth_get_monitor_addr(id, 0, &condition) == 0},
        {"MTU update", rte_eth_dev_set_mtu(id, 1400) == 0},
        {"Scattered Rx", (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER) != 0},
        {"Promiscuous mode", rte_eth_promiscuous_enable(id) == 0},
        {"Allmulticast mode", rte_eth_allmulticast_enable(id) == 0},
        {"L3 checksum offload", (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) != 0},
        {"L4 checksum offload", (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_TCP_CKSUM) != 0},
        {"TSO", (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_TCP_TSO) != 0},
        {"VLAN offload", (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN) != 0},
        {"Rx descriptor status", rte_eth_rx_descriptor_status(id, 0, 0) != -ENOTSUP},
        {"Tx descriptor status", rte_eth_tx_descriptor_status(id, 0, 0) != -ENOTSUP},
        {"Basic stats", rte_eth_stats_reset(id) == 0},
        {"Extended stats", rte_eth_xstats_get(id, nullptr, 0) > 0},
    };
    for (const auto &[feature, is] : shown)
        EXPECT_EQ(claimed.contains(feature), is) << feature;
    for (const std::string &feature : claimed)
        EXPECT_TRUE(shown.contains(feature) || feature == "Stats per queue" /* has a case */ ||
                    feature == "Linux" || feature == "x86-64")
            << feature;
}

TEST_F(Ports, BadDevargsAreRefusedWithWhatWasExpected)
{
    const struct {
        const char *args;
        const char *expected;
    } cases[] = {
        {"", "expected cable=<socket path> or dev=<rawdev>"},
        {"mac=01:00:00:00:00:01,cable=mem:bad", "expected a unicast address"},
        {"mac=nonsense,cable=mem:bad", "expected a unicast address"},
        {"zero_copy=2,cable=mem:bad", "expected 0 or 1"},
        {"zero_copy=1,zero_copy=1,cable=mem:bad", "expected this key once"},
        {"queues=4,cable=mem:bad", "rte_eth_dev_configure()"},
        {"rx=stable,cable=mem:bad", "zero_copy=0|1"},
        {"max_message=1000,cable=mem:bad", "data room"},
        {"dev=raw_plx_ntb7", "there is no raw_plx_ntb device \"raw_plx_ntb7\""},
        {"dev=raw_plx_ntb7,dev=raw_plx_ntb7", "expected this key once"},
        {"cable=mem:bad,cable=mem:worse", "expected this key once"},
        {"mac=02:00:00:00:00:01,mac=02:00:00:00:00:01,cable=mem:bad", "expected this key once"},
        {"dev=", "the name of a raw_plx_ntb device"},
        {"dev=raw_plx_ntb7,ring=1024", "takes no devargs"},
        {"cable=mem:bad,colour=red", "unknown or malformed devarg"},
        {"cable=mem:bad,ring=1000", "ring"},
    };
    for (const auto &c : cases) {
        int rc = 0;
        const std::string said = vdev_error("net_plx_ntb9", c.args, &rc);
        EXPECT_LT(rc, 0) << c.args;
        EXPECT_NE(said.find(c.expected), std::string::npos) << c.args << ": " << said;
        if (rc == 0)
            rte_vdev_uninit("net_plx_ntb9");
    }
}

TEST_F(Ports, ARawdevServesOnePort)
{
    ASSERT_EQ(rte_vdev_init("raw_plx_ntb0", (cable() + small).c_str()), 0);
    near = std::make_unique<TestPort>("net_plx_ntb0", "dev=raw_plx_ntb0");
    ASSERT_EQ(near->rc(), 0);
    int rc = 0;
    const std::string said = vdev_error("net_plx_ntb9", "dev=raw_plx_ntb0", &rc);
    EXPECT_EQ(rc, -EBUSY);
    EXPECT_NE(said.find("raw_plx_ntb0 belongs to another port"), std::string::npos) << said;
    far = std::make_unique<TestPort>("net_plx_ntb1", cable() + small);
    start({}, {});
    one_each_way(1);
    near.reset(); // the rawdev stays
    EXPECT_GE(rte_pmd_plx_ntb_find("raw_plx_ntb0"), 0);
    near = std::make_unique<TestPort>("net_plx_ntb0", "dev=raw_plx_ntb0");
    ASSERT_EQ(near->rc(), 0);
    ASSERT_EQ(near->start({}), 0);
    ASSERT_TRUE(near->await_link(true));
    near.reset();
    EXPECT_EQ(rte_vdev_uninit("raw_plx_ntb0"), 0);
}

TEST_F(Ports, ARawdevInUseIsNotTaken)
{
    ASSERT_EQ(rte_vdev_init("raw_plx_ntb0", (cable() + small).c_str()), 0);
    const int raw = rte_pmd_plx_ntb_find("raw_plx_ntb0");
    ASSERT_GE(raw, 0);
    const auto raw_id = static_cast<uint16_t>(raw);
    rte_pmd_plx_ntb_config config{};
    config.size = sizeof(config);
    rte_rawdev_info info{};
    info.dev_private = &config;
    ASSERT_EQ(rte_rawdev_configure(raw_id, &info, sizeof(config)), 0);
    ASSERT_EQ(rte_rawdev_queue_setup(raw_id, 0, nullptr, 0), 0);
    ASSERT_EQ(rte_rawdev_start(raw_id), 0);
    int rc = 0;
    const std::string said = vdev_error("net_plx_ntb9", "dev=raw_plx_ntb0", &rc);
    EXPECT_EQ(rc, -EBUSY);
    EXPECT_NE(said.find("raw_plx_ntb0 is started"), std::string::npos) << said;
    EXPECT_EQ(rte_vdev_uninit("raw_plx_ntb0"), 0);
}

TEST_F(Ports, AStopThatCouldNotCompleteSaysSoAndAStartWaitsForIt)
{
    make();
    start({}, {});
    one_each_way(1);
    const auto raw = static_cast<uint16_t>(rte_pmd_plx_ntb_find("raw_plx_ntb.net_plx_ntb0"));
    ASSERT_EQ(rte_pmd_plx_ntb_inject(raw, RTE_PMD_PLX_NTB_FAULT_CARD_GONE, 1), 0);
    EXPECT_EQ(rte_eth_dev_stop(near->id()), -EIO);
    EXPECT_EQ(rte_eth_dev_start(near->id()), -EBUSY);
    ASSERT_EQ(rte_pmd_plx_ntb_inject(raw, RTE_PMD_PLX_NTB_FAULT_CARD_GONE, 0), 0);
    ASSERT_TRUE(await([&] { return rte_eth_dev_start(near->id()) == 0; }));
    ASSERT_TRUE(near->await_link(true));
    ASSERT_TRUE(far->await_link(true));
    one_each_way(2);
}

TEST_F(Ports, APortRemovedUnderItsPeerLeavesTheOtherReady)
{
    make();
    start({}, {});
    one_each_way(1);
    far.reset();
    ASSERT_TRUE(near->await_link(false));
    far = std::make_unique<TestPort>("net_plx_ntb1", cable() + small);
    ASSERT_EQ(far->rc(), 0);
    ASSERT_EQ(far->start({.rx = 2, .tx = 2, .scatter = true}), 0);
    ASSERT_TRUE(near->await_link(true));
    ASSERT_TRUE(far->await_link(true));
    one_each_way(2);
}

/// What rte_power_monitor() does before it sleeps. @return whether it would
bool would_sleep(const TestPort &port)
{
    rte_power_monitor_cond condition{};
    EXPECT_EQ(rte_eth_get_monitor_addr(port.id(), 0, &condition), 0);
    EXPECT_EQ(condition.size, sizeof(uint32_t));
    auto *word = static_cast<uint32_t *>(const_cast<void *>(condition.addr));
    return condition.fn(__atomic_load_n(word, __ATOMIC_ACQUIRE), condition.opaque) == 0;
}

void poll_empty(const TestPort &port)
{
    rte_mbuf *none = nullptr;
    ASSERT_EQ(rte_eth_rx_burst(port.id(), 0, &none, 1), 0);
}

TEST_F(Ports, APollingCoreMaySleepUntilAFrameComes)
{
    make();
    ASSERT_EQ(near->start({}), 0);
    poll_empty(*near);
    EXPECT_TRUE(would_sleep(*near)); // there is no peer
    ASSERT_EQ(far->start({}), 0);
    ASSERT_TRUE(await([&] { return !would_sleep(*near); })); // there is one
    for (uint32_t round = 0; round < 3; ++round) {
        ASSERT_TRUE(await([&] {
            poll_empty(*near);
            return would_sleep(*near);
        }));
        rte_power_monitor_cond condition{};
        ASSERT_EQ(rte_eth_get_monitor_addr(near->id(), 0, &condition), 0);
        ASSERT_TRUE(send(*far, 0, make_frame(sender.get(), round == 1 ? 1518 : 64, round)));
        // The condition that was taken before, as a core that sleeps has it.
        auto *word = static_cast<uint32_t *>(const_cast<void *>(condition.addr));
        EXPECT_TRUE(await([&] {
            return condition.fn(__atomic_load_n(word, __ATOMIC_ACQUIRE), condition.opaque) == -1;
        }));
        EXPECT_FALSE(would_sleep(*near));
        rte_mbuf *frame = receive(*near, 0);
        ASSERT_NE(frame, nullptr);
        rte_pktmbuf_free(frame);
        EXPECT_FALSE(would_sleep(*near)); // the peer waits for its credits
    }
    ASSERT_EQ(rte_eth_dev_stop(far->id()), 0);
    ASSERT_TRUE(near->await_link(false));
    poll_empty(*near);
    EXPECT_TRUE(would_sleep(*near));
}

/// A port over a rawdev of its own name, while both directions are polled.
class Polled : public Ports
{
protected:
    void SetUp() override
    {
        Ports::SetUp();
        ASSERT_EQ(rte_vdev_init(rawdev, (cable() + small).c_str()), 0);
        near = std::make_unique<TestPort>("net_plx_ntb0", std::string("dev=") + rawdev);
        far = std::make_unique<TestPort>("net_plx_ntb1", cable() + small);
        ASSERT_EQ(near->rc(), 0);
        ASSERT_EQ(far->rc(), 0);
        changes = 0;
        ASSERT_EQ(
            rte_eth_dev_callback_register(near->id(), RTE_ETH_EVENT_INTR_RMV, on_change, nullptr),
            0);
        start({.rmv = true}, {});
        one_each_way(1);
        begin();
    }
    void TearDown() override
    {
        finish();
        rte_eth_dev_callback_unregister(near->id(), RTE_ETH_EVENT_INTR_RMV, on_change, nullptr);
        Ports::TearDown();
        rte_vdev_uninit(rawdev);
    }
    void finish()
    {
        done = true;
        if (lcore.joinable())
            lcore.join();
    }
    /// Both ports send to each other. It calls the driver as a core does that was in a burst when
    /// the port was stopped: what ethdev puts in the place of a stopped port's bursts is not used.
    void poll()
    {
        const struct rte_eth_fp_ops ops[] = {rte_eth_fp_ops[near->id()], rte_eth_fp_ops[far->id()]};
        while (!done)
            for (const auto &port : ops) {
                rte_mbuf *frame = make_frame(sender.get(), 64, 0);
                if (frame != nullptr && port.tx_pkt_burst(port.txq.data[0], &frame, 1) == 0)
                    rte_pktmbuf_free(frame);
                if (port.rx_pkt_burst(port.rxq.data[0], &frame, 1) == 1) {
                    rte_pktmbuf_free(frame);
                    received = received + 1;
                }
            }
    }
    void begin()
    {
        done = false;
        const unsigned before = received;
        lcore = std::thread([this] { poll(); });
        ASSERT_TRUE(await([&] { return received > before + 100; }));
    }

    static constexpr const char *rawdev = "raw_plx_ntb0";
    std::thread lcore;
    std::atomic<bool> done{false};
    std::atomic<unsigned> received{0};
};

TEST_F(Polled, AStopInMidBurstLosesNoMbufAndTrafficComesBack)
{
    for (int round = 0; round < 10; ++round) {
        ASSERT_EQ(rte_eth_dev_stop(near->id()), 0);
        finish();
        ASSERT_EQ(rte_eth_dev_start(near->id()), 0);
        ASSERT_TRUE(near->await_link(true));
        ASSERT_TRUE(far->await_link(true));
        begin();
    }
    ASSERT_EQ(rte_eth_dev_stop(near->id()), 0);
    ASSERT_EQ(rte_eth_dev_stop(far->id()), 0);
    finish(); // the ports are closed with what came in between still in their rings
}

class Removal : public Polled
{
protected:
    uint16_t raw_id() const { return static_cast<uint16_t>(rte_pmd_plx_ntb_find(rawdev)); }
    /// After it has gone, while it is still polled.
    void expect_gone()
    {
        ASSERT_TRUE(await([] { return changes == 1; }));
        EXPECT_EQ(rte_eth_dev_is_removed(near->id()), 1);
        EXPECT_EQ(near->link().link_status, RTE_ETH_LINK_DOWN);
        EXPECT_TRUE(far->await_link(false));
        const uint64_t before = near->xstat("tx_no_link");
        EXPECT_TRUE(await([&] { return near->xstat("tx_no_link") > before; }));
        finish();
        poll_empty(*near);
        EXPECT_TRUE(would_sleep(*near));
        EXPECT_EQ(rte_eth_dev_set_link_up(near->id()), 0); // it is not down by hand
        EXPECT_EQ(rte_eth_dev_stop(near->id()), 0);
        EXPECT_LT(rte_eth_dev_start(near->id()), 0);
        EXPECT_EQ(rte_eth_stats_reset(near->id()), 0);
        EXPECT_EQ(near->stats().opackets, 0u);
    }
};

TEST_F(Removal, OfTheRawdevEndsThePortAndNothingElse)
{
    ASSERT_EQ(rte_vdev_uninit(rawdev), 0);
    expect_gone();
    EXPECT_EQ(changes, 1u);
    // Another of the same name and id: the port does not reach it.
    ASSERT_EQ(rte_vdev_init(rawdev, (cable() + small).c_str()), 0);
    EXPECT_LT(rte_eth_dev_start(near->id()), 0);
    auto again = std::make_unique<TestPort>("net_plx_ntb2", std::string("dev=") + rawdev);
    ASSERT_EQ(again->rc(), 0);
    ASSERT_EQ(again->start({}), 0);
    ASSERT_TRUE(far->await_link(true));
    near.swap(again);
    ASSERT_TRUE(near->await_link(true));
    one_each_way(5);
    near.swap(again);
    again.reset();
}

TEST_F(Removal, OfARawdevThatWasClosed)
{
    rte_rawdev_stop(raw_id());
    ASSERT_EQ(rte_rawdev_close(raw_id()), 0);
    expect_gone();
}

TEST_F(Removal, OfTheCardByAnEventOfEal)
{
    rte_dev_event_callback_process("0000:ff:1f.7", RTE_DEV_EVENT_REMOVE);
    rte_dev_event_callback_process(rawdev, RTE_DEV_EVENT_ADD);
    EXPECT_EQ(changes, 0u);
    ASSERT_EQ(rte_pmd_plx_ntb_inject(raw_id(), RTE_PMD_PLX_NTB_FAULT_CARD_GONE, 1), 0);
    rte_dev_event_callback_process(rawdev, RTE_DEV_EVENT_REMOVE);
    rte_dev_event_callback_process(rawdev, RTE_DEV_EVENT_REMOVE);
    expect_gone();
}

TEST_F(Removal, IsRefusedWhileThePortsApplicationHoldsItsBuffers)
{
    finish();
    near.reset();
    near =
        std::make_unique<TestPort>("net_plx_ntb0", std::string("dev=") + rawdev + ",zero_copy=1");
    ASSERT_EQ(near->rc(), 0);
    ASSERT_EQ(near->start({.rmv = true}), 0);
    ASSERT_TRUE(near->await_link(true));
    ASSERT_TRUE(far->await_link(true));
    rte_mbuf *frame = exchange(*far, *near, 0, make_frame(sender.get(), 1518, 3));
    ASSERT_NE(frame, nullptr);
    EXPECT_NE(rte_vdev_uninit(rawdev), 0);
    EXPECT_EQ(rte_eth_dev_is_removed(near->id()), 0);
    rte_pktmbuf_free(frame);
    EXPECT_EQ(rte_vdev_uninit(rawdev), 0);
    EXPECT_EQ(rte_eth_dev_is_removed(near->id()), 1);
}

} // namespace
