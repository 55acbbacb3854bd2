// SPDX-License-Identifier: BSD-3-Clause
#include "signals.hpp"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace app
{

namespace
{

// A user has his prompt back within 100 ms; the rest of them is for closing.
constexpr int64_t clean_end_ns = 60'000'000;

volatile std::sig_atomic_t caught = 0;
std::atomic<int64_t> caught_ns = 0;                       ///< valid once caught is set
static_assert(std::atomic<int64_t>::is_always_lock_free); // written by a signal handler

int64_t monotonic_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void on_signal(int number)
{
    caught_ns.store(monotonic_ns(), std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_release);
    caught = number;
}

} // namespace

void catch_signals()
{
    struct sigaction action = {};
    action.sa_handler = on_signal;
    // One shot, and no SA_RESTART: a blocked read of standard input has to return.
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    // A reader of our output that has left must not take the clean end with it.
    signal(SIGPIPE, SIG_IGN);
}

int stop_signal()
{
    return caught;
}

bool stop_is_overdue()
{
    // Another thread may see the signal before its time, which is then 0: overdue at once.
    return caught != 0 && monotonic_ns() - caught_ns.load(std::memory_order_relaxed) > clean_end_ns;
}

} // namespace app
