// SPDX-License-Identifier: BSD-3-Clause
// HOT. The ways of the library by which mbufs go, all with the same two calls (mbuf_link.hpp).
#ifndef BENCH_MBUFS_WAYS_HPP
#define BENCH_MBUFS_WAYS_HPP

#include <sched.h>

#include <ntbmsg.h>
#include <rte_mbuf.h>

namespace bench
{

/// The bare queue of an endpoint.
struct QueueWay {
    QueueWay(rte_mempool *from, const ntbmsg_endpoint *endpoint) : pool(from)
    {
        ntbmsg_queue_burst_get(endpoint, 0, &calls);
    }

    rte_mempool *pool; ///< what is sent comes from here
    ntbmsg_queue_burst calls{};

    int send(rte_mbuf **mbufs, uint16_t n)
    {
        return ntbmsg_queue_burst_send(&calls, mbufs, nullptr, n);
    }
    int receive(rte_mbuf **mbufs, uint16_t n)
    {
        return ntbmsg_queue_burst_recv(&calls, mbufs, nullptr, n);
    }
};

/// One channel, run to completion: the sender polls where credits are missing.
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

/// One channel that another thread carries, on the same core: a call without effect yields to it.
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

} // namespace bench

#endif
