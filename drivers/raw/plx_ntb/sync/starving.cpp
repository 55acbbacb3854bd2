// SPDX-License-Identifier: BSD-3-Clause
#include "sync/starving.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include <dirent.h>
#include <unistd.h>

#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

constexpr size_t threads_max = 256; ///< that are looked at

/// A thread of EAL or of another device, which sleeps in system calls. Where the program was
/// started with real-time priority it has that too, on the same CPUs, and keeps no thread from
/// them.
bool sleeps(const ScheduledThread &thread)
{
    // As DPDK names them up to 23.07, and since: cut off at 15 characters.
    static constexpr const char *names[] = {"eal-intr-thread", "rte_mp_handle", "telemetry-v1",
                                            "telemetry-v2",    "dpdk-intr",     "dpdk-mp-msg",
                                            "dpdk-telemet",    "plx-ctrl-"};
    return std::any_of(std::begin(names), std::end(names), [&](const char *name) {
        return std::strncmp(thread.name, name, std::strlen(name)) == 0;
    });
}

bool stays_on(const ScheduledThread &thread, int cpu)
{
    return CPU_COUNT(&thread.cpus) == 1 && CPU_ISSET(cpu, &thread.cpus);
}

void read_name(pid_t id, ScheduledThread *thread)
{
    char path[48];
    std::snprintf(path, sizeof(path), "/proc/self/task/%d/comm", static_cast<int>(id));
    FILE *file = std::fopen(path, "re");
    if (file == nullptr)
        return;
    if (std::fgets(thread->name, sizeof(thread->name), file) != nullptr)
        thread->name[std::strcspn(thread->name, "\n")] = '\0';
    std::fclose(file);
}

/// @return false: it has ended
bool look_at(pid_t id, ScheduledThread *thread)
{
    sched_param parameters{};
    const int policy = sched_getscheduler(id);
    if (policy < 0 || sched_getparam(id, &parameters) != 0 ||
        sched_getaffinity(id, sizeof(thread->cpus), &thread->cpus) != 0)
        return false;
    thread->id = id;
    const int plain = policy & ~SCHED_RESET_ON_FORK;
    thread->priority = plain == SCHED_FIFO || plain == SCHED_RR ? parameters.sched_priority : 0;
    read_name(id, thread);
    return true;
}

/// The other threads of this process that have real-time priority.
size_t look_at_others(pid_t own, ScheduledThread *out, size_t most)
{
    DIR *folder = opendir("/proc/self/task");
    if (folder == nullptr)
        return 0;
    size_t count = 0;
    for (const dirent *entry = nullptr; count < most && (entry = readdir(folder)) != nullptr;) {
        const auto id = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
        if (id > 0 && id != own && look_at(id, &out[count]) && out[count].priority > 0)
            ++count;
    }
    closedir(folder);
    return count;
}

bool raise_above(int priority)
{
    sched_param parameters{};
    parameters.sched_priority = priority + 1;
    return sched_setscheduler(0, SCHED_FIFO, &parameters) == 0;
}

} // namespace

Starved starved(const ScheduledThread &thread, std::span<const ScheduledThread> others)
{
    Starved found;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &thread.cpus))
            continue;
        const ScheduledThread *by = nullptr;
        for (const ScheduledThread &other : others)
            if (other.priority > 0 && other.priority >= thread.priority && stays_on(other, cpu) &&
                !sleeps(other) && (by == nullptr || other.priority > by->priority))
                by = &other;
        if (by == nullptr)
            return {};
        // To run it has to be above one of them: the lowest will do.
        if (found.by == nullptr || by->priority < found.by->priority)
            found = {by, cpu};
    }
    return found;
}

void describe(const Starved &starved, bool raised, char *text, size_t bytes)
{
    const int length = std::snprintf(
        text, bytes, "thread %s (%d) polls with real-time priority %d on CPU %d, its only one: ",
        starved.by->name, static_cast<int>(starved.by->id), starved.by->priority, starved.cpu);
    if (length < 0 || static_cast<size_t>(length) >= bytes)
        return;
    const size_t used = static_cast<size_t>(length);
    if (raised)
        std::snprintf(text + used, bytes - used, "it has priority %d from now on",
                      starved.by->priority + 1);
    else
        std::snprintf(text + used, bytes - used,
                      "heartbeats stop; start the program with a CPU that no lcore has (taskset "
                      "-c), or permit priority %d (CAP_SYS_NICE, ulimit -r)",
                      starved.by->priority + 1);
}

bool leave_starvation()
{
    ScheduledThread self;
    ScheduledThread others[threads_max];
    const pid_t own = gettid();
    if (!look_at(own, &self))
        return false;
    const Starved found = starved(self, {others, look_at_others(own, others, threads_max)});
    if (found.by == nullptr)
        return false;
    const bool raised = raise_above(found.by->priority);
    char text[320];
    describe(found, raised, text, sizeof(text));
    // Devices that are opened again and again must not fill a log.
    static std::atomic<bool> said{false};
    if (said.exchange(true))
        PLX_LOG(INFO, "control thread %s: %s\n", self.name, text);
    else
        PLX_LOG(WARNING, "control thread %s: %s\n", self.name, text);
    return true;
}

} // namespace plx::pmd
