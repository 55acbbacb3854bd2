// SPDX-License-Identifier: BSD-3-Clause
// Completion queues: a bounded ring that any number of threads put into and one takes from.
#ifndef NTBMSG_CQ_HPP
#define NTBMSG_CQ_HPP

#include <atomic>
#include <cstdint>

#include <rte_ring.h>

#include "ntbmsg.h"
#include "use.hpp"

/// Nothing is put in without a place that was reserved before, so a put cannot fail and no
/// completion is lost. Lives in zeroed memory of rte_zmalloc(): no constructor runs.
struct ntbmsg_cq {
    rte_ring *ring; ///< NULL: each completion is a call of `fn`
    ntbmsg_completion_fn fn;
    void *arg;
    uint32_t entries;
    int fd;                         ///< of events, -1: none yet
    std::atomic<uint32_t> users;    ///< channels that have it
    std::atomic<uint32_t> reserved; ///< places promised, those with completions in them too
    std::atomic<bool> armed;        ///< the next put writes to `fd`
    [[no_unique_address]] ntbmsg::Watch watch;
};

namespace ntbmsg
{

/// Promises @p n places. @return false: there are not so many
bool cq_reserve(ntbmsg_cq &cq, uint32_t n);
/// Gives @p n promised places back unused.
void cq_release(ntbmsg_cq &cq, uint32_t n);
/// Puts a completion into a promised place. Any thread.
void cq_put(ntbmsg_cq &cq, const ntbmsg_completion &completion);

/// The queue of a channel, NULL: none.
void join_cq(ntbmsg_channel &channel, ntbmsg_cq *cq);
/// The handle is given back: what is under way completes with -ECANCELED, and nothing after it.
void leave_cq(ntbmsg_channel &channel);

} // namespace ntbmsg

#endif
