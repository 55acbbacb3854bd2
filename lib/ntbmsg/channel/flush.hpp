// SPDX-License-Identifier: BSD-3-Clause
// What the peer's application has not confirmed to have received, and asking it.
#ifndef NTBMSG_CHANNEL_FLUSH_HPP
#define NTBMSG_CHANNEL_FLUSH_HPP

#include "transport/worker.hpp"

namespace ntbmsg
{

/// Time between two questions to the peer, while a caller waits.
inline constexpr uint64_t ask_again_us = 500;
/// Within this time a thread that polls a dedicated worker takes in what has arrived.
inline constexpr uint64_t closing_grace_us = 100'000;

/// Messages taken for sending and not confirmed. Any thread.
uint64_t unconfirmed(const Channel &c);
/// Why nothing more will be confirmed. @return 0: it may be. Any thread
int confirm_error(const Channel &c);
/// Asks the peer what it has received: it answers with CREDIT. By the thread of the worker.
void ask_to_confirm(Channel &c);
/// Dedicated workers: counts what the application has received as credit to be returned. By the
/// thread of the worker.
void collect_received(Channel &c);

} // namespace ntbmsg

#endif
