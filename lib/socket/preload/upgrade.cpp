// SPDX-License-Identifier: BSD-3-Clause
#include "preload/upgrade.hpp"

#include "kernel/memory.hpp"
#include "kernel/system.hpp"
#include "preload/attach.hpp"
#include "preload/sets.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <new>
#include <poll.h>
#include <unistd.h>

namespace ntb::socket::preload
{

namespace
{
constexpr int most_yields = 10000; // some milliseconds
// How often it is looked whether the peer has gone back to TCP, before the connection is broken
// off: some second, with pauses.
constexpr int leave_looks = 1000;

Body *bodies;

// One answer of the daemon may bring the bells of several connections. What it says of them is
// shown to who looks at the program while they last.
void take_answers()
{
    static std::atomic<std::uint64_t> seen = 0;
    const Attachment *at = attachment();
    if (at == nullptr)
        return;
    const Attachment::Figures figures = at->figures();
    const std::uint64_t answers = figures.matched + figures.unmatched + figures.refused;
    if (seen.exchange(answers) == answers)
        return;
    take_figures();
    for_each_body([](const Body &body) {
        if (const int bell = body.upgraded() ? body.bell() : -1; bell >= 0)
            state.table.hide(bell);
    });
}

bool sends_by_ring(const Connection &one, int fd)
{
    tcp_info info;
    socklen_t length = sizeof(info);
    if ((one.kernel_part() & EPOLLOUT) != 0 ||
        kernel::call(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0)
        return false;
    return info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT;
}

void pause_before_look()
{
    timespec pause = {0, 1000000};
    kernel::call(SYS_ppoll, nullptr, 0, &pause, nullptr, 0);
}

class Attends final : public Attendant
{
public:
    int descriptor() const override
    {
        const Attachment *at = attachment();
        return at == nullptr ? -1 : at->descriptor();
    }
    void process() override
    {
        if (Attachment *at = attachment(); at != nullptr)
            at->process();
        hide_control(); // which it may have closed
        take_answers();
    }
};
} // namespace

Attendant *attendant()
{
    static constinit Attends the_one;
    return &the_one;
}

bool make_bodies(std::uint32_t objects)
{
    bodies = kernel::map<Body>(objects, MAP_PRIVATE | MAP_NORESERVE);
    return bodies != nullptr;
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

void Body::begin(Object &object, int fd, bool accepted, bool is_connecting, Claims claims)
{
    Body *made = new (this) Body;
    made->object_ = &object;
    made->fd_ = fd;
    made->accepted_ = accepted;
    made->first_ = is_connecting ? connecting : unclaimed;
    made->claims_ = claims;
    object.body = made;
    // What was accepted may be for a child, which then claims it.
    if (!is_connecting && !accepted)
        made->use_first(fd);
    // In time: who needs it may be a child of vfork().
    if (accepted)
        prepare_family();
}

/// It is the kernel's for good, as nearly all are without a daemon: no number stands for it any
/// more, and a call costs what one on another descriptor does. With -v its calls are counted. While
/// it has a place in the family its children need one.
void Body::forget(int fd)
{
    if (state.verbose || place_.load() >= 0)
        return;
    // A set may have it as a member, and what it knows of that goes if the socket is connected
    // again.
    const auto take = [this](int one) {
        if (state.has_sets.load(std::memory_order_relaxed) && state.table.find(one) == object_)
            state.table.note_added(one);
        return state.table.take(one, object_);
    };
    Table::Taken taken = take(fd);
    for (int one = state.table.next(0, ~0u); one >= 0 && !taken.last;
         one = state.table.next(static_cast<unsigned>(one) + 1, ~0u))
        taken = take(one);
}

void Body::announce_slowly(int fd)
{
    take_answers();
    if (!upgraded() || announced_.exchange(true))
        return;
    const bool is_known = upgrade_in_sets(object_, fd, this);
    hide_wake();
    // A set would not see what comes by ring.
    if (!is_known)
        leave(fd);
}

void Body::end(int fd)
{
    leave_family();
    Connection *one = connection_.exchange(nullptr);
    // Who has come after the last use looks for a moment only.
    for (int i = 0; Table::is_used(*object_) && i < most_yields; i++)
        kernel::call(SYS_sched_yield);
    const int kept = kept_.exchange(-1);
    if (one != nullptr) {
        if (one->bell() >= 0)
            state.table.show(one->bell());
        one->close(kept >= 0 ? kept : fd, true);
        take_figures();
    }
    if (kept >= 0) {
        state.table.show(kept);
        kernel::call(SYS_close, kept);
    }
}

void Body::number_closed(int fd, bool last)
{
    await_calls();
    // A call that is restarted finds no such number any more.
    if (fd >= 0 && Uses::has(*object_))
        end_restarts();
    if (last) {
        keep_open(fd);
    } else {
        if (Connection *one = connection_.load(); one != nullptr)
            one->close(fd, false);
        if (fd_.load() == fd)
            fd_ = state.table.number_of(object_);
    }
    await_calls();
}

// As the kernel does for its own calls that have the file.
void Body::keep_open(int fd)
{
    if (fd < 0 || !Table::has_sleepers(*object_))
        return;
    const int copy = hide(static_cast<int>(kernel::call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3)));
    kept_ = copy;
    fd_ = copy;
}

// The number may be used again once it is closed, and calls that are awake may still have it. They
// do not wait for anything: they end, or go to sleep. One that this call has interrupted goes on
// behind it; one that was left by longjmp() never does.
void Body::await_calls() const
{
    for (int i = 0; Table::awake(*object_) > 1 && i < most_yields; i++)
        kernel::call(SYS_sched_yield);
}

void Body::await_sleepers() const
{
    for (int i = 0; Table::has_sleepers(*object_) && i < most_yields; i++)
        kernel::call(SYS_sched_yield);
}

void Body::leave(int fd, bool in, bool out, Unread unread)
{
    if (in && out)
        give_up();
    Connection *one = claimed();
    if (one == nullptr)
        return;
    for (int i = 0; !one->leave(fd, in, out); i++) {
        const bool is_last = i == leave_looks;
        // Nothing but them keeps a ring.
        if (unread == Unread::Stay && !sends_by_ring(*one, fd) &&
            (is_last || one->readable_bytes(fd) > 0))
            return;
        if (is_last) {
            count(Reason::broken_off);
            one->abort(fd);
            return;
        }
        pause_before_look();
    }
}

void Body::leave_to_kernel(int fd)
{
    leave(fd);
    is_kernels_.store(true, std::memory_order_relaxed);
}

void Body::leave_to_program(int fd)
{
    if (claimed() != nullptr && !is_handed_on_.exchange(true))
        count(Reason::handed_on);
    leave(fd);
}

bool Body::upgraded() const
{
    const Use one(*this);
    return one && one->upgraded() && one->bell() >= 0;
}

std::uint32_t Body::look(std::uint32_t wanted)
{
    const Use one(*this);
    return one ? one->look(shadow(), wanted) : static_cast<std::uint32_t>(POLLNVAL);
}

std::uint64_t Body::signs(std::uint32_t events) const
{
    const Use one(*this);
    return one ? one->signs(events) : 0;
}

bool Body::is_in_doubt() const
{
    const Use one(*this);
    return one && one->is_in_doubt();
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

void Body::disarm(std::uint32_t events, bool rung)
{
    if (const Use one(*this); one)
        one->disarm(events, rung);
}

const std::uint32_t *Body::doze(std::uint32_t event, std::uint32_t &value)
{
    const Use one(*this);
    return one ? one->doze(event, value) : nullptr;
}

void Body::wake(std::uint32_t event)
{
    if (const Use one(*this); one)
        one->wake(event);
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

bool Body::go_back()
{
    const Use one(*this);
    return !one || (one->leave(shadow()) && !one->has_ring());
}

// ---- objects

void begin(Object &object, int fd, bool accepted, bool connecting, Claims claims)
{
    bodies[state.table.index(object)].begin(object, fd, accepted, connecting, claims);
}

void inherit(Object &object, int fd, int place, Claims claims)
{
    bodies[state.table.index(object)].inherit(object, fd, place, claims);
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
    if (!counted)
        body->announce(fd);
    const bool is_source = !counted && body->upgraded();
    if (!counted && !is_source)
        return nullptr;
    const std::uint32_t place = held.keep();
    if (first_ == Uses::none)
        first_ = place;
    if (counted && place != Uses::none && n_ < most) {
        counted_[n_++] = body;
    } else if (counted) {
        body->give_up();
        body->done_in_kernel();
    }
    return is_source ? body : nullptr;
}

void finish(Object *object, int fd)
{
    if (object->kind == Object::Kind::Connection) {
        if (Body *body = static_cast<Body *>(object->body.load()); body != nullptr)
            body->end(fd);
    } else if (Set *set = static_cast<Set *>(object->body.load()); set != nullptr) {
        set_ended(set);
    }
    state.table.end(object);
}

namespace
{
template <typename Do>
void with_body(int fd, Do action)
{
    const Held held(fd, Object::Kind::Connection);
    if (Body *body = held.body(); body != nullptr) {
        KeepErrno keep;
        action(*body);
    }
}
} // namespace

void leave(int fd)
{
    with_body(fd, [fd](Body &body) { body.leave(fd); });
}

void leave_for_stdio(int fd)
{
    with_body(fd, [fd](Body &body) {
        if (body.claimed() == nullptr)
            return;
        count(Reason::stdio);
        body.leave(fd, fd == STDIN_FILENO, fd != STDIN_FILENO);
    });
}

void leave_to_kernel(int fd)
{
    with_body(fd, [fd](Body &body) { body.leave_to_kernel(fd); });
}

void forget_waiting(int fd)
{
    with_body(fd, [](Body &body) { body.forget_waiting(); });
}

void hand_on(int fd)
{
    with_body(fd, [fd](Body &body) {
        body.hand_on();
        body.leave_to_program(fd);
    });
}

void leave_all()
{
    for (int fd = state.table.next(0, ~0u); fd >= 0;
         fd = state.table.next(static_cast<unsigned>(fd) + 1, ~0u))
        leave(fd);
}

} // namespace ntb::socket::preload
