// SPDX-License-Identifier: BSD-3-Clause
// What the system knows of an NT endpoint behind EAL's PCI bus: its kernel driver, the addresses of
// its BARs, how they are mapped.
#ifndef PLX_NTB_BUS_PCI_VIEW_HPP
#define PLX_NTB_BUS_PCI_VIEW_HPP

#include "bus/pci_bars.hpp"
#include "bus/pci_mapping.hpp"

struct rte_pci_device;

namespace plx::pmd
{

struct PciView {
    PciBars bars;
    BarMapping csr, data, shared;
};

KernelDriver kernel_driver_of(const rte_pci_device &pci);
/// The name of the kernel driver that holds the function. @return @p name
const char *kernel_driver_name(const rte_pci_device &pci, char *name, size_t size);
/// For a function that EAL has mapped.
PciView pci_view(const rte_pci_device &pci);

} // namespace plx::pmd

#endif
