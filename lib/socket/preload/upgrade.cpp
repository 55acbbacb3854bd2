// SPDX-License-Identifier: BSD-3-Clause
#include "preload/upgrade.hpp"

#include "kernel/lock.hpp"
#include "kernel/memory.hpp"
#include "kernel/system.hpp"
#include "readiness/kernel_set.hpp"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <new>
#include <poll.h>

namespace ntb::socket::preload
{

namespace
{
constexpr unsigned most_sets = 4096;
// How long the peer may take to go back to TCP, before the connection is broken off.
constexpr int leave_looks = 1000;
constexpr timespec leave_pause = {0, 1000000};

Body *bodies;
std::atomic<Attachment *> the_attachment;
char attached_path[Config::max_path];
std::atomic<int> control_hidden = -1;
// Held by a claim, and over a fork (rule H5).
Lock claims_lock;
Family the_family;
std::atomic<int> the_family_descriptor = -1;
std::uint32_t forks;
// Of the fork that is under way.
std::uint16_t expecting[Family::most];
int expecting_count;
Lock sets_lock;
Set *sets[most_sets];
bool nested[most_sets]; // a member of another set
std::atomic<bool> has_nested = false;
unsigned set_count; // slots that were ever used

// No handler, which may use the connection too, runs in the middle of a claim.
struct Undisturbed {
    Undisturbed()
    {
        std::uint64_t every = ~std::uint64_t{0};
        kernel::call(SYS_rt_sigprocmask, SIG_SETMASK, &every, &before_, 8);
    }
    ~Undisturbed() { kernel::call(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, 8); }
    Undisturbed(const Undisturbed &) = delete;
    Undisturbed &operator=(const Undisturbed &) = delete;

private:
    std::uint64_t before_ = 0;
};

// Under claims_lock. A child of vfork() would leave its parent the number of a descriptor that the
// parent does not have.
bool make_family()
{
    if (the_family.is_there())
        return true;
    if (!is_own_process())
        return false;
    const int fd = hide(Family::create());
    if (!the_family.map(fd))
        return false;
    the_family_descriptor = fd;
    return true;
}

void hide_bells();

class Attends final : public Attendant
{
public:
    int descriptor() const override
    {
        const Attachment *at = the_attachment.load(std::memory_order_acquire);
        return at == nullptr ? -1 : at->descriptor();
    }
    void process() override
    {
        if (Attachment *at = the_attachment.load(std::memory_order_acquire); at != nullptr)
            at->process();
        hide_bells();
    }
};

// One answer of the daemon may bring the bells of several connections.
void hide_bells()
{
    static std::atomic<std::uint64_t> seen = 0;
    const Attachment *at = attachment();
    if (at == nullptr)
        return;
    const std::uint64_t matched = at->figures().matched;
    if (seen.exchange(matched) == matched)
        return;
    for (int fd = state.table.next(0, ~0u); fd >= 0;
         fd = state.table.next(static_cast<unsigned>(fd) + 1, ~0u)) {
        const Held held(fd, Object::Kind::Connection);
        const Body *body = held.body();
        if (const int bell = body != nullptr && body->upgraded() ? body->bell() : -1; bell >= 0)
            state.table.hide(bell);
    }
}

// What the connection's code has opened may not be closed by the program.
void hide_control()
{
    const int now = attendant()->descriptor(), before = control_hidden.exchange(now);
    if (now == before)
        return;
    if (before >= 0)
        state.table.show(before);
    if (now >= 0)
        state.table.hide(now);
}
} // namespace

Attendant *attendant()
{
    static constinit Attends the_one;
    return &the_one;
}

Attachment *attachment()
{
    return the_attachment.load(std::memory_order_acquire);
}

bool make_bodies(std::uint32_t objects)
{
    bodies = kernel::map<Body>(objects, MAP_PRIVATE | MAP_NORESERVE);
    return bodies != nullptr;
}

Family &family()
{
    return the_family;
}

int family_descriptor()
{
    return the_family_descriptor.load();
}

bool adopt_family(int fd)
{
    const int hidden = the_family.adopt(fd) ? hide(fd) : -1;
    the_family_descriptor = hidden;
    return hidden >= 0;
}

void inherit(Object &object, int fd, int place, Claims claims)
{
    bodies[state.table.index(object)].inherit(object, fd, place, claims);
}

Attachment *attachment_of(const char *path)
{
    Attachment *at = attachment();
    if (at == nullptr) {
        const Locked locked(sets_lock);
        at = attachment();
        if (at == nullptr && (at = Attachment::create(path)) != nullptr) {
            strncpy(attached_path, path, sizeof(attached_path) - 1);
            the_attachment.store(at, std::memory_order_release);
        }
    }
    return at != nullptr && strcmp(path, attached_path) == 0 ? at : nullptr;
}

// ---- bodies

// A use in which the connection cannot end, if it has not.
class Body::Use
{
public:
    explicit Use(const Body &body) : object_(body.object_)
    {
        if (object_ == nullptr)
            return;
        Table::touch(*object_);
        connection_ = body.connection_.load();
    }
    ~Use()
    {
        if (object_ != nullptr)
            state.table.done(object_);
    }
    Use(const Use &) = delete;
    Use &operator=(const Use &) = delete;
    Connection *operator->() const { return connection_; }
    explicit operator bool() const { return connection_ != nullptr; }

private:
    Object *object_;
    Connection *connection_ = nullptr;
};

void Body::begin(Object &object, int fd, bool accepted, bool is_connecting)
{
    Body *made = new (this) Body;
    made->object_ = &object;
    made->fd_ = fd;
    made->accepted_ = accepted;
    made->first_ = is_connecting ? connecting : unclaimed;
    object.body = made;
    // What was accepted may be for a child, which then claims it.
    if (!is_connecting && !accepted)
        made->use_first(fd);
    // In time: who needs it may be a child of vfork().
    if (accepted && the_family_descriptor.load(std::memory_order_relaxed) < 0) {
        const Undisturbed undisturbed;
        const Locked locked(claims_lock);
        make_family();
    }
}

void Body::claim(int fd)
{
    Attachment *at = attachment();
    if (at == nullptr)
        return;
    Connection *one = Connection::claim(*at, fd, accepted_);
    hide_control();
    count(one != nullptr ? Reason::claimed : Reason::no_daemon);
    connection_ = one;
}

void Body::connected(int fd)
{
    tcp_info info;
    socklen_t length = sizeof(info);
    if (kernel::call(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0 ||
        info.tcpi_state == TCP_SYN_SENT)
        return;
    const bool is = info.tcpi_state == TCP_ESTABLISHED;
    for (std::uint32_t now = first_.load(); (now & connecting) != 0;)
        if (first_.compare_exchange_weak(now, (now & ~connecting) | (is ? unclaimed : 0)))
            return;
}

bool Body::is_alone(bool asks)
{
    const int place = place_.load();
    return place < 0 || the_family.at(place).is_alone(state.pid, asks);
}

// Nearly always in a process that has no other.
void Body::use_first(int fd)
{
    if (is_connecting())
        connected(fd);
    // Calls of the kernel's, or another thread claims it: who makes one then waits for that.
    if (first_.load() != unclaimed || awaits_child_.load())
        return;
    // Whether the others still live is a question for each: it is put now and then.
    const std::uint32_t looks = looks_.fetch_add(1);
    const bool asks = looks % 64 == 0;
    if (!is_alone(asks)) {
        if (looks == 0)
            count(Reason::shared);
        return;
    }
    KeepErrno keep;
    if (!is_own_process())
        return;
    const Undisturbed undisturbed;
    const Locked locked(claims_lock);
    std::uint32_t now = unclaimed;
    if (!first_.compare_exchange_strong(now, unclaimed | claiming))
        return;
    const bool alone = is_alone(asks);
    if (alone) {
        claim(fd);
        leave_family();
    }
    first_.fetch_and(alone ? ~(unclaimed | claiming) : ~claiming);
}

Connection *Body::connection_or_kernel(int fd, bool *counted)
{
    for (;;) {
        Connection *one = connection(fd);
        std::uint32_t now = first_.load();
        if (one != nullptr || (now & (unclaimed | connecting)) == 0) {
            if (connection_.load() == nullptr)
                forget(fd);
            return claimed();
        }
        if ((now & claiming) != 0) {
            const Locked over(claims_lock);
            continue;
        }
        if (first_.compare_exchange_strong(now, now + 1)) {
            *counted = true;
            return nullptr;
        }
    }
}

/// It is the kernel's for good, as nearly all are without a daemon: no number stands for it any
/// more, and a call costs what one on another descriptor does. With -v its calls are counted. While
/// it has a place in the family its children need one.
void Body::forget(int fd)
{
    if (state.verbose || place_.load() >= 0)
        return;
    Table::Taken taken = state.table.take(fd, object_);
    for (int one = state.table.next(0, ~0u); one >= 0 && !taken.last;
         one = state.table.next(static_cast<unsigned>(one) + 1, ~0u))
        taken = state.table.take(one, object_);
}

void Body::give_up()
{
    if ((first_.load() & (unclaimed | connecting)) == 0)
        return;
    const Locked locked(claims_lock);
    first_.fetch_and(~(unclaimed | connecting));
}

void Body::hand_on()
{
    if (const int place = place_.load(); place >= 0)
        the_family.at(place).expect();
}

void Body::leave_family()
{
    if (const int place = place_.exchange(-1); place >= 0)
        the_family.leave(place, state.pid);
}

void Body::take_place()
{
    place_ = make_family() ? the_family.take(state.pid, {object_->cookie, accepted_}) : -1;
    if (place_.load() >= 0)
        return;
    count(Reason::no_room);
    first_.fetch_and(~(unclaimed | connecting));
}

int Body::expect_program()
{
    const Locked locked(claims_lock);
    if (place_.load() < 0 && (first_.load() & (unclaimed | connecting)) != 0)
        take_place();
    const int place = place_.load();
    if (place >= 0)
        the_family.at(place).expect();
    return place;
}

void Body::inherit(Object &object, int fd, int place, Claims claims)
{
    Body *made = new (this) Body;
    made->object_ = &object;
    made->fd_ = fd;
    made->accepted_ = the_family.socket_at(place).accepted;
    made->place_ = place;
    made->first_ = claims == Claims::Never ? 0 : unclaimed;
    made->late_ = claims == Claims::AfterChild;
    made->awaits_child_ = made->late_;
    object.body = made;
    // In this order (rule H6).
    the_family.at(place).add(state.pid);
    the_family.at(place).expect_no_more();
}

void Body::expect_child(std::uint32_t fork)
{
    // Who has given the claim up is in the list all the same, and so has its child to be: others
    // that are in it may still claim.
    const bool is_open = (first_.load() & (unclaimed | connecting)) != 0;
    if (fork_ == fork || (!is_open && place_.load() < 0))
        return;
    fork_ = fork;
    if (place_.load() < 0)
        take_place();
    const int place = place_.load();
    if (place < 0)
        return;
    the_family.at(place).expect();
    expecting[expecting_count++] = static_cast<std::uint16_t>(place);
}

void Body::arrive_in_child(std::uint32_t fork)
{
    const int place = place_.load();
    if (fork_ != fork || place < 0)
        return;
    fork_ = 0;
    the_family.at(place).add(state.pid);
    // Calls of other threads are under way in the parent alone, but which those are is not known.
    if (late_ || (first_.load() & ~(unclaimed | claiming | connecting)) != 0)
        first_.fetch_and(~(unclaimed | connecting));
}

void Body::had_child(std::uint32_t fork)
{
    if (fork_ == fork)
        awaits_child_ = false;
}

void Body::announce_slowly(int fd)
{
    hide_bells();
    if (!upgraded() || announced_.exchange(true))
        return;
    const Locked locked(sets_lock);
    // Any of its numbers may be a member.
    for (int one = state.table.next(0, ~0u); one >= 0;
         one = state.table.next(static_cast<unsigned>(one) + 1, ~0u)) {
        if (one != fd && state.table.find(one) != object_)
            continue;
        for (unsigned i = 0; i < set_count; i++)
            if (sets[i] != nullptr)
                sets[i]->upgrade(one, this);
    }
    hide_wake();
}

void Body::end(int fd)
{
    leave_family();
    Connection *one = connection_.exchange(nullptr);
    // Who has come after the last use looks for a moment only.
    for (int i = 0; Table::is_used(*object_) && i < 10000; i++)
        kernel::call(SYS_sched_yield);
    if (one == nullptr)
        return;
    if (one->bell() >= 0)
        state.table.show(one->bell());
    one->close(fd, true);
    take_figures();
}

void Body::number_closed(int fd, bool last)
{
    if (last)
        return;
    if (Connection *one = connection_.load(); one != nullptr)
        one->close(fd, false);
    if (fd_.load() == fd)
        fd_ = state.table.number_of(object_);
}

void Body::leave(int fd)
{
    give_up();
    Connection *one = claimed();
    if (one == nullptr)
        return;
    for (int i = 0; i < leave_looks; i++) {
        if (one->leave(fd))
            return;
        timespec pause = leave_pause;
        kernel::call(SYS_ppoll, nullptr, 0, &pause, nullptr, 0);
    }
    count(Reason::broken_off);
    one->abort(fd);
}

bool Body::upgraded() const
{
    const Use one(*this);
    return one && one->upgraded() && one->bell() >= 0;
}

std::uint32_t Body::look()
{
    const Use one(*this);
    return one ? one->look(shadow()) : static_cast<std::uint32_t>(POLLNVAL);
}

std::uint64_t Body::arrivals_in() const
{
    const Use one(*this);
    return one ? one->arrivals_in() : 0;
}

std::uint64_t Body::arrivals_out() const
{
    const Use one(*this);
    return one ? one->arrivals_out() : 0;
}

std::uint64_t Body::arrived_at() const
{
    const Use one(*this);
    return one ? one->arrived_at() : 0;
}

void Body::arm(std::uint32_t events)
{
    if (const Use one(*this); one)
        one->arm(events);
}

void Body::disarm(std::uint32_t events)
{
    if (const Use one(*this); one)
        one->disarm(events);
}

int Body::bell() const
{
    const Use one(*this);
    return one ? one->bell() : -1;
}

void Body::kernel_said(std::uint32_t events)
{
    if (const Use one(*this); one)
        one->kernel_said(events);
}

// ---- objects

void begin(Object &object, int fd, bool accepted, bool connecting)
{
    bodies[state.table.index(object)].begin(object, fd, accepted, connecting);
}

Source *source_of(int fd)
{
    const Held held(fd, Object::Kind::Connection);
    Body *body = held.body();
    if (body == nullptr)
        return nullptr;
    body->connection(fd); // it may have been connected
    body->announce(fd);
    return body->upgraded() ? body : nullptr;
}

Source *Waits::add(int fd)
{
    Held held(fd, Object::Kind::Connection);
    Body *body = held.body();
    if (body == nullptr)
        return nullptr;
    bool counted = false;
    body->connection_or_kernel(fd, &counted);
    if (counted && n_ < most) {
        held_[n_] = body;
        objects_[n_++] = held.object();
        Table::touch(*held.object());
        return nullptr;
    }
    if (counted) {
        body->give_up();
        body->done_in_kernel();
    }
    body->announce(fd);
    return body->upgraded() ? body : nullptr;
}

void finish(Object *object, int fd)
{
    if (object->kind == Object::Kind::Connection) {
        if (Body *body = static_cast<Body *>(object->body.load()); body != nullptr)
            body->end(fd);
    } else if (Set *set = static_cast<Set *>(object->body.load()); set != nullptr) {
        const Locked locked(sets_lock);
        for (unsigned i = 0; i < set_count; i++)
            if (sets[i] == set) {
                sets[i] = nullptr;
                nested[i] = false;
            }
        set->destroy();
    }
    state.table.end(object);
}

int set_born(int fd)
{
    born(fd);
    if (fd < 0 || state.figures == nullptr || !is_own_process())
        return fd;
    KeepErrno keep;
    const Locked locked(sets_lock);
    unsigned slot = 0;
    while (slot < set_count && sets[slot] != nullptr)
        slot++;
    if (slot == most_sets)
        return fd;
    Set *set = Set::create(fd, attendant());
    if (set == nullptr)
        return fd;
    Object *object = state.table.add(fd, Object::Kind::Set, 0);
    if (object == nullptr) {
        set->destroy();
        return fd;
    }
    object->body = set;
    sets[slot] = set;
    state.has_sets = true;
    if (slot == set_count)
        set_count++;
    state.table.done(object);
    return fd;
}

void hide_wake()
{
    static std::atomic<int> hidden = -1;
    const int now = ready_descriptor();
    if (now != hidden.load(std::memory_order_relaxed)) {
        state.table.hide(now);
        hidden = now;
    }
}

void nest(const Set *inner)
{
    const Locked locked(sets_lock);
    for (unsigned i = 0; i < set_count; i++)
        if (sets[i] == inner)
            nested[i] = true;
    has_nested = true;
}

void settle_nested()
{
    if (!has_nested.load(std::memory_order_relaxed)) [[likely]]
        return;
    const Locked locked(sets_lock);
    for (unsigned i = 0; i < set_count; i++)
        if (nested[i])
            sets[i]->settle();
}

void closed_in_sets(int fd, Source *source, bool last)
{
    if (set_count == 0)
        return;
    const Locked locked(sets_lock);
    for (unsigned i = 0; i < set_count; i++)
        if (sets[i] != nullptr)
            sets[i]->closed(fd, source, last);
}

void leave(int fd)
{
    const Held held(fd, Object::Kind::Connection);
    if (Body *body = held.body(); body != nullptr) {
        KeepErrno keep;
        body->leave(fd);
    }
}

void hand_on(int fd)
{
    const Held held(fd, Object::Kind::Connection);
    if (Body *body = held.body(); body != nullptr) {
        KeepErrno keep;
        body->hand_on();
        body->leave(fd);
    }
}

void leave_all()
{
    for (int fd = state.table.next(0, ~0u); fd >= 0;
         fd = state.table.next(static_cast<unsigned>(fd) + 1, ~0u))
        leave(fd);
}

// ---- fork

void upgrade_before_fork()
{
    claims_lock.take();
    forks++;
    expecting_count = 0;
    for (int fd = state.table.next(0, ~0u); fd >= 0;
         fd = state.table.next(static_cast<unsigned>(fd) + 1, ~0u))
        if (const Held held(fd, Object::Kind::Connection); held.body() != nullptr)
            held.body()->expect_child(forks);
    sets_lock.take();
    if (Attachment *at = attachment(); at != nullptr)
        at->before_fork();
}

void upgrade_after_fork(pid_t child)
{
    Attachment *at = attachment();
    const auto nobody_comes = [] {
        for (int i = 0; i < expecting_count; i++)
            the_family.at(expecting[i]).expect_no_more();
    };
    if (child != 0) {
        if (at != nullptr)
            at->after_fork_in_parent(child);
        if (child < 0)
            nobody_comes();
        else
            for (int fd = state.table.next(0, ~0u); fd >= 0;
                 fd = state.table.next(static_cast<unsigned>(fd) + 1, ~0u))
                if (const Held held(fd, Object::Kind::Connection); held.body() != nullptr)
                    held.body()->had_child(forks);
        sets_lock.give();
        claims_lock.give();
        return;
    }
    if (at != nullptr)
        at->after_fork_in_child();
    new (&sets_lock) Lock;
    new (&claims_lock) Lock;
    // Those that another thread has closed meanwhile are not here.
    for (int fd = state.table.next(0, ~0u); fd >= 0;
         fd = state.table.next(static_cast<unsigned>(fd) + 1, ~0u))
        if (const Held held(fd, Object::Kind::Connection); held.body() != nullptr)
            held.body()->arrive_in_child(forks);
    nobody_comes();
    hide_control();
    for (unsigned i = 0; i < set_count; i++)
        if (sets[i] != nullptr)
            sets[i]->after_fork_in_child();
}

} // namespace ntb::socket::preload
