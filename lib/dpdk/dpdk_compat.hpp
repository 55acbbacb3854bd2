// SPDX-License-Identifier: BSD-3-Clause
/**
 * @file
 * One source for DPDK 22.11, 23.11 and 24.11: the code is written for the newest, and what an
 * older release lacks is defined here. No other file asks for DPDK's version.
 */
#ifndef NTB_DPDK_COMPAT_HPP
#define NTB_DPDK_COMPAT_HPP

#include <cstdint>

#include <pthread.h>
#include <sched.h>

#include <rte_lcore.h>
#include <rte_ring_elem.h>
#include <rte_telemetry.h>
#include <rte_thread.h>
#include <rte_version.h>

#if RTE_VERSION < RTE_VERSION_NUM(23, 3, 0, 0)

inline int rte_tel_data_add_dict_uint(rte_tel_data *data, const char *name, uint64_t value)
{
    return rte_tel_data_add_dict_u64(data, name, value);
}

#endif

namespace dpdk
{

/// rte_ring_create_elem(): 24.11's header declares it as a C++ function, which no library has.
rte_ring *create_ring(const char *name, unsigned elem_bytes, unsigned count, int socket,
                      unsigned flags) __asm__("rte_ring_create_elem");

#if RTE_VERSION < RTE_VERSION_NUM(23, 11, 0, 0)

/// The result type of a control thread's body; the result is not used.
using ThreadResult = void *;

inline int start_control_thread(pthread_t *thread, const char *name, ThreadResult (*body)(void *),
                                void *arg)
{
    return rte_ctrl_thread_create(thread, name, nullptr, body, arg);
}

#else

using ThreadResult = uint32_t;

inline int start_control_thread(pthread_t *thread, const char *name, ThreadResult (*body)(void *),
                                void *arg)
{
    rte_thread_t created;
    const int rc = rte_thread_create_control(&created, name, body, arg);
    if (rc == 0)
        *thread = static_cast<pthread_t>(created.opaque_id);
    return rc;
}

#endif

struct ControlThreadStart {
    pthread_t *thread;
    const char *name;
    ThreadResult (*body)(void *);
    void *arg;
    int rc;
};

inline void *start_at_normal_priority(void *start)
{
    auto *s = static_cast<ControlThreadStart *>(start);
    s->rc = start_control_thread(s->thread, s->name, s->body, s->arg);
    return nullptr;
}

/// A control thread of EAL, with normal priority whatever the caller has. It would inherit a
/// real-time priority; and EAL waits for it in sleeps so short that a caller with such a priority
/// never leaves the CPU, on which the new thread may have to begin.
/// @return 0 or a negative errno
inline int create_control_thread(pthread_t *thread, const char *name, ThreadResult (*body)(void *),
                                 void *arg)
{
    ControlThreadStart start = {thread, name, body, arg, 0};
    // Not pthread_getschedparam(), which does not see what sched_setscheduler() changed.
    const int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
    if (policy != SCHED_FIFO && policy != SCHED_RR) {
        start_at_normal_priority(&start);
        return start.rc;
    }
    pthread_attr_t attributes;
    if (const int error = pthread_attr_init(&attributes); error != 0)
        return -error;
    const sched_param normal{}; // set, or the C library takes the caller's
    pthread_attr_setschedparam(&attributes, &normal);
    pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_t starter;
    const int error = pthread_create(&starter, &attributes, start_at_normal_priority, &start);
    pthread_attr_destroy(&attributes);
    if (error != 0)
        return -error;
    pthread_join(starter, nullptr);
    return start.rc;
}

} // namespace dpdk

#endif
