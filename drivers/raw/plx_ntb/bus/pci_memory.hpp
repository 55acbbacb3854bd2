// SPDX-License-Identifier: BSD-3-Clause
// Window memory of a card: EAL's, chosen by its bus addresses.
#ifndef PLX_NTB_BUS_PCI_MEMORY_HPP
#define PLX_NTB_BUS_PCI_MEMORY_HPP

#include "platform/platform.hpp"

namespace plx::pmd
{

/// As PlatformOps::memory_alloc. @param name of the device, for EAL's list of zones
int pci_memory_alloc(const char *name, size_t bytes, int node, const hw::WindowRules &rules,
                     WindowMemory *out);
void pci_memory_free(const WindowMemory &memory);

} // namespace plx::pmd

#endif
