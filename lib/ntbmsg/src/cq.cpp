// SPDX-License-Identifier: BSD-3-Clause
#include "cq.hpp"

#include <cerrno>
#include <cstdio>

#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_ring_elem.h>

#include <sys/eventfd.h>
#include <unistd.h>

#include "channel.hpp"
#include "log.hpp"

namespace
{

constexpr uint32_t max_entries = 65536;
static_assert(sizeof(ntbmsg_completion) == 48 && sizeof(ntbmsg_completion) % 4 == 0,
              "an element of the ring");

std::atomic<uint32_t> next_ring; // rings are told apart by name

rte_ring *make_ring(uint32_t entries)
{
    char name[RTE_RING_NAMESIZE];
    std::snprintf(name, sizeof(name), "ntbmsg_cq_%u",
                  next_ring.fetch_add(1, std::memory_order_relaxed));
    rte_ring *ring = rte_ring_create_elem(name, sizeof(ntbmsg_completion), entries, SOCKET_ID_ANY,
                                          RING_F_SC_DEQ | RING_F_EXACT_SZ);
    if (ring == nullptr)
        NTBMSG_LOG(ERR, "no memory for a queue of %u completions: %s", entries,
                   rte_strerror(rte_errno));
    return ring;
}

void wake(ntbmsg_cq &cq)
{
    // An exchange orders the put before the look, against ntbmsg_cq_arm(), which looks after it has
    // armed: one of the two sees the other.
    if (cq.armed.exchange(false, std::memory_order_seq_cst))
        eventfd_write(cq.fd, 1);
}

} // namespace

bool ntbmsg::cq_reserve(ntbmsg_cq &cq, uint32_t n)
{
    if (cq.fn != nullptr)
        return true; // a call needs no place
    uint32_t reserved = cq.reserved.load(std::memory_order_relaxed);
    do {
        if (n > cq.entries - reserved)
            return false;
    } while (!cq.reserved.compare_exchange_weak(reserved, reserved + n, std::memory_order_acquire,
                                                std::memory_order_relaxed));
    return true;
}

void ntbmsg::cq_release(ntbmsg_cq &cq, uint32_t n)
{
    if (cq.fn == nullptr)
        cq.reserved.fetch_sub(n, std::memory_order_release);
}

void ntbmsg::cq_put(ntbmsg_cq &cq, const ntbmsg_completion &completion)
{
    if (cq.fn != nullptr) {
        cq.fn(&completion, cq.arg);
        return;
    }
    ntbmsg_completion copy = completion; // rte_ring takes no pointer to const
    rte_ring_mp_enqueue_elem(cq.ring, &copy, sizeof(copy));
    wake(cq);
}

void ntbmsg::join_cq(ntbmsg_channel &channel, ntbmsg_cq *cq)
{
    channel.cq = cq;
    if (cq != nullptr)
        cq->users.fetch_add(1, std::memory_order_relaxed);
}

void ntbmsg::leave_cq(ntbmsg_channel &channel)
{
    if (channel.cq == nullptr)
        return;
    requester_end(channel, -ECANCELED);
    channel.cq->users.fetch_sub(1, std::memory_order_release); // pairs with ntbmsg_cq_destroy()
    channel.cq = nullptr;
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
    if (fn == nullptr && (cq->ring = make_ring(entries)) == nullptr) {
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
    rte_ring_free(cq->ring);
    ntbmsg::end_use(cq);
    return 0;
}

int ntbmsg_cq_poll(ntbmsg_cq *cq, ntbmsg_completion *completions, uint16_t n)
{
    if (!ntbmsg::is_live(cq, __func__) || completions == nullptr || n == 0)
        return -EINVAL;
    const ntbmsg::Using use(ntbmsg::watch_of(*cq), "completion queue", __func__);
    if (cq->ring == nullptr)
        return 0;
    const unsigned got =
        rte_ring_sc_dequeue_burst_elem(cq->ring, completions, sizeof(*completions), n, nullptr);
    if (got != 0)
        ntbmsg::cq_release(*cq, got);
    return static_cast<int>(got);
}

int ntbmsg_cq_event_fd(ntbmsg_cq *cq)
{
    if (!ntbmsg::is_live(cq, __func__) || cq->ring == nullptr)
        return -EINVAL;
    const ntbmsg::Using use(ntbmsg::watch_of(*cq), "completion queue", __func__);
    if (cq->fd < 0)
        cq->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return cq->fd >= 0 ? cq->fd : -errno;
}

int ntbmsg_cq_arm(ntbmsg_cq *cq)
{
    if (!ntbmsg::is_live(cq, __func__) || cq->ring == nullptr || cq->fd < 0)
        return -EINVAL;
    const ntbmsg::Using use(ntbmsg::watch_of(*cq), "completion queue", __func__);
    eventfd_t stale;
    eventfd_read(cq->fd, &stale);                        // what an earlier arming left
    cq->armed.exchange(true, std::memory_order_seq_cst); // see wake()
    if (rte_ring_empty(cq->ring) != 0)
        return 0;
    cq->armed.store(false, std::memory_order_relaxed);
    return 1;
}
