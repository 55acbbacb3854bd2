// SPDX-License-Identifier: BSD-3-Clause
// The default sizes of a device, chosen from the caches of the machine
// (doc/decisions/013-footprint.md).
#ifndef PLX_NTB_DEVICE_FOOTPRINT_HPP
#define PLX_NTB_DEVICE_FOOTPRINT_HPP

#include <cstddef>
#include <cstdint>
#include <span>

namespace plx::pmd
{

/// What decided a size. Values of the attributes "queue_size_by" and "buffers_by".
enum class SizedBy : uint32_t {
    given,  ///< devarg, configuration or attribute
    cache,  ///< the private cache of a core
    limit,  ///< the smallest or largest default
    memory, ///< the memory that a device takes by default, or that was found
    window, ///< the memory window
};
const char *sized_by_name(SizedBy by);

/// What the defaults depend on.
struct Machine {
    uint64_t cache_bytes = 0;  ///< largest private cache of a core (L2); 0: not known
    uint64_t window_bytes = 0; ///< what the memory window has for the block; 0: does not matter
    uint64_t memory_bytes = 0; ///< of the block, when less was found than planned; 0: enough
};

struct Footprint {
    uint32_t ring_lines; ///< power of two
    SizedBy ring_by;
    uint32_t buffers;
    SizedBy buffers_by;
};

/// Assumed where the system does not say.
inline constexpr uint64_t cache_bytes_default = uint64_t{1} << 20;

/// The private cache that sizes are chosen for.
struct PrivateCache {
    uint64_t bytes;
    const char *mark; ///< " (assumed)" where the system does not say, else nothing
};
/// @param reported  as the system says; 0: it does not
constexpr PrivateCache private_cache(uint64_t reported)
{
    return reported != 0 ? PrivateCache{reported, ""}
                         : PrivateCache{cache_bytes_default, " (assumed)"};
}

/// Defaults do not go below these, whatever the machine.
inline constexpr uint32_t ring_lines_least = 4096;
inline constexpr uint32_t buffers_least = 4096;
/// Memory that the defaults take at most, for all rings and for all receive buffers of a device:
/// together less than 64 MiB, for blocks are powers of two.
inline constexpr uint64_t rings_bytes_most = uint64_t{32} << 20;
inline constexpr uint64_t buffers_bytes_most = uint64_t{28} << 20;

/// @param queues        queue pairs, at least 1
/// @param element_bytes memory of one receive buffer
/// @param given         receive buffers; 0: chosen
Footprint choose_footprint(const Machine &machine, uint32_t queues, uint32_t element_bytes,
                           uint32_t given = 0);

/// The largest second-level data cache of the CPUs @p cpus, as the kernel reports it below
/// @p folder (/sys/devices/system/cpu). @return bytes; 0: none is reported
uint64_t read_private_cache(const char *folder, std::span<const unsigned> cpus);
/// The same for the lcores of this process.
uint64_t read_private_cache();

} // namespace plx::pmd

#endif
