// SPDX-License-Identifier: BSD-3-Clause
// A thread that only polls with real-time priority never leaves its CPU: a control thread that has
// no other one does not run, and its heartbeats stop.
#ifndef PLX_NTB_SYNC_STARVING_HPP
#define PLX_NTB_SYNC_STARVING_HPP

#include <cstddef>
#include <span>

#include <sched.h>
#include <sys/types.h>

namespace plx::pmd
{

/// A thread as its scheduler sees it.
struct ScheduledThread {
    pid_t id = 0;
    char name[16] = "";
    int priority = 0; ///< real-time priority; 0: none
    cpu_set_t cpus{}; ///< that it may run on
};

/// Who keeps a thread from running, and on which CPU.
struct Starved {
    const ScheduledThread *by = nullptr; ///< NULL: it has a CPU
    int cpu = -1;
};

/// @param thread  would have to preempt, to run: it is starved if each of its CPUs has one of
///   @p others that may run nowhere else, has real-time priority, and at least its own
Starved starved(const ScheduledThread &thread, std::span<const ScheduledThread> others);

/// What to say of it. @param raised  whether the thread now has a higher priority than the other
void describe(const Starved &starved, bool raised, char *text, size_t bytes);

/// For a thread that must not wait, by itself: if it is starved, gives it a priority above that of
/// who starves it, where that is permitted, and logs one line: a warning once in a process. @return
/// whether there was something to say
bool leave_starvation();

} // namespace plx::pmd

#endif
