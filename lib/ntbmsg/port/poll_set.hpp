// SPDX-License-Identifier: BSD-3-Clause
// Poll sets: which of many channels have something.
#ifndef NTBMSG_PORT_POLL_SET_HPP
#define NTBMSG_PORT_POLL_SET_HPP

#include <atomic>

#include "port/worker.hpp"

struct ntbmsg_poll_set {
    ntbmsg::Worker *worker;         ///< NULL: for channels of dedicated workers
    ntbmsg::ReadyList ready;        ///< told nobody yet; run to completion
    std::atomic<uint32_t> channels; ///< that have it
    // Dedicated workers: a stack that any thread pushes to, and what was taken from it, in order.
    std::atomic<ntbmsg::Channel *> reported;
    ntbmsg::Channel *first;
    ntbmsg::Channel *last;
    [[no_unique_address]] ntbmsg::Watch watch; ///< for channels of dedicated workers
};

namespace ntbmsg
{

/// Reported to a poll set: the channel leaves it.
inline constexpr uint32_t event_gone = 1U << 31;

/// Reports events to its poll set, if it has one.
void report(Channel &c, uint32_t events);
/// The same where the worker is dedicated. Any thread.
void report_shared(Channel &c, uint32_t events);
/// Reports WRITABLE to those that met a full ring.
void report_stalled(Worker &w);

void join(PollSet &set, Channel &c);
/// Nothing more is reported of @p c; no other thread uses the set.
void leave_set(Channel &c);

/// Channels of a worker that runs to completion that have something, 0 to @p n.
int poll_own(PollSet &set, ntbmsg_ready *ready, unsigned n);
/// The same of dedicated workers.
int poll_shared(PollSet &set, ntbmsg_ready *ready, unsigned n);
/// Forgets channels that were closed.
void remove_closed(PollSet &set);
/// Nothing was received that the application has not taken.
bool nothing_left(const Channel &c);

} // namespace ntbmsg

#endif
