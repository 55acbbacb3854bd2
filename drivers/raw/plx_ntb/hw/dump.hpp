// SPDX-License-Identifier: BSD-3-Clause
// Prints the registers of a running chip by the table of facts.
#ifndef PLX_NTB_HW_DUMP_HPP
#define PLX_NTB_HW_DUMP_HPP

#include <cstdint>
#include <cstdio>
#include <string_view>

#include "identify.hpp"

namespace plx::hw
{

/// Writes the registers of the chip behind @p io to @p out: chip-wide ones, the stations and ports
/// that matter to this NT port, both its blocks, the DMA functions. Reads only; skips registers
/// that must not be read (E4, E6) or that a read changes, and says so. Any thread.
void dump(const RegIo &io, const Identity &id, FILE *out);

/// A register that was read; an element of an array has its index.
struct RegValue {
    std::string_view name;
    uint32_t count; ///< elements of the array; 1: none
    uint32_t index;
    uint32_t csr;
    uint32_t value;
};

/// The parts of a chip that read_part() knows.
inline constexpr std::string_view dump_parts[] = {
    "chip",    "station", "upstream_port", "nt_port", "nt_virtual",
    "nt_link", "dma0",    "dma1",          "dma2",    "dma3"};

/// Reads the registers of one part, but for those that must not be read or that a read changes.
/// Any thread.
/// @return 0; -EINVAL no such part
int read_part(const RegIo &io, const Identity &id, std::string_view part,
              void (*each)(const RegValue &, void *arg), void *arg);

/// Writes the errata that apply to @p id and their workarounds.
void dump_quirks(const Identity &id, FILE *out);

} // namespace plx::hw

#endif
