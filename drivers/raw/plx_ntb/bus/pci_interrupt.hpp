// SPDX-License-Identifier: BSD-3-Clause
// The interrupt of a PCI function, from EAL's interrupt thread.
#ifndef PLX_NTB_BUS_PCI_INTERRUPT_HPP
#define PLX_NTB_BUS_PCI_INTERRUPT_HPP

struct rte_intr_handle;

namespace plx::pmd
{

/// Lies still while it is watched.
struct PciInterrupt {
    rte_intr_handle *handle = nullptr;
    void (*fn)(void *arg) = nullptr;
    void *arg = nullptr;
};

/// Has @p fn called for each interrupt; NULL: no more, and none is under way once this returns.
/// INTx is what the errata ask for (E1, E22, E23); which kind comes is the kernel driver's and
/// EAL's choice (--vfio-intr=legacy), and either will do.
/// @return 0; -ENOTSUP the kernel driver hands none on; or EAL's error
int pci_interrupt_watch(rte_intr_handle *handle, PciInterrupt *state, void (*fn)(void *arg),
                        void *arg);

} // namespace plx::pmd

#endif
