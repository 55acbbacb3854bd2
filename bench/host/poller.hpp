// SPDX-License-Identifier: BSD-3-Clause
// The thread that drives a dedicated worker, on the core of the thread that uses its channels.
#ifndef BENCH_HOST_POLLER_HPP
#define BENCH_HOST_POLLER_HPP

#include <atomic>
#include <thread>

#include <ntbmsg.h>

namespace bench
{

/// Runs for its life, with the scheduling of the thread that makes it.
class Poller
{
public:
    /// @param worker  NULL: there is nothing to drive
    explicit Poller(ntbmsg_worker *worker);
    ~Poller();
    Poller(const Poller &) = delete;
    Poller &operator=(const Poller &) = delete;

private:
    std::atomic<bool> m_stop{false};
    std::thread m_thread;
};

} // namespace bench

#endif
