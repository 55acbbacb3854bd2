// SPDX-License-Identifier: BSD-3-Clause
// The connections and sets of this process, as the table's objects have them.
#ifndef NTB_SOCKET_PRELOAD_UPGRADE_HPP
#define NTB_SOCKET_PRELOAD_UPGRADE_HPP

#include "connection/attachment.hpp"
#include "connection/connection.hpp"
#include "preload/state.hpp"
#include "readiness/poll.hpp"
#include "readiness/set.hpp"
#include "readiness/source.hpp"

namespace ntb::socket::preload
{

/// What stands behind an object of a connection. It is there as long as the table is: calls that
/// come after the connection's end find none.
class Body final : public Source
{
public:
    void begin(Object &object, int fd, bool accepted, bool connecting);
    /// The descriptor is still open, or -1. @return after it nobody uses the connection
    void end(int fd);

    /// The connection that calls have to be made on, or NULL: the kernel's. The caller has the
    /// object in use.
    Connection *connection(int fd)
    {
        if (connecting_.load(std::memory_order_relaxed)) [[unlikely]]
            connected(fd);
        Connection *one = connection_.load();
        return one != nullptr && one->upgraded() ? one : nullptr;
    }
    /// A connect() that did not block has come to an end.
    void connected(int fd);
    void claim(int fd);
    /// Tells the sets that have the descriptor of it, once there is something to tell.
    void announce(int fd)
    {
        if (!announced_.load(std::memory_order_relaxed)) [[unlikely]]
            announce_slowly(fd);
    }
    /// All goes by TCP from now on: the socket goes to who does not know of rings (rule R8).
    void leave(int fd);
    void number_closed(int fd, bool last);

    bool upgraded() const override;
    std::uint32_t look() override;
    std::uint64_t arrivals_in() const override;
    std::uint64_t arrivals_out() const override;
    void arm(std::uint32_t events) override;
    void disarm(std::uint32_t events) override;
    int bell() const override;
    int shadow() const override { return fd_.load(std::memory_order_relaxed); }
    void kernel_said(std::uint32_t events) override;

private:
    class Use;
    void announce_slowly(int fd);

    Object *object_ = nullptr;
    std::atomic<Connection *> connection_ = nullptr;
    std::atomic<int> fd_ = -1;
    std::atomic<bool> connecting_ = false;
    std::atomic<bool> announced_ = false;
    bool accepted_ = false;
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
    ~Held() { drop(); }
    Held(const Held &) = delete;
    Held &operator=(const Held &) = delete;

    /// After drop(). @return false: the descriptor stands for something else now
    bool take_again(int fd, const Object *object)
    {
        object_ = state.table.use(fd);
        if (object_ == object)
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

/// What stands behind a new object of a connection.
void begin(Object &object, int fd, bool accepted, bool connecting);

/// Memory for bodies. @return false: no memory
bool make_bodies(std::uint32_t objects);

/// The daemon of this process. One: connections to hosts of another one stay TCP.
Attachment *attachment_of(const char *path);
Attachment *attachment();
Attendant *attendant();

/// The source of a descriptor, or NULL. It may end at any time, and says so then.
Source *source_of(int fd);

/// An epoll descriptor was made.
int set_born(int fd);
/// The sets' own descriptor, which the first upgraded member of one makes, may not be closed.
void hide_wake();
/// A set has become a member of another one: it is settled before each wait for that.
void nest(const Set *inner);
void settle_nested();
/// Of all sets: a descriptor is about to be closed.
void tell_sets_closed(int fd, Source *source, bool last);

/// The last use of an object without descriptors is over.
void finish(Object *object, int fd);

/// As Body::leave(), where the descriptor is a connection.
void leave(int fd);
/// Before exec: every connection whose descriptor stays open.
void leave_what_exec_keeps();
/// No ring any more, for any connection.
void leave_all();

void upgrade_before_fork();
void upgrade_after_fork(pid_t child);

} // namespace ntb::socket::preload

#endif
