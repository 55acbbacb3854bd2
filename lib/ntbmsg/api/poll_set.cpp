// SPDX-License-Identifier: BSD-3-Clause
// Public calls: poll sets.
#include <cerrno>

#include <rte_malloc.h>

#include "dispatch/dispatcher.hpp"
#include "transport/poll_set.hpp"

using namespace ntbmsg;

namespace
{

/// The watch for a call on a poll set: that of the worker that it polls.
Watch *watch_of_user(PollSet &set)
{
    return set.worker != nullptr ? watch_of(*set.worker) : watch_of(set);
}

} // namespace

int ntbmsg_poll_set_create(ntbmsg_worker *worker, ntbmsg_poll_set **out)
{
    if (out == nullptr || (worker != nullptr && (!is_live(worker, __func__) || worker->dedicated)))
        return -EINVAL;
    auto *set = static_cast<PollSet *>(
        rte_zmalloc("ntbmsg_poll_set", sizeof(PollSet), RTE_CACHE_LINE_SIZE));
    if (set == nullptr)
        return -ENOMEM;
    set->worker = worker;
    begin_use(*set);
    *out = set;
    return 0;
}

int ntbmsg_poll_set_destroy(ntbmsg_poll_set *set)
{
    if (!is_live(set, __func__))
        return 0;
    const Using use(watch_of_user(*set), "poll set", __func__);
    if (set->worker == nullptr)
        remove_closed(*set);
    if (set->channels.load(std::memory_order_relaxed) != 0)
        return -EBUSY;
    end_use(set);
    return 0;
}

int ntbmsg_poll_set_poll(ntbmsg_poll_set *set, ntbmsg_ready *ready, uint16_t n)
{
    if (unlikely(!is_live(set, __func__) || ready == nullptr))
        return -EINVAL;
    const Using use(watch_of_user(*set), "poll set", __func__);
    if (set->worker == nullptr)
        return poll_shared(*set, ready, n);
    Worker &w = *set->worker;
    receive(w); // it is not dedicated: such a worker's channels are in sets without a worker
    if (unlikely(!w.stalled.empty()))
        report_stalled(w);
    return set->ready.empty() ? 0 : poll_own(*set, ready, n);
}
