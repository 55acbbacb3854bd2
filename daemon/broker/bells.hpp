// SPDX-License-Identifier: BSD-3-Clause
// The bell of a connection: a pair of sockets, an end for each side.
#ifndef NTBD_BROKER_BELLS_HPP
#define NTBD_BROKER_BELLS_HPP

#include "broker/relay_order.hpp"

#include <sys/socket.h>

// Not in the headers of every system that has it (Linux 6.16).
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

namespace ntbd
{

/// Who rings an end could put descriptors into it whose close waits, in the name of who holds it.
/// Where the kernel can it refuses them.
/// @param close of each end, for what the other side may have put there
/// @return false, errno set
inline bool make_bells(Descriptor *bells, CloseCall close_first, CloseCall close_second)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        return false;
    const int off = 0;
    for (const int fd : ends)
        setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
    bells[0] = Descriptor(ends[0], std::move(close_first));
    bells[1] = Descriptor(ends[1], std::move(close_second));
    return true;
}

} // namespace ntbd

#endif
