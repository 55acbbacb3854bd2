// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_READINESS_SET_HPP
#define NTB_SOCKET_READINESS_SET_HPP

#include <atomic>
#include <cstdint>
#include <ctime>

#include <signal.h>
#include <sys/epoll.h>

#include "readiness/poll.hpp"
#include "readiness/source.hpp"

namespace ntb::socket
{

/// The members of one epoll descriptor, and the wait for them (doc/socket-protocol.md, section 9).
/// All members stay in the kernel's set. The entry of an upgraded one says there when the shadow
/// changes; beside it stands the connection's bell. So a thread sleeps in the kernel's call on
/// the program's own descriptor, which is also right where others poll it.
///
/// Any thread. Results are libc's, with -errno for an error; errno stays as it is.
class Set
{
public:
    /// @param epoll  a descriptor of the set; stays the caller's
    /// @return NULL: no memory
    static Set *create(int epoll, Attendant *attendant);
    /// No call is in it any more. The kernel's set is not touched.
    void destroy();

    /// false: wait() is the kernel's call, and the caller may make that instead. One load.
    bool has_upgraded() const { return upgraded_.load(std::memory_order_acquire) != 0; }

    /// epoll_ctl().
    /// @param source  of the descriptor, if it has one and it is upgraded, else NULL: the kernel's
    ///                call, which is remembered for upgrade()
    /// @param inner   the set of the descriptor, if it is an epoll descriptor, else NULL
    int control(int op, int fd, Source *source, Set *inner, epoll_event *event);
    /// epoll_pwait2(). Its other forms are this with a timeout made of milliseconds.
    int wait(epoll_event *events, int most, const timespec *timeout, const sigset_t *mask);

    /// A descriptor that may be a member has become an upgraded one. (The other way is seen here.)
    /// Threads that sleep in the set need not be woken for it.
    void upgrade(int fd, Source *source);
    /// A descriptor of a source is about to be closed.
    /// @param last_here  none is left in this process: the source ends after this
    void closed(int fd, Source *source, bool last_here);
    /// Something has changed of a source that no bell tells: look at it.
    void poke(const Source *source);

    /// The descriptor of the set is about to be polled by others, or has become a member of
    /// another set: from now on it is readable in the kernel whenever a member is ready. Called
    /// before each poll of it.
    void settle();
    /// Another descriptor of the set: the one that is known is about to be closed.
    void moved(int epoll);
    /// In a child, before its first call: the parent's threads are not in it, and its members are
    /// the parent's business. The child's sources are asked to leave by the caller.
    void after_fork_in_child();

private:
    Set() = default;
    ~Set() = default;

    std::atomic<std::uint32_t> upgraded_ = 0;
};

} // namespace ntb::socket

#endif
