// SPDX-License-Identifier: BSD-3-Clause
#include "modes/ports.hpp"

#include <utility>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

namespace echo
{

namespace
{

constexpr uint16_t ring_lines = 512;
// What queues of ports and outboxes may hold, and what is on its way through the bridge.
constexpr uint32_t base_mbufs = 4096;
constexpr uint32_t mbufs_per_queue = 2 * ring_lines + 2048;
constexpr unsigned pool_cache = 256;
constexpr unsigned close_looks = 500, close_look_us = 1000;
// Beside what the MTU counts: the header, a VLAN tag, and the checksum.
constexpr uint32_t frame_overhead = RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN + RTE_ETHER_CRC_LEN;

std::string complaint(uint16_t port, const char *what, int rc)
{
    char name[RTE_ETH_NAME_MAX_LEN] = "?";
    rte_eth_dev_get_name_by_port(port, name);
    return "port " + std::to_string(port) + " (" + name + ") " + what + ": " + rte_strerror(-rc);
}

} // namespace

Ports::~Ports()
{
    stop();
    for (const Port &port : ports_)
        rte_eth_dev_close(port.id);
    if (pool_ == nullptr)
        return;
    // A copy engine may hold mbufs for some milliseconds more. If it does for longer, the pool
    // stays.
    for (unsigned i = 0; i < close_looks && rte_mempool_in_use_count(pool_) != 0; ++i)
        rte_delay_us_sleep(close_look_us);
    if (rte_mempool_in_use_count(pool_) == 0)
        rte_mempool_free(pool_);
}

std::string Ports::start(uint16_t queues)
{
    if (pool_ == nullptr) {
        if (std::string error = configure(queues); !error.empty())
            return error;
    }
    for (Port &port : ports_) {
        const int rc = rte_eth_dev_start(port.id);
        if (rc != 0) {
            stop();
            return complaint(port.id, "does not start", rc);
        }
        port.started = true;
        rte_eth_promiscuous_enable(port.id); // where there is such a thing
    }
    return {};
}

void Ports::stop()
{
    for (Port &port : ports_) {
        if (port.started)
            rte_eth_dev_stop(port.id);
        port.started = false;
    }
}

std::string Ports::configure(uint16_t queues)
{
    ports_.clear();
    for (uint16_t id = 0; id < RTE_MAX_ETHPORTS; ++id) {
        if (rte_eth_dev_is_valid_port(id) != 0)
            ports_.push_back({id, 0, ring_lines, ring_lines, {}, false});
    }
    if (ports_.empty())
        return "mode io wants a port to bridge to: --vdev=net_tap0, or another one";
    queues_.resize(queues);
    for (uint16_t q = 0; q < queues; ++q)
        ++ports_[q % ports_.size()].queues;
    std::erase_if(ports_, [](const Port &port) { return port.queues == 0; });
    // All that is needed of them first: memory comes after.
    for (Port &port : ports_) {
        if (std::string error = configure_port(port); !error.empty())
            return error;
    }
    pool_ = rte_pktmbuf_pool_create("echo_io", base_mbufs + mbufs_per_queue * queues, pool_cache, 0,
                                    RTE_MBUF_DEFAULT_BUF_SIZE, static_cast<int>(rte_socket_id()));
    if (pool_ == nullptr)
        return std::string("no memory for the mbufs of mode io: ") + rte_strerror(rte_errno);
    for (const Port &port : ports_) {
        std::string error = set_up_queues(port);
        if (!error.empty()) {
            rte_mempool_free(std::exchange(pool_, nullptr));
            return error;
        }
    }
    for (uint16_t q = 0; q < queues; ++q) {
        queues_[q] = ports_[q % ports_.size()].limits;
        queues_[q].queue = static_cast<uint16_t>(q / ports_.size());
    }
    return {};
}

std::string Ports::configure_port(Port &port)
{
    rte_eth_dev_info info{};
    int rc = rte_eth_dev_info_get(port.id, &info);
    if (rc != 0)
        return complaint(port.id, "does not say what it can", rc);
    if (port.queues > info.max_rx_queues || port.queues > info.max_tx_queues)
        return complaint(port.id, "has fewer queues than are to be bridged", -ENOSPC);
    rte_eth_conf conf{};
    const bool chains = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
    if (chains)
        conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    rc = rte_eth_dev_configure(port.id, port.queues, port.queues, &conf);
    uint16_t mtu = RTE_ETHER_MTU;
    if (rc == 0)
        rc = rte_eth_dev_adjust_nb_rx_tx_desc(port.id, &port.rx_lines, &port.tx_lines);
    if (rc != 0)
        return complaint(port.id, "cannot be configured", rc);
    rte_eth_dev_get_mtu(port.id, &mtu);
    const uint16_t segments = info.tx_desc_lim.nb_mtu_seg_max;
    port.limits = {port.id, 0, mtu + frame_overhead,
                   chains ? (segments != 0 ? segments : uint16_t{UINT16_MAX}) : uint16_t{1}};
    return {};
}

std::string Ports::set_up_queues(const Port &port)
{
    const auto socket = static_cast<unsigned>(rte_eth_dev_socket_id(port.id));
    for (uint16_t q = 0; q < port.queues; ++q) {
        int rc = rte_eth_rx_queue_setup(port.id, q, port.rx_lines, socket, nullptr, pool_);
        if (rc == 0)
            rc = rte_eth_tx_queue_setup(port.id, q, port.tx_lines, socket, nullptr);
        if (rc != 0)
            return complaint(port.id, "cannot set a queue up", rc);
    }
    return {};
}

} // namespace echo
