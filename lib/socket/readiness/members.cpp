// SPDX-License-Identifier: BSD-3-Clause
// Who is in a set: what epoll_ctl() does, and what sources report of their descriptors.
#include "readiness/set.hpp"

#include <cerrno>
#include <new>

#include <sys/random.h>

#include "kernel/memory.hpp"
#include "kernel/system.hpp"
#include "readiness/event_masks.hpp"
#include "readiness/kernel_set.hpp"

namespace ntb::socket
{

Set *Set::create(int epoll, Attendant *attendant)
{
    void *memory = kernel::map<Set>(1, MAP_PRIVATE);
    if (memory == nullptr)
        return nullptr;
    Set *set = new (memory) Set;
    set->epoll_ = epoll;
    set->attendant_ = attendant;
    return set;
}

void Set::destroy()
{
    for (std::uint32_t i = 0; i < links_.made(); i++)
        if (links_.at(i)->armed)
            links_.at(i)->source->disarm(links_.at(i)->armed_for, true);
    end_sharing();
    this->~Set();
    kernel::unmap(this, 1);
}

/// Takes the link from its connection's bell, whose entry goes over to another link of it.
void Set::leave_bell(Link &link)
{
    if (!link.has_bell) {
        shared_bells_--;
        return;
    }
    link.has_bell = false;
    const int bell = link.source->bell();
    if (bell < 0 || inherited_)
        return;
    for (std::uint32_t i = 0; shared_bells_ > 0 && i < links_.made(); i++) {
        Link *other = links_.at(i);
        if (other == &link || !other->used || other->source != link.source)
            continue;
        other->has_bell = true;
        shared_bells_--;
        kernel_control(EPOLL_CTL_MOD, bell, EPOLLIN | EPOLLET, tag(Bell, *other));
        return;
    }
    kernel_control(EPOLL_CTL_DEL, bell, 0, 0);
}

void Set::release(Link &link)
{
    rouse(link);
    links_.cool(link);
    if (link.source != nullptr)
        leave_bell(link);
    if (link.removed && !link.orphan && !inherited_)
        kernel_control(EPOLL_CTL_DEL, link.fd, 0, 0);
    if (link.orphan)
        orphans_--;
    else
        links_.forget(link.fd);
    links_.release(link);
}

std::uint64_t Set::tag(unsigned kind, const Link &link) const
{
    return secret_ | (std::uint64_t{link.index} << (kind_bits + generation_bits)) |
           (std::uint64_t{link.generation} << kind_bits) | kind;
}

long Set::kernel_control(int op, int fd, std::uint32_t events, std::uint64_t data) const
{
    epoll_event event = {};
    event.events = events;
    event.data.u64 = data;
    return kernel::call(SYS_epoll_ctl, epoll_.load(), op, fd, &event);
}

void Set::make_secret()
{
    if (secret_ != 0)
        return;
    std::uint64_t random = 0;
    kernel::call(SYS_getrandom, &random, sizeof random, 0);
    // Not the bits of an address, of a small number, nor of a negative one.
    secret_ = (random | (std::uint64_t{1} << 63)) & ~(std::uint64_t{1} << 62) & secret_bits;
}

// The entry that wakes who sleeps.
bool Set::enter_ready()
{
    const int ready = make_ready_descriptor(-1);
    if (ready < 0)
        return false;
    const long added = kernel_control(EPOLL_CTL_ADD, ready, EPOLLONESHOT, secret_ | Wake);
    return added >= 0 || added == -EEXIST;
}

// What the kernel's set has of ours from the first upgraded member on.
bool Set::prepare()
{
    if (shared_.load(std::memory_order_relaxed))
        return true;
    make_secret();
    if (!enter_ready())
        return false;
    any_shared_.store(true, std::memory_order_seq_cst);
    shared_.store(true, std::memory_order_seq_cst);
    if (Sharing *sharing = sharing_; sharing != nullptr)
        count_sleepers(*sharing);
    return true;
}

int Set::native(int op, int fd, Link *link, epoll_event *event)
{
    const auto done = static_cast<int>(kernel::call(SYS_epoll_ctl, epoll_.load(), op, fd, event));
    if (done < 0)
        return done;
    if (op == EPOLL_CTL_ADD && link != nullptr && link->source != nullptr) {
        // Another file: the member's number was closed unseen.
        release(*link);
        link = nullptr;
    }
    if (op == EPOLL_CTL_DEL) {
        if (link != nullptr)
            release(*link);
        return done;
    }
    if (link == nullptr && (link = links_.make(fd)) == nullptr)
        return done;
    link->events = event->events;
    link->data = event->data.u64;
    link->off = false;
    return done;
}

/// The kernel's entry becomes the program's again, with what the program last said of it. One that
/// is off, one-shot and reported, is one of ours that is shot once and stands for nothing: HUP and
/// ERR cannot be left out.
long Set::give_entry(const Link &link) const
{
    if (link.off)
        return kernel_control(EPOLL_CTL_MOD, link.fd, EPOLLONESHOT, secret_ | Wake);
    if ((link.events & EPOLLEXCLUSIVE) == 0)
        return kernel_control(EPOLL_CTL_MOD, link.fd, link.events, link.data);
    // An exclusive entry is neither made nor changed by MOD.
    kernel_control(EPOLL_CTL_DEL, link.fd, 0, 0);
    return kernel_control(EPOLL_CTL_ADD, link.fd, link.events, link.data);
}

// The kernel's entry of an upgraded member becomes ours, and the bell's is beside it.
int Set::enter(Link &link, Source *source, int op)
{
    if (!prepare())
        return -ENOMEM;
    long done = kernel_control(op, link.fd, shadow_events, tag(Shadow, link));
    if (done == -EINVAL && op == EPOLL_CTL_MOD && (link.events & EPOLLEXCLUSIVE)) {
        // An exclusive entry cannot be modified.
        kernel_control(EPOLL_CTL_DEL, link.fd, 0, 0);
        done = kernel_control(EPOLL_CTL_ADD, link.fd, shadow_events, tag(Shadow, link));
        if (done < 0)
            give_entry(link);
    }
    if (done < 0)
        return static_cast<int>(done);
    const long added =
        kernel_control(EPOLL_CTL_ADD, source->bell(), EPOLLIN | EPOLLET, tag(Bell, link));
    if (added < 0 && added != -EEXIST) {
        if (op == EPOLL_CTL_ADD)
            kernel_control(EPOLL_CTL_DEL, link.fd, 0, 0);
        else
            give_entry(link);
        return static_cast<int>(added);
    }
    link.source = source;
    link.has_bell = added != -EEXIST;
    if (!link.has_bell)
        shared_bells_++;
    link.fresh = true;
    link.signs = 0;
    link.reported_ends = 0;
    link.asks_out = false;
    return 0;
}

int Set::add(int fd, Source *source, const epoll_event &event)
{
    if ((event.events & EPOLLEXCLUSIVE) &&
        (event.events & ~(in_events | out_events | always | EPOLLET | EPOLLEXCLUSIVE |
                          static_cast<std::uint32_t>(EPOLLWAKEUP))))
        return -EINVAL;
    Link *link = links_.find(fd);
    if (link != nullptr && link->removed && link->source == source) {
        link->removed = false;
        modify(*link, event);
        return 0;
    }
    // Whether it is a member is the kernel's to say: a number may have been closed unseen.
    if (link != nullptr && !link->removed) {
        const long there = kernel_control(EPOLL_CTL_ADD, fd, 0, tag(Shadow, *link));
        if (there < 0)
            return static_cast<int>(there);
        kernel_control(EPOLL_CTL_DEL, fd, 0, 0);
    }
    if (link != nullptr)
        release(*link);
    link = links_.make(fd);
    if (link == nullptr)
        return -ENOMEM;
    const int done = enter(*link, source, EPOLL_CTL_ADD);
    if (done < 0) {
        links_.forget(fd);
        links_.release(*link);
        return done;
    }
    modify(*link, event);
    return 0;
}

// One that is not known as upgraded, or not at all: whether it is a member the kernel says.
int Set::modify_new(Link *link, int fd, Source *source, const epoll_event &event)
{
    const bool is_unknown = link == nullptr;
    if (is_unknown) {
        if ((link = links_.make(fd)) == nullptr)
            return -ENOMEM;
        link->events = event.events;
        link->data = event.data.u64;
    }
    const int done = enter(*link, source, EPOLL_CTL_MOD);
    if (done == 0)
        modify(*link, event);
    else if (is_unknown)
        release(*link);
    return done;
}

void Set::modify(Link &link, const epoll_event &event)
{
    rouse(link);
    link.events = event.events & ~EPOLLEXCLUSIVE;
    link.data = event.data.u64;
    link.off = false;
    link.fresh = true;
    link.signs = 0;
    links_.heat(link);
    say(link);
}

// It is TCP again: the kernel's entry is the program's.
void Set::restore(Link &link)
{
    rouse(link);
    links_.cool(link);
    leave_bell(link);
    link.source = nullptr;
    if (link.removed || (!(native_ && is_given(link)) && give_entry(link) == -ENOENT))
        release(link);
}

/// @retval false the set is the kernel's, and nothing was done
[[gnu::always_inline]] inline bool Set::control_here(int op, int fd, Source *source,
                                                     epoll_event *event, int *done)
{
    const Locked locked(lock_);
    if (native_)
        return false;
    *done = control_locked(op, fd, source, event);
    if (*done == 0 && source != nullptr)
        pass_on();
    return true;
}

int Set::control(int op, int fd, Source *source, Set *inner, epoll_event *event)
{
    if (op != EPOLL_CTL_DEL && event == nullptr)
        return static_cast<int>(kernel::call(SYS_epoll_ctl, epoll_.load(), op, fd, event));
    if (source != nullptr && (!source->upgraded() || source->bell() < 0))
        source = nullptr;
    int done = 0;
    if (may_be_shared()) [[unlikely]]
        done = control_shared(op, fd, source, event);
    else
        control_here(op, fd, source, event, &done);
    if (done == 0 && inner != nullptr && op == EPOLL_CTL_ADD)
        inner->settle();
    return done;
}

/// epoll_ctl() in a set that others may have.
[[gnu::noinline]] int Set::control_shared(int op, int fd, Source *source, epoll_event *event)
{
    look_at_others(op == EPOLL_CTL_ADD);
    int done = 0;
    if (!control_here(op, fd, source, event, &done))
        return control_native(op, fd, source, event);
    look_at_others();
    if (done < 0 || !native_)
        return done;
    // Who has begun to use it meanwhile may have missed this.
    done = control_native(op, fd, source, event);
    if (op != EPOLL_CTL_ADD || done != -EEXIST)
        return op == EPOLL_CTL_DEL && done == -ENOENT ? 0 : done;
    if ((event->events & EPOLLEXCLUSIVE) == 0)
        return control_native(EPOLL_CTL_MOD, fd, source, event);
    control_native(EPOLL_CTL_DEL, fd, nullptr, event); // MOD cannot make it
    return control_native(EPOLL_CTL_ADD, fd, source, event);
}

int Set::control_locked(int op, int fd, Source *source, epoll_event *event)
{
    Link *link = links_.find(fd);
    const bool was_upgraded = link != nullptr && link->source != nullptr;
    if (was_upgraded && !link->source->upgraded()) {
        if (op == EPOLL_CTL_MOD && !link->removed) {
            if (event->events & EPOLLEXCLUSIVE)
                return -EINVAL;
            link->events = event->events;
            link->data = event->data.u64;
            link->off = false;
            restore(*link);
            return 0;
        }
        if (op != EPOLL_CTL_ADD || !link->off)
            restore(*link);
        return native(op, fd, links_.find(fd), event);
    }
    if (!was_upgraded) {
        if (source != nullptr && op == EPOLL_CTL_ADD)
            return add(fd, source, *event);
        if (source != nullptr && op == EPOLL_CTL_MOD && !(event->events & EPOLLEXCLUSIVE))
            return modify_new(link, fd, source, *event);
        return native(op, fd, link, event);
    }
    switch (op) {
    case EPOLL_CTL_ADD:
        if (source != nullptr)
            return add(fd, source, *event);
        if (link->removed) {
            release(*link);
            link = nullptr;
        }
        return native(op, fd, link, event);
    case EPOLL_CTL_MOD:
        if (link->removed)
            return -ENOENT;
        if (event->events & EPOLLEXCLUSIVE)
            return -EINVAL;
        modify(*link, *event);
        return 0;
    case EPOLL_CTL_DEL:
        if (link->removed)
            return -ENOENT;
        rouse(*link);
        links_.cool(*link);
        link->removed = true;
        say(*link);
        return 0;
    default:
        return -EINVAL;
    }
}

bool Set::can_learn() const
{
    return can_find_entries(epoll_);
}

/// What the kernel knows of a member. @return NULL: it is none, or @p unsure
Link *Set::learn(int fd, bool *unsure)
{
    KernelEntry entry;
    switch (find_entry(epoll_, fd, &entry)) {
    case Found::Nothing:
        return nullptr;
    case Found::Unsure:
        *unsure = true;
        return nullptr;
    case Found::Member:
        break;
    }
    // An entry that was ours stands for nothing here, and what the program had there is gone.
    const bool was_ours = shared_.load(std::memory_order_relaxed) && is_ours(entry.data);
    Link *link = was_ours ? nullptr : links_.make(fd);
    *unsure = link == nullptr;
    if (link == nullptr)
        return nullptr;
    // A one-shot one that is off has lost its events there: the program has to name them anew.
    link->events = entry.events;
    link->data = entry.data;
    link->off = entry.is_off();
    return link;
}

bool Set::upgrade(int fd, Source *source, bool unknown)
{
    const Locked locked(lock_);
    if (!source->upgraded() || source->bell() < 0)
        return true;
    if (native_ || inherited_)
        return !is_member(fd, unknown);
    Link *link = links_.find(fd);
    bool unsure = false;
    if (link == nullptr && unknown)
        link = learn(fd, &unsure);
    else if (link != nullptr && link->source == nullptr)
        link->off = link->off || ((link->events & EPOLLONESHOT) && was_reported(epoll_, fd));
    if (link == nullptr || link->source != nullptr)
        return !unsure;
    if (sharing_ != nullptr && prepare() && is_used_by_others())
        return !is_member(fd, unknown);
    if (const int done = enter(*link, source, EPOLL_CTL_MOD); done < 0) {
        // Closed unseen, it is a member no more. Else the entry is the program's, which would say
        // nothing of what comes by ring.
        const bool is_gone = done == -ENOENT || done == -EBADF;
        if (is_gone)
            release(*link);
        return is_gone;
    }
    links_.heat(*link);
    say(*link);
    pass_on();
    return true;
}

bool Set::changed_beside(int op, int fd, Source *source, const epoll_event *event)
{
    if (op != EPOLL_CTL_ADD) {
        const Locked locked(lock_);
        Link *link = links_.find(fd);
        if (link != nullptr && op == EPOLL_CTL_DEL) {
            release(*link);
        } else if (link != nullptr && link->source != nullptr && !link->removed) {
            // The program's entry has taken the place of ours.
            link->asks_out = false;
            kernel_control(EPOLL_CTL_MOD, fd, shadow_events, tag(Shadow, *link));
            modify(*link, *event);
            pass_on();
        } else if (link != nullptr && link->source == nullptr) {
            link->events = event->events;
            link->data = event->data.u64;
        }
    }
    return op == EPOLL_CTL_DEL || source == nullptr || upgrade(fd, source, true);
}

void Set::closed(int fd, Source *source, bool last_here)
{
    const Locked locked(lock_);
    Link *link = links_.find(fd);
    if (native_ && link != nullptr && link->source == source && source != nullptr &&
        !link->removed) {
        forget_list();
        restore(*link); // others may have it open
        link = links_.find(fd);
    }
    if (link != nullptr && link->source == source && source != nullptr) {
        if (last_here || link->removed) {
            release(*link);
        } else {
            links_.forget(fd);
            link->orphan = true;
            orphans_++;
        }
    } else if (link != nullptr && link->source == nullptr) {
        release(*link);
    }
    if (!last_here || (orphans_ == 0 && shared_bells_ == 0))
        return;
    for (std::uint32_t i = 0; i < links_.made(); i++)
        if (links_.at(i)->used && links_.at(i)->source == source && source != nullptr)
            release(*links_.at(i));
}

void Set::left(int fd, const Source *source)
{
    const Locked locked(lock_);
    Link *link = links_.find(fd);
    if (link == nullptr || source == nullptr || link->source != source)
        return;
    forget_list();
    if (inherited_)
        release(*link);
    else
        restore(*link);
}

void Set::settle()
{
    if (may_be_shared())
        look_at_others();
    const Locked locked(lock_);
    nested_ = true;
    if (!shared_.load(std::memory_order_relaxed))
        return;
    kernel_control(EPOLL_CTL_MOD, ready_descriptor(), EPOLLONESHOT, secret_ | Wake);
    pass_on();
}

void Set::moved(int epoll)
{
    const Locked locked(lock_);
    epoll_ = epoll;
}

} // namespace ntb::socket
