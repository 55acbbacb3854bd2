// SPDX-License-Identifier: BSD-3-Clause
// An ethdev port that joins two processes: net_memif, or virtio-user and vhost. Which one is said
// by the --vdev behind "--".
#include "peers/links/mbufs.hpp"
#include "peers/pair/run.hpp"

#include <rte_ethdev.h>

#include <unistd.h>

namespace peers
{

namespace
{

constexpr uint16_t port = 0;
constexpr uint16_t descriptors = 1024;
constexpr auto any_socket = static_cast<unsigned>(SOCKET_ID_ANY);
constexpr unsigned pool_mbufs = 8191;
constexpr uint64_t connect_ns = 15000000000u;

struct PortWay {
    rte_mempool *pool;

    int send(rte_mbuf **mbufs, uint16_t n) const { return rte_eth_tx_burst(port, 0, mbufs, n); }
    int receive(rte_mbuf **mbufs, uint16_t n) const { return rte_eth_rx_burst(port, 0, mbufs, n); }
};

class Ethdev
{
public:
    /// Side 1 has made the socket, over which side 0 takes its leave.
    static constexpr bool server_leaves_last = true;

    using Way = PortWay;

    Ethdev() = default;
    ~Ethdev();
    Ethdev(const Ethdev &) = delete;
    Ethdev &operator=(const Ethdev &) = delete;

    bool open(const Options &options, std::string &error);
    Way way() const { return {m_pool}; }
    size_t room() const { return m_room; }
    /// One mbuf: drivers differ in what they do with chains.
    size_t max_message() const { return m_room; }

private:
    bool start(std::string &error);
    bool await_link() const;

    rte_mempool *m_pool = nullptr;
    uint16_t m_room = small_room;
    bool m_started = false;
};

} // namespace

bool Ethdev::open(const Options &options, std::string &error)
{
    m_room = options.form == "large" ? large_room : small_room;
    return start_eal(options.words, error) && start(error);
}

bool Ethdev::start(std::string &error)
{
    rte_eth_conf settings = {};
    m_pool = rte_pktmbuf_pool_create("packets", pool_mbufs, 256, 0,
                                     static_cast<uint16_t>(m_room + RTE_PKTMBUF_HEADROOM), -1);
    if (!m_pool)
        error = "no memory for packets";
    else if (rte_eth_dev_count_avail() != 1)
        error = "there is no port, or more than one";
    else if (rte_eth_dev_configure(port, 1, 1, &settings) != 0 ||
             rte_eth_rx_queue_setup(port, 0, descriptors, any_socket, nullptr, m_pool) != 0 ||
             rte_eth_tx_queue_setup(port, 0, descriptors, any_socket, nullptr) != 0 ||
             rte_eth_dev_start(port) != 0)
        error = "the port does not start";
    else if (m_started = true; !await_link())
        error = "the port's link does not come up";
    return error.empty();
}

bool Ethdev::await_link() const
{
    const uint64_t give_up = monotonic_ns() + connect_ns;
    rte_eth_link link = {};
    while (rte_eth_link_get_nowait(port, &link) == 0 && link.link_status != RTE_ETH_LINK_UP) {
        if (monotonic_ns() > give_up)
            return false;
        usleep(1000);
    }
    return link.link_status == RTE_ETH_LINK_UP;
}

Ethdev::~Ethdev()
{
    if (m_started) {
        rte_eth_dev_stop(port);
        rte_eth_dev_close(port);
    }
    rte_mempool_free(m_pool);
    rte_eal_cleanup();
}

} // namespace peers

int main(int argc, char **argv)
{
    return peers::run_peer<peers::OwningLink<peers::Ethdev>>(argc, argv);
}
