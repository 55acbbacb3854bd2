// SPDX-License-Identifier: BSD-3-Clause
// The control thread of a device. Each device has its own: on EAL's interrupt thread, which all
// devices of a process share, a slow device would delay the heartbeats of the others.
#ifndef PLX_NTB_SYNC_CONTROL_THREAD_HPP
#define PLX_NTB_SYNC_CONTROL_THREAD_HPP

#include <cstdint>

#include <pthread.h>

#include <dpdk_compat.hpp>

namespace plx::pmd
{

class ControlThread
{
public:
    /// @return microseconds to its next call; 0: none until call()
    using Job = unsigned (*)(void *arg);
    static constexpr unsigned jobs_max = 2;

    ControlThread() = default;
    ~ControlThread() { stop(); }
    ControlThread(const ControlThread &) = delete;
    ControlThread &operator=(const ControlThread &) = delete;

    /// While it is stopped. @param job below jobs_max
    void set_job(unsigned job, Job work, void *arg)
    {
        jobs_[job].work = work;
        jobs_[job].arg = arg;
    }
    /// From here on jobs are called, one at a time, including those requested before.
    /// @param name at most 15 characters. @return 0 or negative errno
    int start(const char *name);
    /// Requests a call of @p job within @p us, also while it is running. Any thread, at any time.
    void call(unsigned job, unsigned us = 0);
    /// When it returns, no job is running and requests are cancelled. Not from a job.
    void stop();

private:
    struct Entry {
        Job work = nullptr;
        void *arg = nullptr;
        uint64_t due_us = never; ///< guarded by the mutex
    };
    static constexpr uint64_t never = UINT64_MAX;

    static dpdk::ThreadResult run(void *arg);
    void serve();
    Entry &next();
    void look_at_delay(uint64_t us);
    void ask(Entry &entry, unsigned us);

    pthread_t thread_{};
    bool exists_ = false;     ///< by the thread that starts and stops it
    bool complained_ = false; ///< by the thread: it was starved, and said so
    Entry jobs_[jobs_max];
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed_ = PTHREAD_COND_INITIALIZER;
    bool ending_ = false; ///< guarded by the mutex
};

} // namespace plx::pmd

#endif
