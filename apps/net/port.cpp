// SPDX-License-Identifier: BSD-3-Clause
#include "port.hpp"

#include <cstring>
#include <utility>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

namespace net
{

namespace
{

constexpr const char *driver = "net_plx_ntb";
constexpr uint16_t descriptors = 1024;
/// Large mbufs make few parts of the long frames that a kernel segments itself.
constexpr uint16_t room = 8192;
/// Of each queue: what a DMA engine may hold, two bursts of short frames or the parts of what is
/// read in one go, and the next frame.
constexpr unsigned mbufs = 1024;
/// The last ones freed are taken first, and still lie in the CPU's caches.
constexpr unsigned cache = 64;
/// What comes in messages of the ring; long frames come in buffers of the device.
constexpr unsigned rx_mbufs = 1024;

std::string said(const std::string &name, const char *what, int rc)
{
    return name + ": " + what + ": " + rte_strerror(-rc);
}

/// On the control thread of the port. The state of the peer is forgotten before anything of a next
/// connection can be received.
int on_link(uint16_t id, rte_eth_event_type, void *arg, void *)
{
    auto &state = *static_cast<State *>(arg);
    rte_eth_link link{};
    const bool up = rte_eth_link_get_nowait(id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
    if (!up) {
        state.peer.store(0, std::memory_order_relaxed);
        state.offloads.store(false, std::memory_order_relaxed);
    }
    state.hello_is_due.store(up, std::memory_order_relaxed);
    state.link_up.store(up, std::memory_order_release);
    state.main.ring();
    return 0;
}

/// @return the port of that name, or the only one of the driver; -1
int find(const std::string &name, std::string *error)
{
    int found = -1;
    for (uint16_t id = 0; id < RTE_MAX_ETHPORTS; ++id) {
        char its_name[RTE_ETH_NAME_MAX_LEN];
        rte_eth_dev_info info{};
        if (rte_eth_dev_is_valid_port(id) == 0 || rte_eth_dev_get_name_by_port(id, its_name) != 0 ||
            rte_eth_dev_info_get(id, &info) != 0 || std::strcmp(info.driver_name, driver) != 0 ||
            (!name.empty() && name != its_name))
            continue;
        if (found >= 0) {
            *error = "there are several ports: expected --port NAME";
            return -1;
        }
        found = id;
    }
    if (found < 0)
        *error = name.empty() ? "there is no port: expected --vdev=net_plx_ntb0,... before the --"
                              : "there is no port " + name + " of " + driver;
    return found;
}

} // namespace

Port::~Port()
{
    if (id_ == UINT16_MAX)
        return;
    stop();
    rte_eth_dev_callback_unregister(id_, RTE_ETH_EVENT_INTR_LSC, on_link, state_);
    rte_eth_dev_close(id_);
    rte_mempool_free(pool_);
    rte_mempool_free(rx_pool_);
}

std::string Port::open(const std::string &name, uint16_t queues, State *state)
{
    std::string error;
    const int found = find(name, &error);
    if (found < 0)
        return error;
    id_ = static_cast<uint16_t>(found);
    state_ = state;
    char its_name[RTE_ETH_NAME_MAX_LEN];
    rte_eth_dev_get_name_by_port(id_, its_name);
    name_ = its_name;
    rte_eth_dev_info info{};
    int rc = rte_eth_dev_info_get(id_, &info);
    if (rc == 0)
        rc = rte_eth_macaddr_get(id_, &mac_);
    if (rc != 0)
        return said(name_, "cannot read device information", rc);
    if (queues > info.max_rx_queues)
        return name_ + ": expected at most " + std::to_string(info.max_rx_queues) + " queues";
    mtu_ = info.max_mtu;
    const int socket = rte_eth_dev_socket_id(id_);
    pool_ = rte_pktmbuf_pool_create("to_peer", mbufs * queues, cache, 0,
                                    room + RTE_PKTMBUF_HEADROOM, socket);
    rx_pool_ = rte_pktmbuf_pool_create("from_peer", rx_mbufs * queues, cache, 0,
                                       RTE_MBUF_DEFAULT_BUF_SIZE, socket);
    if (pool_ == nullptr || rx_pool_ == nullptr)
        return said(name_, "no memory for mbufs", -rte_errno);
    rte_eth_conf conf{};
    conf.rxmode.mtu = mtu_;
    conf.rxmode.offloads = RTE_ETH_RX_OFFLOAD_SCATTER;
    conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    conf.intr_conf.lsc = 1;
    conf.intr_conf.rxq = 1;
    rc = rte_eth_dev_configure(id_, queues, queues, &conf);
    for (uint16_t q = 0; rc == 0 && q < queues; ++q) {
        rc = rte_eth_rx_queue_setup(id_, q, descriptors, static_cast<unsigned>(socket), nullptr,
                                    rx_pool_);
        if (rc == 0)
            rc =
                rte_eth_tx_queue_setup(id_, q, descriptors, static_cast<unsigned>(socket), nullptr);
    }
    if (rc == 0)
        rc = rte_eth_dev_callback_register(id_, RTE_ETH_EVENT_INTR_LSC, on_link, state);
    return rc == 0 ? std::string() : said(name_, "cannot be configured", rc);
}

std::string Port::start()
{
    const int rc = rte_eth_dev_start(id_);
    started_ = rc == 0;
    return rc == 0 ? std::string() : said(name_, "does not start", rc);
}

void Port::stop()
{
    if (std::exchange(started_, false))
        rte_eth_dev_stop(id_);
}

} // namespace net
