// SPDX-License-Identifier: BSD-3-Clause
// What raises the interrupts of a chip's NT functions: doorbells and link errors, by INTx or MSI.
#ifndef PLX_TWIN_CHIP_INTERRUPT_HPP
#define PLX_TWIN_CHIP_INTERRUPT_HPP

#include "chip/chip.hpp"

namespace plx::twin
{

struct Switches;

/// Whether MSI takes the place of INTx.
bool msi_enabled(const Chip &chip, facts::Side side);
/// Sets doorbells: @p at is the CSR offset of the set register, @p bits are of a doorbell.
void set_doorbells(Chip &chip, uint32_t at, uint32_t bits);
/// Latches link errors of the virtual block.
void latch_link_errors(Chip &chip, uint32_t bits);

/// The rules for raising interrupts of @p chip. Set by the host on @p side.
void interrupt_rules(Chip &chip, facts::Side side, const Switches &switches);
/// Whether the host on @p side of @p chip is to be called: INTx is asserted, or a message is under
/// way.
bool interrupt_due(const Chip &chip, facts::Side side);

/// Whether the function of channel @p channel interrupts its host.
bool dma_interrupt_due(const Chip &chip, unsigned channel);

} // namespace plx::twin

#endif
