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

/// The data lie in the worker's memory for long messages.
inline bool is_lent(const Worker &w, const rte_mbuf *m)
{
    const RendezvousMemory &r = w.rendezvous;
    return static_cast<size_t>(static_cast<const std::byte *>(m->buf_addr) - r.base) < r.bytes;
}

/// Counts messages that are handed up. Any thread.
/// @param on_pieces  is told the pieces of each that lies in rendezvous memory
template <class OnPieces>
inline Received received_of(const Worker &w, rte_mbuf *const *mbufs, unsigned n, OnPieces on_pieces)
{
    uint64_t bytes = 0;
    uint32_t buffers = 0;
    for (unsigned i = 0; i < n; ++i) {
        bytes += mbufs[i]->pkt_len;
        if (likely(mbufs[i]->pool == w.rx_pool))
            continue;
        if (likely(!is_lent(w, mbufs[i])))
            buffers += mbufs[i]->nb_segs;
        else
            on_pieces(mbufs[i]->nb_segs);
    }
    return {n, buffers, bytes};
}

/// Why nothing can be sent in this state. @return 0: it can
int send_error(uint8_t state);
/// Why nothing more comes. @return 0: it may
int receive_end(const Channel &c);

} // namespace ntbmsg

#endif
