// SPDX-License-Identifier: BSD-3-Clause
// Messages of a channel that the application builds in receive buffers of the peer (rooms). All
// channels of a worker send by one queue pair, so one of them holds rooms at a time. Credit for as
// many messages as rooms is set aside, and credit for the buffers.
#ifndef NTBMSG_CHANNEL_IN_PLACE_HPP
#define NTBMSG_CHANNEL_IN_PLACE_HPP

#include "transport/worker.hpp"

namespace ntbmsg
{

/// @return rooms reserved; 0: no credit, or no room at the peer; -EBUSY, -ENOTCONN
int reserve_rooms(Channel &c, ntbmsg_room *rooms, unsigned n);
/// @return n; -EINVAL, -EMSGSIZE: the rooms remain; -ECONNRESET: there are none any more
int commit_rooms(Channel &c, const uint32_t *lengths, const uint32_t *imm, unsigned n);
/// Gives back what the channel holds.
void abort_rooms(Channel &c);

} // namespace ntbmsg

#endif
