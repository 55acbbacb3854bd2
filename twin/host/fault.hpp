// SPDX-License-Identifier: BSD-3-Clause
// Faults on demand: what they leave in a chip, and what doorbells make of it.
#ifndef PLX_TWIN_HOST_FAULT_HPP
#define PLX_TWIN_HOST_FAULT_HPP

#include "chip/chip.hpp"

namespace plx::twin
{

class Host;

/// The faults of the process before end with it.
void faults_end(Host &host);
/// A doorbell write of the peer on its way into @p chip. @return whether a fault swallows it or
/// keeps it back
bool doorbell_faulty(Chip &chip, uint32_t offset, uint32_t value, uint64_t now_ns);
/// Lets those arrive that were kept back and are due. By anybody who looks.
void doorbells_arrive(Chip &chip, uint64_t now_ns);

} // namespace plx::twin

#endif
