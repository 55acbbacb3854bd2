// SPDX-License-Identifier: BSD-3-Clause
// A set that processes share over fork(), and that more than one of them uses: its members go back
// to the kernel (doc/socket-protocol.md, section 9).
#include "readiness/set.hpp"

#include <new>

#include "kernel/memory.hpp"
#include "kernel/system.hpp"
#include "readiness/event_masks.hpp"
#include "readiness/kernel_set.hpp"
#include "readiness/said.hpp"
#include "record/record.hpp"

namespace ntb::socket
{

namespace
{
constexpr std::uint64_t leaving_look_ns = 10000000;
constexpr int longest_leave_ms = 800; // a daemon answers for its client within 500 ms (D1)
constexpr int wakes = 100;            // of sleepers that do not go, perhaps dead ones
constexpr std::uint32_t longest_aside = 5;

void pause_a_moment()
{
    const timespec moment = {0, 1000000};
    kernel::call(SYS_nanosleep, &moment, nullptr);
}

std::int32_t own_pid()
{
    return static_cast<std::int32_t>(kernel::call(SYS_getpid));
}
} // namespace

/// In memory that they share.
struct Set::Sharing {
    Holders holders;
    std::atomic<bool> is_used;           ///< by one that has inherited it, while others have it
    std::atomic<bool> has_entries;       ///< all processes expect entries of ours
    std::atomic<std::uint32_t> sleepers; ///< in processes that may not know of that
    Said said;                           ///< by the one that uses it, before another one does
};

// The members' entries say nothing to a process that did not make them, and a set knows nothing of
// what another process changes: so what belongs to both is the kernel's alone.

void Set::before_fork()
{
    const Locked locked(lock_);
    if (sharing_ == nullptr) {
        void *memory = kernel::map<Sharing>(1, MAP_SHARED);
        if (memory == nullptr)
            return;
        make_secret(); // both may make entries later
        // Zeroed already, and a constructor would touch all of it.
        auto *made = static_cast<Sharing *>(memory);
        sharing_ = made;
        if (shared_)
            count_sleepers(*made);
        attended_here_ = attended_.exchange(always_look);
        if (attended_here_ >= 0)
            kernel_control(EPOLL_CTL_MOD, attended_here_, EPOLLIN | EPOLLET, secret_ | Attended);
    }
    Sharing *sharing = sharing_;
    sharing->holders.add(own_pid());
    sharing->holders.expect();
}

void Set::after_fork_in_parent(bool has_child)
{
    if (Sharing *sharing = sharing_; !has_child && sharing != nullptr)
        sharing->holders.expect_no_more();
}

void Set::after_fork_in_child()
{
    new (&lock_) Lock;
    inherited_ = true;
    asleep_ = unaware_ = 0;
    sleepers_.store((native_ ? 1u : 0u) | (sharing_ != nullptr ? sleepers_counted : 0u),
                    std::memory_order_relaxed);
    if (Sharing *sharing = sharing_; sharing != nullptr) {
        sharing->holders.add(own_pid());
        sharing->holders.expect_no_more();
    }
    attended_ = always_look;
    had_entries_ =
        shared_.exchange(true); // the parent may make some, so the kernel's wait is not all
    for (std::uint32_t i = 0; i < links_.made(); i++) {
        Link *link = links_.at(i);
        if (!link->used || link->source == nullptr)
            continue;
        link->armed = false; // that was the parent
        links_.heat(*link);
    }
}

void Set::end_sharing()
{
    Sharing *sharing = sharing_;
    if (sharing == nullptr)
        return;
    sharing->holders.remove(own_pid());
    kernel::unmap(sharing, 1);
}

/// Whether no other process has the set, as far as is known.
bool Set::is_alone() const
{
    Sharing *sharing = sharing_;
    return sharing != nullptr && sharing->holders.is_alone(own_pid(), true);
}

/// Members whose rings are not over yet may have the program's entry in the kernel, which only a
/// change there reaches.
bool Set::can_be_sole() const
{
    return (!native_ || doubts_until_ns_.load(std::memory_order_relaxed) == 0) && is_alone();
}

/// A call of this process on a set that others may have.
/// @param adds  and a member is to be added: the others may have gone
void Set::look_at_others(bool adds)
{
    const bool was_inherited = inherited_.load(std::memory_order_relaxed);
    if (adds && !was_inherited && native_) {
        const Locked locked(lock_);
        if (native_ && can_be_sole())
            become_sole();
        return;
    }
    if (!was_inherited && (native_.load(std::memory_order_relaxed) || !is_used_by_others()))
        return;
    {
        const Locked locked(lock_);
        if (!inherited_ && native_)
            return;
        if (inherited_)
            begin_use();
        else if (is_used_by_others())
            go_native();
    }
    if (was_inherited && native_)
        wake_others(true);
}

// The first call of a child. Under the lock.
void Set::begin_use()
{
    inherited_ = false;
    attend_no_more(); // what its parent's daemon says is not read here
    Sharing *sharing = sharing_;
    const bool parent_spoke = sharing != nullptr && sharing->said.any();
    if (can_be_sole()) { // a daemon, whose parent is gone
        if (parent_spoke) {
            enter_ready();
            hear();
        }
        shared_ = had_entries_ || parent_spoke;
        if (!shared_) // no thread sleeps yet
            sleepers_.fetch_and(~sleepers_counted);
        become_sole();
        return;
    }
    enter_ready();
    if (sharing != nullptr) // before what was said is read: who says more sees this
        sharing->is_used.store(true, std::memory_order_seq_cst);
    if (!native_)
        go_native();
}

/// What another process does not know of a member unless this says so. Under the lock.
void Set::say_to_others(const Link &link)
{
    if (Sharing *sharing = sharing_; sharing != nullptr && !native_)
        sharing->said.say(link.index, link.generation,
                          {link.events, link.data, link.off, link.removed});
}

/// What another process has said of a member, which this one has still by ring. Under the lock.
void Set::take(Link &link, std::uint32_t events, std::uint64_t data, bool off, bool removed)
{
    link.events = events;
    link.data = data;
    link.off = off;
    link.removed = removed;
    if (off || removed)
        links_.cool(link);
    else
        links_.heat(link);
}

/// Goes by what was said of the members, and by what the kernel has of them. Under the lock.
void Set::hear()
{
    const Sharing *sharing = sharing_;
    for (std::uint32_t i = 0; i < links_.made(); i++) {
        Link &link = *links_.at(i);
        Said::Word word;
        if (!link.used || link.source == nullptr || link.orphan || sharing == nullptr ||
            !sharing->said.find(i, link.generation, word))
            continue;
        take(link, word.events, word.data, word.off, word.removed);
        link.fresh = true; // who said it may not have shown what is there
    }
    list_members(true);
    for (std::uint32_t i = 0; i < links_.made(); i++) {
        Link &link = *links_.at(i);
        if (link.used && link.source != nullptr && !link.orphan && (link.removed || !link.listed))
            release(link);
    }
}

/// A kernel's entry with these data that another process has made of a member which goes by the
/// kernel here: it stands for nothing in this process, and that one may make no call any more.
/// @param link  of the number, or NULL
void Set::take_entry(int fd, Link *link, std::uint64_t data)
{
    const Sharing *sharing = sharing_;
    Said::Word word;
    const Place place = place_of(data);
    if (!is_ours(data) || !is_of(data, Shadow) || sharing == nullptr ||
        link_with_source(place) != nullptr ||
        !sharing->said.find(place.index, place.generation, word))
        return;
    if (word.removed) {
        kernel_control(EPOLL_CTL_DEL, fd, 0, 0);
        if (link != nullptr)
            release(*link);
        return;
    }
    if (link == nullptr && (link = links_.make(fd)) == nullptr)
        return;
    link->events = word.events;
    link->data = word.data;
    link->off = word.off;
    give_entry(*link);
}

/// Those that sleep in it know nothing yet of its use by others, or of a ring. Not while this
/// thread takes events: it could take theirs. The kernel wakes one, perhaps of another process,
/// who was none of them.
/// @param all  of other processes, too: those that were killed in their sleep are among them
void Set::wake_others(bool all)
{
    Sharing *sharing = sharing_;
    for (int i = 0; i < wakes && sharing != nullptr; i++) {
        {
            const Locked locked(lock_);
            if (unaware_ == 0 && (!all || sharing->sleepers.load() == 0))
                return;
            wake();
        }
        pause_a_moment();
    }
}

/// The kernel's sleep in a set that is the kernel's. Under the lock.
/// @return for end_native_sleep()
std::uint32_t Set::begin_native_sleep()
{
    asleep_++;
    return lates_;
}

void Set::end_native_sleep(std::uint32_t lates)
{
    const Locked locked(lock_);
    asleep_--;
    if (lates != lates_)
        unaware_--;
}

/// The kernel wakes who sleeps since last: a thread that was woken for another one, of which it
/// knows nothing, would be woken each time.
/// @param mask  the caller's, or NULL: it wants signals that only the kernel's wait lets in
void Set::step_aside(std::uint32_t &empty, const Deadline &deadline, const sigset_t *mask)
{
    timespec room;
    deadline.sooner(std::uint64_t{1000000} << empty).set(room);
    kernel::call(SYS_ppoll, nullptr, 0, &room, mask, 8);
    empty += empty < longest_aside ? 1 : 0;
}

/// Under the lock.
void Set::attend_no_more()
{
    if (attended_here_ >= 0)
        kernel_control(EPOLL_CTL_DEL, attended_here_, 0, 0);
    attended_here_ = -1;
}

/// From now on members are the kernel's: those that have a ring once that is over. Under the lock.
void Set::go_native()
{
    native_ = true;
    // As if one slept in it: no thread looks for long before the kernel's call.
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    attend_no_more();
    hear();
    leave_rings();
}

/// Under the lock.
void Set::become_sole()
{
    if (Sharing *sharing = sharing_; sharing != nullptr) {
        sharing->said.forget();
        sharing->is_used.store(false, std::memory_order_seq_cst);
    }
    if (native_.exchange(false))
        sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

/// Under the lock. Until its ring is over a member is looked at as ever, and now and then.
void Set::leave_rings()
{
    bool all = true;
    for (std::uint32_t i = 0; i < links_.made(); i++) {
        Link &link = *links_.at(i);
        if (!link.used || link.source == nullptr || link.orphan || link.removed)
            continue;
        if (link.source->go_back()) {
            restore(link);
            continue;
        }
        all = false;
        rouse(link);
        links_.heat(link);
    }
    doubts_until_ns_.store(all ? 0 : Deadline::now_ns() + leaving_look_ns,
                           std::memory_order_relaxed);
}

/// Marks what the kernel has of the members.
class Set::Given : public Entries
{
public:
    /// @param hears  as hear() does: also of those that another process has made
    Given(Set &set, bool hears) : set_(set), hears_(hears) {}
    bool wants(int fd) override
    {
        link_ = set_.links_.find(fd);
        return link_ != nullptr || hears_;
    }
    void take(int fd, const KernelEntry *entry) override
    {
        if (hears_ && entry != nullptr && (link_ == nullptr || link_->source == nullptr))
            set_.take_entry(fd, link_, entry->data);
        if (link_ == nullptr)
            return;
        link_->given = entry != nullptr && !link_->listed && !set_.is_ours(entry->data);
        link_->listed = true;
        if (entry == nullptr || link_->source == nullptr)
            return;
        if (entry->data == (set_.secret_ | Wake)) // one-shot, and another process has shown it
            set_.take(*link_, link_->events, link_->data, true, link_->removed);
        else if (link_->given)
            take_changes(*entry);
    }

private:
    /// One that another process has changed is new to who waits for edges.
    void take_changes(const KernelEntry &entry)
    {
        link_->fresh |= (entry.events | always) != (link_->events | always) ||
                        entry.data != link_->data || (link_->off && !entry.is_off());
        set_.take(*link_, entry.events, entry.data, entry.is_off(), false);
    }

    Set &set_;
    const bool hears_;
    Link *link_ = nullptr;
};

/// Once for all of them, as each look takes as long as there are members.
/// @param hears  as Given has it
void Set::list_members(bool hears)
{
    for (std::uint32_t i = 0; i < links_.made(); i++)
        links_.at(i)->listed = links_.at(i)->given = false;
    Given given(*this, hears);
    const bool is_read = list_entries(epoll_, given);
    for (std::uint32_t i = 0; i < links_.made() && !is_read; i++)
        links_.at(i)->listed = true;
    listed_by_ = calls_.load(std::memory_order_relaxed);
}

/// Whether the kernel's entry is the program's already: another process has made it so.
bool Set::is_given(const Link &link)
{
    if (listed_by_ != calls_.load(std::memory_order_relaxed))
        list_members();
    return link.given;
}

/// Whether bytes are unread that the program is not shown by what is known of their member, which
/// another process may have changed.
bool Set::has_unshown()
{
    for (std::uint32_t i = 0; i < links_.made(); i++) {
        Link &link = *links_.at(i);
        if (link.used && link.source != nullptr && !link.orphan && !link.removed &&
            (link.off || (link.events & (EPOLLIN | EPOLLET)) != EPOLLIN) &&
            (link.source->look(EPOLLIN) & EPOLLIN) != 0)
            return true;
    }
    return false;
}

/// evaluate() of a member whose ring is not over yet, by what another process may have said of it.
std::uint32_t Set::evaluate_as_given(Link &link, Arrivals &arrivals)
{
    is_given(link);
    if (!link.listed && !link.orphan)
        release(link);
    return link.source == nullptr ? 0 : evaluate(link, arrivals);
}

/// The member whose ring is not over yet and that the kernel's entry with these data is of.
/// @return NULL: there is none, or several have these data
Link *Set::find_leaving(std::uint64_t data)
{
    Link *found = nullptr;
    for (std::uint32_t i = 0; i < links_.hot_count(); i++)
        if (Link *link = links_.hot(i); link->source != nullptr && link->data == data)
            found = link;
    for (std::uint32_t i = 0; i < links_.made() && found != nullptr; i++)
        if (Link *link = links_.at(i);
            link != found && link->used && !link->removed && link->data == data)
            return nullptr;
    return found;
}

/// A member that has the program's entry in the kernel and the rest of a ring beside it is reported
/// once. Under the lock.
/// @param events  of this call, @p n of them
/// @param event   of the kernel, which gets what the ring has
/// @retval true it is among @p events already
bool Set::merge(epoll_event *events, int n, epoll_event &event, std::uint32_t call)
{
    if (doubts_until_ns_.load(std::memory_order_relaxed) == 0)
        return false;
    Link *link = find_leaving(event.data.u64);
    if (link == nullptr)
        return false;
    for (int i = 0; i < n && link->reported_by == call; i++)
        if (events[i].data.u64 == event.data.u64) {
            events[i].events |= event.events;
            return true;
        }
    epoll_event of_ring;
    if (report(*link, of_ring, call)) {
        event.events |= of_ring.events;
    } else if (link->source != nullptr) {
        link->reported_by = call;
        if (link->events & EPOLLONESHOT)
            shoot(*link);
    }
    return false;
}

/// Whether the kernel's entry of a member is not the program's yet.
bool Set::has_bell(int fd)
{
    const Locked locked(lock_);
    const Link *link = links_.find(fd);
    return link != nullptr && link->source != nullptr && link->has_bell;
}

/// @param waits  as other processes see nothing of what comes by its ring. Not while there are
///               bytes, which only the program can take
bool Set::has_gone_back(Source &source, bool waits)
{
    for (int i = 0; !source.go_back(); i++) {
        if (!waits || i == longest_leave_ms || (source.look(EPOLLIN) & EPOLLIN) != 0)
            return false;
        pause_a_moment();
    }
    return true;
}

/// epoll_ctl() in a set that is the kernel's.
int Set::control_native(int op, int fd, Source *source, epoll_event *event)
{
    if (source != nullptr && op != EPOLL_CTL_DEL &&
        has_gone_back(*source, op == EPOLL_CTL_ADD || has_bell(fd)))
        source = nullptr;
    bool is_late = false;
    const int done = control_native_locked(op, fd, source, event, &is_late);
    if (is_late)
        wake_others(false);
    return done;
}

/// @param is_late  threads that sleep since before look at no ring, and this one is not over
int Set::control_native_locked(int op, int fd, Source *source, epoll_event *event, bool *is_late)
{
    const Locked locked(lock_);
    forget_list();
    Link *link = links_.find(fd);
    Source *const had = link != nullptr && !link->removed ? link->source : nullptr;
    if (had != nullptr)
        restore(*link);
    const int done = control_locked(op, fd, nullptr, event);
    link = links_.find(fd);
    if (done < 0) // the member that it was
        source = had;
    if ((done == 0 && op == EPOLL_CTL_DEL) || source == nullptr || link == nullptr ||
        link->source != nullptr)
        return done;
    // What the ring still has is shown here, beside the kernel's entry.
    prepare();
    link->source = source;
    link->fresh = true;
    link->has_bell = false;
    shared_bells_++;
    forget_list();
    leave_rings();
    // Where a process may have no entries of ours its program would be handed the one that wakes.
    const Sharing *sharing = sharing_;
    *is_late = sharing != nullptr && sharing->has_entries.load();
    lates_++;
    unaware_ = asleep_;
    return done;
}

/// Whether an upgraded descriptor is a member where none may be. Under the lock.
bool Set::is_member(int fd, bool unknown)
{
    KernelEntry entry;
    return (unknown || links_.find(fd) != nullptr) &&
           find_entry(epoll_, fd, &entry) != Found::Nothing;
}

/// Threads that sleep in a set with entries of ours when another process may begin to use it: each
/// takes its own back once it is awake. Those of a set without entries need not be woken: what the
/// kernel reports is the program's. Under the lock.
void Set::count_sleepers(Sharing &sharing)
{
    sharing.has_entries = true; // those of children do from the first on
    const std::uint32_t before = sleepers_.fetch_or(sleepers_counted, std::memory_order_seq_cst);
    if ((before & sleepers_counted) == 0) // one of a set of the kernel's is no thread
        sharing.sleepers.fetch_add(before - (native_ ? 1 : 0), std::memory_order_seq_cst);
}

/// Another process has begun to use it, and this one has not heard of that. Where it is asked after
/// count_sleepers(), sleepers are woken, or this says so.
bool Set::is_used_by_others() const
{
    const Sharing *sharing = sharing_;
    return sharing != nullptr && sharing->is_used.load(std::memory_order_seq_cst);
}

/// The kernel's sleep, where others may begin to use the set. @retval false they have
bool Set::begin_shared_sleep(Sharing &sharing)
{
    sharing.sleepers.fetch_add(1, std::memory_order_seq_cst);
    // Who begins to use it and then counts sleepers finds this one, or is found.
    if (!sharing.is_used.load(std::memory_order_seq_cst))
        return true;
    end_shared_sleep(sharing);
    return false;
}

void Set::end_shared_sleep(Sharing &sharing)
{
    sharing.sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

} // namespace ntb::socket
