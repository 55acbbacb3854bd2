// SPDX-License-Identifier: BSD-3-Clause
#include "session/footprint.hpp"

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace bench
{

namespace
{

struct Mapping {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    uint64_t inode = 0;
    std::string file;
    uint64_t bytes = 0;

    bool contains(const void *at) const
    {
        const auto address = reinterpret_cast<uintptr_t>(at);
        return begin <= address && address < end;
    }
};

/// @return whether the line begins a mapping
bool parse_head(const std::string &line, Mapping &mapping)
{
    int path_at = 0;
    if (sscanf(line.c_str(), "%lx-%lx %*s %*x %*x:%*x %lu %n", &mapping.begin, &mapping.end,
               &mapping.inode, &path_at) != 3)
        return false;
    mapping.file = line.substr(static_cast<size_t>(path_at));
    return true;
}

/// Pages of both kinds: huge ones are no part of Rss.
uint64_t parse_bytes(const std::string &line)
{
    uint64_t kib = 0;
    for (const char *format : {"Rss: %lu kB", "Shared_Hugetlb: %lu kB", "Private_Hugetlb: %lu kB"})
        if (sscanf(line.c_str(), format, &kib) == 1)
            return kib * 1024;
    return 0;
}

std::vector<Mapping> read_mappings()
{
    std::vector<Mapping> mappings;
    std::ifstream file("/proc/self/smaps");
    for (std::string line; std::getline(file, line);) {
        Mapping next;
        if (parse_head(line, next))
            mappings.push_back(next);
        else if (!mappings.empty())
            mappings.back().bytes += parse_bytes(line);
    }
    return mappings;
}

} // namespace

uint64_t own_footprint(const void *apart, const void *window)
{
    const std::vector<Mapping> mappings = read_mappings();
    Mapping own;
    for (const Mapping &mapping : mappings)
        if (mapping.contains(window))
            own = mapping;
    uint64_t bytes = 0;
    for (const Mapping &mapping : mappings) {
        const bool of_peer =
            mapping.inode != 0 && mapping.file == own.file && mapping.inode != own.inode;
        if (!of_peer && !mapping.contains(apart))
            bytes += mapping.bytes;
    }
    return bytes;
}

} // namespace bench
