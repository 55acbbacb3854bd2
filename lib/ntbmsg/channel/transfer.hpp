// SPDX-License-Identifier: BSD-3-Clause
// Sending and accounting of messages, by the thread that drives the worker.
#ifndef NTBMSG_CHANNEL_TRANSFER_HPP
#define NTBMSG_CHANNEL_TRANSFER_HPP

#include <rte_mbuf.h>

#include "port/worker.hpp"

namespace ntbmsg
{

/// How a send ended.
struct SendResult {
    unsigned sent;
    bool ring_full; ///< the driver took less than credit allows
    int error;      ///< of the driver, for the first that was not sent; else 0 or more
};

/// Sends as much as credit and ring allow.
SendResult send_now(Channel &c, rte_mbuf **mbufs, const uint32_t *imm, unsigned n);

/// What messages are in the channel's books.
struct Received {
    unsigned messages;
    uint32_t buffers; ///< of credit
    uint64_t bytes;
};

/// Counts messages that are delivered. Any thread.
inline Received received_of(const Worker &w, rte_mbuf *const *mbufs, unsigned n)
{
    uint64_t bytes = 0;
    uint32_t buffers = 0;
    for (unsigned i = 0; i < n; ++i) {
        bytes += mbufs[i]->pkt_len;
        if (unlikely(mbufs[i]->pool != w.rx_pool))
            buffers += mbufs[i]->nb_segs;
    }
    return {n, buffers, bytes};
}

/// Why nothing can be sent in this state. @return 0: it can
int send_error(uint8_t state);
/// Why nothing more comes. @return 0: it may
int receive_end(const Channel &c);

} // namespace ntbmsg

#endif
