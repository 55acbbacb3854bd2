// SPDX-License-Identifier: BSD-3-Clause
#include "transport/poll_set.hpp"

#include "transport/proxy.hpp"

namespace ntbmsg
{

namespace
{

/// Takes the events of @p c, without READABLE if its messages were received in the meantime.
uint32_t take_events(Channel &c)
{
    uint32_t events = c.events;
    c.events = 0;
    if (c.parked.first == nullptr && may_receive(state_of(c)))
        events &= ~NTBMSG_READABLE;
    return events;
}

/// Moves the reported channels to the set's own list, in order.
void take_reported(PollSet &set)
{
    if (set.reported.load(std::memory_order_relaxed) == nullptr)
        return;
    Channel *list = set.reported.exchange(nullptr, std::memory_order_acquire);
    Channel *last = list, *in_order = nullptr;
    while (list != nullptr) {
        Channel *next = list->proxy->next_reported;
        list->proxy->next_reported = in_order;
        in_order = list;
        list = next;
    }
    if (set.first == nullptr)
        set.first = in_order;
    else
        set.last->proxy->next_reported = in_order;
    set.last = last;
}

Channel *pop_reported(PollSet &set)
{
    Channel *c = set.first;
    if (c != nullptr)
        set.first = c->proxy->next_reported;
    return c;
}

/// Removes a closed channel; the worker's thread may release it.
void leave_shared(PollSet &set, Channel &c)
{
    set.channels.fetch_sub(1, std::memory_order_relaxed);
    call(c, call_left);
}

void forget(PollSet &set, Channel &gone)
{
    if (gone.proxy->events.fetch_or(event_gone, std::memory_order_acq_rel) != 0)
        remove_closed(set);
    else
        set.channels.fetch_sub(1, std::memory_order_relaxed);
    gone.set = nullptr;
}

} // namespace

void report(Channel &c, uint32_t events)
{
    if (c.set == nullptr || events == 0)
        return;
    if (c.proxy != nullptr) {
        if (!c.proxy->closing)
            report_shared(c, events);
        return;
    }
    c.events |= events;
    c.set->ready.push(c);
}

void report_shared(Channel &c, uint32_t events)
{
    PollSet *set = c.set;
    if (set == nullptr || events == 0 ||
        c.proxy->events.fetch_or(events, std::memory_order_acq_rel) != 0)
        return;
    Channel *top = set->reported.load(std::memory_order_relaxed);
    do
        c.proxy->next_reported = top;
    while (!set->reported.compare_exchange_weak(top, &c, std::memory_order_release,
                                                std::memory_order_relaxed));
}

void report_stalled(Worker &w)
{
    while (Channel *c = w.stalled.pop()) {
        c->want_write = false;
        report(*c, NTBMSG_WRITABLE);
    }
}

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

int poll_own(PollSet &set, ntbmsg_ready *ready, unsigned n)
{
    unsigned count = 0;
    while (count < n) {
        Channel *c = set.ready.pop();
        if (c == nullptr)
            break;
        const uint32_t events = take_events(*c);
        if (events != 0)
            ready[count++] = {
                .channel = handle_of(*c), .user = c->user, .events = events, .reserved = 0};
    }
    return static_cast<int>(count);
}

bool nothing_left(const Channel &c)
{
    const Proxy &p = *c.proxy;
    return p.mine.first == nullptr && p.inbox.load(std::memory_order_acquire) == nullptr;
}

int poll_shared(PollSet &set, ntbmsg_ready *ready, unsigned n)
{
    take_reported(set);
    unsigned count = 0;
    while (count < n) {
        Channel *c = pop_reported(set);
        if (c == nullptr)
            break;
        uint32_t events = c->proxy->events.exchange(0, std::memory_order_acq_rel);
        if ((events & event_gone) != 0) {
            leave_shared(set, *c);
            continue;
        }
        if (nothing_left(*c) && may_receive(state_of(*c)))
            events &= ~NTBMSG_READABLE;
        if (events != 0)
            ready[count++] = {
                .channel = handle_of(*c), .user = c->user, .events = events, .reserved = 0};
    }
    return static_cast<int>(count);
}

void remove_closed(PollSet &set)
{
    take_reported(set);
    Channel *kept = nullptr, *last = nullptr;
    while (Channel *c = pop_reported(set)) {
        Proxy &p = *c->proxy;
        if ((p.events.load(std::memory_order_acquire) & event_gone) != 0) {
            leave_shared(set, *c);
            continue;
        }
        p.next_reported = nullptr;
        if (last != nullptr)
            last->proxy->next_reported = c;
        else
            kept = c;
        last = c;
    }
    set.first = kept;
    set.last = last;
}

} // namespace ntbmsg
