// SPDX-License-Identifier: BSD-3-Clause
// How two processes that know the same path connect, in either order.
#ifndef PLX_TWIN_CABLE_LISTEN_HPP
#define PLX_TWIN_CABLE_LISTEN_HPP

#include "twin.hpp"

#include <sys/types.h>

namespace plx::twin
{

struct SocketEnd {
    int connection = -1;    ///< the other end was listening
    int listener = -1;      ///< no other end was: this one listens
    bool was_stale = false; ///< a dead process's socket lay there
    dev_t device = 0;       ///< of the listener's file
    ino_t inode = 0;
};
/// Connects to @p path, or listens there. Two that come at once, and sockets of dead processes, are
/// settled under a lock, <path>.lock, held for microseconds and removed. Socket and lock are the
/// user's own, or for @p other as well.
/// @param other a user beside this process's that the other end may be of; no_user
/// @return 0 or a negative errno with @p error set
int connect_or_listen(const char *path, uint32_t other, SocketEnd *out, Error *error);
/// Stops to listen: removes the file if it is still ours.
void stop_listening(const char *path, uint32_t other, SocketEnd *end);
/// Whether the process at the other end of a connection may be there. @param user gets whose it is
bool is_let_in(int connection, uint32_t other, uid_t *user);
/// Whether the other end of a connection is this very process.
bool is_own_process(int connection);

} // namespace plx::twin

#endif
