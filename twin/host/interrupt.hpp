// SPDX-License-Identifier: BSD-3-Clause
// How a host gets to know of its chip's interrupt, and the other end of its own.
#ifndef PLX_TWIN_HOST_INTERRUPT_HPP
#define PLX_TWIN_HOST_INTERRUPT_HPP

namespace plx::twin
{

class Host;

// Under the host's lock:

/// After an access of the host to its own chip.
void check_interrupt(Host &host);
/// After what may have raised the interrupt of the other end: an access to its chip, a link that
/// changed.
void notify_peer_interrupt(Host &host);

/// Calls the callback once if it is to be called. On the cable's thread, without the lock.
void deliver_interrupt(Host &host);

} // namespace plx::twin

#endif
