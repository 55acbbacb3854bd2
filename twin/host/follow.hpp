// SPDX-License-Identifier: BSD-3-Clause
// Keeps mappings true to the registers. Under the host's lock, but for catch_up().
#ifndef PLX_TWIN_HOST_FOLLOW_HPP
#define PLX_TWIN_HOST_FOLLOW_HPP

#include "chip/routing.hpp"

namespace plx::twin
{

class Host;

/// The way from this host to the other and back.
Way way_out(const Host &host);
Way way_in(const Host &host, Region *scratch);
/// Carries out link changes, maps this host's windows, and moves its blocks away from the other
/// end where that lost access. @return whether the other end has to follow
bool follow(Host &host);
/// follow(), but where the other end loses access, that end is asked to cut its own windows first,
/// and waited for as update_peer() does. For changes that this host makes. The lock may be free
/// meanwhile.
bool follow_after_peer(Host &host);
/// follow_after_peer(), and has the other end follow where it must.
void settle(Host &host);
/// How long the cable's thread may wait, in milliseconds for poll(), before catch_up(). Under the
/// lock.
int until_catch_up_ms(const Host &host, int timeout_ms);
/// settle(), where no register was read since A-LUT RAM was written, and what the end of a training
/// means, where none was read since. On the cable's thread, without the lock.
void catch_up(Host &host);
/// Wakes the cable's thread if a training is under way, whose end it has to observe.
void meet_training(Host &host);
/// Unmaps what this host's windows show of a lost peer.
void unmap_lost_peer(Host &host);
/// Carries out what the link did meanwhile.
void update_link(Host &host);

/// What the other end is to know of block @p slot now: with a generation only while a way leads
/// there, for only then it gets the memory.
Region exposed(const Host &host, unsigned slot);
bool same_region(const Region &a, const Region &b);

} // namespace plx::twin

#endif
