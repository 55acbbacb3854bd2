// SPDX-License-Identifier: BSD-3-Clause
// Two hosts whose memory, clock and cable the test holds in its hand, and the link between them.
#ifndef TEST_UNIT_DRIVER_LINK_HOSTS_HPP
#define TEST_UNIT_DRIVER_LINK_HOSTS_HPP

#include "link/link.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace plx::test
{

using pmd::Link;
using pmd::LinkEvent;
using pmd::LinkState;

inline constexpr uint64_t window_bytes = uint64_t{256} << 20;

inline wire::Hello sizes()
{
    wire::Hello h{};
    h.block_bytes = 16 << 20;
    h.qp_count = 2;
    h.ring_lines = 1024;
    h.buffer_ring_lines = 32;
    h.buf_bytes = 2048;
    h.buf_begin = static_cast<uint32_t>(
        wire::queue_area_end(h.qp_count, h.ring_lines, h.buffer_ring_lines) / wire::line_bytes);
    h.buf_end = h.buf_begin + 4096 * 34;
    h.max_message = 65536;
    h.heartbeat_us = 10'000;
    return h;
}

/// What both hosts of a test share.
struct World {
    uint64_t now_us = 1'000'000;
    std::mt19937_64 random{1};
    bool cable = true;
};

/// A host: its exposed block is two words of interest; a store arrives if the cable and the window
/// of the other side are open.
class Host final : public pmd::LinkDevice
{
public:
    explicit Host(World &world) : world_(world), link(*this) {}

    void join(Host &other) { other_ = &other; }
    int start(const wire::Hello &own = sizes()) { return link.start(own, window_bytes, {}); }
    /// The process dies: nothing is said, its memory is gone.
    void die()
    {
        alive = false;
        window = false;
        open = false;
        inbox = {};
        heartbeat = 0;
    }
    /// Another process takes its place.
    void born(const wire::Hello &own = sizes())
    {
        alive = true;
        link.~Link();
        new (&link) Link(*this);
        ASSERT_EQ(start(own), 0);
    }
    bool saw(LinkEvent event) const
    {
        for (LinkEvent e : events)
            if (e == event)
                return true;
        return false;
    }

    uint64_t now_us() override { return world_.now_us; }
    uint64_t random() override { return world_.random(); }
    bool reachable(const char **why) override
    {
        *why = gone ? "the chip does not answer" : "the link is down";
        return !gone && world_.cable && other_->alive;
    }
    int open_window() override
    {
        EXPECT_FALSE(open) << "the window is opened while queues run";
        if (open_window_result == 0)
            window = true;
        return open_window_result;
    }
    bool end_sending() override
    {
        sending = false;
        return !engine_busy;
    }
    uint64_t unconfirmed() override { return sent; }
    bool all_received(uint64_t *received) override
    {
        *received = taken;
        return arrived == taken;
    }
    bool quiesce() override
    {
        if (busy > 0) {
            --busy;
            return false;
        }
        open = false;
        return true;
    }
    bool fence() override
    {
        EXPECT_FALSE(open) << "fenced under a running queue";
        if (deaf)
            return false;
        ++fences;
        inbox = {}; // the block has moved: what was said before does not come along
        followed = followed && !moves;
        window = false;
        return true;
    }
    void prepare_rings(uint64_t seed) override
    {
        EXPECT_FALSE(open) << "rings are prepared under a running queue";
        prepared = seed;
    }
    int open_queues(const wire::Hello &, uint64_t own_seed, uint64_t peer_seed) override
    {
        EXPECT_EQ(own_seed, prepared);
        own_pair = own_seed;
        peer_pair = peer_seed;
        open = sending = open_queues_result == 0;
        return open_queues_result;
    }
    wire::Hello read_hello() override { return inbox; }
    uint64_t read_heartbeat() override { return heartbeat; }
    uint64_t heard() override { return traffic; }
    void write_hello(const wire::Hello &hello) override
    {
        if (reaches())
            other_->inbox = hello;
    }
    void write_heartbeat(uint64_t word) override
    {
        if (reaches() && !mute)
            other_->heartbeat = word;
    }
    void report(LinkEvent event) override { events.push_back(event); }
    void explain(const char *why) override { said = why; }

    bool reaches() const
    {
        return world_.cable && other_->alive && other_->window && other_->followed && !lose_stores;
    }

private:
    World &world_;
    Host *other_ = nullptr;

public:
    Link link;
    wire::Hello inbox{};
    uint64_t heartbeat = 0;
    std::vector<LinkEvent> events;
    std::string said;
    uint64_t prepared = 0, own_pair = 0, peer_pair = 0;
    int fences = 0;
    int busy = 0;
    int open_window_result = 0;
    int open_queues_result = 0;
    bool alive = true;
    bool window = false;
    bool open = false;
    bool sending = false;
    bool engine_busy = false; ///< something sent has not left yet
    uint64_t sent = 0;        ///< and not confirmed
    uint64_t arrived = 0, taken = 0;
    uint64_t traffic = 0; ///< what the peer has stored beside heartbeats
    bool mute = false;
    bool lose_stores = false;
    bool gone = false;    ///< the chip does not answer
    bool moves = false;   ///< a fence takes the way of the peer's stores along, until it follows
    bool followed = true; ///< it has
    bool deaf = false;    ///< nor does it say that the window is closed
};

class LinkTest : public testing::Test
{
protected:
    LinkTest()
    {
        a.join(b);
        b.join(a);
    }
    void run(unsigned ticks, uint64_t step_us = 5'000)
    {
        for (unsigned i = 0; i < ticks; ++i) {
            world.now_us += step_us;
            if (a.alive)
                a.link.tick();
            if (b.alive)
                b.link.tick();
        }
    }
    /// Both start, and meet.
    void try_connect()
    {
        ASSERT_EQ(a.start(), 0);
        ASSERT_EQ(b.start(), 0);
        run(4);
    }
    void expect_joined()
    {
        ASSERT_EQ(a.link.state(), LinkState::connected) << a.link.why();
        ASSERT_EQ(b.link.state(), LinkState::connected) << b.link.why();
        EXPECT_EQ(a.own_pair, b.peer_pair);
        EXPECT_EQ(b.own_pair, a.peer_pair);
    }

    World world;
    Host a{world}, b{world};
};

} // namespace plx::test

#endif
