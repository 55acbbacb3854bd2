// SPDX-License-Identifier: BSD-3-Clause
#include "bus/pci_mapping.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace plx::pmd
{

namespace
{

/// Calls @p use(line, length) for each line until it returns true. @return whether it did
template <class Use>
bool any_line(const char *text, Use use)
{
    for (const char *line = text; *line != '\0';) {
        const char *end = std::strchr(line, '\n');
        const size_t length = end == nullptr ? std::strlen(line) : static_cast<size_t>(end - line);
        if (use(line, length))
            return true;
        line += length + (end == nullptr ? 0 : 1);
    }
    return false;
}

bool ends_with(const char *text, size_t length, const char *tail)
{
    const size_t n = std::strlen(tail);
    return length >= n && std::memcmp(text + length - n, tail, n) == 0;
}

} // namespace

size_t mapped_path(const char *maps, uintptr_t addr, char *out, size_t size)
{
    size_t found = 0;
    any_line(maps, [&](const char *line, size_t length) {
        uintptr_t from = 0, to = 0;
        int path = 0;
        // address-range permissions offset device inode path
        if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*4s %*x %*x:%*x %*u %n", &from, &to,
                        &path) != 2 ||
            addr < from || addr >= to)
            return false;
        // A line without a path ends before %n is reached, or at it.
        if (path > 0 && static_cast<size_t>(path) < length) {
            found = std::min(length - static_cast<size_t>(path), size - 1);
            std::memcpy(out, line + path, found);
        }
        return true;
    });
    out[found] = '\0';
    return found;
}

bool mtrr_combines(const char *mtrr, uint64_t bus, uint64_t bytes)
{
    return any_line(mtrr, [&](const char *line, size_t length) {
        char one[256] = "";
        std::memcpy(one, line, std::min(length, sizeof(one) - 1));
        // reg03: base=0x0c0000000 ( 3072MB), size= 1024MB, count=1: write-combining
        const char *base_at = std::strstr(one, "base=0x");
        const char *size_at = std::strstr(one, "size=");
        if (base_at == nullptr || size_at == nullptr ||
            std::strstr(one, ": write-combining") == nullptr)
            return false;
        uint64_t base = 0, size = 0;
        char unit = 0;
        if (std::sscanf(base_at, "base=0x%" SCNx64, &base) != 1 ||
            std::sscanf(size_at, "size=%" SCNu64 "%cB", &size, &unit) != 2)
            return false;
        const unsigned shift = unit == 'M' ? 20 : unit == 'K' ? 10 : 0;
        if (shift == 0 || size > UINT64_MAX >> shift)
            return false;
        size <<= shift;
        return bus >= base && bytes <= size && bus - base <= size - bytes;
    });
}

BarMapping bar_mapping(const MappingFacts &facts, uintptr_t addr, uint64_t bus, uint64_t bytes)
{
    char path[512];
    const size_t length = mapped_path(facts.maps, addr, path, sizeof(path));
    const bool from_wc_file = ends_with(path, length, "_wc");
    // igb_uio maps every memory BAR into the kernel, uncached, unless its parameter says no, and
    // the kernel gives a range one kind of mapping only.                                        G
    if (from_wc_file && (facts.driver != KernelDriver::igb_uio || facts.igb_uio_wc))
        return {true, "the kernel's write-combining resource file"};
    // A range that an MTRR makes write-combining stays so where the page tables ask for
    // uncached-minus, which is what the kernel gives for sysfs and vfio alike.                  G
    if (mtrr_combines(facts.mtrr, bus, bytes))
        return {true, "a write-combining MTRR"};
    switch (facts.driver) {
    case KernelDriver::vfio_pci:
        return {false, "vfio-pci maps BARs uncached"};
    case KernelDriver::igb_uio:
        return {false, "igb_uio was loaded without wc_activate=1"};
    case KernelDriver::uio_pci_generic:
    case KernelDriver::none:
        break;
    }
    return {false, "the kernel offers no write-combining resource file for it"};
}

} // namespace plx::pmd
