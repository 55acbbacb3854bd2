// SPDX-License-Identifier: BSD-3-Clause
#include "sync/control_thread.hpp"

#include <algorithm>
#include <ctime>

#include <locked.hpp>
#include <short_turns.hpp>

#include "sync/starving.hpp"

namespace plx::pmd
{

namespace
{

constexpr uint64_t second_us = 1'000'000;
/// A job that begins so much later than asked for has waited for a CPU.
constexpr uint64_t starved_us = 100'000;

/// The clock that a condition is waited on by.
uint64_t clock_us()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * second_us +
           static_cast<uint64_t>(now.tv_nsec) / 1000;
}

} // namespace

int ControlThread::start(const char *name)
{
    ending_ = false;
    complained_ = false;
    const int rc = dpdk::create_control_thread(&thread_, name, run, this);
    exists_ = rc == 0;
    return rc;
}

void ControlThread::call(unsigned job, unsigned us)
{
    {
        const ntb::Locked locked(mutex_);
        ask(jobs_[job], us);
    }
    // Behind the lock: the thread, which may run at once, would only wait for its caller to go on.
    pthread_cond_signal(&changed_);
}

void ControlThread::stop()
{
    {
        const ntb::Locked locked(mutex_);
        ending_ = true;
        for (Entry &entry : jobs_)
            entry.due_us = never;
        pthread_cond_signal(&changed_);
    }
    if (exists_)
        pthread_join(thread_, nullptr);
    exists_ = false;
}

dpdk::ThreadResult ControlThread::run(void *arg)
{
    ntb::ask_for_short_turns();
    auto *self = static_cast<ControlThread *>(arg);
    self->complained_ = leave_starvation();
    self->serve();
    return {};
}

void ControlThread::serve()
{
    pthread_mutex_lock(&mutex_);
    while (!ending_) {
        Entry &entry = next();
        if (entry.due_us > clock_us()) {
            const timespec until{static_cast<time_t>(entry.due_us / second_us),
                                 static_cast<long>(entry.due_us % second_us * 1000)};
            if (entry.due_us == never)
                pthread_cond_wait(&changed_, &mutex_);
            else
                pthread_cond_clockwait(&changed_, &mutex_, CLOCK_MONOTONIC, &until);
            continue;
        }
        const uint64_t due_us = entry.due_us;
        entry.due_us = never;
        pthread_mutex_unlock(&mutex_);
        look_at_delay(clock_us() - due_us);
        const unsigned again_us = entry.work(entry.arg);
        pthread_mutex_lock(&mutex_);
        if (again_us != 0 && !ending_)
            ask(entry, again_us);
    }
    pthread_mutex_unlock(&mutex_);
}

/// Threads may get real-time priority after the start.
void ControlThread::look_at_delay(uint64_t us)
{
    if (us >= starved_us && !complained_)
        complained_ = leave_starvation();
}

ControlThread::Entry &ControlThread::next()
{
    return *std::min_element(jobs_, jobs_ + jobs_max,
                             [](const Entry &a, const Entry &b) { return a.due_us < b.due_us; });
}

void ControlThread::ask(Entry &entry, unsigned us)
{
    entry.due_us = std::min(entry.due_us, clock_us() + us);
}

} // namespace plx::pmd
