// SPDX-License-Identifier: BSD-3-Clause
// The daemon's socket in the file system.
#ifndef NTBD_SERVER_LISTEN_HPP
#define NTBD_SERVER_LISTEN_HPP

#include <string>

#include <sys/types.h>

namespace ntbd
{

/// Listens at a path until its end. The path belongs to the daemon that holds the lock file beside
/// it, <path>.lock, so a socket that a dead daemon left is replaced, and one of a living daemon
/// never.
class ListeningSocket
{
public:
    ListeningSocket() = default;
    ~ListeningSocket();
    ListeningSocket(const ListeningSocket &) = delete;
    ListeningSocket &operator=(const ListeningSocket &) = delete;

    /// @return false, and what is wrong
    bool open(const std::string &path, mode_t mode, std::string *error);
    int fd() const { return fd_; }

private:
    bool lock(std::string *error);

    std::string path_;
    int lock_ = -1;
    int fd_ = -1;
};

/// Connects to such a socket. @return the connection or a negative errno; never waits
int connect_to_daemon(const std::string &path);

} // namespace ntbd

#endif
