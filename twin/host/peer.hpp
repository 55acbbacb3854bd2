// SPDX-License-Identifier: BSD-3-Clause
// What the other end said of its memory and its chip, checked. Under the host's lock.
#ifndef PLX_TWIN_HOST_PEER_HPP
#define PLX_TWIN_HOST_PEER_HPP

namespace plx::twin
{

class Host;
struct Region;

/// Takes what the other end says about its block @p slot. @p fd is taken over; -1: not exposed.
/// @return false when it is nonsense
bool take_memory(Host &host, unsigned slot, const Region &region, int fd);
/// Takes the other end's chip; @p fd is taken over. @return false when it is none
bool take_chip(Host &host, int fd);
/// Forgets its block @p slot.
void forget_memory(Host &host, unsigned slot);

} // namespace plx::twin

#endif
