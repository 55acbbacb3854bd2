// SPDX-License-Identifier: BSD-3-Clause
#include "chip/capabilities.hpp"

namespace plx::twin
{

void set_capabilities(Chip &chip, uint32_t base)
{
    chip.csr[(base + facts::reg::pci_command_status) / 4].fetch_or(capability_list);
    chip.csr[(base + facts::reg::pci_cap_pointer) / 4].store(capability::power.at);
    chip.csr[(base + capability::msi) / 4].store(capability::msi_head);
    for (const capability::Word &word : {capability::power, capability::pci_express})
        chip.csr[(base + word.at) / 4].store(word.value);
    for (const capability::Word &word : capability::extended)
        chip.csr[(base + word.at) / 4].store(word.value);
}

bool has_capabilities(const Chip &chip, uint32_t base)
{
    bool same = get(chip, base + facts::reg::pci_cap_pointer) == capability::power.at;
    for (const capability::Word &word : {capability::power, capability::pci_express})
        same = same && get(chip, base + word.at) == word.value;
    for (const capability::Word &word : capability::extended)
        same = same && get(chip, base + word.at) == word.value;
    return same && (get(chip, base + capability::msi) & 0xFFFF) == (capability::msi_head & 0xFFFF);
}

} // namespace plx::twin
