// SPDX-License-Identifier: BSD-3-Clause
// The operations of one DMA channel of a PEX 87xx, in the chip's words, over the register border:
// a ring of descriptors in host memory that the engine walks in order and writes back. No DPDK, no
// heap. doc/dma.md has the whole picture.
//
// The border leads to the channel's own function: offset 0 is its configuration space, the channel
// registers begin at 0x200 (LPD, SDK, VCA: R). Configuration cycles are not used.
//
// Threads: one at a time per channel, but start(), which any thread may call at any time.
#ifndef PLX_NTB_HW_DMA_HPP
#define PLX_NTB_HW_DMA_HPP

#include <cstdint>

#include "facts/plx_fields.hpp"
#include "facts/plx_regs.hpp"
#include "identify.hpp"
#include "reg_io.hpp"

namespace plx::hw
{

/// A standard descriptor as it lies in host memory, little-endian.              LPD;VCA;SDK R
struct alignas(facts::dma_desc_bytes) DmaDescriptor {
    uint32_t words[4];

    static constexpr unsigned control = 0; ///< VALID and the byte count; written last
    static constexpr unsigned high = 1;    ///< bits 47 to 32 of both addresses
    static constexpr unsigned dst_low = 2; ///< bus address, bits 31 to 0
    static constexpr unsigned src_low = 3; ///< bus address, bits 31 to 0
};
static_assert(sizeof(DmaDescriptor) == facts::dma_desc_bytes);

inline constexpr uint64_t dma_address_end = uint64_t{1} << facts::dma_addr_bits;

/// Bits of a descriptor's first word: VALID until the engine is done with it, then what came of it.
inline constexpr uint32_t dma_valid = facts::detail::field_of("DMA_DESC_DW0", "VALID").mask();
inline constexpr uint32_t dma_done_ok =
    facts::detail::field_of("DMA_DESC_DW0_WB", "SUCCESS").mask();
inline constexpr uint32_t dma_read_failed =
    facts::detail::field_of("DMA_DESC_DW0_WB", "READ_FAIL").mask();
inline constexpr uint32_t dma_write_failed =
    facts::detail::field_of("DMA_DESC_DW0_WB", "WRITE_FAIL").mask();
inline constexpr uint32_t dma_size_mask = facts::detail::field_of("DMA_DESC_DW0_WB", "SIZE").mask();

/// Where a channel's descriptors lie.
struct DmaRing {
    uint64_t bus;   ///< as the engine addresses it; multiple of dma_ring_align
    uint32_t slots; ///< behind them, dma_ring_slack more that are never valid
};
/// The chip rounds to 64 (SDK) or 16 (VCA); a page suits both (Q12).
inline constexpr uint32_t dma_ring_align = 4096;
/// Descriptors that the engine fetches ahead. LPD R
inline constexpr uint32_t dma_prefetch = 8;
/// What the engine may fetch beyond the ring's end before it wraps.                       VCA R
inline constexpr uint32_t dma_ring_slack = dma_prefetch + 1;

class DmaChannel
{
public:
    /// Identifies a channel; writes nothing.
    /// @param channels that the chip shows on either side: it divides their memory by them
    /// @return 0; -ENODEV nothing answers; -EIO the engine is dead: it was found in progress and
    ///   does not end (E9), which only a reset of the switch repairs
    int open(const RegIo &io, unsigned channels, Refusal *why);

    /// Initializes the channel, whatever state it is in, to execute @p ring from its first slot.
    /// Writes all registers, including tuning, since a function-level reset may have cleared them
    /// (E11; VFIO does one whenever it opens or closes the function). Does not start it.
    /// @return 0; -EINVAL the ring; -EIO in progress, or it was cut off; -ENODEV
    int program(const DmaRing &ring, Refusal *why);

    /// Starts the engine: it polls for valid descriptors where it stopped. One posted write;
    /// harmless while it runs (Q13).
    void start() const;

    struct Status {
        bool answers;
        bool in_progress;
        uint32_t last; ///< low half of the address of the descriptor fetched or done last (Q8)
    };
    Status status() const;

    enum class Rest {
        moving,  ///< ask again
        at_rest, ///< halted until program() and start()
        cut_off, ///< it could not be halted: bus mastering is off, and program() refuses it
        gone,    ///< its registers are not there: the card, or the link that it is beyond. If they
                 ///< come back, ask again before program()
    };
    /// One step of halting: graceful pause, immediate pause, abort, and finally bus mastering off;
    /// some milliseconds each. Never waits. Afterwards bus mastering is off and the registers hold
    /// no ring (E7), so that a late start() reads no memory.
    /// @param now_us a clock
    Rest rest(uint64_t now_us);

private:
    enum class Step : uint8_t { none, pause, immediate, abort, off };

    bool running() const;
    bool next_step(uint32_t found, uint64_t now_us);
    void take(Step step, uint64_t now_us);
    void clear_ring() const;
    void tune() const;
    void set_bus_master(bool on) const;

    RegIo io_;
    unsigned channels_ = 0;
    Step step_ = Step::none;
    uint64_t since_us_ = 0;
    bool cut_off_ = false;
    bool lost_ = false; ///< it did not answer, and has not been at rest since
};

/// The EEPROM's assignment of the chip's DMA channels to its ports. The meaning of these registers
/// is inferred (Q11): only log messages, and station memory after a reset, depend on it.
struct DmaShares {
    unsigned shown = 0;    ///< channels that the chip has; 0: it does not say
    unsigned own = 0;      ///< those in the hierarchy of this host
    uint32_t assigned = 0; ///< register 1FC, a port for each channel
};
/// @param chip  CSR space of the NT function. Reads only.
DmaShares dma_shares(const RegIo &chip, const Identity &id);

} // namespace plx::hw

#endif
