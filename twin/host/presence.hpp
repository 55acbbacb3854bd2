// SPDX-License-Identifier: BSD-3-Clause
// The peer connects and is lost, and the host's callback reports it.
#ifndef PLX_TWIN_HOST_PRESENCE_HPP
#define PLX_TWIN_HOST_PRESENCE_HPP

namespace plx::twin
{

class Host;

// Under the host's lock:
void peer_connected(Host &host);
void peer_lost(Host &host);

/// Calls the callback for what happened since, then revokes the memory of a lost peer: the
/// move must not delay the report. On the cable's thread, without the lock.
void deliver_events(Host &host);

} // namespace plx::twin

#endif
