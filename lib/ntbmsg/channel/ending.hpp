// SPDX-License-Identifier: BSD-3-Clause
// How channels end.
#ifndef NTBMSG_CHANNEL_ENDING_HPP
#define NTBMSG_CHANNEL_ENDING_HPP

#include "transport/worker.hpp"

namespace ntbmsg
{

/// Ends it. Messages that have arrived can still be received, except after a RESET without CLOSE:
/// then they are dropped and counted.
void end(Channel &c, uint8_t state, uint32_t reason);
/// Ends it with a RESET to the peer.
void reset(Channel &c, uint32_t reason);
/// The peer violated the protocol: counts it and resets the channel.
void protocol_error(Channel &c);
/// Releases the slot if neither end needs it any more.
void maybe_free(Channel &c);

} // namespace ntbmsg

#endif
