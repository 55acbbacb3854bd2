// SPDX-License-Identifier: BSD-3-Clause
#include "sync/gate.hpp"

#include <cerrno>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace plx::pmd
{

namespace
{
long membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}
} // namespace

int gate_init()
{
    return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 ? 0 : -ENOTSUP;
}

void gate_barrier()
{
    membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

} // namespace plx::pmd
