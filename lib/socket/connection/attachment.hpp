// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_SOCKET_CONNECTION_ATTACHMENT_HPP
#define NTB_SOCKET_CONNECTION_ATTACHMENT_HPP

#include <cstdint>

#include <sys/types.h>

namespace ntb::socket
{

/// This process's attachment to a daemon. It takes no memory of the program: its own comes from
/// mmap() when it is made. Any thread.
class Attachment
{
public:
    /// How claims have ended.
    struct Figures {
        std::uint64_t claimed;   ///< shown to the daemon
        std::uint64_t matched;   ///< with a mirror
        std::uint64_t unmatched; ///< no mirror in time, or the daemon did not answer
        std::uint64_t refused;   ///< by the daemon: quota, or not what it takes
        std::uint64_t failed;    ///< no daemon, no descriptors, no memory here
        std::uint64_t unseen;    ///< directions that were not upgraded: bytes that nobody saw (C1)
        std::uint64_t resets;    ///< connections that were reset for what the rings had
        std::uint64_t ring_sent, ring_received; ///< bytes by rings, in this process
        std::uint64_t rings;                    ///< wake-ups that were sent
    };

    /// @param path  of the daemon's socket. It is connected to by the first claim, and again by the
    ///              first claim after a daemon has gone, at most once a second.
    /// @return NULL: no memory
    static Attachment *create(const char *path);

    /// Readable when process() has something to do: answers, the daemon's end. It may change
    /// with each claim. -1: not attached
    int descriptor() const;
    /// Takes in what the daemon has said. Never waits. Who sleeps on a bell sleeps on
    /// descriptor() as well, and calls this.
    void process();
    Figures figures() const;

    /// Around fork(), in this order, with no other call in between. A child has the connections
    /// that are matched, together with its parent; claims without an answer are withdrawn. It
    /// attaches for itself when it claims.
    void before_fork();
    /// @param child  0: fork() failed
    void after_fork_in_parent(pid_t child);
    void after_fork_in_child();

private:
    Attachment() = default;
    ~Attachment() = default;
};

} // namespace ntb::socket

#endif
