// SPDX-License-Identifier: BSD-3-Clause
// What a port says about itself and what it refuses.
#include "ports.hpp"

#include <cerrno>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include <ethdev_driver.h>

#include "log_capture.hpp"

namespace test
{

namespace
{

TEST_F(Ports, AnMtuThatDoesNotFitIsRefusedWithTheLargest)
{
    make();
    start({.scatter = true}, {});
    EXPECT_EQ(rte_eth_dev_set_mtu(near->id(), 1500), 0);
    EXPECT_EQ(rte_eth_dev_set_mtu(near->id(), 2030), 0);
    const test::LogCapture log;
    EXPECT_EQ(rte_eth_dev_set_mtu(near->id(), 2031), -EINVAL);
    EXPECT_NE(log.text().find("MTU 2031 does not fit the peer's buffers: expected at most 2030"),
              std::string::npos)
        << log.text();
    EXPECT_EQ(rte_eth_dev_set_mtu(far->id(), 2031), -EINVAL);
    EXPECT_NE(log.text().find("does not fit this port's buffers: expected at most 2030"),
              std::string::npos)
        << log.text();
}

TEST_F(Ports, PoolsThatAreTooSmallAreRefused)
{
    make();
    const test::LogCapture log;
    EXPECT_EQ(near->start({.room = 1000}), -EINVAL);
    EXPECT_EQ(far->start({.mtu = 9000}), -EINVAL);
    EXPECT_NE(log.text().find("expected larger ones or RTE_ETH_RX_OFFLOAD_SCATTER"),
              std::string::npos)
        << log.text();
}

TEST_F(Ports, InformationIsHonest)
{
    make(",mac=02:11:22:33:44:55");
    rte_eth_dev_info info{};
    ASSERT_EQ(rte_eth_dev_info_get(near->id(), &info), 0);
    EXPECT_STREQ(info.driver_name, "net_plx_ntb");
    EXPECT_EQ(info.rx_offload_capa, RTE_ETH_RX_OFFLOAD_SCATTER);
    EXPECT_EQ(info.tx_offload_capa, RTE_ETH_TX_OFFLOAD_MULTI_SEGS);
    EXPECT_EQ(info.max_rx_queues, 64);
    EXPECT_NE(*info.dev_flags & RTE_ETH_DEV_INTR_RMV, 0u);
    EXPECT_EQ(info.max_mtu, info.max_rx_pktlen - 18);
    rte_ether_addr mac;
    rte_ether_addr other;
    ASSERT_EQ(rte_eth_macaddr_get(near->id(), &mac), 0);
    ASSERT_EQ(rte_eth_macaddr_get(far->id(), &other), 0);
    const rte_ether_addr given = {{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}};
    EXPECT_TRUE(rte_is_same_ether_addr(&mac, &given));
    EXPECT_TRUE(rte_is_local_admin_ether_addr(&other));
    EXPECT_TRUE(rte_is_unicast_ether_addr(&other));
    rte_ether_addr third = {{0x02, 0, 0, 0, 0, 3}};
    EXPECT_EQ(rte_eth_dev_mac_addr_add(near->id(), &third, 0), 0);
    EXPECT_EQ(rte_eth_dev_mac_addr_remove(near->id(), &third), 0);
    EXPECT_EQ(rte_eth_dev_default_mac_addr_set(near->id(), &third), 0);
}

/// Rows of the feature matrix that a port has something to show for. Those that are empty there
/// are left out, and so are those about machines and systems.
TEST_F(Ports, TheFeatureMatrixSaysWhatAPortDoes)
{
    std::set<std::string> claimed;
    std::ifstream matrix(FEATURES);
    for (std::string line; std::getline(matrix, line);)
        if (const auto equals = line.find('='); equals != std::string::npos && line[0] != ';')
            if (line.find('Y', equals) != std::string::npos)
                claimed.insert(line.substr(0, line.find_last_not_of(' ', equals - 1) + 1));
    make();
    start({.scatter = true, .interrupts = true}, {});
    const uint16_t id = near->id();
    rte_eth_dev_info info{};
    ASSERT_EQ(rte_eth_dev_info_get(id, &info), 0);
    rte_power_monitor_cond condition{};
    rte_eth_burst_mode mode{};
    const std::map<std::string, bool> shown = {
        {"Speed capabilities", info.speed_capa != 0},
        {"Link status", near->link().link_status == RTE_ETH_LINK_UP},
        {"Link status event", (*info.dev_flags & RTE_ETH_DEV_INTR_LSC) != 0},
        {"Removal event", (*info.dev_flags & RTE_ETH_DEV_INTR_RMV) != 0},
        {"Rx interrupt", rte_eth_dev_rx_intr_enable(id, 0) == 0},
        {"Lock-free Tx queue", (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MT_LOCKFREE) != 0},
        {"Fast mbuf free", (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) != 0},
        {"Free Tx mbuf on demand", rte_eth_tx_done_cleanup(id, 0, 0) != -ENOTSUP},
        {"Queue start/stop", rte_eth_dev_rx_queue_stop(id, 0) != -ENOTSUP},
        {"Runtime Rx queue setup", (info.dev_capa & RTE_ETH_DEV_CAPA_RUNTIME_RX_QUEUE_SETUP) != 0},
        {"Runtime Tx queue setup", (info.dev_capa & RTE_ETH_DEV_CAPA_RUNTIME_TX_QUEUE_SETUP) != 0},
        {"Burst mode info", rte_eth_rx_burst_mode_get(id, 0, &mode) == 0},
        {"Power mgmt address monitor", rte_eth_get_monitor_addr(id, 0, &condition) == 0},
        {"MTU update", rte_eth_dev_set_mtu(id, 1400) == 0},
        {"Scattered Rx", (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER) != 0},
        {"Promiscuous mode", rte_eth_promiscuous_enable(id) == 0},
        {"Allmulticast mode", rte_eth_allmulticast_enable(id) == 0},
        {"L3 checksum offload", (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) != 0},
        {"L4 checksum offload", (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_TCP_CKSUM) != 0},
        {"TSO", (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_TCP_TSO) != 0},
        {"VLAN offload", (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN) != 0},
        {"Rx descriptor status", rte_eth_rx_descriptor_status(id, 0, 0) != -ENOTSUP},
        {"Tx descriptor status", rte_eth_tx_descriptor_status(id, 0, 0) != -ENOTSUP},
        {"Basic stats", rte_eth_stats_reset(id) == 0},
        {"Extended stats", rte_eth_xstats_get(id, nullptr, 0) > 0},
    };
    for (const auto &[feature, is] : shown)
        EXPECT_EQ(claimed.contains(feature), is) << feature;
    for (const std::string &feature : claimed)
        EXPECT_TRUE(shown.contains(feature) || feature == "Stats per queue" /* has a case */ ||
                    feature == "Linux" || feature == "x86-64")
            << feature;
}

} // namespace

} // namespace test
