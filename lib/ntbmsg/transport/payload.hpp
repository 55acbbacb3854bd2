// SPDX-License-Identifier: BSD-3-Clause
// Payloads of one-sided operations: mbufs filled from the pieces (SGEs) of an operation, and pieces
// filled from mbufs.
#ifndef NTBMSG_TRANSPORT_PAYLOAD_HPP
#define NTBMSG_TRANSPORT_PAYLOAD_HPP

#include <cstdint>

#include "ntbmsg.h"
#include "transport/worker.hpp"

namespace ntbmsg
{

/// A message that did not fit into the ring towards the peer, to be sent before any other.
struct Held {
    rte_mbuf *mbuf;
    uint32_t argument;
    uint8_t op;
};

/// Most data of one message to the peer: what it takes, at most protocol::chunk_bytes.
uint32_t chunk_of(const ntbmsg_worker &w);

/// A message that begins with a copy of @p bytes. @return NULL: no mbuf is free now
rte_mbuf *payload_begin(ntbmsg_worker &w, const void *from, uint32_t bytes);
/// Adds a copy of private memory. @return false: no mbuf is free now
bool payload_append(ntbmsg_worker &w, rte_mbuf *m, const void *from, uint32_t bytes);
/// Adds @p bytes of an operation's pieces, from byte @p at of it on.
/// @param pieces, mask, first  the ring of pieces, and the operation's first one in it
/// @return false: no mbuf is free now
bool payload_gather(ntbmsg_worker &w, rte_mbuf *m, const ntbmsg_sge *pieces, uint32_t mask,
                    uint32_t first, uint32_t at, uint32_t bytes);
/// Copies a whole message into an operation's pieces, from byte @p at of it on. They have room.
void payload_scatter(const rte_mbuf *m, const ntbmsg_sge *pieces, uint32_t mask, uint32_t first,
                     uint32_t at);
/// Copies @p bytes of a message from its byte @p at on to one place. They are in it.
void payload_copy(const rte_mbuf *m, uint32_t at, void *to, uint32_t bytes);
/// Copies the first @p bytes. @return false: it has not so many
bool payload_read(const rte_mbuf *m, void *to, uint32_t bytes);

/// Sends what was held. @return false: still no room
bool send_held(ntbmsg_worker &w, ntbmsg_channel &c, Held &held);
/// Sends a message, or holds it where there is no room: then nothing is held yet.
void hold_or_send(ntbmsg_worker &w, ntbmsg_channel &c, Held &held, uint8_t op, uint32_t argument,
                  rte_mbuf *m);

} // namespace ntbmsg

#endif
