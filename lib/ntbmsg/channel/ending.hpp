// SPDX-License-Identifier: BSD-3-Clause
// How channels end.
#ifndef NTBMSG_CHANNEL_ENDING_HPP
#define NTBMSG_CHANNEL_ENDING_HPP

#include "port/worker.hpp"

namespace ntbmsg
{

/// Ends it. What the peer sent stays to be received where its sender was done (@p state LOST, or
/// CLOSE came before), else it is dropped and counted.
void end(Channel &c, uint8_t state, uint32_t reason);
/// Ends it with a RESET to the peer.
void reset(Channel &c, uint32_t reason);
/// The peer broke the rules on it: counted, and reset.
void protocol_error(Channel &c);
/// Frees the slot if neither end needs it any more.
void maybe_free(Channel &c);

} // namespace ntbmsg

#endif
