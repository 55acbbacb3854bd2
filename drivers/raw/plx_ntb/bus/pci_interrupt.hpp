// SPDX-License-Identifier: BSD-3-Clause
// The interrupt of a PCI function, from EAL's interrupt thread.
#ifndef PLX_NTB_BUS_PCI_INTERRUPT_HPP
#define PLX_NTB_BUS_PCI_INTERRUPT_HPP

struct rte_intr_handle;

namespace plx::pmd
{

/// Must not move while it is watched.
struct PciInterrupt {
    rte_intr_handle *handle = nullptr;
    void (*fn)(void *arg) = nullptr;
    void *arg = nullptr;
};

/// Calls @p fn for each interrupt; NULL: ends it, and no call is running once this returns. The
/// errata recommend INTx (E1, E22, E23); the kernel driver and EAL choose (--vfio-intr=legacy), and
/// both kinds work.
/// @return 0; -ENOTSUP: the kernel driver passes none on; or EAL's error
int pci_interrupt_watch(rte_intr_handle *handle, PciInterrupt *state, void (*fn)(void *arg),
                        void *arg);

} // namespace plx::pmd

#endif
