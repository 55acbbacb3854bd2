// SPDX-License-Identifier: BSD-3-Clause
// Statistics of an endpoint, from the device's xstats.
#include <cerrno>

#include <rte_rawdev.h>

#include <sized.hpp>

#include "base/log.hpp"
#include "endpoint/endpoint.hpp"

namespace
{

struct Stat {
    const char *xstat;
    uint64_t ntbmsg_endpoint_stats::*field;
};

constexpr Stat stats_table[] = {
    {"tx_messages", &ntbmsg_endpoint_stats::tx_messages},
    {"tx_bytes", &ntbmsg_endpoint_stats::tx_bytes},
    {"rx_messages", &ntbmsg_endpoint_stats::rx_messages},
    {"rx_bytes", &ntbmsg_endpoint_stats::rx_bytes},
    {"tx_full", &ntbmsg_endpoint_stats::tx_full},
    {"tx_errors", &ntbmsg_endpoint_stats::tx_errors},
    {"tx_unconfirmed", &ntbmsg_endpoint_stats::tx_unconfirmed},
    {"rx_nombuf", &ntbmsg_endpoint_stats::rx_nombuf},
    {"link_connects", &ntbmsg_endpoint_stats::links},
};
static_assert(sizeof(stats_table) / sizeof(stats_table[0]) == ntbmsg::stat_count);

constexpr size_t first_stats =
    offsetof(ntbmsg_endpoint_stats, links) + sizeof(ntbmsg_endpoint_stats::links);

} // namespace

int ntbmsg::find_stats(uint16_t dev_id, unsigned (&ids)[stat_count])
{
    for (unsigned i = 0; i < stat_count; ++i) {
        const uint64_t value = rte_rawdev_xstats_by_name_get(dev_id, stats_table[i].xstat, &ids[i]);
        if (value == UINT64_MAX) {
            NTBMSG_LOG(ERR, "device %u has no statistic %s", dev_id, stats_table[i].xstat);
            return -ENOTSUP;
        }
    }
    return 0;
}

int ntbmsg_endpoint_stats_get(const ntbmsg_endpoint *endpoint, ntbmsg_endpoint_stats *stats)
{
    if (!ntbmsg::is_live(endpoint, __func__) || stats == nullptr)
        return -EINVAL;
    ntbmsg_endpoint_stats found{.size = sizeof(found)};
    uint64_t values[ntbmsg::stat_count] = {};
    const int got =
        rte_rawdev_xstats_get(endpoint->dev_id, endpoint->stat_ids, values, ntbmsg::stat_count);
    if (got < 0)
        return got;
    for (unsigned i = 0; i < ntbmsg::stat_count; ++i)
        found.*stats_table[i].field = values[i];
    for (uint32_t i = 0; i < endpoint->workers_made; ++i) {
        found.rx_dropped += endpoint->workers[i].rx_dropped.get();
        found.bad_peer += endpoint->workers[i].bad_peer.get();
    }
    return ntb::write_sized(found, first_stats, *stats);
}
