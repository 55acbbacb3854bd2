// SPDX-License-Identifier: BSD-3-Clause
// Public calls: poll sets.
#include <cerrno>

#include <rte_malloc.h>

#include "dispatch/dispatcher.hpp"
#include "transport/parked.hpp"
#include "transport/poll_set.hpp"

using namespace ntbmsg;

namespace
{

/// The watch for a call on a poll set: that of the worker that it polls.
Watch *watch_of_user(PollSet &set)
{
    return set.worker != nullptr ? watch_of(*set.worker) : watch_of(set);
}

/// Behind a shorter run a poll looks for other messages too: else each of many channels with few
/// messages would cost a poll.
constexpr int long_run = 8;

bool nothing_to_report(const Worker &w, const PollSet &set)
{
    // One branch for both.
    return (reinterpret_cast<uintptr_t>(w.stalled.first()) |
            reinterpret_cast<uintptr_t>(set.ready.first())) == 0;
}

/// Receives what is no run of one channel.
[[gnu::noinline]] void take_others(Worker &w)
{
    Found found;
    const int got = find(w, found);
    if (!found_nothing(w, got))
        take_in(w, found, got);
}

/// What is left of a poll that found something. @param got  what find_run() returned
[[gnu::noinline]] int report_found(PollSet &set, ntbmsg_ready *ready, uint16_t n, int got)
{
    Worker &w = *set.worker;
    if (got > 0)
        hold_run(w, static_cast<unsigned>(got));
    if (got < 0 || (got > 0 && got < long_run && w.held.flow.other != 0))
        take_others(w);
    else // a run is of the connection that its channel belongs to, even if that is lost by now
        notice_loss(w);
    report_stalled(w);
    return poll_own(set, ready, n);
}

/// A poll of a set whose worker has chores. Apart, as it needs registers of its own.
[[gnu::noinline]] int poll_after_chores(PollSet &set, ntbmsg_ready *ready, uint16_t n)
{
    Worker &w = *set.worker;
    if ((w.chores & chore_held) != 0)
        link_held(w);
    const auto rx = [&] { return find_run(w); };
    const auto found = [](int got) { return got != 0; };
    return report_found(set, ready, n,
                        likely(w.chores == 0) ? rx() : receive_after_chores(w, rx, found));
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
    if (unlikely(w.chores != 0))
        return poll_after_chores(*set, ready, n);
    // It is not dedicated: such a worker's channels are in sets without a worker.
    const int got = find_run(w);
    if (likely(got == 0 && !connection_changed(w) && nothing_to_report(w, *set)))
        return 0;
    return report_found(*set, ready, n, got);
}
