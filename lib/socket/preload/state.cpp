// SPDX-License-Identifier: BSD-3-Clause
#include "preload/state.hpp"

#include "kernel/descriptors.hpp"
#include "kernel/system.hpp"

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
    const int high = kernel::out_of_the_way(fd);
    if (high >= 0)
        state.table.hide(high);
    return high;
}

} // namespace ntb::socket::preload
