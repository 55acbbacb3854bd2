// SPDX-License-Identifier: BSD-3-Clause
// The loop of an lcore over its lanes: polls while there is something to do, and sleeps when there
// was nothing for a while.
#ifndef APP_NET_WORKER_HPP
#define APP_NET_WORKER_HPP

#include <cstdint>
#include <vector>

#include <poll.h>

#include "lane.hpp"
#include "state.hpp"

namespace net
{

class Worker
{
public:
    Worker(State &state, uint16_t port, uint64_t idle_us)
        : state_(state), port_(port), idle_us_(idle_us)
    {
    }

    void add(Lane *lane) { lanes_.push_back(lane); }
    void run(); ///< until State::stop
    /// The state has changed: looks at it, even if asleep. Any thread.
    void wake() { bell_.ring(); }

private:
    void sleep();

    State &state_;
    const uint16_t port_;
    const uint64_t idle_us_;
    std::vector<Lane *> lanes_;
    std::vector<pollfd> fds_; ///< of sleep(), which allocates nothing after its first time
    Bell bell_;
};

} // namespace net

#endif
