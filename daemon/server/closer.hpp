// SPDX-License-Identifier: BSD-3-Clause
// Looks at what clients handed in, and closes it. The last close of a descriptor may wait for as
// long as its user likes: of a TCP socket with SO_LINGER, of a unix socket in which such ones lie,
// of a file of FUSE.
#ifndef NTBD_SERVER_CLOSER_HPP
#define NTBD_SERVER_CLOSER_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <sys/types.h>

namespace ntbd
{

/// Each user has a thread of its own, which is there while it has something to close and a while
/// after: who makes a close wait has only its own others wait. Root and the daemon's user are
/// trusted: theirs are closed at once, on the caller's thread.
///
/// Of one thread, but where a call says otherwise. Descriptors are taken over.
class Closer
{
public:
    using Close = std::function<void(int fd)>;

    /// Of one user, queued or being closed. Who has so many is behind: nothing is to be read from
    /// its clients, so that what they send stays in flight, and is charged to them by the kernel.
    static constexpr size_t pending_max = 32;
    /// Beyond that, each one more interrupts the close that its user's thread is in by a signal:
    /// the system waits no longer for a TCP socket then, and goes on with it in the background.
    /// What clients had sent into sockets that end cannot be refused otherwise.
    static constexpr size_t pending_most = 1024;

    /// @param own the daemon's user @param close  of any thread; for tests, as is
    /// @param idle  for which a thread stays that has nothing to close
    explicit Closer(uid_t own, Close close = {},
                    std::chrono::milliseconds idle = std::chrono::seconds(1));
    /// What is pending is closed, and waited for within a bound. A thread that is stuck goes on
    /// alone with what is its user's; so the end of the process may find it in a close.
    ~Closer();
    Closer(const Closer &) = delete;
    Closer &operator=(const Closer &) = delete;

    /// Any thread.
    bool trusts(uid_t uid) const { return uid == 0 || uid == own_; }
    /// Any thread.
    /// @param ticket  not 0: comes back from take_closed(), unless the user is trusted
    /// @param look    called before the close, on the same thread: what asks the kernel about a
    ///                socket waits for its lock, which a user may hold for long, in a send from
    ///                memory of FUSE
    void close(uid_t uid, int fd, uint64_t ticket = 0, Close look = {});
    /// A connected unix socket that only the daemon holds: the client sees its end at once. It does
    /// not become pending if its user is behind and no descriptor lies in it, so connecting again
    /// and again does not pile up sockets.
    void close_socket(uid_t uid, int fd);
    /// Any thread.
    bool is_behind(uid_t uid) const;

    /// Readable when a ticket has come back, or a user may be behind no more.
    int fd() const;
    /// Makes fd() unreadable.
    std::vector<uint64_t> take_closed();

private:
    struct Shared;
    static void run(const std::shared_ptr<Shared> &shared, uid_t uid);

    static constexpr auto patience = std::chrono::milliseconds(200);

    uid_t own_;
    std::shared_ptr<Shared> shared_;
};

} // namespace ntbd

#endif
