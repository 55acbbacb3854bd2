// SPDX-License-Identifier: BSD-3-Clause
#include "cable/listen.hpp"

#include "host/error.hpp"

#include <cerrno>
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

int lock_folder(const char *path, Error *error)
{
    char folder[sizeof(sockaddr_un::sun_path)];
    strcpy(folder, path);
    char *slash = strrchr(folder, '/');
    if (slash == nullptr)
        strcpy(folder, ".");
    else
        slash[slash == folder ? 1 : 0] = '\0';
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail(error, -errno, "cannot open %s, the folder of the cable: %s", folder,
                    strerror(errno));
    for (int i = 0; i < lock_tries; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return fd;
        poll(nullptr, 0, 1);
    }
    close(fd);
    return fail(error, -EBUSY, "another process holds the lock on %s, the folder of the cable",
                folder);
}

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

int listen_at(const sockaddr_un &address, SocketEnd *out, Error *error)
{
    const int code = clear_stale(address.sun_path, &out->was_stale, error);
    if (code != 0)
        return code;
    const int fd = new_socket();
    struct stat st {
    };
    if (fd >= 0 && bind(fd, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) == 0 &&
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

int connect_or_listen_locked(const sockaddr_un &address, SocketEnd *out, Error *error)
{
    const int fd = new_socket();
    if (fd < 0)
        return fail(error, -errno, "cannot make a socket: %s", strerror(errno));
    if (connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) == 0) {
        out->connection = fd;
        return 0;
    }
    const int failed = errno;
    close(fd);
    if (failed == ECONNREFUSED || failed == ENOENT)
        return listen_at(address, out, error);
    if (failed == EAGAIN)
        return fail(error, -EBUSY, "too many hosts wait for the cable %s already",
                    address.sun_path);
    return fail(error, -failed, "cannot connect to %s: %s", address.sun_path, strerror(failed));
}
} // namespace

int connect_or_listen(const char *path, SocketEnd *out, Error *error)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (strlen(path) >= sizeof(address.sun_path))
        return fail(error, -ENAMETOOLONG, "the path of the cable is longer than %zu bytes",
                    sizeof(address.sun_path) - 1);
    strcpy(address.sun_path, path);
    const int lock = lock_folder(path, error);
    if (lock < 0)
        return lock;
    const int code = connect_or_listen_locked(address, out, error);
    close(lock);
    return code;
}

void stop_listening(const char *path, SocketEnd *end)
{
    if (end->listener < 0)
        return;
    Error ignored;
    const int lock = lock_folder(path, &ignored);
    struct stat st;
    if (lstat(path, &st) == 0 && st.st_dev == end->device && st.st_ino == end->inode)
        unlink(path);
    close(end->listener);
    end->listener = -1;
    if (lock >= 0)
        close(lock);
}

bool is_own_process(int connection)
{
    ucred peer{};
    socklen_t bytes = sizeof(peer);
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
           peer.pid == getpid();
}

} // namespace plx::twin
