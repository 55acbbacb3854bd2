// SPDX-License-Identifier: BSD-3-Clause
// What EEPROM and firmware do to a chip before a driver sees it. Under the host's lock.
#ifndef PLX_TWIN_HOST_POWER_HPP
#define PLX_TWIN_HOST_POWER_HPP

#include "chip/chip.hpp"
#include "chip/power_on.hpp"

namespace plx::twin
{

class Host;

/// What a new chip holds, after power was off.
void power_on_anew(Host &host);
/// What EEPROM and firmware do to a card before a driver sees it. Under the lock.
void power_up(Host &host);
/// Power-on values in a chip that is in use: to either host, the link goes down and up.
void restart_chip(Host &host);
/// What a process brings to the chip that it found: the end of earlier faults, the EEPROM of this
/// run, and what firmware does.
void settle_in(Host &host);
/// Whether this host can go on with a chip that was kept for it, or shared, while others could
/// write it.
bool is_usable(const Host &host, const Chip &chip);
/// The peer is lost. If it has written in the own chip what no register write does, the chip is
/// restarted, for the next one.
void mend_chip(Host &host);
PowerOn power_values(const Host &host);
/// As configuration cycles have a DMA function take down its bus number.
void capture_bus(Host &host, unsigned channel);

} // namespace plx::twin

#endif
