// SPDX-License-Identifier: BSD-3-Clause
// Completion queues: bounded rings with any number of producers and one consumer.
#ifndef NTBMSG_RMA_CQ_HPP
#define NTBMSG_RMA_CQ_HPP

#include <atomic>
#include <cstdint>

#include <rte_ring.h>

#include "base/caller_checks.hpp"
#include "ntbmsg.h"

namespace ntbmsg
{

/// A ring with as many entries as the queue. The counts wrap.
struct Lane {
    std::atomic<rte_ring *> ring;   ///< NULL: none
    std::atomic<uint32_t> reserved; ///< entries reserved so far; by producers
    std::atomic<uint32_t> taken;    ///< completions polled so far; by the consumer
};

} // namespace ntbmsg

/// An entry is reserved before an operation is accepted, so a put cannot fail and no completion is
/// lost. Allocated by rte_zmalloc(): no constructor runs.
///
/// The first run-to-completion worker with a channel on this queue gets a lane of its own. It has
/// one producer, so a put needs no locked instruction, which would wait until all stores to the
/// memory window have left the processor. All other producers share a lane.
struct ntbmsg_cq {
    ntbmsg::Lane own, shared;            ///< without rings if completions go to `fn`
    std::atomic<ntbmsg_worker *> worker; ///< that uses `own`
    ntbmsg_completion_fn fn;
    void *arg;
    uint32_t entries;
    bool own_first;              ///< the next poll begins with `own`
    std::atomic<int> fd;         ///< event descriptor; -1: none yet
    std::atomic<uint32_t> users; ///< channels that use it
    std::atomic<bool> armed;     ///< the next put writes to `fd`
    [[no_unique_address]] ntbmsg::Watch watch;
};

namespace ntbmsg
{

// Called by the thread that uses the channel or drives its worker.

/// Reserves an entry of the channel's queue. @return false: none is free
bool cq_reserve(const ntbmsg_channel &channel);
/// Releases a reserved entry unused.
void cq_release(const ntbmsg_channel &channel);
/// A completion in stores of 16 bytes, the size of the loads by which a ring copies it. A load from
/// narrower stores waits until these have left the processor, behind all stores to the window
/// before them.
struct PackedCompletion {
    using Part = uint64_t __attribute__((vector_size(16)));
    Part parts[3];

    explicit PackedCompletion(const ntbmsg_completion &c)
        : parts{{c.id, reinterpret_cast<uintptr_t>(c.channel)},
                {reinterpret_cast<uintptr_t>(c.user), c.value},
                {c.bytes | uint64_t{c.imm} << 32,
                 static_cast<uint32_t>(c.status) | uint64_t{c.op} << 32}}
    {
    }
};
static_assert(sizeof(PackedCompletion) == sizeof(ntbmsg_completion) &&
              offsetof(ntbmsg_completion, user) == 16 && offsetof(ntbmsg_completion, bytes) == 32 &&
              offsetof(ntbmsg_completion, status) == 40 && offsetof(ntbmsg_completion, op) == 44);

void cq_put_packed(const ntbmsg_channel &channel, PackedCompletion &completion);

/// Puts a completion of the channel into a reserved entry.
[[gnu::always_inline]] inline void cq_put(const ntbmsg_channel &channel,
                                          const ntbmsg_completion &completion)
{
    PackedCompletion packed(completion);
    cq_put_packed(channel, packed);
}

/// Sets the queue of a channel; NULL: none.
void join_cq(ntbmsg_channel &channel, ntbmsg_cq *cq);

} // namespace ntbmsg

#endif
