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

/// A poll of a set: where its channels go, and what is no run of one of them. Together in memory,
/// so that a poll that finds nothing keeps no register for what only report_found() needs.
struct Poll {
    ntbmsg_ready *ready;
    uint16_t n;
    Found found;
};

/// Whether a poll looks for other messages behind what find_run() has found. @param got  what that
/// returned
bool looks_on(const Worker &w, int got)
{
    return got < 0 || (got > 0 && got < long_run && w.held.flow.other != 0);
}

/// Delivers what find_run() has found, and receives what is no run of one channel. @param got  what
/// find_run() returned. @return whether there was anything
[[gnu::noinline]] bool take_run(Worker &w, Poll &poll, int got)
{
    if (got > 0)
        deliver_run(w, static_cast<unsigned>(got));
    if (!looks_on(w, got)) {
        // A run is of the connection that its channel belongs to, even if that is lost.
        notice_loss(w);
        return got > 0;
    }
    const int more = find(w, poll.found);
    if (!found_nothing(w, more))
        take_in(w, poll.found, more);
    return got > 0 || more > 0;
}

/// What is left of a poll that found something.
[[gnu::noinline]] int report_all(PollSet &set, Poll &poll, int got)
{
    take_run(*set.worker, poll, got);
    report_stalled(*set.worker);
    return poll_own(set, poll.ready, poll.n);
}

/// The usual find, a run of a channel of the set that alone has an event, is reported without the
/// list of those that have. @param got  what find_run() returned. @return false: it is another find
[[gnu::always_inline]] inline bool report_run(PollSet &set, Poll &poll, int got)
{
    Worker &w = *set.worker;
    const auto n = static_cast<unsigned>(got);
    if (unlikely(got <= 0 || looks_on(w, got) || poll.n == 0 || connection_changed(w) ||
                 !nothing_to_report(w, set)))
        return false;
    Channel *c = can_hold(w, n);
    if (unlikely(c == nullptr || c->set != &set))
        return false;
    hold(w, *c, n);
    poll.ready[0] = {
        .channel = handle_of(*c), .user = c->user, .events = NTBMSG_READABLE, .reserved = 0};
    return true;
}

/// What is left of a poll that found something.
[[gnu::noinline]] int report_found(PollSet &set, Poll &poll, int got)
{
    return likely(report_run(set, poll, got)) ? 1 : report_all(set, poll, got);
}

/// A poll of a set whose worker has chores. Apart, as it needs registers of its own.
[[gnu::noinline]] int poll_after_chores(PollSet &set, ntbmsg_ready *ready, uint16_t n)
{
    Worker &w = *set.worker;
    if ((w.chores & chore_held) != 0)
        link_held(w);
    Poll poll;
    poll.ready = ready;
    poll.n = n;
    bool reported = false;
    receive_after_chores(w, [&] {
        const int got = find_run(w);
        reported = report_run(set, poll, got);
        return reported || take_run(w, poll, got) ? 1 : 0;
    });
    if (reported)
        return 1;
    report_stalled(w);
    return poll_own(set, ready, n);
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
    Poll poll;
    poll.ready = ready;
    poll.n = n;
    const int got = find_run(w);
    if (likely(got == 0 && !connection_changed(w) && nothing_to_report(w, *set)))
        return 0;
    return report_found(*set, poll, got);
}
