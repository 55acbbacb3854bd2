// SPDX-License-Identifier: BSD-3-Clause
// How the registers of a chip answer: access types, aliases, what a write sets off.
#ifndef PLX_TWIN_CHIP_REGISTERS_HPP
#define PLX_TWIN_CHIP_REGISTERS_HPP

#include "chip/chip.hpp"

namespace plx::twin
{

/// @param requester requester ID of the read
/// @param link_up whether LinkSts shows a trained link
uint32_t reg_read(const Chip &chip, uint32_t offset, uint16_t requester, bool link_up);
/// @return whether the write may have moved what windows lead to
bool reg_write(Chip &chip, uint32_t offset, uint32_t value, uint64_t now_ns);
/// Whether a write there raises doorbells.
bool is_doorbell_set(uint32_t offset);

/// Whether a register is A-LUT RAM.
bool is_alut_ram(uint32_t offset);

/// The port of the cabled NT, and its bit in PORT_CONTROL of its station.
struct CablePort {
    bool exists = false;
    uint32_t control = 0; ///< CSR offset of PORT_CONTROL
    uint32_t bit = 0;
    uint32_t number = 0;
};
CablePort cable_port(const Chip &chip);

} // namespace plx::twin

#endif
