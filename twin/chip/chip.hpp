// SPDX-License-Identifier: BSD-3-Clause
// The state of one chip as it lies in memory that both ends of the cable map. The other process
// may store anything here at any time: every value is bounded where it is used, and no lock lives
// here. Only the owner of a chip carries out its link transitions (see link.hpp).
#ifndef PLX_TWIN_CHIP_CHIP_HPP
#define PLX_TWIN_CHIP_CHIP_HPP

#include "plx_regs.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace plx::twin
{

/// What an engine remembers beside its registers.
enum DmaState : uint32_t {
    dma_ran = 1,   ///< it walked a ring since its registers were zero
    dma_stale = 2, ///< and got another one without: E7
    dma_hung = 4,  ///< E9
};

/// In whose hierarchy a DMA function sits, which an EEPROM decides at power-on.
enum class DmaOwner : uint32_t {
    absent, ///< no such function
    virt,   ///< beside the upstream port
    link,   ///< beside the NT link endpoint
    other,  ///< beside another port
};

struct Chip {
    std::atomic<uint32_t> csr[facts::bar0_size / 4];
    std::atomic<uint64_t> id;            ///< random at power-on: another chip, another link
    std::atomic<uint64_t> partner;       ///< id of the chip it was last cabled to
    std::atomic<uint64_t> enabled_at;    ///< ns: when training could last begin at this end
    std::atomic<uint64_t> protect_until; ///< ns: test-pattern registers drop writes before that
    std::atomic<uint64_t> seen;          ///< the link state whose consequences are carried out
    std::atomic<uint32_t> downs;         ///< how often this end took the link down
    std::atomic<uint32_t> held_down;     ///< LinkHold: faults that hold the link down
    std::atomic<uint32_t> train_us;
    std::atomic<uint32_t>
        was_shared; ///< of a shared chip: whether two hosts have been on it at a time
    // Each towards the virtual, the link side.
    std::atomic<uint32_t> drop_doorbells[2];     ///< doorbell writes still to be lost
    std::atomic<uint32_t> late_us[2];            ///< doorbell writes take so long
    std::atomic<uint32_t> late_bits[2];          ///< those on their way
    std::atomic<uint64_t> late_until[2];         ///< ns: when they arrive; 0: none is on its way
    std::atomic<uint32_t> interrupt_notified[2]; ///< its host was notified and has not looked yet
    std::atomic<uint32_t> msi[2];                ///< a message is under way
    std::atomic<uint32_t> interrupt_rules;
    std::atomic<uint32_t> nt;                                    ///< see cabled_nt()
    std::atomic<uint32_t> dma_owner[facts::dma_function_count];  ///< see dma_owner()
    std::atomic<uint32_t> dma_state[facts::dma_function_count];  ///< DmaState
    std::atomic<uint32_t> dma_resets[facts::dma_function_count]; ///< counts: engines forget
    std::atomic<uint64_t> routes; ///< counts register writes that may have moved a way
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "shared between processes");

inline uint32_t get(const Chip &chip, uint32_t offset)
{
    return chip.csr[offset / 4].load();
}
inline uint64_t get64(const Chip &chip, uint32_t offset)
{
    return uint64_t{get(chip, offset + 4)} << 32 | get(chip, offset);
}

constexpr unsigned index_of(facts::Side side)
{
    return side == facts::Side::virt ? 0 : 1;
}

/// The NT port that the cable hangs on.
inline unsigned cabled_nt(const Chip &chip)
{
    return chip.nt.load() % facts::nt_count;
}
/// CSR offset of a block of that port.
inline uint32_t nt_block(const Chip &chip, facts::Side side)
{
    return facts::nt_base(cabled_nt(chip), side);
}

/// In whose hierarchy the function of channel @p channel sits.
inline DmaOwner dma_owner(const Chip &chip, unsigned channel)
{
    const auto last = static_cast<uint32_t>(DmaOwner::other);
    return static_cast<DmaOwner>(std::min(chip.dma_owner[channel].load(), last));
}
constexpr DmaOwner dma_owner_on(facts::Side side)
{
    return side == facts::Side::virt ? DmaOwner::virt : DmaOwner::link;
}

/// Whether @p offset lies in a DMA function's block. @param channel gets whose
inline bool in_dma_function(const Chip &chip, uint32_t offset, unsigned *channel)
{
    if (offset < facts::dma_base(0) || offset >= facts::dma_base(facts::dma_function_count))
        return false;
    *channel = (offset - facts::dma_base(0)) / facts::block_size;
    return dma_owner(chip, *channel) != DmaOwner::absent;
}

/// A new chip without power: all zeros. @return its descriptor or a negative errno.
int chip_create();
/// Maps a chip that @p fd holds. @return NULL unless @p fd is sealed memory of a chip's size.
Chip *chip_map(int fd);
/// Has another chip, that @p fd holds, lie where @p chip lies. @return false, and nothing has
/// changed, unless chip_map() would take it
bool chip_remap(Chip *chip, int fd);
void chip_unmap(Chip *chip);
/// A number that no other chip has.
uint64_t fresh_id();

} // namespace plx::twin

#endif
