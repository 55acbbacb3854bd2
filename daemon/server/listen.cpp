// SPDX-License-Identifier: BSD-3-Clause
#include "server/listen.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace ntbd
{

namespace
{
constexpr int backlog = 128;

bool address_of(const std::string &path, sockaddr_un *out)
{
    *out = {};
    out->sun_family = AF_UNIX;
    if (path.size() >= sizeof(out->sun_path))
        return false;
    path.copy(out->sun_path, path.size());
    return true;
}

std::string because(const std::string &path, const char *what)
{
    return path + ": " + what + ": " + strerror(errno);
}
} // namespace

bool ListeningSocket::lock(std::string *error)
{
    const std::string name = path_ + ".lock";
    lock_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock_ < 0) {
        *error = because(name, "cannot be opened");
        return false;
    }
    if (flock(lock_, LOCK_EX | LOCK_NB) == 0)
        return true;
    *error = errno == EWOULDBLOCK ? path_ + ": another daemon is there"
                                  : because(name, "cannot be locked");
    return false;
}

bool ListeningSocket::open(const std::string &path, mode_t mode, std::string *error)
{
    sockaddr_un address;
    struct stat there;
    path_ = path;
    if (!address_of(path, &address)) {
        *error = path + ": the path is too long";
        return false;
    }
    if (!lock(error))
        return false;
    if (lstat(path.c_str(), &there) == 0) {
        if (!S_ISSOCK(there.st_mode)) {
            *error = path + ": what is there is no socket";
            return false;
        }
        unlink(path.c_str());
    }
    fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    // No client connects before the mode is as it is to be.
    if (fd_ < 0 || bind(fd_, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) != 0 ||
        chmod(path.c_str(), mode) != 0 || listen(fd_, backlog) != 0) {
        *error = because(path, "cannot listen there");
        return false;
    }
    return true;
}

ListeningSocket::~ListeningSocket()
{
    if (fd_ >= 0) {
        unlink(path_.c_str());
        close(fd_);
    }
    if (lock_ >= 0)
        close(lock_);
}

int connect_to_daemon(const std::string &path)
{
    sockaddr_un address;
    if (!address_of(path, &address))
        return -ENAMETOOLONG;
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) == 0)
        return fd;
    const int error = -errno;
    close(fd);
    return error;
}

} // namespace ntbd
