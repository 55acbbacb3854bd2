// SPDX-License-Identifier: BSD-3-Clause
#include "host/channels.hpp"

#include <algorithm>
#include <cerrno>
#include <sched.h>

#include <rte_mbuf.h>

namespace bench
{

namespace
{

constexpr uint16_t port = 1;
constexpr uint32_t open_ms = 20000;
constexpr uint32_t least_credit = 4; ///< that a channel can have
constexpr uint32_t long_credit = 7;  ///< messages of 1 MiB
constexpr uint64_t open_ns = uint64_t{open_ms} * 1000000;

} // namespace

void Channels::listen(Result &result)
{
    if (const int error = ntbmsg_listener_open(port, 0, &m_listener); error != 0)
        fail(result, -error, "cannot listen");
}

/// For the channel that is opened next.
ntbmsg_channel_options Channels::next_options() const
{
    ntbmsg_channel_options options;
    ntbmsg_channel_options_init(&options);
    options.set = m_set;
    options.cq = m_cq;
    options.timeout_ms = open_ms;
    options.credit_messages = m_channels.empty() ? m_first_credit : other_credit;
    options.credit_bytes = m_credit_bytes;
    return options;
}

void Channels::open(ntbmsg_endpoint *endpoint, unsigned side, const Shape &shape, ntbmsg_cq *cq,
                    Result &result)
{
    m_cq = cq;
    m_first_credit = shape.credit != 0 ? std::max(shape.credit, least_credit) : 0;
    const uint32_t long_messages = shape.credit != 0 ? shape.credit : long_credit;
    m_credit_bytes = shape.buf_bytes == long_room ? long_messages << 20 : 0;
    m_worker = ntbmsg_endpoint_worker(endpoint, 0);
    m_dedicated = shape.dedicated != 0;
    if (const int error = ntbmsg_poll_set_create(m_dedicated ? nullptr : m_worker, &m_set);
        error != 0)
        return fail(result, -error, "no poll set");
    if (side == 0) {
        connect(shape.channels, result);
        if (!result.error)
            greet(endpoint, result);
    } else {
        accept(shape.channels, result);
        if (!result.error)
            be_greeted(result);
    }
}

/// Lets the worker go on.
void Channels::turn() const
{
    if (m_dedicated)
        sched_yield();
    else
        ntbmsg_worker_poll(m_worker);
}

void Channels::connect(uint32_t count, Result &result)
{
    for (uint32_t i = 0; i < count && !result.error; i++) {
        const ntbmsg_channel_options options = next_options();
        ntbmsg_channel *channel = nullptr;
        int error = ntbmsg_channel_connect(m_worker, port, &options, &channel);
        if (error == 0) {
            m_channels.push_back(channel);
            error = ntbmsg_channel_wait_open(channel, open_ms);
        }
        if (error != 0)
            fail(result, -error, "a channel does not connect");
    }
}

void Channels::accept(uint32_t count, Result &result)
{
    const uint64_t give_up = monotonic_ns() + open_ns;
    while (m_channels.size() < count && !result.error) {
        ntbmsg_request request;
        turn();
        if (ntbmsg_listener_poll(m_listener, m_worker, &request) != 1) {
            if (monotonic_ns() > give_up)
                fail(result, ETIMEDOUT, "channels are missing");
            continue;
        }
        const ntbmsg_channel_options options = next_options();
        ntbmsg_channel *channel = nullptr;
        if (const int error = ntbmsg_channel_accept(&request, &options, &channel); error != 0)
            return fail(result, -error, "a channel cannot be accepted");
        m_channels.push_back(channel);
    }
}

/// One message, so that the accepting side polls until all of them are open at this end.
void Channels::greet(ntbmsg_endpoint *endpoint, Result &result)
{
    rte_mbuf *message = rte_pktmbuf_alloc(ntbmsg_endpoint_pool(endpoint));
    if (message == nullptr || ntbmsg_channel_send_burst(m_channels[0], &message, nullptr, 1) != 1) {
        rte_pktmbuf_free(message);
        fail(result, EAGAIN, "a channel takes no message");
    }
}

void Channels::be_greeted(Result &result)
{
    const uint64_t give_up = monotonic_ns() + open_ns;
    rte_mbuf *message = nullptr;
    while (ntbmsg_channel_recv_burst(m_channels[0], &message, nullptr, 1) != 1) {
        if (monotonic_ns() > give_up)
            return fail(result, ETIMEDOUT, "the channels do not open");
        if (m_dedicated)
            turn();
    }
    rte_pktmbuf_free(message);
}

void Channels::close()
{
    for (ntbmsg_channel *channel : m_channels)
        ntbmsg_channel_close(channel);
    m_channels.clear();
    const uint64_t give_up = monotonic_ns() + open_ns;
    while (ntbmsg_poll_set_destroy(m_set) == -EBUSY && monotonic_ns() < give_up)
        turn(); // a dedicated worker gets to the closes
    m_set = nullptr;
    ntbmsg_listener_close(m_listener);
    m_listener = nullptr;
}

} // namespace bench
