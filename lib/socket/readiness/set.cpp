// SPDX-License-Identifier: BSD-3-Clause
// What is looked at, and the wait: all that runs per event is in this file.
#include "readiness/set.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "kernel/system.hpp"
#include "readiness/event_masks.hpp"
#include "readiness/kernel_set.hpp"

namespace ntb::socket
{

namespace
{

constexpr std::uint32_t idle_looks = 16;  // a member that had nothing so often is armed
constexpr std::uint32_t looks_a_lap = 64; // while a thread spins
constexpr std::uint32_t news_most = 4;
constexpr std::uint32_t unseen_most = 15; // looks that are spared in a row: the next finds the rest
constexpr std::uint32_t laps_most = 256;  // with entries that stand for nothing: a wait has an end
constexpr std::uint32_t quiet_looks = 64; // in which the kernel had nothing: it is asked seldom

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

/// Puts the last of some events where it belongs among them, in the order in which they came.
class Set::Order
{
public:
    void add(epoll_event *events, int n, std::uint64_t moment)
    {
        if (n >= most)
            return;
        int place = n;
        for (; place > 0 && moments_[place - 1] > moment; place--)
            moments_[place] = moments_[place - 1];
        moments_[place] = moment;
        std::rotate(events + place, events + n, events + n + 1);
    }

    static constexpr int most = 64; ///< those behind come as they were found

private:
    std::uint64_t moments_[most];
};

/// What the kernel reported.
struct Set::Absorbed {
    int kept = 0;                       ///< events for the program
    bool ours = false;                  ///< some were of our entries
    bool native = false;                ///< some were the program's
    bool woken = false;                 ///< one was wake()'s
    std::uint64_t moments[Order::most]; ///< when they came, 0: not known, so earlier

    void keep(std::uint64_t moment)
    {
        if (kept < Order::most)
            moments[kept] = moment;
        kept++;
    }
};

// Makes the descriptor of the set readable, until one thread was woken by it.
void Set::wake()
{
    int ready = ready_descriptor();
    // An entry that is in the kernel's list of ready ones already is no edge for who has the set as
    // an edge triggered member: a new one is.
    if (std::exchange(has_edge_, false) && nested_)
        kernel_control(EPOLL_CTL_DEL, ready, 0, 0);
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
    if (descriptor != attended_.load(std::memory_order_relaxed)) [[unlikely]]
        attend_to(descriptor);
}

[[gnu::noinline]] void Set::attend_to(int descriptor)
{
    if (may_be_shared()) {
        look_at_others();
        if (native_ || descriptor == attended_here_.load(std::memory_order_relaxed))
            return;
    }
    const Locked locked(lock_);
    std::atomic<int> &attended = may_be_shared() ? attended_here_ : attended_;
    if (attended >= 0)
        kernel_control(EPOLL_CTL_DEL, attended, 0, 0);
    attended = descriptor;
    // Another process that has the set cannot read it: it may not stay ready there.
    if (descriptor >= 0)
        kernel_control(EPOLL_CTL_ADD, descriptor, may_be_shared() ? EPOLLIN | EPOLLET : EPOLLIN,
                       secret_ | Attended);
}

// ---- looking

void Set::set_reported(Link &link, const Arrivals &arrivals)
{
    link.fresh = false;
    link.reported_in = arrivals.in;
    link.reported_out = arrivals.out;
    link.reported_ends = arrivals.ends;
}

std::uint32_t Set::evaluate(Link &link, Arrivals &arrivals)
{
    Source &source = *link.source;
    if (link.off || link.removed)
        return 0;
    const bool upgraded = source.upgraded();
    if (!upgraded && !link.orphan) {
        restore(link);
        return 0;
    }
    const std::uint64_t signs = source.signs(arm_events(link.events));
    arrivals = {source.arrivals_in(), source.arrivals_out(), 0};
    link.looked_in = arrivals.in;
    link.signs = 0;
    link.unseen = 0;
    std::uint32_t now = source.look(arm_events(link.events));
    // Room is found by looking: no bell rings for it. Where this look found none, room that a
    // later one finds is new.
    if ((now & EPOLLOUT) != 0)
        arrivals.out = source.arrivals_out();
    arrivals.ends = now & (always | EPOLLRDHUP);
    now = widened(now) & (link.events | always);
    if (now == 0)
        link.signs = signs;
    if (!(link.events & EPOLLET))
        return now;
    const bool fresh = link.fresh ||
                       ((link.events & in_events) && arrivals.in != link.reported_in) ||
                       ((link.events & out_events) && arrivals.out != link.reported_out) ||
                       (arrivals.ends & ~link.reported_ends) != 0;
    if (fresh && now != 0)
        return now;
    // What had arrived is gone again.
    set_reported(link, arrivals);
    link.signs = signs;
    return 0;
}

// Nothing is looked at any more until the bell rings. @retval false something is there: look on.
// Others who have the set as an edge triggered member hear of what comes behind that by the bell.
bool Set::arm(Link &link)
{
    rouse(link);
    link.armed_for = arm_events(link.events);
    link.armed = true;
    link.source->arm(link.armed_for);
    Arrivals arrivals;
    const std::uint32_t now = evaluate(link, arrivals);
    if (!link.armed) // it is the kernel's
        return true;
    if (now != 0) {
        has_edge_ |= link.passed_in != arrivals.in || link.passed_out != arrivals.out;
        link.passed_in = arrivals.in;
        link.passed_out = arrivals.out;
        if (!nested_)
            rouse(link);
        return false;
    }
    if ((link.armed_for & EPOLLOUT) && !link.asks_out && !link.orphan) {
        link.asks_out = true;
        kernel_control(EPOLL_CTL_MOD, link.fd, shadow_events | EPOLLOUT, tag(Shadow, link));
    }
    if (is_in_doubt(link))
        note_doubt();
    links_.cool(link);
    return true;
}

bool Set::is_in_doubt(const Link &link)
{
    return link.used && link.armed && (link.armed_for & EPOLLOUT) != 0 &&
           link.source->is_in_doubt();
}

void Set::note_doubt()
{
    if (doubts_until_ns_.load(std::memory_order_relaxed) != 0)
        return;
    doubts_until_ns_.store(Deadline::now_ns() + Source::longest_doubt_ns,
                           std::memory_order_relaxed);
    doubt_is_new_ = true;
}

// Time may have brought what no bell rings for: also over many short waits.
void Set::look_after_doubts()
{
    const std::uint64_t until = doubts_until_ns_.load(std::memory_order_relaxed);
    if (until != 0 && Deadline::now_ns() >= until) [[unlikely]]
        look_after_time();
}

[[gnu::noinline]] void Set::look_after_time()
{
    const Locked locked(lock_);
    doubts_until_ns_.store(0, std::memory_order_relaxed);
    if (native_) {
        forget_list();
        leave_rings();
        if (has_unshown())
            list_members();
        return;
    }
    for (std::uint32_t i = 0; i < links_.made(); i++)
        if (Link &link = *links_.at(i); is_in_doubt(link)) {
            rouse(link);
            links_.heat(link);
        }
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

// For a thread that leaves the set while others sleep in it or poll its descriptor: afterwards
// every member is armed, or the descriptor is readable (rules W5, W8).
void Set::pass_on()
{
    if (sleeper_count() == 0 && !nested_)
        return;
    if (may_be_shared() && native_) // others do not know what wakes here
        return;
    const bool all = arm_all();
    // A thread that has begun to sleep before there was a doubt sleeps for too long.
    const bool sleeps_on = sleeper_count() > 0 && std::exchange(doubt_is_new_, false);
    if (!all || sleeps_on)
        wake();
}

/// Whether a look may find something: asked while a thread pauses, so of few alone.
bool Set::has_news()
{
    const Locked locked(lock_);
    if (links_.hot_count() > news_most)
        return false;
    for (std::uint32_t i = 0; i < links_.hot_count(); i++)
        if (const Link &link = *links_.hot(i);
            link.signs != 0 && link.source->signs(arm_events(link.events)) != link.signs)
            return true;
    return false;
}

/// Whether the last look, which had nothing, stands for another one.
bool Set::has_no_news(Link &link)
{
    return link.signs != 0 && link.unseen++ < unseen_most &&
           link.source->signs(arm_events(link.events)) == link.signs;
}

/// @param call  no member is reported twice in one
/// @retval false there is nothing to report of it
bool Set::report(Link &link, epoll_event &event, std::uint32_t call)
{
    Arrivals arrivals;
    std::uint32_t now = link.reported_by == call ? 0 : evaluate(link, arrivals);
    if (now != 0 && may_be_shared() && native_) [[unlikely]]
        now = evaluate_as_given(link, arrivals);
    if (now == 0)
        return false;
    link.arrived_at = link.source->arrived_at();
    set_reported(link, arrivals);
    link.reported_by = call;
    link.idle = 0;
    event.events = now;
    event.data.u64 = link.data;
    if (link.events & EPOLLONESHOT)
        shoot(link);
    return true;
}

/// A one-shot member was reported.
void Set::shoot(Link &link)
{
    link.off = true;
    links_.cool(link);
    if (may_be_shared() && native_)
        give_entry(link); // it may be the program's already
    else
        say(link);
}

/// A member that was looked at first and had nothing may have got something since, and earlier than
/// what was found at a later member. So once something is found, those are looked at again.
int Set::collect_earlier(epoll_event *events, int n, int most, std::uint32_t call, Order &order)
{
    for (std::uint32_t i = 0; i < links_.hot_count() && n < most;) {
        Link &link = *links_.hot(i);
        if (link.source != nullptr && !link.off && !link.removed && link.reported_by != call &&
            link.source->arrivals_in() != link.looked_in && report(link, events[n], call))
            order.add(events, n++, link.arrived_at);
        if (link.hot == i)
            i++;
    }
    return n;
}

int Set::collect(epoll_event *events, int most, std::uint32_t looks, std::uint32_t call)
{
    Order order;
    return collect(events, most, looks, call, order);
}

int Set::collect(epoll_event *events, int most, std::uint32_t looks, std::uint32_t call,
                 Order &order)
{
    const Locked locked(lock_);
    int n = 0;
    const bool looks_at_all = looks >= links_.hot_count() && links_.hot_count() <= looks_a_lap;
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
        if (has_no_news(link)) {
            cursor_++;
            kept++;
            continue;
        }
        if (report(link, events[n], call)) {
            order.add(events, n, link.arrived_at);
            n++;
        } else if (link.hot != Link::none && link.reported_by != call &&
                   ++link.idle >= idle_looks && arm(link))
            continue;
        if (link.hot == Link::none)
            continue; // one-shot, or it has gone back to the kernel
        cursor_++;
        kept++;
    }
    return n > 0 && looks_at_all ? collect_earlier(events, n, most, call, order) : n;
}

bool Set::is_of(std::uint64_t tag, Kind kind)
{
    return (tag & ((1u << kind_bits) - 1)) == kind;
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
    Link *const found = link_with_source(place_of(tag));
    if (found == nullptr)
        return nullptr;
    Link &link = *found;
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

/// Replaces our entries among the kernel's events by the program's events that they stand for. The
/// kernel's order, in which they became ready, is kept.
/// @param first  events of this call that are there already: the kernel's are behind them
Set::Absorbed Set::absorb(epoll_event *events, int first, int n, std::uint32_t call)
{
    const Locked locked(lock_);
    Absorbed found;
    for (int i = 0; i < n; i++) {
        epoll_event event = events[first + i];
        epoll_event &place = events[first + found.kept];
        if (!is_ours(event.data.u64)) {
            found.native = true;
            if (native_ && merge(events, first + found.kept, event, call)) [[unlikely]]
                continue;
            place = event;
            found.keep(0);
            continue;
        }
        found.ours = true;
        found.woken |= is_of(event.data.u64, Wake);
        Link *link = absorb_one(event.data.u64, event.events);
        if (link != nullptr && report(*link, place, call))
            found.keep(is_of(event.data.u64, Bell) ? link->arrived_at : 0);
    }
    // Programs set a part of the data of an event that lay here, and hand it to epoll_ctl(): with
    // the secret in the rest of it, what they say would be taken for one of our entries.
    std::fill(events + first + found.kept, events + first + std::max(n, found.kept), epoll_event{});
    return found;
}

// ---- waiting

int Set::finish(int result)
{
    if (!shared_.load(std::memory_order_relaxed))
        return result;
    if (sleeper_count() == 0 && !nested_)
        return result;
    const Locked locked(lock_);
    pass_on();
    return result;
}

/// Where the kernel had something lately, it has something more often: it is asked each time.
std::uint32_t Set::kernel_every() const
{
    return quiet_.load(std::memory_order_relaxed) < quiet_looks ? 1
                                                                : process_spinning().kernel_every;
}

/// The kernel was asked.
void Set::heard(bool something)
{
    const std::uint32_t quiet = quiet_.load(std::memory_order_relaxed);
    if (something || quiet < quiet_looks)
        quiet_.store(something ? 0 : quiet + 1, std::memory_order_relaxed);
}

/// @param all     look at every member that is not armed, else at some
/// @param kernel  ask it too
int Set::look_once(epoll_event *events, int most, bool all, bool kernel)
{
    const std::uint32_t looks = all ? Link::none : looks_a_lap;
    const std::uint32_t call = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
    Order order;
    int n = collect(events, most, looks, call, order);
    if (n > 0 && unasked_.fetch_add(1, std::memory_order_relaxed) + 1 < kernel_every())
        return n;
    if (n == most || !(kernel || n > 0))
        return n;
    // Entries of another process that has the set stand for nothing here, and take laps only.
    for (std::uint32_t lap = 0; lap < laps_most; lap++) {
        unasked_.store(0, std::memory_order_relaxed);
        const int asked = now(epoll_, events + n, most - n);
        if (asked < 0)
            return n > 0 ? n : asked;
        heard(asked > 0);
        if (asked == 0) {
            native_last_.store(false, std::memory_order_relaxed);
            return n;
        }
        const Absorbed found = absorb(events, n, asked, call);
        native_last_.store(found.native, std::memory_order_relaxed);
        // What the kernel alone knows of is more often older than what was just found than younger.
        for (int i = 0; i < found.kept && n > 0; i++)
            order.add(events, n + i, i < Order::most ? found.moments[i] : 0);
        n += found.kept;
        if (n == most || !found.ours)
            return n;
        // What the kernel's entries of ours stand for.
        n += collect(events + n, most - n, Link::none, call);
        if (n > 0)
            return n;
    }
    return n;
}

/// @param empty  wake-ups of this wait that were for others
int Set::sleep(epoll_event *events, int most, const Deadline &deadline, const sigset_t *mask,
               const Handled &before, std::uint32_t &empty)
{
    std::uint64_t until;
    std::uint32_t others = 0; // sleepers before this one
    std::uint32_t lates = 0;
    bool is_native = false, is_shared = false;
    {
        const Locked locked(lock_);
        if (!arm_all())
            return 0;
        others = sleepers_.fetch_add(1, std::memory_order_seq_cst);
        is_native = native_;
        is_shared = (others & sleepers_counted) != 0 && !is_native;
        if (is_native) [[unlikely]]
            lates = begin_native_sleep();
        if (is_shared && !begin_shared_sleep(*sharing_)) [[unlikely]] {
            sleepers_.fetch_sub(1, std::memory_order_seq_cst);
            return 0;
        }
        until = doubts_until_ns_.load(std::memory_order_relaxed);
        doubt_is_new_ = false;
    }
    const long n = kernel_sleep(epoll_, events, most,
                                until == 0 ? deadline : deadline.sooner_at(until), mask, before);
    end_sleep(others);
    if (is_shared) [[unlikely]]
        end_shared_sleep(*sharing_);
    if (is_native) [[unlikely]]
        end_native_sleep(lates);
    if (n <= 0)
        return static_cast<int>(n);
    const std::uint32_t call = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
    const Absorbed found = absorb(events, 0, static_cast<int>(n), call);
    native_last_.store(found.native, std::memory_order_relaxed);
    heard(true);
    const int all = found.kept + collect(events + found.kept, most - found.kept, Link::none, call);
    if (is_native && all == 0 && found.woken) [[unlikely]]
        step_aside(empty, deadline, mask);
    return all;
}

/// The kernel's call. @return its events, among which entries of ours may be that were made since
int Set::wait_native(epoll_event *events, int most, const Deadline &deadline, const sigset_t *mask)
{
    if (deadline.at_once())
        return static_cast<int>(kernel_wait(epoll_, events, most, deadline, mask));
    const std::uint32_t before = sleepers_.fetch_add(1, std::memory_order_seq_cst);
    // Who makes the first entry and then counts sleepers finds this one, or is found.
    long n = 0;
    if (most <= 0 || !shared_.load(std::memory_order_seq_cst))
        n = kernel_wait(epoll_, events, most, deadline, mask);
    end_sleep(before);
    return static_cast<int>(n);
}

/// The first member was upgraded during the kernel's wait: entries of ours may be among its events.
bool Set::keep_native(epoll_event *events, int *result)
{
    if (*result > 0)
        *result =
            absorb(events, 0, *result, calls_.fetch_add(1, std::memory_order_relaxed) + 1).kept;
    if (*result == 0)
        return false;
    if (*result > 0)
        finish(*result);
    return true;
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
        n = absorb(events, 0, n, calls_.fetch_add(1, std::memory_order_relaxed) + 1).kept;
        if (n > 0)
            return finish(n);
    }
    const Handled before = handled();
    Spin spin(process_spinning(), spin_time_);
    bool slept = false;
    std::uint32_t empty = 0;
    for (std::uint32_t lap = 0;; lap++) {
        attend();
        look_after_doubts();
        // Members that are looked at need no system call, and are not delayed by one unless the
        // kernel had something last time.
        const std::uint32_t every = process_spinning().kernel_every;
        const bool kernel = deadline.at_once() || slept || lap % every == every - 1 ||
                            (lap == 0 && native_last_.load(std::memory_order_relaxed));
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
        if (mask == nullptr && sleeper_count() == 0 && spin.lap([this] { return has_news(); }))
            continue;
        spin.stop();
        const int woken = sleep(events, most, deadline, mask, before, empty);
        if (woken != 0)
            return finish(woken);
        slept = true;
    }
}

} // namespace ntb::socket
