// SPDX-License-Identifier: BSD-3-Clause
// Which of many channels have something.
#ifndef NTBMSG_POLL_SET_HPP
#define NTBMSG_POLL_SET_HPP

#include "channel.hpp"

struct ntbmsg_poll_set {
    ntbmsg::Worker *worker;
    ntbmsg::ReadyList ready; ///< told nobody yet
    uint32_t channels;       ///< that have it
};

namespace ntbmsg
{

void join(PollSet &set, Channel &c);
/// Nothing more is told of @p c.
void leave_set(Channel &c);

} // namespace ntbmsg

#endif
