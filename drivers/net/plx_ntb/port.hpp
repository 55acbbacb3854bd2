// SPDX-License-Identifier: BSD-3-Clause
// A port: an ethdev whose queue n is queue pair n of a raw_plx_ntb device.
#ifndef PLX_NTB_NET_PORT_HPP
#define PLX_NTB_NET_PORT_HPP

#include <atomic>
#include <cstdint>

#include <ethdev_driver.h>
#include <rte_mbuf.h>
#include <rte_pmd_plx_ntb.h>
#include <rte_pmd_plx_ntb_driver.h>

struct rte_mempool;

namespace plx::net
{

/// Bytes of a frame around its payload: Ethernet header and one VLAN tag. There is no CRC.
constexpr uint32_t frame_overhead = RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN;
/// Longest frame: the longest MTU there is.
constexpr uint32_t frame_max = UINT16_MAX + frame_overhead;
/// Data room that the driver asks of a pool for inline messages (rte_pmd_plx_ntb_queue_config).
constexpr uint32_t rx_room_min = 1024;
constexpr unsigned mac_addresses_max = 64;
constexpr unsigned queues_max = RTE_PMD_PLX_NTB_MAX_QUEUES;
constexpr uint32_t ring_lines_max = 65536; ///< as rte_pmd_plx_ntb_config

/// An id that no rawdev has: calls with it fail.
constexpr uint16_t no_rawdev = RTE_RAWDEV_MAX_DEVS;

/// A counter that one lcore advances and any thread reads.
class Counter
{
public:
    void add(uint64_t n)
    {
        value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    uint64_t read() const { return value_.load(std::memory_order_relaxed); }
    void reset() { value_.store(0, std::memory_order_relaxed); }

private:
    std::atomic<uint64_t> value_{0};
};

struct alignas(RTE_CACHE_LINE_SIZE) RxQueue {
    int (*burst)(void *, rte_mbuf **, rte_pmd_plx_ntb_meta *, uint16_t) = nullptr;
    void *queue = nullptr;       ///< first argument of burst
    rte_mempool *pool = nullptr; ///< the application's
    uint32_t room = 0;           ///< bytes that one of its mbufs holds
    uint16_t port = 0;           ///< for rte_mbuf::port
    uint16_t descriptors = 0;    ///< as asked for
    Counter nombuf;              ///< frames dropped because the pool was empty
};

struct alignas(RTE_CACHE_LINE_SIZE) TxQueue {
    int (*burst)(void *, rte_mbuf **, const rte_pmd_plx_ntb_meta *, uint16_t) = nullptr;
    void *queue = nullptr; ///< first argument of burst
    uint16_t descriptors = 0;
    Counter dropped; ///< frames that can never be sent: longer than the peer takes, invalid
    Counter no_link; ///< bursts that sent nothing because there is no peer, or no rawdev any more
};

struct Port {
    rte_eth_dev_data *data = nullptr;
    rte_intr_handle *interrupts = nullptr; ///< of the receiving queues, while started with them
    char rawdev[64] = "";
    std::atomic<uint16_t> raw_id = no_rawdev; ///< no_rawdev: it was removed under the port
    rte_pmd_plx_ntb_holder *hold = nullptr;   ///< keeps the bursts callable without it
    uint32_t fit = 0;           ///< longest frame that the device's receive buffers hold, in bytes
    bool probed_rawdev = false; ///< the rawdev is this port's own, not given by `dev=`
    bool bus_removes = false;   ///< the port is closed by its bus
    bool zero_copy = false;
    bool link_down = false; ///< by rte_eth_dev_set_link_down()
    /// As dev_started of the ethdev, but set before the rawdev starts, whose control thread reads
    /// it: the peer may be connected before ethdev's own flag is set.
    std::atomic<bool> running = false;
};

/// Whether the rawdev was removed under the port.
inline bool is_gone(const Port &port)
{
    return port.raw_id.load(std::memory_order_relaxed) == no_rawdev;
}
/// Bytes that an mbuf of @p pool holds.
inline uint32_t room_of(rte_mempool *pool)
{
    return uint32_t{rte_pktmbuf_data_room_size(pool)} - RTE_PKTMBUF_HEADROOM;
}
inline Port &port_of(const rte_eth_dev *dev)
{
    return *static_cast<Port *>(dev->data->dev_private);
}
inline RxQueue *rx_queue(const Port &port, unsigned index)
{
    return static_cast<RxQueue *>(port.data->rx_queues[index]);
}
inline TxQueue *tx_queue(const Port &port, unsigned index)
{
    return static_cast<TxQueue *>(port.data->tx_queues[index]);
}

} // namespace plx::net

#endif
