// SPDX-License-Identifier: BSD-3-Clause
// Checks whether the driver can use the BARs of an NT endpoint. No EAL.
#ifndef PLX_NTB_BUS_PCI_BARS_HPP
#define PLX_NTB_BUS_PCI_BARS_HPP

#include <cstddef>
#include <cstdint>

namespace plx::pmd
{

inline constexpr unsigned csr_bar = 0;    ///< the chip's registers
inline constexpr unsigned data_bar = 2;   ///< window into the peer's memory
inline constexpr unsigned shared_bar = 4; ///< the peer's registers at its start, then memory

/// A memory BAR as the system set it up.
struct PciBar {
    uint64_t bus = 0;          ///< physical address; 0: the firmware assigned none
    uint64_t bytes = 0;        ///< 0: absent
    std::byte *addr = nullptr; ///< address in this process
    bool is_64bit = false;
    bool prefetchable = false;
};

struct PciBars {
    PciBar csr, data, shared;
};

/// A sentence for the user: which BAR, what was found and expected, how to fix it.
struct BarFault {
    char text[240] = "";
};

/// Reads type bits from the BAR register of the configuration space.
constexpr void set_type(PciBar *bar, uint32_t bar_register)
{
    bar->is_64bit = (bar_register & 6) == 4;
    bar->prefetchable = (bar_register & 8) != 0;
}

/// @return whether the driver can use them; else *fault describes the first that it cannot
bool check_bars(const PciBars &bars, BarFault *fault);

/// DMA engines of the chip address 48 bits (SDK: R).
constexpr bool dma_reaches(const PciBar &bar)
{
    return bar.bytes != 0 && bar.bus < uint64_t{1} << 48 &&
           bar.bytes <= (uint64_t{1} << 48) - bar.bus;
}

} // namespace plx::pmd

#endif
