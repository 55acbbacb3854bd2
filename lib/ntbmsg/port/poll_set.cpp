// SPDX-License-Identifier: BSD-3-Clause
#include "port/poll_set.hpp"

#include "port/proxy.hpp"

namespace ntbmsg
{

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

/// Moves what was told to the set's own list, in order.
void take_told(PollSet &set)
{
    if (set.told.load(std::memory_order_relaxed) == nullptr)
        return;
    Channel *list = set.told.exchange(nullptr, std::memory_order_acquire);
    Channel *last = list, *in_order = nullptr;
    while (list != nullptr) {
        Channel *next = list->proxy->next_told;
        list->proxy->next_told = in_order;
        in_order = list;
        list = next;
    }
    if (set.first == nullptr)
        set.first = in_order;
    else
        set.last->proxy->next_told = in_order;
    set.last = last;
}

Channel *pop_told(PollSet &set)
{
    Channel *c = set.first;
    if (c != nullptr)
        set.first = c->proxy->next_told;
    return c;
}

/// The set is done with a channel that was closed.
void leave_shared(PollSet &set, Channel &c)
{
    set.channels.fetch_sub(1, std::memory_order_relaxed);
    call(c, call_left);
}

void forget(PollSet &set, Channel &gone)
{
    if (gone.proxy->told.fetch_or(event_gone, std::memory_order_acq_rel) != 0)
        bury(set);
    else
        set.channels.fetch_sub(1, std::memory_order_relaxed);
    gone.set = nullptr;
}

} // namespace

void tell(Channel &c, uint32_t events)
{
    if (c.set == nullptr || events == 0)
        return;
    if (c.proxy != nullptr) {
        if (!c.proxy->closing)
            tell_shared(c, events);
        return;
    }
    c.events |= events;
    c.set->ready.push(c);
}

void tell_shared(Channel &c, uint32_t events)
{
    PollSet *set = c.set;
    if (set == nullptr || events == 0 ||
        c.proxy->told.fetch_or(events, std::memory_order_acq_rel) != 0)
        return;
    Channel *top = set->told.load(std::memory_order_relaxed);
    do
        c.proxy->next_told = top;
    while (!set->told.compare_exchange_weak(top, &c, std::memory_order_release,
                                            std::memory_order_relaxed));
}

void tell_stalled(Worker &w)
{
    while (Channel *c = w.stalled.pop()) {
        c->want_write = false;
        tell(*c, NTBMSG_WRITABLE);
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
    unsigned told = 0;
    while (told < n) {
        Channel *c = set.ready.pop();
        if (c == nullptr)
            break;
        const uint32_t events = take_events(*c);
        if (events != 0)
            ready[told++] = {
                .channel = handle_of(*c), .user = c->user, .events = events, .reserved = 0};
    }
    return static_cast<int>(told);
}

bool nothing_left(const Channel &c)
{
    const Proxy &p = *c.proxy;
    return p.mine.first == nullptr && p.inbox.load(std::memory_order_acquire) == nullptr;
}

int poll_shared(PollSet &set, ntbmsg_ready *ready, unsigned n)
{
    take_told(set);
    unsigned told = 0;
    while (told < n) {
        Channel *c = pop_told(set);
        if (c == nullptr)
            break;
        uint32_t events = c->proxy->told.exchange(0, std::memory_order_acq_rel);
        if ((events & event_gone) != 0) {
            leave_shared(set, *c);
            continue;
        }
        if (nothing_left(*c) && may_receive(state_of(*c)))
            events &= ~NTBMSG_READABLE;
        if (events != 0)
            ready[told++] = {
                .channel = handle_of(*c), .user = c->user, .events = events, .reserved = 0};
    }
    return static_cast<int>(told);
}

void bury(PollSet &set)
{
    take_told(set);
    Channel *kept = nullptr, *last = nullptr;
    while (Channel *c = pop_told(set)) {
        Proxy &p = *c->proxy;
        if ((p.told.load(std::memory_order_acquire) & event_gone) != 0) {
            leave_shared(set, *c);
            continue;
        }
        p.next_told = nullptr;
        if (last != nullptr)
            last->proxy->next_told = c;
        else
            kept = c;
        last = c;
    }
    set.first = kept;
    set.last = last;
}

} // namespace ntbmsg
