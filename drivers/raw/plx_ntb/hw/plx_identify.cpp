// SPDX-License-Identifier: BSD-3-Clause
#include "plx_identify.hpp"

#include "plx_fields.hpp"

#include <cerrno>

namespace plx::hw
{

namespace field = facts::field;
namespace reg = facts::reg;

namespace
{

constexpr uint32_t all_ones = ~uint32_t{0};

int refuse(Refusal *why, int error, const char *what, uint64_t found)
{
    if (why != nullptr)
        *why = {what, found, 0};
    return error;
}

bool no_register(uint32_t value)
{
    return value == 0 || value == all_ones;
}

struct Silicon {
    uint16_t part = 0;
    uint8_t revision = 0;
};

// PCI capability list: at most 48 capabilities fit, so a list that bites its tail ends.
bool from_capability(const RegIo &io, Silicon *out)
{
    uint32_t at = io.config_read32(reg::pci_cap_pointer) & 0xFC;
    for (unsigned hop = 0; hop < 48 && at >= 0x40; hop++) {
        const uint32_t head = io.config_read32(at);
        const bool vendor_specific = (head & 0xFF) == 0x09 && head >> 24 <= 1;
        if (vendor_specific && at + 0x1C < 0x100) {
            const auto id = facts::ChipId::decode(io.config_read32(at + 0x18));
            if (id.plausible()) {
                *out = {id.number, static_cast<uint8_t>(io.config_read32(at + 0x1C))};
                return true;
            }
        }
        at = head >> 8 & 0xFC;
    }
    return false;
}

// PCIe extended capability list, bounded likewise.
bool from_extended_capability(const RegIo &io, Silicon *out)
{
    constexpr uint32_t vendor_specific = 0x000B;
    uint32_t at = 0x100;
    for (unsigned hop = 0; hop < 64 && at >= 0x100 && at + 0xC < facts::block_size; hop++) {
        const uint32_t head = io.config_read32(at);
        if (no_register(head))
            return false;
        if ((head & 0xFFFF) == vendor_specific && (io.config_read32(at + 4) & 0xFFFF) == 1) {
            const auto id = facts::ChipId::decode(io.config_read32(at + 8));
            if (id.plausible()) {
                *out = {id.number, static_cast<uint8_t>(io.config_read32(at + 0xC))};
                return true;
            }
        }
        at = head >> 20 & 0xFFC;
    }
    return false;
}

// Without a chip id of its own the part stands in the subsystem device id, where an EEPROM has not
// put something else. The PCI revision for the silicon's is inferred.
Silicon from_subsystem(const RegIo &io)
{
    const auto number = static_cast<uint16_t>(io.config_read32(reg::pci_subsystem_id) >> 16);
    const auto revision = static_cast<uint8_t>(io.config_read32(reg::pci_class_revision));
    if (facts::family_of(number, revision) == facts::Family::unknown)
        return {};
    return {number, revision};
}

Silicon read_silicon(const RegIo &io)
{
    Silicon silicon;
    if (from_capability(io, &silicon) || from_extended_capability(io, &silicon))
        return silicon;
    return from_subsystem(io);
}

int read_silicon_into(const RegIo &io, Identity *id, Refusal *why)
{
    const Silicon silicon = read_silicon(io);
    id->part = silicon.part;
    id->revision = silicon.revision;
    id->family = facts::family_of(silicon.part, silicon.revision);
    id->quirks = quirks_of(id->family);
    if (id->quirks.has(Quirk::no_nt_port_id))
        return refuse(why, -ENOTSUP, "Draco-1 revision AA does not say which NT side it is",
                      silicon.part);
    if (id->quirks.has(Quirk::indexed_lut))
        return refuse(why, -ENOTSUP,
                      "Capella parts have another requester-ID table and no DMA engine",
                      silicon.part);
    return 0;
}

int read_ports(const RegIo &io, Identity *id, Refusal *why)
{
    const uint32_t vs0 = io.read32(reg::vs0_upstream);
    if (no_register(vs0))
        return refuse(why, -ENODEV, "register 360 does not answer", vs0);
    const facts::NtPort port = facts::nt_port(vs0, id->nt);
    const uint8_t upstream = facts::upstream_port(vs0);
    if (!port.enabled)
        return refuse(why, -ENODEV, "this NT port is not enabled in register 360", vs0);
    if (port.port >= facts::port_count || upstream >= facts::port_count || port.port == upstream)
        return refuse(why, -ENODEV, "register 360 names ports that cannot be", vs0);
    id->nt_port = port.port;
    id->upstream_port = upstream;
    id->alut_entries = facts::alut_entries(vs0, id->nt);
    return 0;
}

} // namespace

int identify(const RegIo &io, Identity *out, Refusal *why)
{
    const uint32_t pci_id = io.config_read32(reg::pci_id);
    if (no_register(pci_id))
        return refuse(why, -ENODEV, "the function does not answer configuration reads", pci_id);

    Identity id;
    if (const int rc = read_silicon_into(io, &id, why); rc != 0)
        return rc;

    const uint32_t nt_id = io.config_read32(reg::nt_port_id);
    if (nt_id == all_ones)
        return refuse(why, -ENODEV, "extended configuration space (4 KiB) cannot be read", nt_id);
    id.nt = field::nt_index.get(nt_id);
    id.side = field::link_side.get(nt_id) != 0 ? facts::Side::link : facts::Side::virt;

    // An NT_PORT_ID of 0 is both NT0's and what a chip without the register gives; and a BAR0 that
    // is not this chip's would be programmed blindly. Both sides of the chip must tell one story.
    const uint32_t seen = io.read32(facts::nt_base(id.nt, id.side) + reg::pci_id);
    if (seen != pci_id)
        return refuse(why, -ENODEV, "BAR0 does not show the function found by configuration reads",
                      seen);
    if (const int rc = read_ports(io, &id, why); rc != 0)
        return rc;
    *out = id;
    return 0;
}

} // namespace plx::hw
