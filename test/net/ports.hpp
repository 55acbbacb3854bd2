// SPDX-License-Identifier: BSD-3-Clause
// Two ports of one process, joined by a cable, for the tests of what rte_ethdev.h promises of them.
#ifndef TEST_NET_PORTS_HPP
#define TEST_NET_PORTS_HPP

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

namespace test
{

constexpr std::chrono::seconds patience{30};
/// Small, so that a case is short.
const std::string small = ",ring=1024,buffers=512,queue_buffers=112";

bool await(const std::function<bool()> &fact);

struct PoolDeleter {
    void operator()(rte_mempool *pool) const { rte_mempool_free(pool); }
};
using Pool = std::unique_ptr<rte_mempool, PoolDeleter>;

Pool make_pool(const std::string &name, unsigned mbufs, uint16_t room);

/// @return what the probe of a port logs
std::string vdev_error(const std::string &name, const std::string &args, int *rc);

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

    TestPort(std::string name, const std::string &args);
    TestPort(const TestPort &) = delete;
    TestPort &operator=(const TestPort &) = delete;
    ~TestPort();

    int rc() const { return rc_; }
    uint16_t id() const { return id_; }
    rte_mempool *pool() const { return pool_.get(); }

    int start(const Setup &setup);
    rte_eth_link link() const;
    bool await_link(bool up) const;
    rte_eth_stats stats() const;
    uint64_t xstat(const char *name) const;

private:
    std::string name_;
    int rc_ = 0;
    uint16_t id_ = RTE_MAX_ETHPORTS;
    Pool pool_;
};

/// A frame of @p bytes in segments of at most @p segment.
rte_mbuf *make_frame(rte_mempool *pool, uint32_t bytes, uint32_t seed, uint16_t segment = 2048);
/// @return the first byte that differs, or the frame's length
uint32_t same_bytes(const rte_mbuf *frame, uint32_t seed);

rte_mbuf *receive(const TestPort &port, uint16_t queue);
bool send(const TestPort &port, uint16_t queue, rte_mbuf *frame);
/// Sends a frame and receives it. The receiver polls meanwhile, which makes its buffers available.
rte_mbuf *exchange(const TestPort &from, const TestPort &to, uint16_t queue, rte_mbuf *frame);
void poll_empty(const TestPort &port);

/// What rte_power_monitor() does before it sleeps. @return whether it would
bool would_sleep(const TestPort &port);

/// Counts the events that it is registered for.
extern std::atomic<unsigned> changes;
int on_change(uint16_t port, rte_eth_event_type event, void *arg, void *ret);

class Ports : public testing::Test
{
protected:
    void SetUp() override;
    void TearDown() override;
    std::string cable() const;
    void make(const std::string &near_args = "", const std::string &far_args = "");
    void start(const TestPort::Setup &near_setup, const TestPort::Setup &far_setup);
    void one_each_way(uint32_t seed);
    void pass(const TestPort &from, const TestPort &to, uint16_t queue, uint32_t bytes,
              uint32_t seed, uint16_t segment = 2048);

    std::unique_ptr<TestPort> near;
    std::unique_ptr<TestPort> far;
    Pool sender;
};

} // namespace test

#endif
