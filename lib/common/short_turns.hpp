// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_COMMON_SHORT_TURNS_HPP
#define NTB_COMMON_SHORT_TURNS_HPP

#include <cstdint>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ntb
{

/// The kernel's sched_attr, whose header redefines what glibc's has.
struct SchedAttr {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime;
    uint64_t deadline;
    uint64_t period;
};

/// For the calling thread, which sleeps most of the time: the scheduler gives it shorter turns, and
/// so an earlier one after a wake-up. It takes no privilege and no larger share of the CPU. Linux
/// before 6.12 ignores the length of a turn.
inline void ask_for_short_turns()
{
    constexpr uint64_t turn_ns = 100'000; // the shortest
    SchedAttr attr{};
    if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) != 0 || attr.policy != SCHED_OTHER)
        return; // a real-time thread stays one
    attr.runtime = turn_ns;
    syscall(SYS_sched_setattr, 0, &attr, 0);
}

} // namespace ntb

#endif
