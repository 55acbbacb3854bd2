// SPDX-License-Identifier: BSD-3-Clause
// The daemon of this process. One: connections to hosts of another one stay TCP.
#ifndef NTB_SOCKET_PRELOAD_ATTACH_HPP
#define NTB_SOCKET_PRELOAD_ATTACH_HPP

#include "connection/attachment.hpp"

#include <sys/types.h>

namespace ntb::socket::preload
{

/// The attachment to the daemon at @p path, made where there is none yet. NULL: it is attached to
/// another one, or there is no memory.
Attachment *attachment_of(const char *path);
/// NULL: there is none yet.
Attachment *attachment();
/// Before the file system changes: connects to the daemon of the first peer in the map, unless the
/// program is attached already.
void attach_early();
/// The program may not close its descriptor.
void hide_control();

/// Around a fork; before_fork() comes last, and the others first.
void attach_before_fork();
void attach_after_fork_in_parent(pid_t child);
void attach_after_fork_in_child();

} // namespace ntb::socket::preload

#endif
