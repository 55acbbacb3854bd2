// SPDX-License-Identifier: BSD-3-Clause
// What a chip says it is, kept beside it and looked at where another process could write.
#include "chip/capabilities.hpp"
#include "chip/power_on.hpp"
#include "plx_fields.hpp"

#include <cstring>
#include <iterator>

namespace plx::twin
{

namespace
{
using facts::Side;
namespace reg = facts::reg;

constexpr Side sides[] = {Side::virt, Side::link};

constexpr uint32_t fixed_at[] = {
    reg::pci_id,
    reg::pci_class_revision,
    reg::pci_subsystem_id,
    reg::pci_cap_pointer,
    reg::pcie_link_cap,
    reg::nt_port_id,
    capability::power.at,
    capability::pci_express.at,
    capability::extended[0].at,
    capability::extended[1].at,
    capability::extended[2].at,
    capability::extended[3].at,
    capability::extended[4].at,
    capability::extended[5].at,
    capability::extended[6].at,
    capability::extended[7].at,
};
static_assert(std::size(fixed_at) == std::size(ChipIdentity{}.words[0]));
static_assert(std::size(capability::extended) == 8);

bool ports_are_possible(uint32_t upstream, unsigned nt)
{
    const facts::NtPort port = facts::nt_port(upstream, nt);
    const uint32_t up = facts::upstream_port(upstream);
    return port.enabled && port.port < facts::port_count && up < facts::port_count &&
           up != port.port;
}

bool block_shows(const Chip &chip, unsigned nt, Side side)
{
    const uint32_t base = nt_base(nt, side);
    const uint32_t id = get(chip, base + reg::pci_id);
    const uint32_t expected =
        facts::field::nt_index.put(nt) | facts::field::link_side.put(side == Side::link ? 1 : 0);
    return id != 0 && id != ~uint32_t{0} && get(chip, base + reg::nt_port_id) == expected &&
           has_capabilities(chip, base);
}
} // namespace

ChipIdentity identity_of(const Chip &chip)
{
    ChipIdentity identity;
    for (const Side side : sides)
        for (size_t i = 0; i < std::size(fixed_at); i++)
            identity.words[index_of(side)][i] = get(chip, nt_block(chip, side) + fixed_at[i]);
    identity.upstream = get(chip, reg::vs0_upstream);
    return identity;
}

bool same_identity(const ChipIdentity &a, const ChipIdentity &b)
{
    return memcmp(a.words, b.words, sizeof(a.words)) == 0 && a.upstream == b.upstream;
}

void restore_identity(Chip &chip, const ChipIdentity &identity)
{
    for (const Side side : sides) {
        set_capabilities(chip, nt_block(chip, side));
        for (size_t i = 0; i < std::size(fixed_at); i++)
            chip.csr[(nt_block(chip, side) + fixed_at[i]) / 4].store(
                identity.words[index_of(side)][i]);
    }
    chip.csr[reg::vs0_upstream / 4].store(identity.upstream);
}

bool shows_identity(const Chip &chip, unsigned nt)
{
    return chip.id.load() != 0 && chip.nt.load() == nt &&
           ports_are_possible(get(chip, reg::vs0_upstream), nt) &&
           block_shows(chip, nt, Side::virt) && block_shows(chip, nt, Side::link);
}

} // namespace plx::twin
