// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_READINESS_POLL_HPP
#define NTB_SOCKET_READINESS_POLL_HPP

#include <cstdint>
#include <ctime>

#include <poll.h>
#include <signal.h>
#include <sys/select.h>

#include "readiness/handlers.hpp"
#include "readiness/source.hpp"

namespace ntb::socket
{

/// What has to be looked after while a process waits: the end of its control connection. Waiters
/// sleep on its descriptor too.
class Attendant
{
public:
    /// -1: none. It may change.
    virtual int descriptor() const = 0;
    /// The descriptor is readable.
    virtual void process() = 0;

protected:
    ~Attendant() = default;
};

/// ppoll(). poll() is this with a timeout made of milliseconds.
/// @param sources    for each entry its source, or NULL where it is the kernel's alone
/// @param timeout    NULL: for ever
/// @param mask       NULL: the thread's own
/// @param attendant  NULL: none
/// @param since      handled() from which on a handler ends it; NULL: from now on
/// @return entries with events, 0 or a negative errno. Nothing but NULL among the sources: the
///         kernel's call
int poll(pollfd *entries, nfds_t n, Source *const *sources, const timespec *timeout,
         const sigset_t *mask, Attendant *attendant, const Handled *since = nullptr);

/// Finds the source of a descriptor.
class Lookup
{
public:
    /// @return NULL: the kernel's alone
    virtual Source *source_of(int fd) = 0;

protected:
    ~Lookup() = default;
};

/// pselect(), and select() where the caller changes the timeout to what is left.
/// @param n  as select's: above the highest descriptor. Sets may be longer than FD_SETSIZE
/// @return bits that are set, 0 or a negative errno
int select(int n, fd_set *read, fd_set *write, fd_set *except, const timespec *timeout,
           const sigset_t *mask, Lookup &lookup, Attendant *attendant);

/// The wait of one blocking receive or send that has returned -EAGAIN.
/// @param events   EPOLLIN or EPOLLOUT
/// @param timeout  what is left of SO_RCVTIMEO or SO_SNDTIMEO; NULL: for ever
/// @param restarts the time is not the socket's
/// @param since    handled() before the first wait of the call; NULL: this is the first
/// @retval 0 call again
/// @retval -EAGAIN the time is over
/// @retval -EBADF a handler that restarts calls has closed it: end_restarts()
/// @retval -EINTR a handler ran. Without a time of the socket's one that restarts calls does not
///         end it
int wait_for(Source &source, std::uint32_t events, const timespec *timeout, Attendant *attendant,
             bool restarts = false, const Handled *since = nullptr);
/// The same for a descriptor that is the kernel's alone, such as a pipe's, for ever.
int wait_for(int fd, std::uint32_t events, const Handled &since);

} // namespace ntb::socket

#endif
