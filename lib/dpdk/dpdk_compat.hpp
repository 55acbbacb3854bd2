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

inline int create_control_thread(pthread_t *thread, const char *name, ThreadResult (*body)(void *),
                                 void *arg)
{
    return rte_ctrl_thread_create(thread, name, nullptr, body, arg);
}

#else

using ThreadResult = uint32_t;

inline int create_control_thread(pthread_t *thread, const char *name, ThreadResult (*body)(void *),
                                 void *arg)
{
    rte_thread_t created;
    const int rc = rte_thread_create_control(&created, name, body, arg);
    if (rc == 0)
        *thread = static_cast<pthread_t>(created.opaque_id);
    return rc;
}

#endif

} // namespace dpdk

#endif
