// SPDX-License-Identifier: BSD-3-Clause
// Completion queues: bounded rings that any number of threads put into and one takes from.
#ifndef NTBMSG_RMA_CQ_HPP
#define NTBMSG_RMA_CQ_HPP

#include <atomic>
#include <cstdint>

#include <rte_ring.h>

#include "base/use.hpp"
#include "ntbmsg.h"

namespace ntbmsg
{

/// A ring with as many places as the queue has entries. Counts run freely.
struct Lane {
    std::atomic<rte_ring *> ring;   ///< NULL: none
    std::atomic<uint32_t> promised; ///< places, by who puts
    std::atomic<uint32_t> taken;    ///< completions, by who polls
};

} // namespace ntbmsg

/// Nothing is put in without a place that was reserved before, so a put cannot fail and no
/// completion is lost. Lives in zeroed memory of rte_zmalloc(): no constructor runs.
///
/// The first worker that runs to completion and has a channel with this queue puts into a lane of
/// its own: one thread, so no locked instruction, which would wait until all that was just stored
/// into the window has left the processor. All others share a lane.
struct ntbmsg_cq {
    ntbmsg::Lane own, shared;            ///< none: each completion is a call of `fn`
    std::atomic<ntbmsg_worker *> worker; ///< of the own lane
    ntbmsg_completion_fn fn;
    void *arg;
    uint32_t entries;
    bool own_first;              ///< where the next poll looks first
    std::atomic<int> fd;         ///< of events, -1: none yet
    std::atomic<uint32_t> users; ///< channels that have it
    std::atomic<bool> armed;     ///< the next put writes to `fd`
    [[no_unique_address]] ntbmsg::Watch watch;
};

namespace ntbmsg
{

// By who uses the channel, or drives its worker.

/// Promises a place in the channel's queue. @return false: there is none
bool cq_reserve(const ntbmsg_channel &channel);
/// Gives a promised place back unused.
void cq_release(const ntbmsg_channel &channel);
/// Puts a completion of the channel into a promised place.
void cq_put(const ntbmsg_channel &channel, const ntbmsg_completion &completion);

/// The queue of a channel, NULL: none.
void join_cq(ntbmsg_channel &channel, ntbmsg_cq *cq);

} // namespace ntbmsg

#endif
