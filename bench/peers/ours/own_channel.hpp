// SPDX-License-Identifier: BSD-3-Clause
// A channel of ours between the two sides, with its worker run to completion.
#ifndef BENCH_PEERS_OURS_OWN_CHANNEL_HPP
#define BENCH_PEERS_OURS_OWN_CHANNEL_HPP

#include "peers/ours/own_endpoint.hpp"

#include <unistd.h>

namespace peers
{

class OwnChannel
{
public:
    OwnChannel() = default;
    ~OwnChannel()
    {
        ntbmsg_channel_close(m_channel);
        ntbmsg_listener_close(m_listener);
        ntbmsg_cq_destroy(m_cq);
    }
    OwnChannel(const OwnChannel &) = delete;
    OwnChannel &operator=(const OwnChannel &) = delete;

    /// Starts EAL, connects, and opens the channel: side 1 listens.
    /// @param completions  entries of its completion queue; 0: it has none
    /// @return false: @p error says why
    bool open(const Options &options, uint32_t completions, std::string &error)
    {
        if (!m_own.open(options, 0, 1, error))
            return false;
        m_worker = ntbmsg_endpoint_worker(m_own.endpoint(), 0);
        int failed = completions != 0 ? ntbmsg_cq_create(completions, nullptr, nullptr, &m_cq) : 0;
        ntbmsg_channel_options settings;
        ntbmsg_channel_options_init(&settings);
        settings.credit_messages = credit_messages;
        settings.credit_bytes = credit_bytes;
        settings.cq = m_cq;
        if (failed == 0)
            failed = options.side == 1 ? accept(settings) : connect(settings);
        if (failed != 0)
            error = std::string("the channel does not open: ") + strerror(-failed);
        return failed == 0;
    }

    const OwnEndpoint &own() const { return m_own; }
    ntbmsg_endpoint *endpoint() const { return m_own.endpoint(); }
    ntbmsg_worker *worker() const { return m_worker; }
    ntbmsg_channel *channel() const { return m_channel; }
    ntbmsg_cq *completions() const { return m_cq; }

private:
    static constexpr uint16_t port = 20;
    // Enough that credit is no limit: some bursts of short messages, two bursts of long ones.
    static constexpr uint32_t credit_messages = 1024;
    static constexpr uint32_t credit_bytes = 2u << 20;
    static constexpr uint64_t connect_ns = 15000000000u;

    /// The other side may not listen yet, which is a refusal.
    int connect(const ntbmsg_channel_options &settings)
    {
        const uint64_t give_up = monotonic_ns() + connect_ns;
        for (;;) {
            int failed = ntbmsg_channel_connect(m_worker, port, &settings, &m_channel);
            if (failed == 0)
                failed = ntbmsg_channel_wait_open(m_channel, OwnEndpoint::connect_ms);
            if (failed != -ECONNREFUSED || monotonic_ns() > give_up)
                return failed;
            ntbmsg_channel_close(m_channel);
            m_channel = nullptr;
            usleep(1000);
        }
    }

    int accept(const ntbmsg_channel_options &settings)
    {
        const int failed = ntbmsg_listener_open(port, 0, &m_listener);
        if (failed != 0)
            return failed;
        ntbmsg_request request;
        for (const uint64_t give_up = monotonic_ns() + connect_ns; monotonic_ns() < give_up;) {
            ntbmsg_worker_poll(m_worker);
            if (ntbmsg_listener_poll(m_listener, m_worker, &request) == 1)
                return ntbmsg_channel_accept(&request, &settings, &m_channel);
        }
        return -ETIMEDOUT;
    }

    OwnEndpoint m_own;
    ntbmsg_worker *m_worker = nullptr;
    ntbmsg_cq *m_cq = nullptr;
    ntbmsg_listener *m_listener = nullptr;
    ntbmsg_channel *m_channel = nullptr;
};

} // namespace peers

#endif
