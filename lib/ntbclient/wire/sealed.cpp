// SPDX-License-Identifier: BSD-3-Clause
#include "wire/sealed.hpp"

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ntbc
{

namespace
{
constexpr int seals_needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr int seals_refused = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;

int socket_option(int fd, int option)
{
    int value = -1;
    socklen_t bytes = sizeof(value);
    return getsockopt(fd, SOL_SOCKET, option, &value, &bytes) == 0 ? value : -1;
}
} // namespace

int sealed_create(const char *name, size_t bytes)
{
    const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    if (fchmod(fd, 0600) == 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0 &&
        fcntl(fd, F_ADD_SEALS, seals_needed) == 0)
        return fd;
    const int error = -errno;
    close(fd);
    return error;
}

bool sealed_check(int fd, size_t bytes)
{
    struct stat st;
    const int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & (seals_needed | seals_refused)) == seals_needed &&
           fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && static_cast<uint64_t>(st.st_size) == bytes;
}

void *sealed_map(int fd, size_t bytes)
{
    void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? nullptr : at;
}

bool is_bell(int fd)
{
    return socket_option(fd, SO_DOMAIN) == AF_UNIX && socket_option(fd, SO_TYPE) == SOCK_STREAM &&
           socket_option(fd, SO_ACCEPTCONN) == 0;
}

} // namespace ntbc
