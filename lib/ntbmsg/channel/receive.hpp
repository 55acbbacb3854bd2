// SPDX-License-Identifier: BSD-3-Clause
// Accounting of received messages.
#ifndef NTBMSG_CHANNEL_RECEIVE_HPP
#define NTBMSG_CHANNEL_RECEIVE_HPP

#include <cerrno>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "transport/worker.hpp"

namespace ntbmsg
{

/// Received messages as counted for a channel.
struct Received {
    unsigned messages;
    uint32_t buffers; ///< of credit
    uint64_t bytes;
};

/// Counts messages that are delivered to the application. Any thread.
inline Received received_of(const Worker &w, rte_mbuf *const *mbufs, unsigned n)
{
    uint64_t bytes = 0;
    uint32_t buffers = 0;
    for (unsigned i = 0; i < n; ++i) {
        bytes += mbufs[i]->pkt_len;
        buffers += buffers_counted(w, mbufs[i]);
    }
    return {n, buffers, bytes};
}

/// Why nothing more can arrive. @return 0: it can
inline int receive_end(const Channel &c)
{
    const uint8_t state = state_of(c);
    if (state == NTBMSG_CHANNEL_CONNECTING || may_receive(state))
        return 0;
    return c.close_seen ? -ESHUTDOWN : -ECONNRESET;
}

} // namespace ntbmsg

#endif
