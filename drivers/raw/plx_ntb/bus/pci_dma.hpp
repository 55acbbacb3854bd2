// SPDX-License-Identifier: BSD-3-Clause
// The chip's DMA engines behind EAL's PCI bus: functions of their own, which belong to the device
// of an NT endpoint of the same chip.
#ifndef PLX_NTB_BUS_PCI_DMA_HPP
#define PLX_NTB_BUS_PCI_DMA_HPP

#include "bus/pci_bars.hpp"
#include "platform/platform.hpp"

struct rte_pci_device;

namespace plx::pmd
{

/// Assigns to @p platform the probed and unused engines of the endpoint's chip on its side, and
/// maps
/// @p window for them if possible. Beside a link endpoint it makes EAL probe them first, which EAL
/// would do later.
void pci_dma_claim(const rte_pci_device &nt, facts::Side side, const PciBar &window,
                   Platform *platform);
/// Releases them. Before the BARs are unmapped.
/// @param window  as claimed if Platform::window_bus was set; else of no bytes
void pci_dma_release(const rte_pci_device &nt, const PciBar &window);

} // namespace plx::pmd

#endif
