// SPDX-License-Identifier: BSD-3-Clause
// Sending on a channel: a burst of the channel is a burst of the queue pair.
#ifndef NTBMSG_CHANNEL_SEND_HPP
#define NTBMSG_CHANNEL_SEND_HPP

#include <algorithm>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "transport/worker.hpp"
#include "wire/protocol.hpp"

namespace ntbmsg
{

/// How a send ended.
struct SendResult {
    unsigned sent;
    bool ring_full; ///< the driver accepted fewer messages than the credit allows
    int error;      ///< negative errno of the driver for the first unsent message; else 0 or more
};

/// A part of a burst that is sent in one call of the driver.
struct Batch {
    unsigned messages;
    uint32_t buffers;
    uint64_t bytes;
    Meta meta[burst_max];
};

/// Fills a batch with as many messages from the front of a burst as credit allows.
[[gnu::always_inline]] inline void fill(const Channel &c, rte_mbuf *const *mbufs,
                                        const uint32_t *imm, unsigned n, Batch &batch)
{
    const Worker &w = *c.worker;
    const uint32_t word = c.tx_word, short_max = c.short_max;
    uint64_t bytes = 0;
    uint32_t buffers = 0;
    unsigned i = 0;
    for (; i < n; ++i) {
        const rte_mbuf *m = mbufs[i];
        if (unlikely(m == nullptr))
            break;
        const uint32_t length = m->pkt_len;
        if (unlikely(length > short_max)) {
            if (length > c.longest)
                break;
            const uint32_t need = w.peer_buffers.of(length);
            if (need > c.tx.now.buffers - buffers)
                break;
            buffers += need;
        }
        bytes += length;
        batch.meta[i] = {protocol::header(word, imm != nullptr ? imm[i] : 0), 0, 0};
    }
    batch.messages = i;
    batch.buffers = buffers;
    batch.bytes = bytes;
}

/// Reduces a batch to its first @p taken messages.
void cut(const Worker &w, rte_mbuf *const *rest, Batch &batch, unsigned taken);

/// Sends short messages from the front of a burst, within the credit: their headers are one, so
/// that none of them is looked at here. @return how many; send() says why not all
[[gnu::always_inline]] inline unsigned send_alike(Channel &c, rte_mbuf **mbufs, unsigned n)
{
    Worker &w = *c.worker;
    w.tx_flow.meta.data = protocol::header(c.tx_word, 0);
    w.tx_flow.longest = c.short_max;
    const int taken = w.flow_calls->tx(w.burst.tx_queue, mbufs, &w.tx_flow,
                                       static_cast<uint16_t>(std::min(n, c.tx.now.messages)));
    if (unlikely(taken <= 0))
        return 0;
    const auto sent = static_cast<unsigned>(taken);
    c.tx.sent({sent, 0});
    c.tx_messages.add(sent);
    c.tx_bytes.add(w.tx_flow.bytes);
    return sent;
}

/// Sends as much as credit and ring allow.
[[gnu::always_inline]] inline SendResult send(Channel &c, rte_mbuf **mbufs, const uint32_t *imm,
                                              unsigned n)
{
    const Worker &w = *c.worker;
    unsigned sent = 0;
    while (sent < n) {
        const unsigned wanted = std::min<unsigned>(n - sent, burst_max);
        Batch batch;
        fill(c, mbufs + sent, imm != nullptr ? imm + sent : nullptr,
             std::min(wanted, c.tx.now.messages), batch);
        int taken = 0;
        if (likely(batch.messages != 0))
            taken = w.burst.tx(w.burst.tx_queue, mbufs + sent, batch.meta,
                               static_cast<uint16_t>(batch.messages));
        const bool ring_full = taken < static_cast<int>(batch.messages);
        const unsigned went = taken > 0 ? static_cast<unsigned>(taken) : 0;
        if (unlikely(ring_full))
            cut(w, mbufs + sent + went, batch, went);
        c.tx.sent({batch.messages, batch.buffers});
        c.tx_messages.add(batch.messages);
        c.tx_bytes.add(batch.bytes);
        sent += batch.messages;
        if (unlikely(batch.messages < wanted))
            return {sent, ring_full, taken};
    }
    return {sent, false, 0};
}

} // namespace ntbmsg

#endif
