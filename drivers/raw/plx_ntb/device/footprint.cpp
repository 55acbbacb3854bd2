// SPDX-License-Identifier: BSD-3-Clause
#include "device/footprint.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <rte_lcore.h>

#include "queue/wire.hpp"

namespace plx::pmd
{

namespace
{

// What the kernel reports is bounded before use.
constexpr uint64_t cache_bytes_low = uint64_t{128} << 10, cache_bytes_high = uint64_t{16} << 20;
/// A ring of so many private caches: its lines have left the writer's before they are written
/// again.
constexpr uint64_t ring_caches = 4;
/// The receive buffers that one queue pair keeps available to the peer.
constexpr uint64_t buffer_caches = 2;
constexpr unsigned cache_index_most = 8; // index0 to index7

/// The first word of a small file of sysfs. @return false: there is none
bool read_word(const char *folder, unsigned cpu, unsigned index, const char *name, char (&word)[32])
{
    char path[512];
    std::snprintf(path, sizeof(path), "%s/cpu%u/cache/index%u/%s", folder, cpu, index, name);
    FILE *file = std::fopen(path, "re");
    if (file == nullptr)
        return false;
    const bool read = std::fscanf(file, "%31s", word) == 1;
    std::fclose(file);
    return read;
}

/// "1024K" as bytes; 0: not a size.
uint64_t parse_size(const char *text)
{
    if (text[0] < '0' || text[0] > '9')
        return 0;
    char *end = nullptr;
    const unsigned long long value = std::strtoull(text, &end, 10);
    const unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 0;
    return value <= UINT32_MAX ? uint64_t{value} << shift : 0;
}

uint64_t second_level(const char *folder, unsigned cpu)
{
    char word[32];
    for (unsigned index = 0; index < cache_index_most; ++index) {
        if (!read_word(folder, cpu, index, "level", word))
            return 0;
        if (std::strcmp(word, "2") != 0 || !read_word(folder, cpu, index, "type", word) ||
            std::strcmp(word, "Instruction") == 0)
            continue;
        return read_word(folder, cpu, index, "size", word) ? parse_size(word) : 0;
    }
    return 0;
}

/// A wish, and what has bounded it.
struct Bounded {
    uint64_t value;
    SizedBy by;

    void at_most(uint64_t most, SizedBy why)
    {
        if (value > most)
            *this = {most, why};
    }
};

Bounded ring_of(const Machine &machine, uint64_t cache, uint32_t queues, uint64_t buffers_bytes)
{
    const uint64_t bytes_of_line = uint64_t{queues} * wire::line_bytes;
    Bounded lines{std::bit_ceil(ring_caches * cache / wire::line_bytes), SizedBy::cache};
    lines.at_most(wire::ring_lines_max, SizedBy::limit);
    lines.at_most(rings_bytes_most / bytes_of_line, SizedBy::memory);
    // The block is a power of two: what receive buffers leave of the largest, and some for the
    // rings that name them.
    if (const uint64_t window = machine.window_bytes; window != 0) {
        const uint64_t used = buffers_bytes + window / 16;
        lines.at_most(window > used ? (window - used) / bytes_of_line : 0, SizedBy::window);
    }
    // Half remains for receive buffers, as many as fit.
    if (machine.memory_bytes != 0)
        lines.at_most(machine.memory_bytes / 2 / bytes_of_line, SizedBy::memory);
    if (lines.value < ring_lines_least)
        return {ring_lines_least, SizedBy::limit};
    return {std::bit_floor(lines.value), lines.by};
}

Bounded buffers_of(const Machine &machine, uint64_t cache, uint32_t queues, uint32_t element_bytes)
{
    const uint64_t of_queue = (buffer_caches * cache + element_bytes - 1) / element_bytes;
    // Half of them are in the rings; the application holds the others.
    Bounded buffers{2 * queues * of_queue, SizedBy::cache};
    buffers.at_most(buffers_bytes_most / element_bytes, SizedBy::memory);
    if (machine.window_bytes != 0)
        buffers.at_most(machine.window_bytes / 2 / element_bytes, SizedBy::window);
    return buffers.value < buffers_least ? Bounded{buffers_least, SizedBy::limit} : buffers;
}

} // namespace

const char *sized_by_name(SizedBy by)
{
    switch (by) {
    case SizedBy::given:
        return "given";
    case SizedBy::cache:
        return "cache";
    case SizedBy::limit:
        return "limit";
    case SizedBy::memory:
        return "memory";
    case SizedBy::window:
        return "window";
    }
    return "?";
}

Footprint choose_footprint(const Machine &machine, uint32_t queues, uint32_t element_bytes,
                           uint32_t given)
{
    const uint64_t cache =
        std::clamp(private_cache(machine.cache_bytes).bytes, cache_bytes_low, cache_bytes_high);
    const Bounded buffers = given != 0 ? Bounded{given, SizedBy::given}
                                       : buffers_of(machine, cache, queues, element_bytes);
    const Bounded ring = ring_of(machine, cache, queues, buffers.value * element_bytes);
    return {.ring_lines = static_cast<uint32_t>(ring.value),
            .ring_by = ring.by,
            .buffers = static_cast<uint32_t>(buffers.value),
            .buffers_by = buffers.by};
}

uint64_t read_private_cache(const char *folder, std::span<const unsigned> cpus)
{
    uint64_t largest = 0;
    for (const unsigned cpu : cpus)
        largest = std::max(largest, second_level(folder, cpu));
    return largest;
}

uint64_t read_private_cache()
{
    unsigned cpus[RTE_MAX_LCORE];
    size_t count = 0;
    unsigned lcore;
    RTE_LCORE_FOREACH(lcore)
    cpus[count++] = static_cast<unsigned>(rte_lcore_to_cpu_id(static_cast<int>(lcore)));
    return read_private_cache("/sys/devices/system/cpu", {cpus, count});
}

} // namespace plx::pmd
