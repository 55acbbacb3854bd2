// SPDX-License-Identifier: BSD-3-Clause
#include "rma/cq.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <rte_branch_prediction.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_ring_elem.h>

#include <sys/eventfd.h>
#include <unistd.h>

#include <dpdk_compat.hpp>

#include "base/log.hpp"
#include "transport/worker.hpp"

using ntbmsg::Lane;

namespace
{

constexpr uint32_t max_entries = 65536;
static_assert(sizeof(ntbmsg_completion) == 48 && sizeof(ntbmsg_completion) % 4 == 0,
              "an element of the ring");

std::atomic<uint32_t> next_ring; // names of rings must be unique

rte_ring *make_ring(uint32_t entries)
{
    char name[RTE_RING_NAMESIZE];
    std::snprintf(name, sizeof(name), "ntbmsg_cq_%u",
                  next_ring.fetch_add(1, std::memory_order_relaxed));
    rte_ring *ring = dpdk::create_ring(name, sizeof(ntbmsg_completion), entries, SOCKET_ID_ANY,
                                       RING_F_SC_DEQ | RING_F_EXACT_SZ);
    if (ring == nullptr)
        NTBMSG_LOG(ERR, "no memory for a completion queue of %u entries: %s", entries,
                   rte_strerror(rte_errno));
    return ring;
}

void wake(ntbmsg_cq &cq)
{
    // The exchange orders the put before the read of `armed`; ntbmsg_cq_arm() sets `armed` before
    // it reads the rings. So one of the two sees the other. Without a descriptor nothing is armed.
    if (cq.fd.load(std::memory_order_relaxed) >= 0 &&
        cq.armed.exchange(false, std::memory_order_seq_cst))
        eventfd_write(cq.fd.load(std::memory_order_relaxed), 1);
}

/// Entries reserved and not polled yet.
uint32_t in_use(const Lane &lane, uint32_t reserved)
{
    return reserved - lane.taken.load(std::memory_order_acquire); // pairs with take()
}

/// Whether entries are reserved: operations are outstanding or complete. By the polling thread.
bool is_busy(const Lane &lane)
{
    return lane.reserved.load(std::memory_order_relaxed) !=
           lane.taken.load(std::memory_order_relaxed);
}

[[gnu::always_inline]] inline unsigned take(Lane &lane, ntbmsg_completion *completions, unsigned n)
{
    rte_ring *ring = lane.ring.load(std::memory_order_acquire); // pairs with join_cq()
    if (unlikely(ring == nullptr))
        return 0;
    const unsigned got =
        rte_ring_sc_dequeue_burst_elem(ring, completions, sizeof(*completions), n, nullptr);
    if (got != 0)
        lane.taken.store(lane.taken.load(std::memory_order_relaxed) + got,
                         std::memory_order_release);
    return got;
}

/// Polls both lanes, the other one first whenever one alone filled the burst.
__rte_noinline unsigned take_from_both(ntbmsg_cq &cq, ntbmsg_completion *completions, unsigned n)
{
    Lane *first = &cq.shared, *second = &cq.own;
    if (cq.own_first)
        std::swap(first, second);
    const unsigned got = take(*first, completions, n);
    if (got < n)
        return got + take(*second, completions + got, n - got);
    cq.own_first = !cq.own_first;
    return got;
}

bool is_empty(const Lane &lane)
{
    const rte_ring *ring = lane.ring.load(std::memory_order_acquire);
    return ring == nullptr || rte_ring_empty(ring) != 0;
}

} // namespace

bool ntbmsg::cq_reserve(const ntbmsg_channel &channel)
{
    ntbmsg_cq &cq = *channel.cq;
    if (cq.fn != nullptr)
        return true; // a callback needs no entry
    Lane &lane = channel.own_lane ? cq.own : cq.shared;
    uint32_t reserved = lane.reserved.load(std::memory_order_relaxed);
    if (&lane == &cq.own) {
        if (in_use(lane, reserved) == cq.entries)
            return false;
        lane.reserved.store(reserved + 1, std::memory_order_relaxed);
        return true;
    }
    do {
        if (in_use(lane, reserved) >= cq.entries)
            return false;
    } while (!lane.reserved.compare_exchange_weak(reserved, reserved + 1, std::memory_order_acquire,
                                                  std::memory_order_relaxed));
    return true;
}

void ntbmsg::cq_release(const ntbmsg_channel &channel)
{
    ntbmsg_cq &cq = *channel.cq;
    if (cq.fn != nullptr)
        return;
    if (channel.own_lane)
        cq.own.reserved.store(cq.own.reserved.load(std::memory_order_relaxed) - 1,
                              std::memory_order_relaxed);
    else
        cq.shared.reserved.fetch_sub(1, std::memory_order_release);
}

void ntbmsg::cq_put_packed(const ntbmsg_channel &channel, PackedCompletion &completion)
{
    ntbmsg_cq &cq = *channel.cq;
    if (cq.fn != nullptr) {
        ntbmsg_completion plain;
        std::memcpy(&plain, &completion, sizeof(plain));
        cq.fn(&plain, cq.arg);
        return;
    }
    if (channel.own_lane)
        rte_ring_sp_enqueue_elem(cq.own.ring.load(std::memory_order_relaxed), &completion,
                                 sizeof(completion));
    else
        rte_ring_mp_enqueue_elem(cq.shared.ring.load(std::memory_order_relaxed), &completion,
                                 sizeof(completion));
    wake(cq);
}

void ntbmsg::join_cq(ntbmsg_channel &channel, ntbmsg_cq *cq)
{
    channel.cq = cq;
    if (cq == nullptr)
        return;
    cq->users.fetch_add(1, std::memory_order_relaxed);
    // Completions of a dedicated worker come from many threads, so they take the shared lane. This
    // also keeps it from matching a closed worker at the same address.
    if (channel.worker->dedicated || cq->fn != nullptr)
        return;
    Worker *first = nullptr;
    // If there is no memory for the ring, the shared lane is used.
    if (cq->worker.compare_exchange_strong(first, channel.worker, std::memory_order_relaxed))
        cq->own.ring.store(make_ring(cq->entries), std::memory_order_release);
    channel.own_lane = cq->worker.load(std::memory_order_relaxed) == channel.worker &&
                       cq->own.ring.load(std::memory_order_relaxed) != nullptr;
}

int ntbmsg_cq_create(uint32_t entries, ntbmsg_completion_fn fn, void *arg, ntbmsg_cq **out)
{
    if (out == nullptr || entries == 0 || entries > max_entries)
        return -EINVAL;
    auto *cq =
        static_cast<ntbmsg_cq *>(rte_zmalloc("ntbmsg_cq", sizeof(ntbmsg_cq), RTE_CACHE_LINE_SIZE));
    if (cq == nullptr)
        return -ENOMEM;
    cq->entries = entries;
    cq->fd = -1;
    cq->fn = fn;
    cq->arg = arg;
    ntbmsg::begin_use(*cq);
    if (fn == nullptr && (cq->shared.ring = make_ring(entries)) == nullptr) {
        rte_free(cq);
        return -ENOMEM;
    }
    *out = cq;
    return 0;
}

int ntbmsg_cq_destroy(ntbmsg_cq *cq)
{
    if (!ntbmsg::is_live(cq, __func__))
        return 0;
    const ntbmsg::Using use(ntbmsg::watch_of(*cq), "completion queue", __func__);
    if (cq->users.load(std::memory_order_acquire) != 0)
        return -EBUSY;
    if (cq->fd >= 0)
        close(cq->fd);
    rte_ring_free(cq->own.ring);
    rte_ring_free(cq->shared.ring);
    ntbmsg::end_use(cq);
    return 0;
}

int ntbmsg_cq_poll(ntbmsg_cq *cq, ntbmsg_completion *completions, uint16_t n)
{
    if (!ntbmsg::is_live(cq, __func__) || completions == nullptr || n == 0)
        return -EINVAL;
    const ntbmsg::Using use(ntbmsg::watch_of(*cq), "completion queue", __func__);
    if (likely(!is_busy(cq->shared)))
        return is_busy(cq->own) ? static_cast<int>(take(cq->own, completions, n)) : 0;
    return static_cast<int>(take_from_both(*cq, completions, n));
}

int ntbmsg_cq_event_fd(ntbmsg_cq *cq)
{
    if (!ntbmsg::is_live(cq, __func__) || cq->fn != nullptr)
        return -EINVAL;
    const ntbmsg::Using use(ntbmsg::watch_of(*cq), "completion queue", __func__);
    if (cq->fd < 0)
        cq->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return cq->fd >= 0 ? cq->fd.load() : -errno;
}

int ntbmsg_cq_arm(ntbmsg_cq *cq)
{
    if (!ntbmsg::is_live(cq, __func__) || cq->fn != nullptr || cq->fd < 0)
        return -EINVAL;
    const ntbmsg::Using use(ntbmsg::watch_of(*cq), "completion queue", __func__);
    eventfd_t stale;
    eventfd_read(cq->fd, &stale);                        // of an earlier arming
    cq->armed.exchange(true, std::memory_order_seq_cst); // see wake()
    if (is_empty(cq->own) && is_empty(cq->shared))
        return 0;
    cq->armed.store(false, std::memory_order_relaxed);
    return 1;
}
