// SPDX-License-Identifier: BSD-3-Clause
#include "machine.hpp"

#include <algorithm>
#include <fstream>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <vector>

namespace app
{

namespace
{

/// The value behind "key :" or "key:" of a file of such lines, or nothing.
std::string value_of(const char *path, std::string_view key)
{
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (line.compare(0, key.size(), key) != 0)
            continue;
        const size_t colon = line.find(':');
        const size_t begin = line.find_first_not_of(" \t", colon + 1);
        return colon == std::string::npos || begin == std::string::npos ? "" : line.substr(begin);
    }
    return {};
}

unsigned number_of(const char *path, std::string_view key)
{
    return static_cast<unsigned>(strtoul(value_of(path, key).c_str(), nullptr, 10));
}

std::vector<unsigned> allowed_cpus()
{
    std::vector<unsigned> cpus;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return cpus;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set))
            cpus.push_back(cpu);
    return cpus;
}

std::string first_line_of(const char *path)
{
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

/// Names the core of a CPU: two threads of one core give the same text.
std::string core_of(unsigned cpu)
{
    const std::string path =
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list";
    return first_line_of(path.c_str());
}

} // namespace

Machine read_machine()
{
    utsname names = {};
    uname(&names);
    return {value_of("/proc/cpuinfo", "model name"),
            std::string(names.sysname) + " " + names.release,
            first_line_of("/proc/sys/kernel/random/boot_id"),
            static_cast<unsigned>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))),
            number_of("/proc/meminfo", "HugePages_Total"),
            number_of("/proc/meminfo", "HugePages_Free"),
            strtod(first_line_of("/proc/loadavg").c_str(), nullptr)};
}

std::optional<std::pair<unsigned, unsigned>> choose_cpus()
{
    const std::vector<unsigned> cpus = allowed_cpus();
    if (cpus.size() < 2)
        return std::nullopt;
    for (size_t i = 1; i < cpus.size(); i++)
        if (core_of(cpus[i]) != core_of(cpus[0]))
            return std::pair{cpus[0], cpus[i]};
    return std::pair{cpus[0], cpus[1]};
}

} // namespace app
