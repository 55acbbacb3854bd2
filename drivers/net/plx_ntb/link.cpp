// SPDX-License-Identifier: BSD-3-Clause
#include "link.hpp"

#include <iterator>

#include <rte_ethdev.h>

#include "log.hpp"

namespace plx::net
{

namespace
{

/// Mbit/s of a lane, after its encoding (PCIe base specification, section 4.2).
constexpr uint32_t lane_speed[] = {0, 2000, 4000, 7877, 15754, 31508};

/// Programs know these alone, in Mbit/s.
constexpr uint32_t ethernet_speeds[] = {
    RTE_ETH_SPEED_NUM_1G,  RTE_ETH_SPEED_NUM_2_5G, RTE_ETH_SPEED_NUM_5G,  RTE_ETH_SPEED_NUM_10G,
    RTE_ETH_SPEED_NUM_20G, RTE_ETH_SPEED_NUM_25G,  RTE_ETH_SPEED_NUM_40G, RTE_ETH_SPEED_NUM_50G,
    RTE_ETH_SPEED_NUM_56G, RTE_ETH_SPEED_NUM_100G, RTE_ETH_SPEED_NUM_200G};

rte_eth_link status(bool up, uint32_t speed)
{
    rte_eth_link link{};
    link.link_speed = speed;
    link.link_duplex = RTE_ETH_LINK_FULL_DUPLEX;
    link.link_autoneg = RTE_ETH_LINK_FIXED;
    link.link_status = up ? RTE_ETH_LINK_UP : RTE_ETH_LINK_DOWN;
    return link;
}

/// Queues beyond those of the peer send nothing: said once a connection.
void compare_queues(const rte_eth_dev *dev)
{
    rte_pmd_plx_ntb_link link{};
    if (rte_pmd_plx_ntb_link_get(port_of(dev).raw_id, &link) == 0 && link.queues != 0 &&
        link.queues < dev->data->nb_tx_queues)
        PLX_NET_LOG(WARNING, "%s: the peer has %u queues: of %u, those from %u on send nothing\n",
                    dev->data->name, link.queues, dev->data->nb_tx_queues, link.queues);
}

rte_eth_link current(const Port &port)
{
    rte_pmd_plx_ntb_link link{};
    if (rte_pmd_plx_ntb_link_get(port.raw_id, &link) != 0)
        return status(false, RTE_ETH_SPEED_NUM_NONE);
    const bool up = link.state == RTE_PMD_PLX_NTB_CONNECTED || link.state == RTE_PMD_PLX_NTB_SILENT;
    return status(up, up ? link_speed(link.speed, link.width) : RTE_ETH_SPEED_NUM_NONE);
}

void report(rte_eth_dev *dev)
{
    if (dev->data->dev_conf.intr_conf.lsc != 0)
        rte_eth_dev_callback_process(dev, RTE_ETH_EVENT_INTR_LSC, nullptr);
}

/// On a control thread of the rawdev.
void on_event(uint16_t, rte_pmd_plx_ntb_event event, void *arg)
{
    auto *dev = static_cast<rte_eth_dev *>(arg);
    switch (event) {
    case RTE_PMD_PLX_NTB_EVENT_CONNECTED:
        compare_queues(dev);
        if (link_update(dev, 0) == 0)
            report(dev);
        break;
    case RTE_PMD_PLX_NTB_EVENT_CLOSING: // frames of the peer are received until it is lost
    case RTE_PMD_PLX_NTB_EVENT_LOST:
    case RTE_PMD_PLX_NTB_EVENT_REFUSED:
        link_is_down(dev);
        break;
    case RTE_PMD_PLX_NTB_EVENT_SILENT:
    case RTE_PMD_PLX_NTB_EVENT_ALIVE:
        break; // nothing is lost yet: the link is up
    }
}

} // namespace

uint32_t link_speed(uint32_t generation, uint32_t lanes)
{
    if (generation == 0 || generation >= std::size(lane_speed))
        return RTE_ETH_SPEED_NUM_UNKNOWN;
    const uint32_t carried = lane_speed[generation] * lanes;
    uint32_t speed = RTE_ETH_SPEED_NUM_UNKNOWN;
    for (const uint32_t known : ethernet_speeds)
        if (known <= carried)
            speed = known;
    return speed;
}

int watch_link(rte_eth_dev *dev)
{
    return rte_pmd_plx_ntb_event_register(port_of(dev).raw_id, on_event, dev);
}

void unwatch_link(const Port &port)
{
    rte_pmd_plx_ntb_event_register(port.raw_id, nullptr, nullptr);
}

int link_update(rte_eth_dev *dev, int)
{
    const Port &port = port_of(dev);
    const rte_eth_link link = port.running.load(std::memory_order_relaxed)
                                  ? current(port)
                                  : status(false, RTE_ETH_SPEED_NUM_NONE);
    return rte_eth_linkstatus_set(dev, &link);
}

void link_is_down(rte_eth_dev *dev)
{
    const rte_eth_link link = status(false, RTE_ETH_SPEED_NUM_NONE);
    if (rte_eth_linkstatus_set(dev, &link) == 0)
        report(dev);
}

} // namespace plx::net
