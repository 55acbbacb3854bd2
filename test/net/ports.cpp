// SPDX-License-Identifier: BSD-3-Clause
#include "ports.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include <rte_bus_vdev.h>
#include <rte_power_intrinsics.h>

#include "log_capture.hpp"

namespace test
{

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

TestPort::TestPort(std::string name, const std::string &args) : name_(std::move(name))
{
    rc_ = rte_vdev_init(name_.c_str(), args.c_str());
    if (rc_ == 0)
        rc_ = rte_eth_dev_get_port_by_name(name_.c_str(), &id_);
}

TestPort::~TestPort()
{
    if (rc_ == 0) {
        rte_eth_dev_stop(id_);
        EXPECT_EQ(rte_vdev_uninit(name_.c_str()), 0);
    }
    if (pool_ != nullptr) {
        EXPECT_EQ(rte_mempool_in_use_count(pool_.get()), 0u) << name_;
    }
}

int TestPort::start(const Setup &setup)
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

rte_eth_link TestPort::link() const
{
    rte_eth_link link{};
    EXPECT_EQ(rte_eth_link_get_nowait(id_, &link), 0);
    return link;
}

bool TestPort::await_link(bool up) const
{
    return await([&] { return (link().link_status == RTE_ETH_LINK_UP) == up; });
}

rte_eth_stats TestPort::stats() const
{
    rte_eth_stats stats{};
    EXPECT_EQ(rte_eth_stats_get(id_, &stats), 0);
    return stats;
}

uint64_t TestPort::xstat(const char *name) const
{
    uint64_t id = 0;
    uint64_t value = 0;
    EXPECT_EQ(rte_eth_xstats_get_id_by_name(id_, name, &id), 0) << name;
    EXPECT_EQ(rte_eth_xstats_get_by_id(id_, &id, &value, 1), 1) << name;
    return value;
}

namespace
{

uint8_t byte_of(uint32_t seed, uint32_t at)
{
    return static_cast<uint8_t>(seed * 31 + at * 7 + (at >> 8));
}

} // namespace

rte_mbuf *make_frame(rte_mempool *pool, uint32_t bytes, uint32_t seed, uint16_t segment)
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

void poll_empty(const TestPort &port)
{
    rte_mbuf *none = nullptr;
    ASSERT_EQ(rte_eth_rx_burst(port.id(), 0, &none, 1), 0);
}

bool would_sleep(const TestPort &port)
{
    rte_power_monitor_cond condition{};
    EXPECT_EQ(rte_eth_get_monitor_addr(port.id(), 0, &condition), 0);
    EXPECT_EQ(condition.size, sizeof(uint32_t));
    auto *word = static_cast<uint32_t *>(const_cast<void *>(condition.addr));
    return condition.fn(__atomic_load_n(word, __ATOMIC_ACQUIRE), condition.opaque) == 0;
}

std::atomic<unsigned> changes;
int on_change(uint16_t, rte_eth_event_type, void *, void *)
{
    ++changes;
    return 0;
}

void Ports::SetUp()
{
    sender = make_pool("sender", 2047, 2048);
    ASSERT_NE(sender, nullptr);
}

void Ports::TearDown()
{
    near.reset();
    far.reset();
    EXPECT_EQ(rte_mempool_in_use_count(sender.get()), 0u);
    EXPECT_EQ(rte_eth_dev_count_avail(), 0u);
}

std::string Ports::cable() const
{
    return std::string("cable=mem:") +
           testing::UnitTest::GetInstance()->current_test_info()->name();
}

void Ports::make(const std::string &near_args, const std::string &far_args)
{
    near = std::make_unique<TestPort>("net_plx_ntb0", cable() + small + near_args);
    far = std::make_unique<TestPort>("net_plx_ntb1", cable() + small + far_args);
    ASSERT_EQ(near->rc(), 0);
    ASSERT_EQ(far->rc(), 0);
}

void Ports::start(const TestPort::Setup &near_setup, const TestPort::Setup &far_setup)
{
    ASSERT_EQ(near->start(near_setup), 0);
    ASSERT_EQ(far->start(far_setup), 0);
    ASSERT_TRUE(near->await_link(true));
    ASSERT_TRUE(far->await_link(true));
}

void Ports::one_each_way(uint32_t seed)
{
    pass(*near, *far, 0, 200, seed);
    pass(*far, *near, 0, 1500, seed + 1);
}

void Ports::pass(const TestPort &from, const TestPort &to, uint16_t queue, uint32_t bytes,
                 uint32_t seed, uint16_t segment)
{
    rte_mbuf *frame = exchange(from, to, queue, make_frame(sender.get(), bytes, seed, segment));
    ASSERT_NE(frame, nullptr);
    EXPECT_EQ(frame->pkt_len, bytes);
    EXPECT_EQ(same_bytes(frame, seed), bytes);
    EXPECT_EQ(frame->port, to.id());
    EXPECT_EQ(frame->pool, to.pool());
    rte_pktmbuf_free(frame);
}

} // namespace test
