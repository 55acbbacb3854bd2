// SPDX-License-Identifier: BSD-3-Clause
// What our queue pairs and our channels stand on: EAL, an endpoint on the software twin, and a pool
// of mbufs to send from.
#ifndef BENCH_PEERS_OURS_OWN_ENDPOINT_HPP
#define BENCH_PEERS_OURS_OWN_ENDPOINT_HPP

#include "peers/links/mbufs.hpp"
#include "peers/pair/command_line.hpp"
#include "peers/pair/meeting.hpp"

#include <ntbmsg.h>

#include <cstring>

namespace peers
{

class OwnEndpoint
{
public:
    static constexpr uint32_t connect_ms = 15000;

    OwnEndpoint() = default;
    ~OwnEndpoint()
    {
        if (m_endpoint)
            ntbmsg_endpoint_close_linger(m_endpoint, 0, nullptr);
        rte_mempool_free(m_pool);
        rte_eal_cleanup();
    }
    OwnEndpoint(const OwnEndpoint &) = delete;
    OwnEndpoint &operator=(const OwnEndpoint &) = delete;

    /// Starts EAL and connects. @return false: @p error says why
    bool open(const Options &options, uint32_t queues, uint32_t workers, std::string &error)
    {
        if (!start_eal(options.words, error))
            return false;
        m_room = options.form == "large" ? large_room : small_room;
        const int failed = start(queues, workers);
        if (failed != 0)
            error = std::string("the endpoint does not connect: ") + strerror(-failed);
        return failed == 0;
    }

    ntbmsg_endpoint *endpoint() const { return m_endpoint; }
    rte_mempool *pool() const { return m_pool; }
    size_t room() const { return m_room; }

private:
    static constexpr const char *device = "raw_plx_ntb0";
    static constexpr uint32_t buffer_bytes = 8u << 20;
    static constexpr uint32_t longest = 65536;

    int start(uint32_t queues, uint32_t workers)
    {
        ntbmsg_endpoint_options settings;
        ntbmsg_endpoint_options_init(&settings);
        settings.queues = queues;
        settings.workers = workers;
        settings.buffers = buffer_bytes / m_room;
        settings.buf_bytes = m_room;
        settings.max_message = longest;
        const int failed = ntbmsg_endpoint_open(device, &settings, &m_endpoint);
        if (failed != 0)
            return failed;
        m_pool = rte_pktmbuf_pool_create("messages", 4095, 256, 0,
                                         static_cast<uint16_t>(m_room + RTE_PKTMBUF_HEADROOM), -1);
        if (!m_pool)
            return -ENOMEM;
        return ntbmsg_endpoint_wait_connected(m_endpoint, connect_ms);
    }

    ntbmsg_endpoint *m_endpoint = nullptr;
    rte_mempool *m_pool = nullptr;
    uint16_t m_room = small_room;
};

} // namespace peers

#endif
