// SPDX-License-Identifier: BSD-3-Clause
// Probing: the port as a vdev.
#include <cerrno>

#include <ethdev_vdev.h>
#include <rte_eal.h>
#include <rte_malloc.h>

#include <pmdinfo.hpp>

#include "log.hpp"
#include "mac.hpp"
#include "operations.hpp"
#include "options.hpp"
#include "port.hpp"
#include "rawdev.hpp"

extern "C" {
RTE_LOG_REGISTER(plx_ntb_net_logtype, pmd.net.plx_ntb, NOTICE);
}

namespace plx::net
{

namespace
{

int probe_port(rte_vdev_device *vdev, const Options &options)
{
    const char *name = rte_vdev_device_name(vdev);
    rte_eth_dev *dev = rte_eth_vdev_allocate(vdev, sizeof(Port));
    if (dev == nullptr) {
        PLX_NET_LOG(ERR, "%s: no port: the name is taken, there are %u, or no memory\n", name,
                    RTE_MAX_ETHPORTS);
        return -ENOMEM;
    }
    auto *port = new (dev->data->dev_private) Port;
    port->data = dev->data;
    port->zero_copy = options.zero_copy;
    dev->data->mac_addrs = static_cast<rte_ether_addr *>(
        rte_zmalloc("plx_net_mac", mac_addresses_max * sizeof(rte_ether_addr), 0));
    rte_pmd_plx_ntb_info info{};
    const int rc =
        dev->data->mac_addrs == nullptr ? -ENOMEM : acquire_rawdev(*port, name, options, &info);
    if (rc != 0) {
        rte_eth_dev_release_port(dev);
        return rc;
    }
    dev->data->mac_addrs[0] =
        rte_is_zero_ether_addr(&options.mac) != 0 ? make_mac(name) : options.mac;
    dev->data->numa_node = info.socket_id;
    dev->data->promiscuous = 1;
    dev->data->all_multicast = 1;
    dev->data->dev_link.link_status = RTE_ETH_LINK_DOWN;
    dev->data->dev_flags |=
        RTE_ETH_DEV_INTR_LSC | RTE_ETH_DEV_INTR_RMV | RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS;
    set_operations(dev);
    rte_eth_dev_probing_finish(dev);
    return 0;
}

int probe(rte_vdev_device *vdev)
{
    const char *name = rte_vdev_device_name(vdev);
    if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
        PLX_NET_LOG(ERR, "%s: secondary processes are not supported\n", name);
        return -ENOTSUP;
    }
    Options options;
    const int rc = parse_options(name, rte_vdev_device_args(vdev), &options);
    return rc != 0 ? rc : probe_port(vdev, options);
}

int remove(rte_vdev_device *vdev)
{
    rte_eth_dev *dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));
    if (dev == nullptr)
        return 0;
    port_of(dev).bus_removes = true;
    return rte_eth_dev_close(dev->data->port_id);
}

rte_vdev_driver driver = {.probe = probe, .remove = remove};

constexpr dpdk::PmdInfo info = {
    .name = "net_plx_ntb", .params = PLX_NET_PARAMS, .kmod = "", .ids = {}};
[[gnu::used]] constexpr auto info_text = dpdk::pmd_info_text<info>();

} // namespace

} // namespace plx::net

using plx::net::driver;
RTE_PMD_REGISTER_VDEV(net_plx_ntb, driver);
