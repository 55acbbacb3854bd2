// SPDX-License-Identifier: BSD-3-Clause
// The capability lists of NT endpoints and DMA functions, whose layout is the same.
#ifndef PLX_TWIN_CHIP_CAPABILITIES_HPP
#define PLX_TWIN_CHIP_CAPABILITIES_HPP

#include "chip/chip.hpp"
#include "plx_ids.hpp"

namespace plx::twin
{

/// What power-on and every reset leave there, in the block at @p base.
void set_capabilities(Chip &chip, uint32_t base);

/// Whether they are still there.
bool has_capabilities(const Chip &chip, uint32_t base);

/// Bit 4 of the status register, which is the upper half: there is a list.                      G
inline constexpr uint32_t capability_list = uint32_t{1} << 20;

/// What a twin says it is.
inline constexpr uint32_t chip_number = 0x8749;
inline constexpr uint8_t silicon_revision = 0xBA;

namespace capability
{
using facts::detail::at;

struct Word {
    uint32_t at;
    uint32_t value;
};

constexpr uint32_t head(uint8_t id, uint32_t next, uint16_t upper)
{
    return id | next << 8 | uint32_t{upper} << 16;
}
constexpr uint32_t extended_head(uint16_t id, uint32_t next)
{
    return id | uint32_t{1} << 16 | next << 20;
}

// Where each lies, SDK;KAO R. That the list goes in the order of addresses: D. Their contents are
// those of PCI Express (G) for an endpoint with one message, 64-bit and with a mask.
inline constexpr uint32_t msi = facts::reg::msi_control;
inline constexpr uint32_t express = facts::reg::pcie_cap;
inline constexpr Word power = {at("PM_CAP"), head(0x01, msi, 0x0003)};
inline constexpr uint32_t msi_head = head(0x05, express, 0x0180);
inline constexpr Word pci_express = {express, head(0x10, 0, 0x0002)};

// An extended list begins at 100 (G). What a chip has there no source says: a serial number of
// zeros stands for it (I). The vendor-specific one at one of the places met in practice (SDK R).
inline constexpr uint32_t error_reporting = at("AER_CAP");
inline constexpr uint32_t vendor_specific = 0xB70;
inline constexpr Word extended[] = {
    {0x100, extended_head(0x0003, error_reporting)},
    {0x104, 0},
    {0x108, 0},
    {error_reporting, extended_head(0x0001, vendor_specific)},
    {vendor_specific, extended_head(0x000B, 0)},
    {vendor_specific + 4, 0x0100'0001}, // 16 bytes, VSEC id 1
    {vendor_specific + 8, chip_number << 16 | facts::vendor_plx},
    {vendor_specific + 12, silicon_revision},
};
} // namespace capability

/// Whether @p at, inside a function's block, is a read-only word of a capability.
constexpr bool is_capability(uint32_t at)
{
    for (const capability::Word &word : capability::extended)
        if (word.at == at)
            return true;
    return at == capability::power.at || at == capability::pci_express.at;
}

} // namespace plx::twin

#endif
