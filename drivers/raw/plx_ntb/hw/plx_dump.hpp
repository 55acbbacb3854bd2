// SPDX-License-Identifier: BSD-3-Clause
// Prints what a live chip holds, register by register, from the table of facts.
#ifndef PLX_DUMP_HPP
#define PLX_DUMP_HPP

#include "plx_identify.hpp"

#include <cstdio>

namespace plx::hw
{

/// Writes the registers of the chip behind @p io to @p out: chip-wide ones, the stations and ports
/// that matter to this NT port, both its blocks, the DMA functions. Reads only; passes over what
/// must not be read (E4, E6) and what a read would change, and says so. Any thread.
void dump(const RegIo &io, const Identity &id, FILE *out);

/// Writes the errata that apply to @p id and what is done about them.
void dump_quirks(const Identity &id, FILE *out);

} // namespace plx::hw

#endif
