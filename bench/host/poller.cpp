// SPDX-License-Identifier: BSD-3-Clause
#include "host/poller.hpp"

#include <sched.h>

namespace bench
{

Poller::Poller(ntbmsg_worker *worker)
{
    if (worker == nullptr)
        return;
    m_thread = std::thread([this, worker] {
        while (!m_stop.load(std::memory_order_acquire))
            if (ntbmsg_worker_poll(worker) == 0)
                sched_yield();
        ntbmsg_worker_poll(worker); // what was asked for last
    });
}

Poller::~Poller()
{
    m_stop.store(true, std::memory_order_release);
    if (m_thread.joinable())
        m_thread.join();
}

} // namespace bench
