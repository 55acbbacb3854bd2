// SPDX-License-Identifier: BSD-3-Clause
#include "base/memory_map.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>

int ntbmsg::check_mapped(const void *address, size_t bytes, bool writable)
{
    uint64_t at = reinterpret_cast<uintptr_t>(address);
    const uint64_t end = at + bytes;
    std::FILE *maps = std::fopen("/proc/self/maps", "re");
    if (maps == nullptr)
        return -errno;
    // Mappings are listed in ascending order; a longer line loses only part of the file's name.
    char line[512];
    uint64_t from = 0, to = 0;
    char rights[5] = {};
    while (at < end && std::fgets(line, sizeof(line), maps) != nullptr) {
        if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &from, &to, rights) != 3 || to <= at)
            continue;
        if (from > at || rights[0] != 'r' || (writable && rights[1] != 'w'))
            break;
        at = to;
    }
    std::fclose(maps);
    return at >= end ? 0 : -EFAULT;
}
