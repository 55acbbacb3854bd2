// SPDX-License-Identifier: BSD-3-Clause
#include "worker.hpp"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_pause.h>

namespace net
{

namespace
{

/// The peer has no room: it is woken by what it was sent, so this is short. Nothing reports room.
constexpr int blocked_ms = 1;
constexpr int forever = -1;

} // namespace

void Worker::run()
{
    const uint64_t idle_ticks = rte_get_tsc_hz() / 1'000'000 * idle_us_;
    uint64_t last_busy = rte_rdtsc();
    while (!state_.stop.load(std::memory_order_relaxed)) {
        bool busy = false;
        for (Lane *lane : lanes_) {
            busy |= lane->to_kernel();
            busy |= lane->to_peer();
        }
        const uint64_t now = rte_rdtsc();
        if (busy) {
            last_busy = now;
        } else if (now - last_busy < idle_ticks) {
            rte_pause();
        } else {
            sleep();
            last_busy = rte_rdtsc();
        }
    }
}

/// What comes between the last poll and the arming makes the port's descriptor readable, and the
/// interface's is readable as long as it has a frame: nothing is missed.
void Worker::sleep()
{
    fds_.clear();
    fds_.push_back({bell_.fd(), POLLIN, 0});
    int timeout_ms = forever;
    for (const Lane *lane : lanes_) {
        if (rte_eth_dev_rx_intr_enable(port_, lane->queue()) == 0)
            fds_.push_back({rte_eth_dev_rx_intr_ctl_q_get_fd(port_, lane->queue()), POLLIN, 0});
        if (lane->blocked())
            timeout_ms = blocked_ms;
        else if (lane->used_by_kernel())
            fds_.push_back({lane->kernel(), POLLIN, 0});
    }
    poll(fds_.data(), fds_.size(), timeout_ms);
    for (const Lane *lane : lanes_)
        rte_eth_dev_rx_intr_disable(port_, lane->queue());
    bell_.clear();
}

} // namespace net
