// SPDX-License-Identifier: BSD-3-Clause
// What registers hold before they are written: power-on values, resets, and what a test or a
// register dump puts there.
#ifndef PLX_TWIN_CHIP_POWER_ON_HPP
#define PLX_TWIN_CHIP_POWER_ON_HPP

#include "chip/chip.hpp"

namespace plx::twin
{

/// What a board's EEPROM gives the chip beyond the values of the register table.
struct PowerOn {
    uint64_t bar_bytes[2][2] = {};  ///< by index_of() the side; of BAR2 and BAR4
    unsigned dma_channels = 0;      ///< of the chip
    unsigned dma_link_channels = 0; ///< the last so many are the NT port's
    bool dma_flr = true;
    bool dma_port_assign = true; ///< see Switches
};
/// Power-on values in every register. For a chip that no other process has mapped yet.
void power_on(Chip &chip, const PowerOn &values);
/// What DL_Down does to the link block. May be cut off anywhere and done again.
void reset_link_block(Chip &chip, const PowerOn &values);
/// Garbage from @p seed in every writable register but those that only an EEPROM or the host's
/// firmware sets: BARs and their set-up of the virtual side, of a chip that is @p shared also of
/// the link side, VS0_UPSTREAM, and how DMA channels are shared out.
void scramble(Chip &chip, uint64_t seed, bool shared);

// ---- DMA functions (dma_power.cpp)

/// Their part of power_on().
void power_on_dma(Chip &chip, const PowerOn &values);
/// The register table's power-on values.
void reset_dma_block(Chip &chip, unsigned channel);
/// Reads what an EEPROM left in the registers that share out DMA channels (Q11).
void assign_dma(Chip &chip, const PowerOn &values);
/// What DL_Down does to the DMA functions beyond the link, which a hung engine survives. May be cut
/// off anywhere and done again.
void reset_link_dma(Chip &chip, const PowerOn &values);
/// What a function-level reset leaves of a DMA function: nothing that an EEPROM gave it (E11).
void reset_dma_function(Chip &chip, unsigned channel, const PowerOn &values);

// ---- what no register write changes (identity.cpp)

/// What a chip says it is: its read-only registers in both blocks of the cabled NT port, and how
/// its ports are shared out. A peer that maps the chip can overwrite it all the same.
struct ChipIdentity {
    uint32_t words[2][16] = {};
    uint32_t upstream = 0; ///< VS0_UPSTREAM
};
ChipIdentity identity_of(const Chip &chip);
bool same_identity(const ChipIdentity &a, const ChipIdentity &b);
void restore_identity(Chip &chip, const ChipIdentity &identity);
/// Whether a driver finds NT port @p nt of a PLX chip there, both of whose sides say what they are.
bool shows_identity(const Chip &chip, unsigned nt);

/// Puts into a register what a card was seen to hold, whatever a write would do to it. Registers
/// that the twin lacks, those that the host's firmware sets, and capabilities stay as they are;
/// VS0_UPSTREAM too, where it does not enable the cabled NT port.
void preset(Chip &chip, uint32_t offset, uint32_t value);

} // namespace plx::twin

#endif
