// SPDX-License-Identifier: BSD-3-Clause
#include "engine/lock.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace ntb::verbs
{
namespace
{

long membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

long futex(std::atomic<std::uint32_t> &word, int operation, std::uint32_t value)
{
    static_assert(sizeof(word) == sizeof(std::uint32_t));
    return syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

} // namespace

bool Kernel::prepare()
{
    return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

// A sandbox that was put on meanwhile may refuse it. No processor keeps a store to itself for a
// millisecond.
void Kernel::barrier()
{
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0)
        return;
    const timespec millisecond = {0, 1000000};
    nanosleep(&millisecond, nullptr);
}

void Kernel::wait(std::atomic<std::uint32_t> &word, std::uint32_t value)
{
    futex(word, FUTEX_WAIT_PRIVATE, value);
}

void Kernel::wake(std::atomic<std::uint32_t> &word)
{
    futex(word, FUTEX_WAKE_PRIVATE, 1);
}

} // namespace ntb::verbs
