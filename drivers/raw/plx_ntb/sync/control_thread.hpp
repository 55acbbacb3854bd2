// SPDX-License-Identifier: BSD-3-Clause
// A thread of a device's own for its control side. EAL's interrupt thread serves all devices of a
// process: what takes long for one would keep the heartbeats of the others.
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
    /// @return microseconds to its next call; 0: none before it is asked for
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
    /// Jobs are called from here on, one at a time, what was asked for before among them.
    /// @param name at most 15 characters. @return 0 or negative errno
    int start(const char *name);
    /// Asks for a call of @p job within @p us, and for one more where one is under way. Any thread,
    /// at any time.
    void call(unsigned job, unsigned us = 0);
    /// No job is under way when it returns, and nothing is asked for any more. Not from a job.
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
    void ask(Entry &entry, unsigned us);

    pthread_t thread_{};
    bool exists_ = false; ///< of those who start and stop
    Entry jobs_[jobs_max];
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed_ = PTHREAD_COND_INITIALIZER;
    bool ending_ = false; ///< guarded by the mutex
};

} // namespace plx::pmd

#endif
