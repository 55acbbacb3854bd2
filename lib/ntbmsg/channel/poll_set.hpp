// SPDX-License-Identifier: BSD-3-Clause
// Which of many channels have something.
#ifndef NTBMSG_CHANNEL_POLL_SET_HPP
#define NTBMSG_CHANNEL_POLL_SET_HPP

#include "port/channel.hpp"

struct ntbmsg_poll_set {
    ntbmsg::Worker *worker;         ///< NULL: for channels of dedicated workers
    ntbmsg::ReadyList ready;        ///< told nobody yet; run to completion
    std::atomic<uint32_t> channels; ///< that have it
    // Dedicated workers: a stack that any thread pushes to, and what was taken from it, in order.
    std::atomic<ntbmsg::Channel *> told;
    ntbmsg::Channel *first;
    ntbmsg::Channel *last;
    [[no_unique_address]] ntbmsg::Watch watch; ///< for channels of dedicated workers
};

namespace ntbmsg
{

void join(PollSet &set, Channel &c);
/// Nothing more is told of @p c.
void leave_set(Channel &c);

} // namespace ntbmsg

#endif
