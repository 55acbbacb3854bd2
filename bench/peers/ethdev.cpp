// SPDX-License-Identifier: BSD-3-Clause
// An ethdev port that joins two processes: net_memif, or virtio-user and vhost. Which one is said
// by the --vdev behind "--".
#include "peers/mbufs.hpp"
#include "peers/run.hpp"

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
// As for ours (queue_pair.cpp).
constexpr uint16_t small_room = 2048;
constexpr uint16_t large_room = 8192;

class Ethdev
{
public:
    /// Side 1 has made the socket, over which side 0 takes its leave.
    static constexpr bool server_leaves_last = true;

    static std::unique_ptr<Ethdev> open(const Options &options, std::string &error);
    ~Ethdev();
    Ethdev(const Ethdev &) = delete;
    Ethdev &operator=(const Ethdev &) = delete;

    size_t max_message() const { return m_longest; }
    bool send(size_t bytes, uint64_t value, unsigned n, uint64_t give_up);
    int receive(size_t bytes, unsigned n, uint64_t &sum);

private:
    Ethdev() = default;
    bool start(uint16_t room, std::string &error);
    bool await_link() const;

    rte_mempool *m_pool = nullptr;
    size_t m_longest = 0;
    bool m_started = false;
    MessageMaker m_maker;
};

} // namespace

std::unique_ptr<Ethdev> Ethdev::open(const Options &options, std::string &error)
{
    if (!start_eal(options.words, error))
        return nullptr;
    std::unique_ptr<Ethdev> link(new Ethdev);
    const bool large = options.form == "large";
    if (!link->start(large ? large_room : small_room, error))
        return nullptr;
    return link;
}

bool Ethdev::start(uint16_t room, std::string &error)
{
    rte_eth_conf settings = {};
    m_pool = rte_pktmbuf_pool_create("packets", pool_mbufs, 256, 0,
                                     static_cast<uint16_t>(room + RTE_PKTMBUF_HEADROOM), -1);
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
    else {
        // One mbuf: drivers differ in what they do with chains.
        m_longest = room;
        m_maker.use(m_pool, room);
    }
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

bool Ethdev::send(size_t bytes, uint64_t value, unsigned n, uint64_t give_up)
{
    rte_mbuf **packets = m_maker.make(bytes, value, n);
    return packets && push_all(packets, n, give_up, [](rte_mbuf **mbufs, uint16_t left) {
               return int{rte_eth_tx_burst(port, 0, mbufs, left)};
           });
}

int Ethdev::receive(size_t bytes, unsigned n, uint64_t &sum)
{
    rte_mbuf *packets[most_burst];
    const unsigned got = rte_eth_rx_burst(port, 0, packets, static_cast<uint16_t>(n));
    if (got != 0)
        sum += take_burst(packets, got, bytes);
    return static_cast<int>(got);
}

} // namespace peers

int main(int argc, char **argv)
{
    return peers::run_peer<peers::Ethdev>(argc, argv);
}
