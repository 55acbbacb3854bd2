// SPDX-License-Identifier: BSD-3-Clause
// The connections of this process, as the table's objects have them.
#ifndef NTB_SOCKET_PRELOAD_UPGRADE_HPP
#define NTB_SOCKET_PRELOAD_UPGRADE_HPP

#include "connection/connection.hpp"
#include "preload/state.hpp"
#include "preload/uses.hpp"
#include "readiness/set.hpp"
#include "readiness/source.hpp"
#include "record/family.hpp"

namespace ntb::socket::preload
{

/// When a process claims a connection. After a child: the child, which may have a sandbox that ends
/// it for what calls on rings do, never does (rule H8).
enum class Claims {
    Never,
    AtFirstUse,
    AfterChild,
    HadChild, ///< AfterChild, and there was one
    InChild,  ///< accepted, and claimed by no process but a child: AfterChild to that one
};

/// Of bytes that have come by a ring and are not read yet: they cannot be put back into the kernel.
enum class Unread {
    Reset, ///< who gets the connection may want them: it is reset
    Stay,  ///< this process goes on with them, and with the connection
};

/// What stands behind an object of a connection. It is there as long as the table is: calls that
/// come after the connection's end find none.
class Body final : public Source
{
public:
    void begin(Object &object, int fd, bool accepted, bool connecting, Claims claims);
    /// The descriptor is still open, or -1. @return after it no call uses the connection
    void end(int fd);

    /// The connection that calls have to be made on, or NULL: the kernel's. Its first use claims
    /// it, where that is sound (rules H1 to H5). The caller has the object in use.
    Connection *connection(int fd)
    {
        if (first_.load(std::memory_order_acquire) != 0) [[unlikely]]
            use_first(fd);
        return claimed();
    }
    /// As connection(), without a use.
    Connection *claimed() const
    {
        Connection *one = connection_.load();
        return one != nullptr && one->upgraded() ? one : nullptr;
    }
    /// As connection(). Where it may still be claimed later it is not before done_in_kernel().
    /// @param counted  whether that has to follow
    Connection *connection_or_kernel(int fd, bool *counted)
    {
        Connection *one = connection_at_once();
        return one != nullptr ? one : find_connection(fd, counted);
    }
    /// As connection(), where nothing has to be done first. NULL: something has, or it is the
    /// kernel's
    Connection *connection_at_once() const
    {
        return first_.load(std::memory_order_acquire) == 0 ? claimed() : nullptr;
    }
    /// Whether a receive would find nothing, and has nothing else to do here.
    bool finds_nothing() const
    {
        const Connection *one = connection_.load();
        return one != nullptr && first_.load(std::memory_order_acquire) == 0 && !is_kernels() &&
               is_announced() && one->finds_nothing();
    }
    void done_in_kernel() { first_.fetch_sub(1); }
    bool is_connecting() const
    {
        return (first_.load(std::memory_order_relaxed) & connecting) != 0;
    }
    /// This process does not claim it any more.
    void give_up();
    /// A process gets it that is in no list of holders: no other one claims it any more.
    void hand_on();
    /// Before exec, where this process and those of its family have not claimed it: a program is
    /// expected to have it too. @return its place in the family, or -1: no program can find it
    int expect_program();
    /// As begin(), of a connection that was open when this program was started.
    void inherit(Object &object, int fd, int place, Claims claims);
    /// Around a fork that this process's child comes from, in the order of Attachment's.
    void expect_child(std::uint32_t fork);
    void arrive_in_child(std::uint32_t fork);
    void had_child(std::uint32_t fork);
    bool is_announced() const { return announced_.load(std::memory_order_relaxed); }
    /// Makes it known to the sets that have the descriptor, once it is upgraded.
    void announce(int fd)
    {
        if (!is_announced()) [[unlikely]]
            announce_slowly(fd);
    }
    /// All goes by TCP from now on: the socket goes to who does not know of rings (rule R8).
    /// @param in, out  or one direction alone, where it is claimed
    void leave(int fd, bool in = true, bool out = true, Unread unread = Unread::Reset);
    /// The same, and its calls are the kernel's from then on, with all that they return.
    void leave_to_kernel(int fd);
    bool is_kernels() const { return is_kernels_.load(std::memory_order_relaxed); }
    /// As leave(), for a program that goes on with it: counted, once for each.
    void leave_to_program(int fd);
    /// A number of it is about to be closed, or was, and then `fd` is -1. Calls that are at work
    /// with it go on: until the last of them is over, its file stays open.
    void number_closed(int fd, bool last);
    /// Behind a shutdown(), which wakes those that read, and all that poll: a close that follows
    /// may have its number used again before they have looked (poll() looks it up once more).
    void await_sleepers() const;
    /// `fd` where it still stands for this connection, or else another descriptor of it. To be read
    /// anew after each sleep.
    int number(int fd) const { return state.table.find(fd) == object_ ? fd : shadow(); }
    /// Whether calls in this direction wait, for as long as they have to: so the kernel said when
    /// it was last asked. Another process may have changed it since.
    bool waits(std::uint32_t direction) const
    {
        return (waits_.load(std::memory_order_relaxed) & direction) != 0;
    }
    /// To be read before the kernel is asked whether they do.
    std::uint32_t changes() const { return waits_.load() & ~directions; }
    /// The kernel said so. @param since  changes(): where it was changed meanwhile it is not known
    void found_waiting(std::uint32_t direction, std::uint32_t since)
    {
        for (std::uint32_t now = waits_.load(); (now & ~directions) == since;)
            if (waits_.compare_exchange_weak(now, now | direction))
                return;
    }
    /// The program has changed it, behind the kernel's call that does; or the kernel says
    /// otherwise.
    void forget_waiting()
    {
        for (std::uint32_t now = waits_.load();
             !waits_.compare_exchange_weak(now, (now & ~directions) + directions + 1);)
            ;
    }

    bool upgraded() const override;
    std::uint32_t look(std::uint32_t wanted) override;
    std::uint64_t signs(std::uint32_t events) const override;
    bool is_in_doubt() const override;
    std::uint64_t arrivals_in() const override;
    std::uint64_t arrivals_out() const override;
    std::uint64_t arrived_at() const override;
    void arm(std::uint32_t events) override;
    void disarm(std::uint32_t events, bool rung) override;
    const std::uint32_t *doze(std::uint32_t event, std::uint32_t &value) override;
    void wake(std::uint32_t event) override;
    int bell() const override;
    int shadow() const override { return fd_.load(std::memory_order_relaxed); }
    void kernel_said(std::uint32_t events) override;
    bool go_back() override;

private:
    class Use;
    /// Of first_: what is to be done before the calls are the kernel's or a connection's for good.
    /// Below that are the kernel's calls that are under way.
    static constexpr std::uint32_t unclaimed = 1u << 31, claiming = 1u << 30, connecting = 1u << 29;

    /// Of waits_: EPOLLIN and EPOLLOUT are below, a count of changes above.
    static constexpr std::uint32_t directions = 7;

    Connection *find_connection(int fd, bool *counted);
    void use_first(int fd);
    void connected(int fd);
    bool can_be_learned(int fd) const;
    bool claim(int fd);
    bool is_alone(bool asks);
    void leave_family();
    void forget(int fd);
    void take_place();
    void announce_slowly(int fd);
    void keep_open(int fd);
    void await_calls() const;

    Object *object_ = nullptr;
    std::atomic<Connection *> connection_ = nullptr;
    std::atomic<int> fd_ = -1;
    std::atomic<int> kept_ = -1; ///< for calls that are at work when its last number is closed
    std::atomic<std::uint32_t> first_ = 0;
    std::atomic<int> place_ = -1; ///< in the family, once a child may have it as well
    std::atomic<std::uint32_t> looks_ = 0;
    std::atomic<bool> postponed_ = false; ///< the daemon could take no claim
    std::atomic<std::uint32_t> waits_ = 0;
    std::uint32_t fork_ = 0; ///< the last one that it was there at
    std::atomic<bool> announced_ = false;
    std::atomic<bool> is_handed_on_ = false;
    bool accepted_ = false;
    std::atomic<bool> is_kernels_ = false; ///< left for good
    std::atomic<Claims> claims_ = Claims::AtFirstUse;
};

/// The object of a descriptor, in use for as long as this lives.
class Held
{
public:
    Held(int fd, Object::Kind kind) : object_(state.table.use(fd))
    {
        if (object_ != nullptr && object_->kind != kind)
            drop();
    }
    /// @param found  what the table has found of it just now
    Held(Object &found, int fd, Object::Kind kind) : object_(state.table.use(&found, fd))
    {
        if (object_ != nullptr && object_->kind != kind) [[unlikely]]
            drop();
    }
    ~Held() { drop(); }
    Held(const Held &) = delete;
    Held &operator=(const Held &) = delete;

    /// As Uses::keep(): the use is the thread's then.
    std::uint32_t keep()
    {
        const std::uint32_t place = Uses::keep(*object_);
        if (place != Uses::none)
            object_ = nullptr;
        return place;
    }
    /// After keep(). @return false: nothing was kept, and the descriptor stands for something else
    bool take_back(std::uint32_t place, int fd, Object *object, std::uint64_t cookie)
    {
        if (place == Uses::none)
            return true;
        const bool kept = Uses::take_back(place);
        object_ = kept ? object : state.table.use(fd);
        if (kept || (object_ == object && object->cookie == cookie))
            return true;
        drop();
        return false;
    }
    void drop()
    {
        if (object_ != nullptr)
            state.table.done(object_);
        object_ = nullptr;
    }
    Object *object() const { return object_; }
    Body *body() const
    {
        return object_ == nullptr ? nullptr : static_cast<Body *>(object_->body.load());
    }
    Set *set() const
    {
        return object_ == nullptr ? nullptr : static_cast<Set *>(object_->body.load());
    }

private:
    Object *object_;
};

/// Calls step(body) for each descriptor of a connection.
template <typename Step>
void for_each_body(const Step &step)
{
    for (int fd = state.table.next(0, ~0u); fd >= 0;
         fd = state.table.next(static_cast<unsigned>(fd) + 1, ~0u))
        if (const Held held(fd, Object::Kind::Connection); held.body() != nullptr)
            step(*held.body());
}

/// How one call is made on a connection: as Body::connection_or_kernel() says, which is given back
/// at its end. Where it says nothing the object is given up before the kernel's call, which may
/// take any time.
class Turn
{
public:
    Turn(Held &held, int fd) : Turn(held, *held.body(), fd) {}
    Turn(Held &held, Body &body, int fd) : held_(held), body_(&body)
    {
        one_ = body_->connection_or_kernel(fd, &counted_);
        if (body_->is_kernels())
            one_ = nullptr;
    }
    ~Turn()
    {
        if (counted_) [[unlikely]]
            done_in_kernel();
    }
    Turn(const Turn &) = delete;
    Turn &operator=(const Turn &) = delete;
    Connection *connection() const { return one_; }
    void to_kernel()
    {
        if (counted_)
            place_ = held_.keep();
        else
            held_.drop();
    }

private:
    void done_in_kernel()
    {
        if (place_ == Uses::none || Uses::keeps(place_))
            body_->done_in_kernel();
        Uses::let_go(place_);
    }

    Held &held_;
    Body *body_;
    Connection *one_;
    bool counted_ = false;
    std::uint32_t place_ = Uses::none;
};

/// Descriptors that are about to be waited for: none of their connections is claimed before the end
/// of this, and as many as there is room for do not end.
class Waits
{
public:
    Waits() = default;
    ~Waits()
    {
        for (std::uint32_t i = 0; i < n_ && Uses::keeps(first_); i++)
            counted_[i]->done_in_kernel();
        Uses::let_go(first_);
    }
    Waits(const Waits &) = delete;
    Waits &operator=(const Waits &) = delete;

    /// @return as source_of()
    Source *add(int fd);

private:
    static constexpr std::uint32_t most = 16; // more are not claimed by this process any more
    Body *counted_[most];
    std::uint32_t n_ = 0;
    std::uint32_t first_ = Uses::none;
};

/// What stands behind a new object of a connection: as Body::begin().
void begin(Object &object, int fd, bool accepted, bool connecting, Claims claims);

/// Memory for bodies. @return false: no memory
bool make_bodies(std::uint32_t objects);

/// The holders of connections that are not claimed; map() is called where it is first needed.
Family &family();
/// Of its memory, hidden, or -1.
int family_descriptor();
/// Makes it there in time: who needs it may be a child of vfork().
void prepare_family();
/// The family of the program before this one. @param fd  taken over @retval false it is none
bool adopt_family(int fd);
void inherit(Object &object, int fd, int place, Claims claims);

/// Processes what the daemon has sent, for those who wait.
Attendant *attendant();

/// The source of a descriptor, or NULL. It may end at any time, and says so then.
Source *source_of(int fd);

/// The last use of an object without descriptors is over.
void finish(Object *object, int fd);

/// As Body::leave(), where the descriptor is a connection.
void leave(int fd);
/// As leave(), where it has become the program's standard input, output or error: what stdio does
/// there is not seen. One that is not claimed may be for another program.
void leave_for_stdio(int fd);
/// As Body::leave_to_kernel().
void leave_to_kernel(int fd);
/// O_NONBLOCK or a time-out of a descriptor may have changed.
void forget_waiting(int fd);
/// As leave(), before the descriptor goes to another process that does not come from fork().
void hand_on(int fd);
/// No ring any more, for any connection.
void leave_all();

void upgrade_before_fork();
void upgrade_after_fork(pid_t child);

} // namespace ntb::socket::preload

#endif
