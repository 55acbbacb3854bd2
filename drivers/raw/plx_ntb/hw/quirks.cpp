// SPDX-License-Identifier: BSD-3-Clause
#include "quirks.hpp"

namespace plx::hw
{

using facts::Family;

Quirks quirks_of(Family family)
{
    constexpr auto all = static_cast<uint32_t>(Quirk::pattern_write_lock) |
                         static_cast<uint32_t>(Quirk::link_loss_wipes);
    switch (family) {
    case Family::draco1:
        return Quirks(all | static_cast<uint32_t>(Quirk::no_nt_port_id) |
                      static_cast<uint32_t>(Quirk::forbidden_csrs));
    case Family::capella1:
    case Family::capella2:
        return Quirks(all | static_cast<uint32_t>(Quirk::indexed_lut));
    case Family::scout:
        return Quirks(all);
    case Family::draco2:
    case Family::unknown:
        break;
    }
    return Quirks(all | static_cast<uint32_t>(Quirk::alut_unreadable));
}

const QuirkRow quirk_rows[quirk_row_count] = {
    {1, Quirk::none, "a doorbell raises MSI only when the register goes from zero to non-zero",
     "FBSD;TNL R", "INTx is preferred; doorbells are cleared until they are zero"},
    {2, Quirk::pattern_write_lock, "test-pattern scratchpads refuse writes after link loss",
     "FBSD;TNL R", "write, read back, repeat for at most 1 ms; not used in bring-up"},
    {3, Quirk::link_loss_wipes, "link loss puts link-side registers back to reset", "FBSD R",
     "program_all() after every link event; VS_DEBUG bit 4 set"},
    {4, Quirk::no_nt_port_id, "Draco-1 AA has no NT_PORT_ID", "SDK R", "refused"},
    {4, Quirk::forbidden_csrs, "Draco-1 has CSRs that must not be touched", "SDK R",
     "the dump passes them over"},
    {5, Quirk::indexed_lut, "Capella has an indexed requester-ID table under the same device ids",
     "SDK R", "the chip id is read; refused"},
    {6, Quirk::alut_unreadable, "reading A-LUT RAM causes trouble", "SDK R",
     "a shadow is kept; another register is read to flush"},
    {7, Quirk::none, "after a reload the DMA ring may not start", "VCA R",
     "block and ring registers are cleared first; the ring is read back"},
    {8, Quirk::none, "the DMA engine may stop with work pending", "VCA R",
     "the control side looks, and starts it again"},
    {9, Quirk::none, "a completion timeout hangs the DMA engine", "VCA R",
     "time-out off; a channel found busy is refused, one that hangs is cut off"},
    {10, Quirk::none, "a DMA interrupt may overtake the write-back", "VCA R",
     "no interrupts: the descriptor is polled"},
    {11, Quirk::none, "function-level reset drops the DMA tuning of the EEPROM", "VCA R",
     "the tuning is written with every ring"},
    {12, Quirk::none, "a 32-bit write of DMA control drops the read size to 64 B", "LPD D",
     "every write gives the whole tuning"},
    {13, Quirk::none, "EEPROMs allow relaxed ordering on DMA writes", "EEP R",
     "bits 24 and 25 cleared"},
    {14, Quirk::none, "CPU reads, CPU writes and DMA carry different requester ids", "SDK;FBSD R",
     "table holds 0:0, the id read back, and those given"},
    {15, Quirk::none, "a public driver takes absent BARs for windows", "TNL D",
     "sizes are given by the caller and checked"},
    {16, Quirk::none, "a window of size zero fails the alignment test and stays open", "FBSD D",
     "size zero closes the window before any test"},
    {17, Quirk::none, "function bits of the id read back fall on flags of the table", "FBSD D",
     "entries are built from bus and device alone"},
    {18, Quirk::none, "a public driver writes a running union to the mask registers", "KAO D",
     "only the bits asked for are written"},
    {19, Quirk::none, "the vendor's table search reads the wrong entry", "SDK D",
     "the table is written whole, never searched"},
    {20, Quirk::none, "an IOMMU sees the chip's proxy ids", "LQ;FBSD R",
     "kernel's alias for 87B0/87B1; back to back uses those at both ends"},
    {21, Quirk::none, "CSR writes show in configuration space with a delay", "SDK R",
     "nothing written through CSRs is read back by configuration cycles"},
    {22, Quirk::none, "a stale MSI may fire while MSI is turned off", "SDK R",
     "the kernel turns MSI off"},
    {23, Quirk::none, "MSI hung a product under load", "VCA R", "INTx is preferred"},
    {24, Quirk::none, "8500 series: BAR shadow and captured id", "SDK R", "not in these chips"},
    {25, Quirk::none, "BAR0 gives the peer every register of the chip", "FBSD R",
     "set_peer_csr(false) turns link BAR0 off"},
    {26, Quirk::none, "correctable errors may storm", "KAO R",
     "LINK_ERR_MASK is all ones, status is polled; AER is the system's"},
    {27, Quirk::none, "an early driver missed the upper set-up register", "linux-ntb R",
     "both halves are written by one routine"},
    {28, Quirk::none, "the link side would cut its own branch by disabling the port", "FBSD R",
     "only the virtual side is driven"},
    {29, Quirk::none, "no write-combining through vfio on x86", "DPDK R",
     "the mapping is known from its file and the MTRRs; uncached is warned about"},
};

} // namespace plx::hw
