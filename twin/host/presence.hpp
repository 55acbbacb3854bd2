// SPDX-License-Identifier: BSD-3-Clause
// The other end comes and goes, and the host's callback gets to know.
#ifndef PLX_TWIN_HOST_PRESENCE_HPP
#define PLX_TWIN_HOST_PRESENCE_HPP

namespace plx::twin
{

class Host;

// Under the host's lock:
void peer_came(Host &host);
void peer_went(Host &host);

/// Calls the callback for what happened since, then takes memory back from an other end that went:
/// the move must not delay the news. On the cable's thread, without the lock.
void deliver_events(Host &host);

} // namespace plx::twin

#endif
