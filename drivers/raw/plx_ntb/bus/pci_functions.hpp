// SPDX-License-Identifier: BSD-3-Clause
// Which PCI functions are the DMA engines of the chip of an NT endpoint. No EAL: a pure function.
#ifndef PLX_NTB_BUS_PCI_FUNCTIONS_HPP
#define PLX_NTB_BUS_PCI_FUNCTIONS_HPP

#include <cstdint>
#include <span>

#include "hw/facts/plx_regs.hpp"

namespace plx::pmd
{

struct PciFunction {
    uint32_t domain = 0;
    uint8_t bus = 0;
    uint8_t device = 0;
    uint8_t function = 0;
    uint16_t vendor_id = 0;
    uint16_t device_id = 0;
    uint32_t class_id = 0; ///< base class, sub-class, interface

    constexpr uint16_t requester() const
    {
        return static_cast<uint16_t>(bus << 8 | device << 3 | function);
    }
};

/// The engines sit beside the upstream port of the switch, functions 1 to 4 of its device (SDK: R),
/// which is two bridges above the NT virtual endpoint (VCA: R). Those that an EEPROM gave to the
/// host on the link side are further functions beside the NT link endpoint (D, I: Q11).
/// @param side   of the NT endpoint
/// @param path   canonical folder of the NT endpoint in sysfs, whose last parts are the bridges
///   above it: .../0000:02:00.0/0000:03:08.0/0000:04:00.0
/// @param all    functions to choose from
/// @param found  receives indices into @p all, in the order of the function numbers
/// @return how many were found
unsigned dma_functions_of(facts::Side side, const char *path, std::span<const PciFunction> all,
                          std::span<unsigned> found);
/// Whether a function is a DMA engine by its ids and class.
bool is_engine(const PciFunction &function);

} // namespace plx::pmd

#endif
