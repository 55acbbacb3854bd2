// SPDX-License-Identifier: BSD-3-Clause
// Poll sets: which of many channels have events.
#ifndef NTBMSG_TRANSPORT_POLL_SET_HPP
#define NTBMSG_TRANSPORT_POLL_SET_HPP

#include <atomic>

#include "transport/worker.hpp"

struct ntbmsg_poll_set {
    ntbmsg::Worker *worker;         ///< NULL: for channels of dedicated workers
    ntbmsg::ReadyList ready;        ///< with events not polled yet; run to completion
    std::atomic<uint32_t> channels; ///< that belong to it
    // Dedicated workers: a stack that any thread pushes to, and the list taken from it, in order.
    std::atomic<ntbmsg::Channel *> reported;
    ntbmsg::Channel *first;
    ntbmsg::Channel *last;
    [[no_unique_address]] ntbmsg::Watch watch; ///< for channels of dedicated workers
};

namespace ntbmsg
{

/// Event reported to the poll set alone: the channel leaves it.
inline constexpr uint32_t event_gone = 1U << 31;

/// Reports events to the channel's poll set, if it has one.
void report(Channel &c, uint32_t events);
/// The same where the worker is dedicated. Any thread.
void report_shared(Channel &c, uint32_t events);
/// Reports WRITABLE for the channels that found the ring full.
void report_stalled(Worker &w);

void join(PollSet &set, Channel &c);
/// Takes @p c out of its set; no other thread uses the set.
void leave_set(Channel &c);

/// Polls a set of a worker that runs to completion. @return channels with events, 0 to @p n
int poll_own(PollSet &set, ntbmsg_ready *ready, unsigned n);
/// Polls a set for dedicated workers.
int poll_shared(PollSet &set, ntbmsg_ready *ready, unsigned n);
/// Removes channels that were closed.
void remove_closed(PollSet &set);
/// All published messages were received.
bool nothing_left(const Channel &c);

} // namespace ntbmsg

#endif
