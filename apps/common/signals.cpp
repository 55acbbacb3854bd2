// SPDX-License-Identifier: BSD-3-Clause
#include "signals.hpp"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>

#include <unistd.h>

namespace app
{

namespace
{

// A user has his prompt back within 100 ms; the rest of them is for closing.
constexpr int64_t clean_end_ns = 60'000'000;
// A signal that comes between a look at stop_signal() and a wait is missed by that wait: from the
// first one on a timer interrupts each.
constexpr long interrupt_ns = 10'000'000;

timer_t interrupter;
bool has_interrupter = false;

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
    const itimerspec often{{0, interrupt_ns}, {0, interrupt_ns}};
    if (has_interrupter)
        timer_settime(interrupter, 0, &often, nullptr); // may be called by a signal handler
}

void on_interrupt(int) {}

/// Interrupts the calling thread, once it is set. Without a timer a signal may miss one wait.
void make_interrupter()
{
    struct sigaction action = {};
    action.sa_handler = on_interrupt;
    // What reads or writes goes on; sleeps and polls return all the same.
    action.sa_flags = static_cast<int>(SA_RESTART);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGALRM;
    event._sigev_un._tid = gettid();
    has_interrupter = sigaction(SIGALRM, &action, nullptr) == 0 &&
                      timer_create(CLOCK_MONOTONIC, &event, &interrupter) == 0;
}

} // namespace

void catch_signals()
{
    if (!has_interrupter)
        make_interrupter();
    struct sigaction action = {};
    action.sa_handler = on_signal;
    // One shot, and no SA_RESTART: a blocked read of standard input has to return.
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    // A reader of our output that has left must not take the clean end with it.
    signal(SIGPIPE, SIG_IGN);
}

void stop_interrupting()
{
    const itimerspec never{};
    if (has_interrupter)
        timer_settime(interrupter, 0, &never, nullptr);
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
