// SPDX-License-Identifier: BSD-3-Clause
// A chip that both hosts are on. It is powered before either host and stays with whichever is left.
// Consequences of a link change are carried out from its virtual side, or from the link side while
// no host is there. A host that moves to a chip it did not know, because it learned too late of the
// other end, restarts it. Under the host's lock.
#ifndef PLX_TWIN_HOST_SHARED_CHIP_HPP
#define PLX_TWIN_HOST_SHARED_CHIP_HPP

namespace plx::twin
{

class Host;

/// The host's place on its new chip: a link-side host is plugged in, and enumerated, by the time
/// that it is attached. @return false: no memory
bool take_place(Host &host);
/// The other end offers the chip that it is on.
/// @param fd taken over
/// @param yields whether this end gives way where neither chip has seen two hosts
/// @return false when the two can not come together
bool take_offered_chip(Host &host, int fd, bool yields);
/// Whether a link-side host finds nothing behind its root port.
bool cut_off(const Host &host);
/// Whether it is this host that carries out link changes in its chip.
bool carries_out(const Host &host);
/// Enumerates anew after a link change. @return whether there was one
bool notice_link(Host &host);

} // namespace plx::twin

#endif
