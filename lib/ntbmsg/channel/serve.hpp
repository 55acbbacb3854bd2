// SPDX-License-Identifier: BSD-3-Clause
// The engine's half of channels of a dedicated worker.
#ifndef NTBMSG_CHANNEL_SERVE_HPP
#define NTBMSG_CHANNEL_SERVE_HPP

#include "port/worker.hpp"

namespace ntbmsg
{

/// Does what other threads want, and sends what had no room.
void serve(Worker &w);
/// Credit came, or the channel opened: sends from its ring.
void send_queued(Channel &c);

} // namespace ntbmsg

#endif
