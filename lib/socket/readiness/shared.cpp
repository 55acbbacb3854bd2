// SPDX-License-Identifier: BSD-3-Clause
// A set that processes share over fork(), and that more than one of them uses: its members go back
// to the kernel (doc/socket-protocol.md, section 9).
#include "readiness/set.hpp"

#include <new>

#include "kernel/memory.hpp"
#include "kernel/system.hpp"
#include "readiness/kernel_set.hpp"
#include "record/record.hpp"

namespace ntb::socket
{

namespace
{
constexpr std::uint64_t leaving_look_ns = 10000000;
constexpr int longest_leave_ms = 800; // a daemon answers for its client within 500 ms (D1)
constexpr int wakes = 100;            // of sleepers that do not go, perhaps dead ones

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
    /// By one that has inherited it, while others have it: the fork that the first one has come
    /// from. 0: by none.
    std::atomic<std::uint32_t> user;
    std::atomic<bool> has_entries;       ///< all processes expect entries of ours
    std::atomic<std::uint32_t> sleepers; ///< in processes that may not know of that
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
        auto *made = new (memory) Sharing();
        sharing_ = made;
        if (shared_)
            count_sleepers(*made);
        attended_here_ = attended_.exchange(always_look);
        if (attended_here_ >= 0)
            kernel_control(EPOLL_CTL_MOD, attended_here_, EPOLLIN | EPOLLET, secret_ | Attended);
    }
    if (!inherited_ && !native_)
        forks_now_ = ++forks_;
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
    forks_now_ = in_no_child;
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
        if (!link->used)
            continue;
        link->changed_after = 0;
        if (link->source == nullptr)
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

/// A call of this process on a set that others may have.
/// @param adds  and a member is to be added: the others may have gone
void Set::look_at_others(bool adds)
{
    const bool was_inherited = inherited_.load(std::memory_order_relaxed);
    if (adds && !was_inherited && native_ && is_alone()) {
        const Locked locked(lock_);
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
        else
            go_native();
    }
    if (was_inherited && native_)
        wake_others();
}

// The first call of a child. Under the lock.
void Set::begin_use()
{
    inherited_ = false;
    attend_no_more(); // what its parent's daemon says is not read here
    if (is_alone()) { // a daemon, whose parent is gone
        shared_ = had_entries_;
        if (!had_entries_) // no thread sleeps yet
            sleepers_.fetch_and(~sleepers_counted);
        become_sole();
        return;
    }
    enter_ready();
    std::uint32_t none = 0;
    if (Sharing *sharing = sharing_; sharing != nullptr)
        sharing->user.compare_exchange_strong(none, forks_, std::memory_order_seq_cst);
    if (!native_)
        go_native();
}

/// Those that sleep in it know nothing yet. Not while this thread takes events: it could take
/// theirs.
void Set::wake_others()
{
    Sharing *sharing = sharing_;
    for (int i = 0; i < wakes && sharing != nullptr && sharing->sleepers.load() > 0; i++) {
        {
            const Locked locked(lock_);
            wake();
        }
        pause_a_moment();
    }
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
    forks_now_ = in_no_child;
    // As if one slept in it: no thread looks for long before the kernel's call.
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    attend_no_more();
    list_members();
    for (std::uint32_t i = 0; i < links_.made(); i++) {
        Link &link = *links_.at(i);
        if (!link.used || link.source == nullptr || link.orphan)
            continue;
        const bool is_own = is_unknown_change(link);
        if (link.removed ? is_own : !is_own && !link.listed)
            release(link); // by this process, or by another one
    }
    leave_rings();
}

/// Under the lock.
void Set::become_sole()
{
    forks_now_ = forks_;
    for (std::uint32_t i = 0; i < links_.made(); i++)
        if (Link *link = links_.at(i); link->used)
            link->changed_after = 0; // there is no child
    if (!native_)
        return;
    native_ = false;
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    if (Sharing *sharing = sharing_; sharing != nullptr)
        sharing->user.store(0, std::memory_order_seq_cst);
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

/// A change of this process since the fork that the first user has come from: that one did not know
/// of it when it gave the entries to the kernel.
bool Set::is_unknown_change(const Link &link) const
{
    const Sharing *sharing = sharing_;
    return link.changed_after != 0 &&
           (sharing == nullptr || link.changed_after >= sharing->user.load());
}

/// Marks what the kernel has of the members.
class Set::Given : public Entries
{
public:
    explicit Given(Set &set) : set_(set) {}
    bool wants(int fd) override
    {
        link_ = set_.links_.find(fd);
        return link_ != nullptr;
    }
    void take(int /*fd*/, const KernelEntry *entry) override
    {
        link_->given = entry != nullptr && !link_->listed && !set_.is_ours(entry->data);
        link_->listed = true;
        if (!link_->given || link_->source == nullptr || set_.is_unknown_change(*link_))
            return;
        // What the ring still has is shown as another process has said.
        link_->events = entry->events;
        link_->data = entry->data;
        link_->off = entry->is_off();
    }

private:
    Set &set_;
    Link *link_ = nullptr;
};

/// Once for all of them, as each look takes as long as there are members.
void Set::list_members()
{
    for (std::uint32_t i = 0; i < links_.made(); i++)
        links_.at(i)->listed = links_.at(i)->given = false;
    Given given(*this);
    const bool is_read = list_entries(epoll_, given);
    for (std::uint32_t i = 0; i < links_.made() && !is_read; i++)
        links_.at(i)->listed = true;
    listed_by_ = calls_.load(std::memory_order_relaxed);
}

/// Whether the kernel's entry is the program's already: another process has made it so.
bool Set::is_given(const Link &link)
{
    if (is_unknown_change(link))
        return false;
    if (listed_by_ != calls_.load(std::memory_order_relaxed))
        list_members();
    return link.given;
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
    const Locked locked(lock_);
    forget_list();
    Link *link = links_.find(fd);
    if (link != nullptr && link->source != nullptr) {
        if (link->removed)
            release(*link);
        else
            restore(*link);
    }
    const int done = control_locked(op, fd, nullptr, event);
    link = links_.find(fd);
    if (done < 0 || op == EPOLL_CTL_DEL || source == nullptr || link == nullptr ||
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
    // Threads that sleep since before look at no ring. Where a process may have no entries of ours
    // its program would be handed this one.
    if (Sharing *sharing = sharing_; sharing != nullptr && sharing->has_entries.load())
        wake();
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
    if ((before & sleepers_counted) == 0)
        sharing.sleepers.fetch_add(before, std::memory_order_seq_cst);
}

/// Another process has begun to use it, and this one has not heard of that. Where it is asked after
/// count_sleepers(), sleepers are woken, or this says so.
bool Set::is_used_by_others() const
{
    const Sharing *sharing = sharing_;
    return sharing != nullptr && sharing->user.load(std::memory_order_seq_cst) != 0;
}

/// The kernel's sleep, where others may begin to use the set. @retval false they have
bool Set::begin_shared_sleep(Sharing &sharing)
{
    sharing.sleepers.fetch_add(1, std::memory_order_seq_cst);
    // Who begins to use it and then counts sleepers finds this one, or is found.
    if (sharing.user.load(std::memory_order_seq_cst) == 0)
        return true;
    end_shared_sleep(sharing);
    return false;
}

void Set::end_shared_sleep(Sharing &sharing)
{
    sharing.sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

} // namespace ntb::socket
