// SPDX-License-Identifier: BSD-3-Clause
// The ways of the library by which the figures' messages go, all with the same two calls.
#ifndef BENCH_HOST_WAY_HPP
#define BENCH_HOST_WAY_HPP

#include "host/channels.hpp"

#include <sched.h>
#include <utility>

#include <ntbmsg.h>

namespace bench
{

/// The bare queue of an endpoint.
struct QueueWay {
    rte_mempool *pool; ///< what is sent comes from here
    ntbmsg_endpoint *endpoint;

    int send(rte_mbuf **mbufs, uint16_t n)
    {
        return ntbmsg_queue_send_burst(endpoint, 0, mbufs, nullptr, n);
    }
    int receive(rte_mbuf **mbufs, uint16_t n)
    {
        return ntbmsg_queue_recv_burst(endpoint, 0, mbufs, nullptr, n);
    }
};

/// One channel, run to completion: who sends polls where credits are missing.
struct ChannelWay {
    rte_mempool *pool;
    ntbmsg_worker *worker;
    ntbmsg_channel *channel;

    int send(rte_mbuf **mbufs, uint16_t n)
    {
        const int taken = ntbmsg_channel_send_burst(channel, mbufs, nullptr, n);
        if (taken >= 0 && taken < n)
            ntbmsg_worker_poll(worker);
        return taken;
    }
    int receive(rte_mbuf **mbufs, uint16_t n)
    {
        return ntbmsg_channel_recv_burst(channel, mbufs, nullptr, n);
    }
};

/// One channel that another thread carries, on the same core: who has nothing to do lets it run.
struct PolledWay {
    rte_mempool *pool;
    ntbmsg_channel *channel;

    static int yield_for(int result)
    {
        if (result == 0)
            sched_yield();
        return result;
    }
    int send(rte_mbuf **mbufs, uint16_t n)
    {
        return yield_for(ntbmsg_channel_send_burst(channel, mbufs, nullptr, n));
    }
    int receive(rte_mbuf **mbufs, uint16_t n)
    {
        return yield_for(ntbmsg_channel_recv_burst(channel, mbufs, nullptr, n));
    }
};

/// All channels in turn, a burst a visit; received as their poll set tells.
class TurnsWay
{
    static constexpr uint16_t told_max = 64;
    const Channels &m_channels;
    size_t m_next = 0;
    ntbmsg_ready m_ready[told_max];
    int m_told = 0;
    int m_visited = 0;

public:
    rte_mempool *pool;

    TurnsWay(rte_mempool *from, const Channels &channels) : m_channels(channels), pool(from) {}

    int send(rte_mbuf **mbufs, uint16_t n)
    {
        ChannelWay way{pool, m_channels.worker(), m_channels.at(m_next)};
        m_next = m_next + 1 < m_channels.count() ? m_next + 1 : 0;
        return way.send(mbufs, n);
    }
    int receive(rte_mbuf **mbufs, uint16_t n)
    {
        if (m_visited == m_told) {
            m_visited = 0;
            m_told = ntbmsg_poll_set_poll(m_channels.set(), m_ready, told_max);
            if (m_told <= 0)
                return std::exchange(m_told, 0);
        }
        return ntbmsg_channel_recv_burst(m_ready[m_visited++].channel, mbufs, nullptr, n);
    }
};

} // namespace bench

#endif
