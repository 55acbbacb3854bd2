// SPDX-License-Identifier: BSD-3-Clause
// Doorbells that faults lose or keep back on their way into a chip.
#ifndef PLX_TWIN_CHIP_DOORBELL_FAULTS_HPP
#define PLX_TWIN_CHIP_DOORBELL_FAULTS_HPP

#include "chip/chip.hpp"

namespace plx::twin
{

/// Longest that late_doorbells may keep one back.
inline constexpr uint32_t late_us_max = 60'000'000;

/// A doorbell write of the peer on its way into @p chip. @return whether a fault swallows it or
/// keeps it back
bool doorbell_faulty(Chip &chip, uint32_t offset, uint32_t value, uint64_t now_ns);
/// Lets those arrive that were kept back and are due. At any register access.
void doorbells_arrive(Chip &chip, uint64_t now_ns);
/// No such fault any more towards @p side; what is kept back is lost.
void end_doorbell_faults(Chip &chip, facts::Side side);

} // namespace plx::twin

#endif
