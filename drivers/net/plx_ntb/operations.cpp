// SPDX-License-Identifier: BSD-3-Clause
// The operations of the ethdev.
#include "operations.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>
#include <utility>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_rawdev.h>

#include "bursts.hpp"
#include "interrupts.hpp"
#include "link.hpp"
#include "log.hpp"
#include "port.hpp"
#include "rawdev.hpp"
#include "statistics.hpp"

namespace plx::net
{

namespace
{

constexpr uint16_t descriptors_max = ring_lines_max / 2;
constexpr uint16_t descriptors_min = 32;
/// Applications make pools for so many: the ring itself is larger where that is faster.
constexpr uint16_t descriptors_default = 1024;
constexpr uint16_t burst_preferred = 32;

int configure(rte_eth_dev *)
{
    return 0; // the rawdev is configured at start, when the queues are known
}

/// @return 0; -EIO: the peer may still reach what the application gave. A start refuses until it
/// cannot any more; a close, of the rawdev too, takes all back
int stop_rawdev(const Port &port)
{
    if (is_gone(port))
        return 0;
    uint64_t linger_ms = 0;
    rte_rawdev_get_attr(port.raw_id, "linger_ms", &linger_ms);
    const int rc = rte_pmd_plx_ntb_stop(port.raw_id, static_cast<uint32_t>(linger_ms), nullptr);
    return rc == -EIO ? rc : 0;
}

int start(rte_eth_dev *dev)
{
    Port &port = port_of(dev);
    if (is_gone(port))
        return -ENODEV;
    port.link_down = false;
    int rc = watch_link(dev);
    port.running.store(true, std::memory_order_relaxed);
    if (rc == 0)
        rc = start_rawdev(port);
    if (rc == 0 && dev->data->dev_conf.intr_conf.rxq != 0) {
        rc = make_interrupts(dev);
        if (rc != 0)
            stop_rawdev(port);
    }
    if (rc != 0) {
        port.running.store(false, std::memory_order_relaxed);
        unwatch_link(port);
        return rc;
    }
    for (uint16_t q = 0; q < dev->data->nb_rx_queues; ++q)
        dev->data->rx_queue_state[q] = RTE_ETH_QUEUE_STATE_STARTED;
    for (uint16_t q = 0; q < dev->data->nb_tx_queues; ++q)
        dev->data->tx_queue_state[q] = RTE_ETH_QUEUE_STATE_STARTED;
    return 0;
}

int stop(rte_eth_dev *dev)
{
    Port &port = port_of(dev);
    dev->data->dev_started = 0;
    port.running.store(false, std::memory_order_relaxed);
    const int rc = stop_rawdev(port);
    unwatch_link(port);
    link_is_down(dev);
    drop_interrupts(dev);
    for (uint16_t q = 0; q < dev->data->nb_rx_queues; ++q)
        dev->data->rx_queue_state[q] = RTE_ETH_QUEUE_STATE_STOPPED;
    for (uint16_t q = 0; q < dev->data->nb_tx_queues; ++q)
        dev->data->tx_queue_state[q] = RTE_ETH_QUEUE_STATE_STOPPED;
    return rc;
}

/// As a cable that is pulled: the peer loses the link, too.
int set_link_down(rte_eth_dev *dev)
{
    Port &port = port_of(dev);
    return std::exchange(port.link_down, true) ? 0 : stop_rawdev(port);
}

int set_link_up(rte_eth_dev *dev)
{
    Port &port = port_of(dev);
    if (!port.link_down)
        return 0;
    const int rc = rte_rawdev_start(port.raw_id);
    if (rc == 0)
        port.link_down = false;
    else
        PLX_NET_LOG(ERR, "%s: %s does not start: %s\n", dev->data->name, port.rawdev,
                    rte_strerror(-rc));
    return rc;
}

void rx_queue_release(rte_eth_dev *dev, uint16_t index)
{
    rte_free(std::exchange(dev->data->rx_queues[index], nullptr));
}

void tx_queue_release(rte_eth_dev *dev, uint16_t index)
{
    rte_free(std::exchange(dev->data->tx_queues[index], nullptr));
}

int close_port(rte_eth_dev *dev)
{
    Port &port = port_of(dev);
    if (dev->data->dev_started != 0)
        stop(dev);
    for (uint16_t q = 0; q < dev->data->nb_rx_queues; ++q)
        rx_queue_release(dev, q);
    for (uint16_t q = 0; q < dev->data->nb_tx_queues; ++q)
        tx_queue_release(dev, q);
    release_rawdev(port);
    return 0;
}

/// Nothing is kept: each start programs the chip anew.
int reset(rte_eth_dev *)
{
    return 0;
}

int infos(rte_eth_dev *dev, rte_eth_dev_info *info)
{
    const Port &port = port_of(dev);
    info->max_mac_addrs = mac_addresses_max;
    info->max_rx_pktlen = port.fit;
    info->min_mtu = RTE_ETHER_MIN_MTU;
    info->max_mtu = static_cast<uint16_t>(info->max_rx_pktlen - frame_overhead);
    info->min_rx_bufsize = rx_room_min;
    info->max_rx_queues = info->max_tx_queues = queues_max;
    // Nothing is computed on the way, and nothing is damaged on it: frames need no checksum
    // between the two hosts, but what leaves behind the peer has to have it.
    info->rx_offload_capa = RTE_ETH_RX_OFFLOAD_SCATTER;
    info->tx_offload_capa = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    info->rx_desc_lim = {.nb_max = descriptors_max, .nb_min = descriptors_min, .nb_align = 1};
    info->tx_desc_lim = {.nb_max = descriptors_max,
                         .nb_min = descriptors_min,
                         .nb_align = 1,
                         .nb_seg_max = UINT8_MAX,
                         .nb_mtu_seg_max = UINT8_MAX};
    info->default_rxportconf = info->default_txportconf = {
        .burst_size = burst_preferred, .ring_size = descriptors_default, .nb_queues = 1};
    return 0;
}

int mtu_set(rte_eth_dev *dev, uint16_t mtu)
{
    const Port &port = port_of(dev);
    uint32_t longest = longest_frame(port);
    const char *whose = "this port's buffers";
    rte_pmd_plx_ntb_link link{};
    if (rte_pmd_plx_ntb_link_get(port.raw_id, &link) == 0 && link.peer_max_message != 0 &&
        link.peer_max_message < longest) {
        longest = link.peer_max_message;
        whose = "the peer's buffers";
    }
    if (mtu + frame_overhead <= longest)
        return 0;
    PLX_NET_LOG(ERR, "%s: MTU %u does not fit %s: expected at most %u\n", dev->data->name, mtu,
                whose, longest - frame_overhead);
    return -EINVAL;
}

template <class Queue>
Queue *make_queue(unsigned socket)
{
    void *memory = rte_zmalloc_socket("plx_net_queue", sizeof(Queue), alignof(Queue),
                                      static_cast<int>(socket));
    return memory == nullptr ? nullptr : new (memory) Queue;
}

int rx_queue_setup(rte_eth_dev *dev, uint16_t index, uint16_t descriptors, unsigned socket,
                   const rte_eth_rxconf *, rte_mempool *pool)
{
    const uint32_t room = room_of(pool);
    if (room < rx_room_min) {
        PLX_NET_LOG(ERR, "%s: queue %u: mbufs of pool %s hold %u bytes: expected at least %u\n",
                    dev->data->name, index, pool->name, room, rx_room_min);
        return -EINVAL;
    }
    const uint64_t offloads = dev->data->dev_conf.rxmode.offloads;
    if ((offloads & RTE_ETH_RX_OFFLOAD_SCATTER) == 0 && dev->data->mtu + frame_overhead > room) {
        PLX_NET_LOG(ERR,
                    "%s: queue %u: an MTU of %u needs mbufs of %u bytes, those of pool %s hold %u: "
                    "expected larger ones or RTE_ETH_RX_OFFLOAD_SCATTER\n",
                    dev->data->name, index, dev->data->mtu, dev->data->mtu + frame_overhead,
                    pool->name, room);
        return -EINVAL;
    }
    auto *rx = make_queue<RxQueue>(socket);
    if (rx == nullptr)
        return -ENOMEM;
    rx->pool = pool;
    rx->room = room;
    rx->port = dev->data->port_id;
    rx->descriptors = descriptors;
    dev->data->rx_queues[index] = rx;
    return 0;
}

int tx_queue_setup(rte_eth_dev *dev, uint16_t index, uint16_t descriptors, unsigned socket,
                   const rte_eth_txconf *)
{
    auto *tx = make_queue<TxQueue>(socket);
    if (tx == nullptr)
        return -ENOMEM;
    tx->descriptors = descriptors;
    dev->data->tx_queues[index] = tx;
    return 0;
}

void rxq_info(rte_eth_dev *dev, uint16_t index, rte_eth_rxq_info *info)
{
    const RxQueue *rx = rx_queue(port_of(dev), index);
    info->mp = rx->pool;
    info->nb_desc = rx->descriptors;
    info->rx_buf_size = static_cast<uint16_t>(room_of(rx->pool));
    info->scattered_rx =
        (dev->data->dev_conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_SCATTER) != 0 ? 1 : 0;
}

void txq_info(rte_eth_dev *dev, uint16_t index, rte_eth_txq_info *info)
{
    info->nb_desc = tx_queue(port_of(dev), index)->descriptors;
}

int burst_mode(rte_eth_dev *dev, uint16_t, rte_eth_burst_mode *mode)
{
    rte_pmd_plx_ntb_info raw{};
    if (const int rc = rawdev_info(port_of(dev), &raw); rc != 0)
        return rc;
    std::snprintf(mode->info, sizeof(mode->info), "%s", raw.burst);
    return 0;
}

/// Frees what a DMA engine has read, as an empty burst does.
int tx_done_cleanup(void *queue, uint32_t)
{
    auto *tx = static_cast<TxQueue *>(queue);
    return tx->burst != nullptr && tx->burst(tx->queue, nullptr, nullptr, 0) < 0 ? -ENODEV : 0;
}

// What there is at the other end of the cable is for this host: every frame is received, whatever
// its address, in each of these modes.
int accept_all(rte_eth_dev *)
{
    return 0;
}
int mac_add(rte_eth_dev *, rte_ether_addr *, uint32_t, uint32_t)
{
    return 0;
}
void mac_remove(rte_eth_dev *, uint32_t) {}
int mac_set(rte_eth_dev *, rte_ether_addr *)
{
    return 0;
}
int multicast_list(rte_eth_dev *, rte_ether_addr *, uint32_t)
{
    return 0;
}

int is_removed(rte_eth_dev *dev)
{
    return is_gone(port_of(dev)) ? 1 : 0;
}

/// For rte_power_monitor() of a polling lcore.
int monitor_address(void *queue, rte_power_monitor_cond *condition)
{
    const auto *rx = static_cast<const RxQueue *>(queue);
    if (rx->queue == nullptr)
        return -EAGAIN; // not started
    rte_pmd_plx_ntb_rx_monitor_get(rx->queue, condition);
    return 0;
}

int dump(rte_eth_dev *dev, FILE *file)
{
    return rte_rawdev_dump(port_of(dev).raw_id, file);
}

constexpr eth_dev_ops ops = {
    .dev_configure = configure,
    .dev_start = start,
    .dev_stop = stop,
    .dev_set_link_up = set_link_up,
    .dev_set_link_down = set_link_down,
    .dev_close = close_port,
    .dev_reset = reset,
    .link_update = link_update,
    .is_removed = is_removed,
    .promiscuous_enable = accept_all,
    .promiscuous_disable = accept_all,
    .allmulticast_enable = accept_all,
    .allmulticast_disable = accept_all,
    .mac_addr_remove = mac_remove,
    .mac_addr_add = mac_add,
    .mac_addr_set = mac_set,
    .set_mc_addr_list = multicast_list,
    .mtu_set = mtu_set,
    .stats_get = stats_get,
    .stats_reset = stats_reset,
    .xstats_get = xstats_get,
    .xstats_reset = stats_reset,
    .xstats_get_names = xstats_get_names,
    .dev_infos_get = infos,
    .rxq_info_get = rxq_info,
    .txq_info_get = txq_info,
    .rx_burst_mode_get = burst_mode,
    .tx_burst_mode_get = burst_mode,
    .rx_queue_setup = rx_queue_setup,
    .rx_queue_release = rx_queue_release,
    .rx_queue_intr_enable = rx_interrupt_enable,
    .rx_queue_intr_disable = rx_interrupt_disable,
    .tx_queue_setup = tx_queue_setup,
    .tx_queue_release = tx_queue_release,
    .tx_done_cleanup = tx_done_cleanup,
    .get_monitor_addr = monitor_address,
    .eth_dev_priv_dump = dump,
};

} // namespace

void set_operations(rte_eth_dev *dev)
{
    dev->dev_ops = &ops;
    dev->rx_pkt_burst = port_of(dev).zero_copy ? rx_burst_zero_copy : rx_burst;
    dev->tx_pkt_burst = tx_burst;
}

} // namespace plx::net
