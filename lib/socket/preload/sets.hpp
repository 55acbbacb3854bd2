// SPDX-License-Identifier: BSD-3-Clause
// The sets of this process: epoll descriptors that may have connections as members.
#ifndef NTB_SOCKET_PRELOAD_SETS_HPP
#define NTB_SOCKET_PRELOAD_SETS_HPP

#include "preload/state.hpp"
#include "readiness/set.hpp"
#include "readiness/source.hpp"

namespace ntb::socket::preload
{

/// An epoll descriptor was made. @param attendant  of the wait in it; lives as long as the process
int set_born(int fd, Attendant *attendant);
/// It is closed, and its last use over.
void set_ended(Set *set);

/// Whether sets could learn of a member that they have not seen added.
bool sets_can_learn();
/// A connection is upgraded: makes it known to the sets that have it as a member, under any of its
/// numbers. @param fd  one of them @retval false one of them does not know whether it has it
bool upgrade_in_sets(const Object *object, int fd, Source *source);
/// A descriptor is about to be no connection any more, and stays open.
void left_in_sets(int fd, const Source *source);
/// A descriptor is about to be closed.
void closed_in_sets(int fd, Source *source, bool last);

/// The sets' own descriptor, which the first upgraded member of one makes, may not be closed.
void hide_wake();
/// A set has become a member of another one: it is settled before each wait for that.
void nest(const Set *inner);
void settle_nested();

/// Around a fork.
void sets_before_fork();
void sets_after_fork_in_parent(bool has_child);
void sets_after_fork_in_child();

} // namespace ntb::socket::preload

#endif
