// SPDX-License-Identifier: BSD-3-Clause
#include "preload/state.hpp"

#include "kernel/system.hpp"

#include <fcntl.h>

namespace ntb::socket::preload
{

State state;

int own_pid()
{
    return static_cast<int>(kernel::call(SYS_getpid));
}

bool is_own_process()
{
    return state.pid.load(std::memory_order_relaxed) == own_pid();
}

int hide(int fd)
{
    if (fd < 0)
        return -1;
    long high = kernel::call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, first_hidden);
    if (high < 0)
        high = kernel::call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);
    kernel::call(SYS_close, fd);
    if (high < 0)
        return -1;
    state.table.hide(static_cast<int>(high));
    return static_cast<int>(high);
}

} // namespace ntb::socket::preload
