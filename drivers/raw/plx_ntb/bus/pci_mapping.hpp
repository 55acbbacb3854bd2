// SPDX-License-Identifier: BSD-3-Clause
// How stores reach a mapped BAR: combined into whole lines, or one by one (erratum E29). Derived
// from files of the system, never measured. No EAL: pure functions over texts.
#ifndef PLX_NTB_BUS_PCI_MAPPING_HPP
#define PLX_NTB_BUS_PCI_MAPPING_HPP

#include <cstddef>
#include <cstdint>

namespace plx::pmd
{

/// The kernel driver through which user space accesses the BARs.
enum class KernelDriver : uint8_t { none, uio_pci_generic, igb_uio, vfio_pci };

struct BarMapping {
    bool write_combining = false;
    const char *why = ""; ///< reason, for the log
};

/// What the system knows of the BAR.
struct MappingFacts {
    KernelDriver driver = KernelDriver::none;
    const char *maps = "";   ///< text of /proc/self/maps
    const char *mtrr = "";   ///< text of /proc/mtrr
    bool igb_uio_wc = false; ///< module parameter wc_activate
};

/// @param addr where the BAR is mapped, @param bus and @param bytes where it lies physically
BarMapping bar_mapping(const MappingFacts &facts, uintptr_t addr, uint64_t bus, uint64_t bytes);

/// What is mapped at @p addr, from the text of /proc/self/maps.
/// @return the length of the path put in @p out (cut at @p size); 0: nothing, or no file
size_t mapped_path(const char *maps, uintptr_t addr, char *out, size_t size);
/// Whether a write-combining MTRR covers [bus, bus + bytes), from the text of /proc/mtrr.
bool mtrr_combines(const char *mtrr, uint64_t bus, uint64_t bytes);

} // namespace plx::pmd

#endif
