// SPDX-License-Identifier: BSD-3-Clause
// The endpoint behind the opaque handle of ntbmsg_endpoint.h.
#ifndef NTBMSG_ENDPOINT_ENDPOINT_HPP
#define NTBMSG_ENDPOINT_ENDPOINT_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <rte_pmd_plx_ntb.h>
#include <rte_rawdev.h>

#include "endpoint/event_queue.hpp"
#include "ntbmsg.h"
#include "rma/region.hpp"
#include "transport/worker.hpp"

namespace ntbmsg
{

/// xstats of the device that make up ntbmsg_endpoint_stats.
inline constexpr unsigned stat_count = 9;

/// Checks options against their documented ranges. @return 0, or -EINVAL with the reason logged
int check_options(const ntbmsg_endpoint_options &options);

/// Looks up the ids of the xstats. @return 0, or -ENOTSUP with the reason logged
int find_stats(uint16_t dev_id, unsigned (&ids)[stat_count]);

} // namespace ntbmsg

/// Hot fields first: a burst call touches the count and one element of `burst`. Allocated by
/// rte_zmalloc(); no constructor runs, so that a C program needs no C++ run time.
struct alignas(64) ntbmsg_endpoint {
    uint32_t queues;
    uint16_t dev_id;
    bool started;
    bool has_events; ///< `events` was initialised
    rte_pmd_plx_ntb_burst burst[RTE_PMD_PLX_NTB_MAX_QUEUES];
    rte_pmd_plx_ntb_room_calls room_calls;
    rte_pmd_plx_ntb_flow_calls flow_calls;

    /// Written by the device's control thread, read by every worker in every poll.
    alignas(64) std::atomic<uint32_t> losses; ///< connections that were lost
    std::atomic<uint32_t> ends; ///< connections that were lost or whose peer has stopped
    std::atomic<bool> up;       ///< connected
    alignas(64) ntbmsg::Worker *workers;
    uint32_t workers_made; ///< initialized so far; to be ended and freed

    // Control path only from here.
    uint64_t unconfirmed;   ///< by ntbmsg_endpoint_close_linger()
    uint32_t queues_set_up; ///< set up so far, including those of workers; to be released
    ntbmsg_endpoint_options options;
    rte_mempool *tx_pool;
    rte_mempool *rx_pool; ///< mbufs of inline messages of bare queues
    unsigned stat_ids[ntbmsg::stat_count];
    ntbmsg::EventQueue events;
    ntbmsg::Regions regions;
    rte_pmd_plx_ntb_window_store_fn store; ///< into the memory window
    [[no_unique_address]] ntbmsg::Watch watch;
};

namespace ntbmsg
{

/// Name of the device, as EAL knows it; valid while the endpoint is open.
inline const char *device_name(const Endpoint &e)
{
    return rte_rawdevs[e.dev_id].name;
}

} // namespace ntbmsg

#endif
