// SPDX-License-Identifier: BSD-3-Clause
// Public calls: workers.
#include <cerrno>

#include "dispatch/dispatcher.hpp"
#include "transport/sending.hpp"

using namespace ntbmsg;

namespace
{
/// Whether there is work that no event announces. Room in a full ring causes no event, so what
/// waits for it is retried by polling.
bool has_work(const Worker &w)
{
    constexpr uint32_t to_be_polled = chore_hello | chore_owing | chore_replies | chore_operations;
    const bool up = w.up->load(std::memory_order_acquire);
    return connection_changed(w) || (up && ((w.chores & to_be_polled) != 0 || !w.stalled.empty()));
}

/// Lets call() wake this thread. It sets `armed`, then reads the stack of calls; call() pushes,
/// then reads `armed`. So one of the two sees the other. @return false: there are calls
bool arm_for_calls(Worker &w)
{
    w.armed.store(true, std::memory_order_seq_cst);
    return w.calls.load(std::memory_order_seq_cst) == nullptr;
}

int disarm(Worker &w)
{
    w.armed.store(false, std::memory_order_relaxed);
    return rte_pmd_plx_ntb_rx_disarm(w.dev_id, w.queue);
}
} // namespace

int ntbmsg_worker_poll(ntbmsg_worker *worker)
{
    if (unlikely(!is_live(worker, __func__)))
        return -EINVAL;
    const Using use(watch_of(*worker), "worker", __func__);
    return static_cast<int>(poll(*worker));
}

int ntbmsg_worker_event_fd(ntbmsg_worker *worker)
{
    return is_live(worker, __func__) ? rte_pmd_plx_ntb_rx_event_fd(worker->dev_id, worker->queue)
                                     : -EINVAL;
}

int ntbmsg_worker_arm(ntbmsg_worker *worker)
{
    if (!is_live(worker, __func__))
        return -EINVAL;
    const Using use(watch_of(*worker), "worker", __func__);
    Worker &w = *worker;
    notice_loss(w);
    check_deadlines_soon(w);
    do_chores(w);
    if (has_work(w))
        return 1;
    const int rc = rte_pmd_plx_ntb_rx_arm(w.dev_id, w.queue);
    if (rc != 0)
        return rc;
    // A connection that was lost or made since the check above has not woken this thread.
    if (arm_for_calls(w) && !has_work(w))
        return 0;
    disarm(w);
    return 1;
}

int ntbmsg_worker_disarm(ntbmsg_worker *worker)
{
    if (!is_live(worker, __func__))
        return -EINVAL;
    const Using use(watch_of(*worker), "worker", __func__);
    return disarm(*worker);
}
