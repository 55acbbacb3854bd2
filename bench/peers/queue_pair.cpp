// SPDX-License-Identifier: BSD-3-Clause
// Ours: a queue of an endpoint between two hosts on the software twin, by the public calls.
#include "mbufs.hpp"
#include "run.hpp"

#include <ntbmsg.h>

#include <cstring>

namespace peers
{

namespace
{

constexpr const char *device = "raw_plx_ntb0";
constexpr uint32_t connect_ms = 15000;
constexpr uint32_t buffers = 4096;
/// What one mbuf holds: larger messages travel as chains, here and over ethdev.
constexpr uint32_t small_room = 2048;
constexpr uint32_t large_room = 8192;
constexpr uint32_t longest = 65536;

class QueuePair
{
public:
    static std::unique_ptr<QueuePair> open(const Options &options, std::string &error);
    ~QueuePair();
    QueuePair(const QueuePair &) = delete;
    QueuePair &operator=(const QueuePair &) = delete;

    size_t max_message() const { return ntbmsg_max_message(m_endpoint); }
    bool send(size_t bytes, uint64_t value, unsigned n, uint64_t give_up);
    int receive(size_t bytes, unsigned n, uint64_t &sum);

private:
    QueuePair() = default;
    int start(uint32_t room);

    ntbmsg_endpoint *m_endpoint = nullptr;
    rte_mempool *m_pool = nullptr;
    MessageMaker m_maker;
};

} // namespace

std::unique_ptr<QueuePair> QueuePair::open(const Options &options, std::string &error)
{
    if (!start_eal(options.words, error))
        return nullptr;
    std::unique_ptr<QueuePair> link(new QueuePair);
    const int failed = link->start(options.form == "large" ? large_room : small_room);
    if (failed == 0)
        return link;
    error = std::string("the endpoint does not connect: ") + strerror(-failed);
    return nullptr;
}

int QueuePair::start(uint32_t room)
{
    ntbmsg_endpoint_options settings;
    ntbmsg_endpoint_options_init(&settings);
    settings.buffers = buffers * small_room / room;
    settings.buf_bytes = room;
    settings.max_message = longest;
    const int failed = ntbmsg_endpoint_open(device, &settings, &m_endpoint);
    if (failed != 0)
        return failed;
    m_pool = rte_pktmbuf_pool_create("messages", 4095, 256, 0,
                                     static_cast<uint16_t>(room + RTE_PKTMBUF_HEADROOM), -1);
    if (!m_pool)
        return -ENOMEM;
    m_maker.use(m_pool, room);
    return ntbmsg_wait_connected(m_endpoint, connect_ms);
}

QueuePair::~QueuePair()
{
    if (m_endpoint)
        ntbmsg_endpoint_close(m_endpoint);
    rte_mempool_free(m_pool);
    rte_eal_cleanup();
}

bool QueuePair::send(size_t bytes, uint64_t value, unsigned n, uint64_t give_up)
{
    rte_mbuf **messages = m_maker.make(bytes, value, n);
    return messages && push_all(messages, n, give_up, [&](rte_mbuf **mbufs, uint16_t left) {
               return ntbmsg_send_burst(m_endpoint, 0, mbufs, nullptr, left);
           });
}

int QueuePair::receive(size_t bytes, unsigned n, uint64_t &sum)
{
    rte_mbuf *messages[most_burst];
    const int got = ntbmsg_recv_burst(m_endpoint, 0, messages, nullptr, static_cast<uint16_t>(n));
    if (got > 0)
        sum += take_burst(messages, static_cast<unsigned>(got), bytes);
    return got < 0 ? -1 : got;
}

} // namespace peers

int main(int argc, char **argv)
{
    return peers::run_peer<peers::QueuePair>(argc, argv);
}
