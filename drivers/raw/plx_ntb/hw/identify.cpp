// SPDX-License-Identifier: BSD-3-Clause
#include "identify.hpp"

#include <cerrno>

#include "facts/plx_fields.hpp"

namespace plx::hw
{

namespace field = facts::field;
namespace reg = facts::reg;

namespace
{

constexpr uint32_t all_ones = ~uint32_t{0};
constexpr uint32_t pci_config_size = 0x100; // without PCIe's extended space

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

/// The function's configuration space. Where the system gives only its first 256 bytes, the rest
/// is read in BAR0, which shows the block of every NT endpoint.
struct ConfigSpace {
    RegIo io;
    uint32_t mirror = 0; ///< CSR offset of the function's own block; 0: not needed, or not known
    uint32_t read(uint32_t offset) const
    {
        return offset < pci_config_size || mirror == 0 ? io.config_read32(offset)
                                                       : io.read32(mirror + offset);
    }
};

struct Silicon {
    uint16_t part = 0;
    uint8_t revision = 0;
};

// Of the four blocks ours is the one with our ids and, no two functions of a system having the
// same, our BARs; it must say itself which one it is. That the blocks mirror BARs is FBSD's use;
// to distinguish them by it is ours.                                                      FBSD R; I
uint32_t find_mirror(const RegIo &io)
{
    uint32_t found = 0;
    for (const unsigned nt : {0u, 1u}) {
        for (const facts::Side side : {facts::Side::virt, facts::Side::link}) {
            const uint32_t block = facts::nt_base(nt, side);
            bool same = io.read32(block + reg::pci_id) == io.config_read32(reg::pci_id) &&
                        io.config_read32(reg::pci_bar[0]) != 0;
            for (uint32_t i = 0; i < reg::pci_bar.count; i++)
                same =
                    same && io.read32(block + reg::pci_bar[i]) == io.config_read32(reg::pci_bar[i]);
            const uint32_t nt_id = io.read32(block + reg::nt_port_id);
            if (!same || nt_id == all_ones || field::nt_index.get(nt_id) != nt ||
                (field::link_side.get(nt_id) != 0) != (side == facts::Side::link))
                continue;
            if (found != 0)
                return 0;
            found = block;
        }
    }
    return found;
}

// PCI capability list: at most 48 capabilities fit, so a list that bites its tail ends.
bool from_capability(const ConfigSpace &config, Silicon *out)
{
    uint32_t at = config.read(reg::pci_cap_pointer) & 0xFC;
    for (unsigned hop = 0; hop < 48 && at >= 0x40; hop++) {
        const uint32_t head = config.read(at);
        const bool vendor_specific = (head & 0xFF) == 0x09 && head >> 24 <= 1;
        if (vendor_specific && at + 0x1C < pci_config_size) {
            const auto id = facts::ChipId::decode(config.read(at + 0x18));
            if (id.plausible()) {
                *out = {id.number, static_cast<uint8_t>(config.read(at + 0x1C))};
                return true;
            }
        }
        at = head >> 8 & 0xFC;
    }
    return false;
}

// PCIe extended capability list, bounded likewise.
bool from_extended_capability(const ConfigSpace &config, Silicon *out)
{
    constexpr uint32_t vendor_specific = 0x000B;
    uint32_t at = pci_config_size;
    for (unsigned hop = 0; hop < 64 && at >= pci_config_size && at + 0xC < facts::block_size;
         hop++) {
        const uint32_t head = config.read(at);
        if (no_register(head))
            return false;
        if ((head & 0xFFFF) == vendor_specific && (config.read(at + 4) & 0xFFFF) == 1) {
            const auto id = facts::ChipId::decode(config.read(at + 8));
            if (id.plausible()) {
                *out = {id.number, static_cast<uint8_t>(config.read(at + 0xC))};
                return true;
            }
        }
        at = head >> 20 & 0xFFC;
    }
    return false;
}

// Without a chip id of its own the part stands in the subsystem device id, where an EEPROM has not
// put something else. The PCI revision for the silicon's is inferred.
Silicon from_subsystem(const ConfigSpace &config)
{
    const auto number = static_cast<uint16_t>(config.read(reg::pci_subsystem_id) >> 16);
    const auto revision = static_cast<uint8_t>(config.read(reg::pci_class_revision));
    if (facts::family_of(number, revision) == facts::Family::unknown)
        return {};
    return {number, revision};
}

Silicon read_silicon(const ConfigSpace &config)
{
    Silicon silicon;
    if (from_capability(config, &silicon) || from_extended_capability(config, &silicon))
        return silicon;
    return from_subsystem(config);
}

int read_silicon_into(const ConfigSpace &config, Identity *id, Refusal *why)
{
    const Silicon silicon = read_silicon(config);
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
        return refuse(why, -ENODEV, "register 360 names ports that do not exist", vs0);
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

    ConfigSpace config{io};
    if (config.read(reg::nt_port_id) == all_ones)
        config.mirror = find_mirror(io);
    Identity id;
    id.pci_id = pci_id;
    if (const int rc = read_silicon_into(config, &id, why); rc != 0)
        return rc;

    const uint32_t nt_id = config.read(reg::nt_port_id);
    if (nt_id == all_ones)
        return refuse(why, -ENODEV,
                      "extended configuration space (4 KiB) cannot be read, and BAR0 does not show "
                      "which NT endpoint this is",
                      nt_id);
    id.nt = field::nt_index.get(nt_id);
    id.side = field::link_side.get(nt_id) != 0 ? facts::Side::link : facts::Side::virt;

    // An NT_PORT_ID of 0 is both NT0's and what a chip without the register gives; and a BAR0 that
    // is not this chip's would be programmed blindly. Both sides of the chip must agree.
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
