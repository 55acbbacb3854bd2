// SPDX-License-Identifier: BSD-3-Clause
#include "channel/poll_set.hpp"

#include <cerrno>

#include <rte_malloc.h>

#include "channel/dedicated.hpp"
#include "port/worker.hpp"

namespace ntbmsg
{

void join(PollSet &set, Channel &c)
{
    c.set = &set;
    set.channels.fetch_add(1, std::memory_order_relaxed);
}

void leave_set(Channel &c)
{
    if (c.set == nullptr)
        return;
    if (c.proxy != nullptr)
        return forget(*c.set, c);
    c.set->ready.remove(c);
    c.set->channels.fetch_sub(1, std::memory_order_relaxed);
    c.set = nullptr;
    c.events = 0;
}

namespace
{

/// What is still true of the events of @p c. READABLE was told, and the messages were received
/// before it was heard.
uint32_t take_events(Channel &c)
{
    uint32_t events = c.events;
    c.events = 0;
    if (c.parked.first == nullptr && may_receive(state_of(c)))
        events &= ~NTBMSG_READABLE;
    return events;
}

/// A thread uses a poll set, and with it the worker that it polls.
Watch *watch_of_user(PollSet &set)
{
    return set.worker != nullptr ? watch_of(*set.worker) : watch_of(set);
}

} // namespace

} // namespace ntbmsg

using namespace ntbmsg;

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
        bury(*set);
    if (set->channels.load(std::memory_order_relaxed) != 0)
        return -EBUSY;
    end_use(set);
    return 0;
}

int ntbmsg_poll(ntbmsg_poll_set *set, ntbmsg_ready *ready, uint16_t n)
{
    if (unlikely(!is_live(set, __func__) || ready == nullptr))
        return -EINVAL;
    const Using use(watch_of_user(*set), "poll set", __func__);
    if (set->worker == nullptr)
        return poll_shared(*set, ready, n);
    poll(*set->worker);
    tell_stalled(*set->worker);
    int told = 0;
    while (told < n) {
        Channel *c = set->ready.pop();
        if (c == nullptr)
            break;
        const uint32_t events = take_events(*c);
        if (events != 0)
            ready[told++] = {
                .channel = handle_of(*c), .user = c->user, .events = events, .reserved = 0};
    }
    return told;
}
