// SPDX-License-Identifier: BSD-3-Clause
// Who claims a connection: rules H of doc/socket-protocol.md, section 11.
#include "preload/upgrade.hpp"

#include "kernel/lock.hpp"
#include "kernel/system.hpp"
#include "preload/attach.hpp"
#include "preload/options.hpp"
#include "preload/sets.hpp"

#include <csignal>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <new>

namespace ntb::socket::preload
{

namespace
{
// Held by a claim, and over a fork (rule H5).
Lock claims_lock;
Family the_family;
std::atomic<int> the_family_descriptor = -1;
std::uint32_t forks;
// Of the fork that is under way.
std::uint16_t expecting[Family::most];
int expecting_count;

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
} // namespace

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

void prepare_family()
{
    if (the_family_descriptor.load(std::memory_order_relaxed) >= 0)
        return;
    const Undisturbed undisturbed;
    const Locked locked(claims_lock);
    make_family();
}

// Whether sets could learn of it once it has a ring. That is too late to find out: the ring may be
// there before anybody has looked for its members.
bool Body::can_be_learned(int fd) const
{
    // A copy stands for this from its beginning on, and sets learn of it.
    return (!state.table.was_added(fd) && !state.table.was_added(fd_.load())) || sets_can_learn();
}

/// @retval false the daemon has too much to read just now
bool Body::claim(int fd)
{
    Attachment *at = attachment();
    if (at == nullptr)
        return true;
    if (!can_be_learned(fd)) {
        count(Reason::unlisted);
        return true;
    }
    if (has_what_is_for_the_kernel(fd)) {
        count(Reason::options);
        return true;
    }
    bool later = false;
    Connection *one = Connection::claim(*at, fd, accepted_, &later);
    hide_control();
    if (later)
        return false;
    count(one != nullptr ? Reason::claimed : Reason::no_daemon);
    connection_ = one;
    return true;
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
    const Claims claims = claims_.load();
    if (first_.load() != unclaimed || claims == Claims::AfterChild || claims == Claims::InChild)
        return;
    // Whether the others still live is a question for each: it is put now and then.
    const std::uint32_t looks = looks_.fetch_add(1);
    // Ever more seldom: who is busy is not helped by more claims.
    if (postponed_.load() && (looks & (looks - 1)) != 0)
        return;
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
    const bool alone = is_alone(asks), is_over = alone && claim(fd);
    postponed_ = alone && !is_over;
    if (is_over)
        leave_family();
    first_.fetch_and(is_over ? ~(unclaimed | claiming) : ~claiming);
}

Connection *Body::find_connection(int fd, bool *counted)
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
    made->claims_ = claims;
    object.body = made;
    // In this order (rule H6).
    the_family.at(place).add(state.pid);
    the_family.at(place).expect_no_more();
}

// ---- fork

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
    const Claims of_parent = claims_.load();
    if (of_parent == Claims::InChild) // as a program that was started with it
        claims_ = Claims::AfterChild;
    // Calls of other threads are under way in the parent alone, but which those are is not known.
    if (of_parent == Claims::AfterChild || of_parent == Claims::HadChild ||
        (first_.load() & ~(unclaimed | claiming | connecting)) != 0)
        first_.fetch_and(~(unclaimed | connecting));
}

void Body::had_child(std::uint32_t fork)
{
    if (fork_ == fork && claims_.load() == Claims::AfterChild)
        claims_ = Claims::HadChild;
}

namespace
{

void expect_no_more()
{
    for (int i = 0; i < expecting_count; i++)
        the_family.at(expecting[i]).expect_no_more();
}

} // namespace

void upgrade_before_fork()
{
    claims_lock.take();
    forks++;
    expecting_count = 0;
    for_each_body([](Body &body) { body.expect_child(forks); });
    sets_before_fork();
    attach_before_fork();
}

void upgrade_after_fork(pid_t child)
{
    if (child != 0) {
        attach_after_fork_in_parent(child);
        if (child < 0)
            expect_no_more();
        else
            for_each_body([](Body &body) { body.had_child(forks); });
        sets_after_fork_in_parent(child > 0);
        claims_lock.give();
        return;
    }
    attach_after_fork_in_child();
    new (&claims_lock) Lock;
    // Those that another thread has closed meanwhile are not here.
    for_each_body([](Body &body) { body.arrive_in_child(forks); });
    expect_no_more();
    sets_after_fork_in_child();
}

} // namespace ntb::socket::preload
