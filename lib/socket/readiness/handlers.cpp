// SPDX-License-Identifier: BSD-3-Clause
#include "readiness/handlers.hpp"

#include <atomic>

namespace ntb::socket
{

namespace
{

// A thread and its handlers alone see them. Memory for them is there from the thread's start: a
// handler may not ask for any.
[[gnu::tls_model("initial-exec")]] thread_local std::atomic<std::uint32_t> all;
[[gnu::tls_model("initial-exec")]] thread_local std::atomic<std::uint32_t> not_restarting;
[[gnu::tls_model("initial-exec")]] thread_local std::atomic<std::uint32_t> ending;
// Not where the waiting call has it: a handler that leaves it by longjmp() would leave a pointer.
[[gnu::tls_model("initial-exec")]] thread_local timespec time_of_sleep;

void count(std::atomic<std::uint32_t> &counter)
{
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

} // namespace

void handler_runs(bool restarts)
{
    count(all);
    if (!restarts)
        count(not_restarting);
    time_of_sleep = {};
}

timespec &sleep_time()
{
    return time_of_sleep;
}

Handled handled()
{
    return {all.load(std::memory_order_relaxed), not_restarting.load(std::memory_order_relaxed),
            ending.load(std::memory_order_relaxed)};
}

void end_restarts()
{
    count(ending);
}

} // namespace ntb::socket
