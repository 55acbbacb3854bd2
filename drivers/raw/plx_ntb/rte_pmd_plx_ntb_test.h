/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RTE_PMD_PLX_NTB_TEST_H
#define RTE_PMD_PLX_NTB_TEST_H

/**
 * @file
 * Calls for tests of this project. Not installed, and no part of the interface.
 */

#include <stdint.h>

#include <rte_compat.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Faults on demand, for tests of what is built on a device. Each strikes the device's own end. */
enum rte_pmd_plx_ntb_fault {
    /** 1: the link is held down; 0: it may train again */
    RTE_PMD_PLX_NTB_FAULT_LINK_DOWN = 0,
    /** 1: the port is disabled in the chip (port control, CSR 208); 0: enables it */
    RTE_PMD_PLX_NTB_FAULT_PORT_DISABLED,
    /** 1: the cable is pulled out; 0: put back. Each end puts back what it pulled */
    RTE_PMD_PLX_NTB_FAULT_CABLE_PULLED,
    /** Surprise removal of the own card. 1: registers read as all-ones; 2: as zeros, which is what
     * EAL's hot-unplug handler maps in the place of BARs; 0: the card is back, as after power-on */
    RTE_PMD_PLX_NTB_FAULT_CARD_GONE,
    /** the next `argument` doorbell writes of the peer are lost; 0: none */
    RTE_PMD_PLX_NTB_FAULT_DROP_DOORBELLS,
    /** doorbell writes of the peer arrive `argument` microseconds late, at most 60000000 */
    RTE_PMD_PLX_NTB_FAULT_LATE_DOORBELLS,
    /** 1: this end does not follow changes of the peer's windows, as if it were stopped; 0: does */
    RTE_PMD_PLX_NTB_FAULT_FREEZE_REMAPS,
    /* Those of the DMA engines of the own chip, each counting for itself; the argument n is at most
     * 2^32 - 2, and 2^32 - 1 takes the fault back. */
    /** once, an engine misses a valid descriptor, the one after n more, and stops */
    RTE_PMD_PLX_NTB_FAULT_DMA_STALL,
    /** an engine hangs in the descriptor after n more, until the chip is reset */
    RTE_PMD_PLX_NTB_FAULT_DMA_HANG,
    /** once, the descriptor after n more fails at its source */
    RTE_PMD_PLX_NTB_FAULT_DMA_READ_ERROR,
    /** once, the descriptor after n more fails at its destination */
    RTE_PMD_PLX_NTB_FAULT_DMA_WRITE_ERROR,
    /** once, the link goes down after n bytes through windows; n at least 1 */
    RTE_PMD_PLX_NTB_FAULT_DMA_LINK_LOSS,
    /** write-backs arrive after n register reads of their channel; 0: at once */
    RTE_PMD_PLX_NTB_FAULT_DMA_LATE,
    /** transactions carry the requester id n, at most 65535, as those of a foreign engine would */
    RTE_PMD_PLX_NTB_FAULT_DMA_REQUESTER,
};

/**
 * Causes a fault, on a software twin only. A fault lasts until it is taken back (as its comment
 * says, else with argument 0), or the device is closed. Its consequences are reported by events, as
 * those of real faults. Any thread.
 *
 * @param dev_id
 *   Rawdev id, probed; the device may be stopped or running.
 * @param fault
 *   The fault.
 * @param argument
 *   Depends on the fault.
 * @retval 0
 *   Caused.
 * @retval -ENODEV
 *   There is no such device, or it was closed.
 * @retval -ENOTSUP
 *   The device is a card, or there is no such fault.
 * @retval -EINVAL
 *   The argument is out of range for this fault.
 */
__rte_internal
int rte_pmd_plx_ntb_inject(uint16_t dev_id, enum rte_pmd_plx_ntb_fault fault, uint32_t argument);

#ifdef __cplusplus
}
#endif

#endif
