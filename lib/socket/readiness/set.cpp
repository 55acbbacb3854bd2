// SPDX-License-Identifier: BSD-3-Clause
// What is looked at, and the wait: all that runs per event is in this file.
#include "readiness/set.hpp"

#include <algorithm>
#include <cerrno>

#include "kernel/system.hpp"
#include "readiness/event_masks.hpp"
#include "readiness/kernel_set.hpp"

namespace ntb::socket
{

namespace
{

constexpr std::uint32_t idle_looks = 64;  // a member that had nothing so often is armed
constexpr std::uint32_t looks_a_lap = 64; // while a thread spins

// RDNORM and WRNORM are shown with IN and OUT, as the kernel does for sockets.
std::uint32_t widened(std::uint32_t events)
{
    return events | ((events & EPOLLIN) ? EPOLLRDNORM : 0u) |
           ((events & EPOLLOUT) ? EPOLLWRNORM : 0u);
}

std::uint32_t arm_events(std::uint32_t events)
{
    return ((events & in_events) ? EPOLLIN : 0u) | ((events & out_events) ? EPOLLOUT : 0u);
}

int now(int epoll, epoll_event *events, int most)
{
    return static_cast<int>(kernel::call(SYS_epoll_pwait, epoll, events, most, 0, nullptr, 8));
}

} // namespace

/// What telling a member's events changes.
struct Set::Told {
    std::uint64_t in, out;
    std::uint32_t ends;
};

// Makes the descriptor of the set readable, until one thread has been told.
void Set::wake()
{
    int ready = ready_descriptor();
    const long done = kernel_control(EPOLL_CTL_MOD, ready, EPOLLIN | EPOLLONESHOT, secret_ | Wake);
    if (done != -ENOENT && done != -EBADF)
        return;
    // The program has closed what it does not know.
    ready = make_ready_descriptor(ready);
    kernel_control(EPOLL_CTL_ADD, ready, EPOLLIN | EPOLLONESHOT, secret_ | Wake);
}

void Set::attend()
{
    const int descriptor = attendant_ == nullptr ? -1 : attendant_->descriptor();
    if (descriptor == attended_.load(std::memory_order_relaxed))
        return;
    const Locked locked(lock_);
    if (attended_ >= 0)
        kernel_control(EPOLL_CTL_DEL, attended_, 0, 0);
    attended_ = descriptor;
    if (descriptor >= 0)
        kernel_control(EPOLL_CTL_ADD, descriptor, EPOLLIN, secret_ | Attended);
}

// ---- looking

void Set::tell(Link &link, const Told &told)
{
    link.fresh = false;
    link.told_in = told.in;
    link.told_out = told.out;
    link.told_ends = told.ends;
}

std::uint32_t Set::evaluate(Link &link, Told &told)
{
    Source &source = *link.source;
    if (link.off || link.removed)
        return 0;
    const bool upgraded = source.upgraded();
    if (!upgraded && !link.orphan) {
        restore(link);
        return 0;
    }
    told = {source.arrivals_in(), source.arrivals_out(), 0};
    std::uint32_t now = source.look();
    // It is the look that finds room again, and nobody rings for that. Where it found none,
    // what another one finds afterwards is news.
    if ((now & EPOLLOUT) != 0)
        told.out = source.arrivals_out();
    told.ends = now & (always | EPOLLRDHUP);
    now = widened(now) & (link.events | always);
    if (!(link.events & EPOLLET))
        return now;
    const bool fresh = link.fresh || ((link.events & in_events) && told.in != link.told_in) ||
                       ((link.events & out_events) && told.out != link.told_out) ||
                       (told.ends & ~link.told_ends) != 0;
    if (fresh && now != 0)
        return now;
    // What had arrived is gone again.
    tell(link, told);
    return 0;
}

// Nothing is looked at any more until the bell rings. @retval false something is there: look on
bool Set::arm(Link &link)
{
    link.armed_for = arm_events(link.events);
    link.armed = true;
    link.source->arm(link.armed_for);
    Told told;
    const std::uint32_t now = evaluate(link, told);
    if (!link.armed) // it is the kernel's
        return true;
    if (now != 0) {
        rouse(link);
        return false;
    }
    if ((link.armed_for & EPOLLOUT) && !link.asks_out && !link.orphan) {
        link.asks_out = true;
        kernel_control(EPOLL_CTL_MOD, link.fd, shadow_events | EPOLLOUT, tag(Shadow, link));
    }
    links_.cool(link);
    return true;
}

bool Set::arm_all()
{
    bool all = true;
    for (std::uint32_t i = links_.hot_count(); i-- > 0;) {
        if (i >= links_.hot_count())
            continue;
        Link *link = links_.hot(i);
        if (link->source == nullptr || link->off || link->removed)
            links_.cool(*link);
        else
            all &= arm(*link);
    }
    return all;
}

// Who leaves the set while others sleep, or somebody polls the descriptor: every member is armed,
// or the descriptor is readable (rules W5, W8).
void Set::pass_on()
{
    if (sleepers_.load(std::memory_order_seq_cst) == 0 && !nested_)
        return;
    if (!arm_all())
        wake();
}

/// @param call  no member is told twice in one
/// @retval false nothing is to be told of it
bool Set::report(Link &link, epoll_event &event, std::uint32_t call)
{
    Told told;
    const std::uint32_t now = link.told_by == call ? 0 : evaluate(link, told);
    if (now == 0)
        return false;
    tell(link, told);
    link.told_by = call;
    link.idle = 0;
    event.events = now;
    event.data.u64 = link.data;
    if (link.events & EPOLLONESHOT) {
        link.off = true;
        links_.cool(link);
    }
    return true;
}

int Set::collect(epoll_event *events, int most, std::uint32_t looks, std::uint32_t call)
{
    const Locked locked(lock_);
    int n = 0;
    looks = std::min(looks, links_.hot_count());
    // One that goes is replaced by another, perhaps one that was looked at: it is not counted.
    for (std::uint32_t kept = 0; kept < looks && n < most && links_.hot_count() > 0;) {
        if (cursor_ >= links_.hot_count())
            cursor_ = 0;
        Link &link = *links_.hot(cursor_);
        if (link.source == nullptr || link.off || link.removed) {
            links_.cool(link);
            continue;
        }
        if (report(link, events[n], call))
            n++;
        else if (link.hot != Link::none && link.told_by != call && ++link.idle >= idle_looks &&
                 arm(link))
            continue;
        if (link.hot == Link::none)
            continue; // told once, or it has gone back to the kernel
        cursor_++;
        kept++;
    }
    return n;
}

/// @return the member that is to be looked at for it, or NULL
Link *Set::absorb_one(std::uint64_t tag, std::uint32_t events)
{
    const unsigned kind = tag & ((1u << kind_bits) - 1);
    if (kind == Attended) {
        attendant_->process();
        return nullptr;
    }
    if (kind == Wake)
        return nullptr;
    const auto index =
        static_cast<std::uint32_t>(tag >> (kind_bits + generation_bits)) & ((1u << index_bits) - 1);
    if (index >= links_.made())
        return nullptr;
    Link &link = *links_.at(index);
    const auto generation = static_cast<std::uint16_t>(tag >> kind_bits);
    if (!link.used || link.generation != generation || link.source == nullptr)
        return nullptr;
    if (kind == Shadow)
        link.source->kernel_said(events);
    for (std::uint32_t i = 0; shared_bells_ > 0 && i < links_.made(); i++) {
        Link *other = links_.at(i);
        if (!other->used || other->source != link.source)
            continue;
        rouse(*other);
        links_.heat(*other);
    }
    rouse(link);
    links_.heat(link);
    return &link;
}

/// Puts what our entries stand for in their place in what the kernel has told, which has them in
/// the order in which they became ready.
Set::Absorbed Set::absorb(epoll_event *events, int n, std::uint32_t call)
{
    const Locked locked(lock_);
    Absorbed found = {0, false, false};
    for (int i = 0; i < n; i++) {
        const std::uint64_t data = events[i].data.u64;
        if ((data & ~((std::uint64_t{1} << tag_bits) - 1)) != secret_) {
            events[found.kept++] = events[i];
            found.native = true;
            continue;
        }
        found.ours = true;
        Link *link = absorb_one(data, events[i].events);
        if (link != nullptr && report(*link, events[found.kept], call))
            found.kept++;
    }
    return found;
}

// ---- waiting

int Set::finish(int result)
{
    if (!shared_.load(std::memory_order_relaxed))
        return result;
    if (sleepers_.load(std::memory_order_seq_cst) == 0 && !nested_)
        return result;
    const Locked locked(lock_);
    pass_on();
    return result;
}

/// @param all     look at every member that is not armed, else at some
/// @param kernel  ask it too
int Set::look_once(epoll_event *events, int most, bool all, bool kernel)
{
    const std::uint32_t looks = all ? Link::none : looks_a_lap;
    const std::uint32_t call = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
    int n = collect(events, most, looks, call);
    if (n > 0 &&
        unasked_.fetch_add(1, std::memory_order_relaxed) + 1 < process_spinning().kernel_every)
        return n;
    if (n == most || !(kernel || n > 0))
        return n;
    for (;;) {
        unasked_.store(0, std::memory_order_relaxed);
        const int asked = now(epoll_, events + n, most - n);
        if (asked < 0)
            return n > 0 ? n : asked;
        const Absorbed found = absorb(events + n, asked, call);
        told_native_.store(found.native, std::memory_order_relaxed);
        n += found.kept;
        if (n == most || !found.ours)
            return n;
        // What the kernel's entries of ours stand for.
        n += collect(events + n, most - n, Link::none, call);
        if (n > 0)
            return n;
    }
}

int Set::sleep(epoll_event *events, int most, const Deadline &deadline, const sigset_t *mask,
               const Handled &before)
{
    {
        const Locked locked(lock_);
        if (!arm_all())
            return 0;
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
    }
    // From here to the kernel's wait no handler runs (rule W9).
    std::uint64_t every = ~std::uint64_t{0}, own = 0;
    kernel::call(SYS_rt_sigprocmask, SIG_SETMASK, &every, &own, 8);
    long n = -EINTR;
    if (handled().all == before.all)
        n = kernel_wait(epoll_, events, most, deadline,
                        mask != nullptr ? mask : reinterpret_cast<const sigset_t *>(&own));
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    kernel::call(SYS_rt_sigprocmask, SIG_SETMASK, &own, nullptr, 8);
    if (n <= 0)
        return static_cast<int>(n);
    const std::uint32_t call = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
    const Absorbed found = absorb(events, static_cast<int>(n), call);
    told_native_.store(found.native, std::memory_order_relaxed);
    return found.kept + collect(events + found.kept, most - found.kept, Link::none, call);
}

/// The kernel's call. @return also what it has told of our entries, made since
int Set::wait_native(epoll_event *events, int most, const Deadline &deadline, const sigset_t *mask)
{
    if (deadline.at_once())
        return static_cast<int>(kernel_wait(epoll_, events, most, deadline, mask));
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    // Who makes the first entry and then counts sleepers finds this one, or is found.
    long n = 0;
    if (most <= 0 || !shared_.load(std::memory_order_seq_cst))
        n = kernel_wait(epoll_, events, most, deadline, mask);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    return static_cast<int>(n);
}

int Set::wait(epoll_event *events, int most, const timespec *timeout, const sigset_t *mask)
{
    if (timeout != nullptr && !is_valid(*timeout))
        return -EINVAL;
    const Deadline deadline(timeout);
    if (most <= 0 || !shared_.load(std::memory_order_seq_cst)) {
        int n = wait_native(events, most, deadline, mask);
        if (n < 0 || !shared_.load(std::memory_order_seq_cst))
            return n;
        n = absorb(events, n, calls_.fetch_add(1, std::memory_order_relaxed) + 1).kept;
        if (n > 0)
            return finish(n);
    }
    const Handled before = handled();
    Spin spin(process_spinning(), window_);
    bool slept = false;
    for (std::uint32_t lap = 0;; lap++) {
        attend();
        // What the members say that are looked at needs no system call; nor are they delayed by
        // one, unless the kernel's had something last time.
        const std::uint32_t every = process_spinning().kernel_every;
        const bool kernel = deadline.at_once() || slept || lap % every == every - 1 ||
                            (lap == 0 && told_native_.load(std::memory_order_relaxed));
        const int n = look_once(events, most, lap == 0 || slept, kernel);
        if (n != 0)
            return finish(n);
        if (deadline.at_once())
            return finish(0);
        if (handled().all != before.all)
            return finish(-EINTR);
        if (deadline.passed())
            return finish(0);
        // With a mask of its own the caller wants signals that only the kernel's wait lets in.
        if (mask == nullptr && sleepers_.load(std::memory_order_relaxed) == 0 && spin.lap())
            continue;
        spin.stop();
        const int told = sleep(events, most, deadline, mask, before);
        if (told != 0)
            return finish(told);
        slept = true;
    }
}

} // namespace ntb::socket
