// SPDX-License-Identifier: BSD-3-Clause
#include "cable/listen.hpp"

#include "host/error.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace plx::twin
{

namespace
{
constexpr int lock_tries = 1000; // of 1 ms; others hold it for microseconds
constexpr int backlog = 8;

int new_socket()
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

// Others may use what is made here only where they may be the other end.
mode_t mode_for(uint32_t other)
{
    return other == no_user || other == geteuid() ? 0600 : 0666;
}

bool is_allowed(uid_t user, uint32_t other)
{
    return user == geteuid() || (other != no_user && user == other);
}

// A file of our own: any process that can read the folder could hold a lock on that.
class CableLock
{
public:
    CableLock(const char *path, uint32_t other) : other_(other)
    {
        snprintf(path_, sizeof(path_), "%s.lock", path);
    }
    ~CableLock()
    {
        if (fd_ < 0)
            return;
        unlink(path_); // while it is held: who waits for it finds that it is no longer there
        close(fd_);
    }
    CableLock(const CableLock &) = delete;
    CableLock &operator=(const CableLock &) = delete;

    /// @return 0 or a negative errno with @p error set
    int take(Error *error)
    {
        for (int i = 0; i < lock_tries; i++) {
            const int code = open_file(error);
            if (code != 0)
                return code;
            if (flock(fd_, LOCK_EX | LOCK_NB) == 0 && is_in_place())
                return 0;
            close(fd_);
            fd_ = -1;
            poll(nullptr, 0, 1);
        }
        return fail(error, -EBUSY, "another process holds %s, the lock of the cable", path_);
    }

private:
    int open_file(Error *error)
    {
        constexpr int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
        const mode_t mode = mode_for(other_);
        fd_ = open(path_, flags);
        if (fd_ < 0 && errno == ENOENT) {
            fd_ = open(path_, flags | O_CREAT | O_EXCL, mode);
            if (fd_ >= 0)
                fchmod(fd_, mode); // whatever the umask
            else if (errno == EEXIST)
                fd_ = open(path_, flags);
        }
        struct stat st;
        if (fd_ < 0 || fstat(fd_, &st) != 0)
            return refused_by(errno, error);
        if (S_ISREG(st.st_mode) && is_allowed(st.st_uid, other_))
            return 0;
        close(fd_);
        fd_ = -1;
        return fail(error, -EACCES, "%s, the lock of the cable, is user %u's, or no file", path_,
                    st.st_uid);
    }
    int refused_by(int code, Error *error) const
    {
        struct stat st;
        if (lstat(path_, &st) == 0 && !is_allowed(st.st_uid, other_))
            return fail(error, -EACCES, "%s, the lock of the cable, is user %u's", path_,
                        st.st_uid);
        return fail(error, -code, "cannot make %s, the lock of the cable: %s", path_,
                    strerror(code));
    }
    // The process that held it before has removed it, and the next one makes another.
    bool is_in_place() const
    {
        struct stat own;
        struct stat there;
        return fstat(fd_, &own) == 0 && lstat(path_, &there) == 0 && own.st_ino == there.st_ino &&
               own.st_dev == there.st_dev;
    }

    char path_[sizeof(sockaddr_un::sun_path) + sizeof(".lock")];
    uint32_t other_;
    int fd_ = -1;
};

// Out of the way with what a dead process left; nothing else is ever removed.
int clear_stale(const char *path, bool *was_stale, Error *error)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? 0
                               : fail(error, -errno, "cannot use %s: %s", path, strerror(errno));
    if (!S_ISSOCK(st.st_mode))
        return fail(error, -ENOTSOCK, "%s exists and is no socket", path);
    *was_stale = true;
    return unlink(path) == 0 ? 0
                             : fail(error, -errno, "cannot remove %s: %s", path, strerror(errno));
}

int listen_at(const sockaddr_un &address, uint32_t other, SocketEnd *out, Error *error)
{
    const int code = clear_stale(address.sun_path, &out->was_stale, error);
    if (code != 0)
        return code;
    const int fd = new_socket();
    struct stat st {
    };
    const mode_t mode = mode_for(other);
    // The file gets the mode of the socket: at no moment can others connect that may not. What the
    // umask takes off a wider one is added.
    if (fd >= 0 && fchmod(fd, mode) == 0 &&
        bind(fd, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) == 0 &&
        fchmodat(AT_FDCWD, address.sun_path, mode, AT_SYMLINK_NOFOLLOW) == 0 &&
        listen(fd, backlog) == 0 && lstat(address.sun_path, &st) == 0) {
        out->listener = fd;
        out->device = st.st_dev;
        out->inode = st.st_ino;
        return 0;
    }
    const int failed = -errno;
    if (fd >= 0)
        close(fd);
    return fail(error, failed, "cannot listen at %s: %s", address.sun_path, strerror(-failed));
}

/// @return 0, or a positive errno: no process could be reached
int connect_to(const sockaddr_un &address, uint32_t other, SocketEnd *out, Error *error)
{
    const int fd = new_socket();
    if (fd < 0)
        return fail(error, -errno, "cannot make a socket: %s", strerror(errno));
    if (connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) != 0) {
        const int failed = errno;
        close(fd);
        return failed;
    }
    uid_t user = 0;
    if (!is_let_in(fd, other, &user)) {
        close(fd);
        return fail(error, -EACCES,
                    "the process at the other end of %s is user %u's: cable_uid=%u allows that",
                    address.sun_path, user, user);
    }
    out->connection = fd;
    return 0;
}

bool none_listens(int failed)
{
    return failed == ECONNREFUSED || failed == ENOENT;
}

int not_connected(int failed, const char *path, Error *error)
{
    if (failed <= 0)
        return failed;
    if (failed == EAGAIN)
        return fail(error, -EBUSY, "too many hosts wait for the cable %s already", path);
    return fail(error, -failed, "cannot connect to %s: %s", path, strerror(failed));
}
} // namespace

int connect_or_listen(const char *path, uint32_t other, SocketEnd *out, Error *error)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (strlen(path) >= sizeof(address.sun_path))
        return fail(error, -ENAMETOOLONG, "the path of the cable is longer than %zu bytes",
                    sizeof(address.sun_path) - 1);
    strcpy(address.sun_path, path);
    int failed = connect_to(address, other, out, error);
    if (!none_listens(failed))
        return not_connected(failed, path, error);
    CableLock lock(path, other);
    const int code = lock.take(error);
    if (code != 0)
        return code;
    failed = connect_to(address, other, out, error); // another process may listen meanwhile
    return none_listens(failed) ? listen_at(address, other, out, error)
                                : not_connected(failed, path, error);
}

void stop_listening(const char *path, uint32_t other, SocketEnd *end)
{
    if (end->listener < 0)
        return;
    Error ignored;
    CableLock lock(path, other);
    const bool locked = lock.take(&ignored) == 0;
    struct stat st;
    if (locked && lstat(path, &st) == 0 && st.st_dev == end->device && st.st_ino == end->inode)
        unlink(path);
    close(end->listener);
    end->listener = -1;
}

bool is_let_in(int connection, uint32_t other, uid_t *user)
{
    ucred peer{};
    socklen_t bytes = sizeof(peer);
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0)
        return false;
    *user = peer.uid;
    return is_allowed(peer.uid, other);
}

bool is_own_process(int connection)
{
    ucred peer{};
    socklen_t bytes = sizeof(peer);
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
           peer.pid == getpid();
}

} // namespace plx::twin
