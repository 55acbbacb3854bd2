// SPDX-License-Identifier: BSD-3-Clause
// The interrupts of a chip's NT functions: what raises it, and how its host gets to know.
#ifndef PLX_TWIN_HOST_INTERRUPT_HPP
#define PLX_TWIN_HOST_INTERRUPT_HPP

#include "chip/chip.hpp"

namespace plx::twin
{

class Host;
struct Switches;

/// Whether MSI takes the place of INTx.
bool msi_enabled(const Chip &chip, facts::Side side);
/// Sets doorbells: @p at is the CSR offset of the set register, @p bits are of a doorbell.
void set_doorbells(Chip &chip, uint32_t at, uint32_t bits);
/// Latches link errors of the virtual block.
void latch_link_errors(Chip &chip, uint32_t bits);

/// The rules that whoever raises an interrupt of @p chip goes by. By the host on @p side.
void interrupt_rules(Chip &chip, facts::Side side, const Switches &switches);
/// Whether the host on @p side of @p chip is to be called: INTx is asserted, or a message is under
/// way.
bool interrupt_due(const Chip &chip, facts::Side side);

// ---- under the host's lock

/// After an access of the host to its own chip.
void look_at_interrupt(Host &host);
/// After what may have raised the interrupt of the other end: an access to its chip, a link that
/// changed.
void tell_interrupt(Host &host);

/// Calls the callback once if it is to be called. On the cable's thread, without the lock.
void deliver_interrupt(Host &host);

} // namespace plx::twin

#endif
