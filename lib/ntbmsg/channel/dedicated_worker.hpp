// SPDX-License-Identifier: BSD-3-Clause
// Channels of a dedicated worker: the side of the worker's thread.
#ifndef NTBMSG_CHANNEL_DEDICATED_WORKER_HPP
#define NTBMSG_CHANNEL_DEDICATED_WORKER_HPP

#include "transport/worker.hpp"

namespace ntbmsg
{

/// Serves calls of other threads, and sends messages that found the ring full.
void serve(Worker &w);
/// Sends from the channel's send ring, after credit was returned or the channel opened.
void send_queued(Channel &c);

} // namespace ntbmsg

#endif
