// SPDX-License-Identifier: BSD-3-Clause
#include "kernel/descriptors.hpp"

#include <fcntl.h>
#include <sys/resource.h>

#include "kernel/system.hpp"

namespace ntb::socket::kernel
{

namespace
{

constexpr rlim_t high_enough = 960;
constexpr rlim_t spare_part = 16;

int copy(int fd, int operation)
{
    rlimit limit = {};
    if (fd < 0 || call(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit) != 0)
        return -1;
    const rlim_t most = limit.rlim_cur;
    const long made =
        call(SYS_fcntl, fd, operation, most / 2 < high_enough ? most / 2 : high_enough);
    if (made >= 0 && static_cast<rlim_t>(made) < most - most / spare_part)
        return static_cast<int>(made);
    if (made >= 0)
        call(SYS_close, made);
    return -1;
}

} // namespace

int out_of_the_way(int fd)
{
    const int made = copy(fd, F_DUPFD_CLOEXEC);
    if (fd >= 0)
        call(SYS_close, fd);
    return made;
}

int copy_for_exec(int fd)
{
    return copy(fd, F_DUPFD);
}

} // namespace ntb::socket::kernel
