// SPDX-License-Identifier: BSD-3-Clause
#include "rawdev.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <rte_bus_vdev.h>
#include <rte_common.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_rawdev.h>

#include "log.hpp"
#include "removal.hpp"

namespace plx::net
{

namespace
{

/// Rawdevs of ports that their bus has removed, by port id; under the bus's lock. They are closed.
char left[RTE_MAX_ETHPORTS][sizeof(Port::rawdev)];

void remove_left()
{
    for (char *name : left) {
        if (name[0] != '\0')
            rte_vdev_uninit(name);
        name[0] = '\0';
    }
}

int probe_rawdev(Port &port, const char *name, const char *args)
{
    // It has to begin with the driver's name, by which the bus finds it.
    const int length = snprintf(port.rawdev, sizeof(port.rawdev), "raw_plx_ntb.%s", name);
    if (length < 0 || static_cast<size_t>(length) >= sizeof(port.rawdev)) {
        PLX_NET_LOG(ERR, "%s: expected a shorter name, of at most %zu characters\n", name,
                    sizeof(port.rawdev) - sizeof("raw_plx_ntb."));
        return -EINVAL;
    }
    remove_left();
    const int rc = rte_vdev_init(port.rawdev, args);
    if (rc != 0) {
        PLX_NET_LOG(ERR, "%s: no rawdev with \"%s\": %s\n", name, args, rte_strerror(-rc));
        return rc;
    }
    port.probed_rawdev = true;
    return 0;
}

rte_rawdev_info info_of(rte_pmd_plx_ntb_info *info)
{
    info->size = sizeof(*info);
    rte_rawdev_info raw{};
    raw.dev_private = info;
    return raw;
}

int configure(const Port &port, rte_pmd_plx_ntb_config config)
{
    config.size = sizeof(config);
    rte_rawdev_info raw{};
    raw.dev_private = &config;
    return rte_rawdev_configure(port.raw_id, &raw, sizeof(config));
}

/// Lines of the message ring, if the application asked for more than the device has by itself. A
/// small frame takes two.
uint32_t ring_lines(const Port &port, const rte_pmd_plx_ntb_info &info)
{
    uint32_t descriptors = 0;
    for (unsigned q = 0; q < port.data->nb_rx_queues; ++q)
        descriptors = std::max<uint32_t>(descriptors, rx_queue(port, q)->descriptors);
    const uint32_t lines = std::min(rte_align32pow2(descriptors * 2), ring_lines_max);
    return lines > info.ring_lines ? lines : 0;
}

int set_up_queue(const Port &port, uint16_t index)
{
    rte_pmd_plx_ntb_queue_config config{};
    config.size = sizeof(config);
    // A queue that only sends gets a pool of the device's.
    if (index < port.data->nb_rx_queues)
        config.pool = rx_queue(port, index)->pool;
    int rc = rte_rawdev_queue_setup(port.raw_id, index, &config, sizeof(config));
    if (rc != 0)
        return rc;
    rte_pmd_plx_ntb_burst burst{};
    rc = rte_pmd_plx_ntb_burst_get(port.raw_id, index, &burst);
    if (rc != 0)
        return rc;
    if (index < port.data->nb_rx_queues) {
        rx_queue(port, index)->queue = burst.rx_queue;
        rx_queue(port, index)->burst = burst.rx;
    }
    if (index < port.data->nb_tx_queues) {
        tx_queue(port, index)->queue = burst.tx_queue;
        tx_queue(port, index)->burst = burst.tx;
    }
    return 0;
}

} // namespace

int acquire_rawdev(Port &port, const char *name, const Options &options, rte_pmd_plx_ntb_info *info)
{
    if (options.dev[0] == '\0') {
        if (const int rc = probe_rawdev(port, name, options.rawdev_args); rc != 0)
            return rc;
    } else {
        snprintf(port.rawdev, sizeof(port.rawdev), "%s", options.dev);
    }
    const int found = rte_pmd_plx_ntb_find(port.rawdev);
    if (found < 0) {
        PLX_NET_LOG(ERR, "%s: there is no raw_plx_ntb device \"%s\"\n", name, port.rawdev);
        return found;
    }
    port.raw_id = static_cast<uint16_t>(found);
    rte_pmd_plx_ntb_link link{};
    if (rte_pmd_plx_ntb_link_get(port.raw_id, &link) == 0 &&
        link.state != RTE_PMD_PLX_NTB_STOPPED) {
        PLX_NET_LOG(ERR, "%s: %s is started: stop it first, or name another\n", name, port.rawdev);
        return -EBUSY;
    }
    rte_eth_dev *dev = &rte_eth_devices[port.data->port_id];
    int rc = rte_pmd_plx_ntb_hold(port.raw_id, on_gone, dev, &port.hold);
    if (rc != 0) {
        PLX_NET_LOG(ERR, "%s: %s %s\n", name, port.rawdev,
                    rc == -EBUSY ? "belongs to another port" : rte_strerror(-rc));
        release_rawdev(port);
        return rc;
    }
    watch_removal(dev);
    rc = rawdev_info(port, info);
    if (rc != 0)
        release_rawdev(port);
    port.fit = std::min(info->max_message, frame_max);
    return rc;
}

void release_rawdev(Port &port)
{
    unwatch_removal(&rte_eth_devices[port.data->port_id]);
    // Before the rawdev is removed here: that is no surprise.
    rte_pmd_plx_ntb_unhold(port.hold);
    port.hold = nullptr;
    if (!port.probed_rawdev)
        return;
    if (!port.bus_removes) {
        rte_vdev_uninit(port.rawdev);
        return;
    }
    // In rte_eal_cleanup() the bus holds the next device of its list, which this is, and frees it.
    if (!is_gone(port))
        rte_rawdev_close(port.raw_id);
    std::memcpy(left[port.data->port_id], port.rawdev, sizeof(port.rawdev));
}

int rawdev_info(const Port &port, rte_pmd_plx_ntb_info *info)
{
    *info = {};
    rte_rawdev_info raw = info_of(info);
    const int rc = rte_rawdev_info_get(port.raw_id, &raw, sizeof(*info));
    if (rc != 0)
        PLX_NET_LOG(ERR, "%s: %s is gone: %s\n", port.data->name, port.rawdev, rte_strerror(-rc));
    return rc;
}

uint32_t longest_frame(const Port &port)
{
    uint32_t longest = port.fit;
    if ((port.data->dev_conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_SCATTER) != 0 || port.zero_copy)
        return longest;
    for (unsigned q = 0; q < port.data->nb_rx_queues; ++q)
        if (const RxQueue *rx = rx_queue(port, q); rx != nullptr)
            longest = std::min(longest, room_of(rx->pool));
    return longest;
}

int start_rawdev(Port &port)
{
    rte_pmd_plx_ntb_config config{};
    const uint16_t queues = std::max(port.data->nb_rx_queues, port.data->nb_tx_queues);
    config.queues = queues;
    // First without a limit: the sizes of the device by itself.
    int rc = configure(port, config);
    rte_pmd_plx_ntb_info info{};
    if (rc == 0)
        rc = rawdev_info(port, &info);
    if (rc == 0) {
        config.ring_lines = ring_lines(port, info);
        port.fit = std::min(info.max_message, frame_max);
        config.max_message = longest_frame(port);
        rc = configure(port, config);
    }
    for (uint16_t q = 0; rc == 0 && q < queues; ++q)
        rc = set_up_queue(port, q);
    if (rc == 0)
        rc = rte_rawdev_start(port.raw_id);
    if (rc != 0)
        PLX_NET_LOG(ERR, "%s: %s does not start with %u queues: %s\n", port.data->name, port.rawdev,
                    queues, rte_strerror(-rc));
    return rc;
}

} // namespace plx::net
