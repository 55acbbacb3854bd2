/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RTE_PMD_PLX_NTB_REQUESTER_H
#define RTE_PMD_PLX_NTB_REQUESTER_H

/**
 * @file
 * The requester-ID table of the bridge, which passes a request of this host's bus on to the peer
 * only if the bus and device number of its sender are in the table. It has 32 entries. The driver
 * enters the CPU and the chip's own DMA functions. Another DMA engine, or a NIC that is to store
 * into memory of the peer (rte_pmd_plx_ntb_window_view::bus), is entered by these calls, from probe
 * to close, in any state of the link.
 *
 * A part of rte_pmd_plx_ntb.h, which has the object model and the rules for threads. All functions
 * of this header may be called by any thread. They take the control lock of the device and may wait
 * some milliseconds.
 */

#include <stdint.h>

#include <rte_compat.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Why a requester is in the table. */
enum rte_pmd_plx_ntb_requester_kind {
    RTE_PMD_PLX_NTB_REQUESTER_CPU = 0, /**< The root complex, and the ID of reads */
    RTE_PMD_PLX_NTB_REQUESTER_ENGINE,  /**< A DMA function of the chip */
    RTE_PMD_PLX_NTB_REQUESTER_ADDED,   /**< Added by rte_pmd_plx_ntb_requester_add() */
    RTE_PMD_PLX_NTB_REQUESTER_LEAVING, /**< Removed while the chip did not answer */
};

/** An entry of the requester-ID table. */
struct rte_pmd_plx_ntb_requester {
    uint16_t id;   /**< bus << 8 | device << 3; the function is ignored */
    uint16_t slot; /**< 0 to 31: the device number of its requests at the peer */
    enum rte_pmd_plx_ntb_requester_kind kind; /**< Why it is in the table */
};

/**
 * Adds a requester of this host's bus, with immediate effect, until
 * rte_pmd_plx_ntb_requester_remove() or the device is closed. Loss of the link and restarts of the
 * device or the peer do not change that. It reaches what the peer exposes.
 *
 * @param dev_id
 *   Rawdev id, probed.
 * @param id
 *   bus << 8 | device << 3 | function, below 65535. All functions of the device are added: the chip
 *   masks the function bits out.
 * @retval 0
 *   Added.
 * @retval -ENODEV
 *   There is no such device, or it was closed.
 * @retval -EINVAL
 *   id is out of range.
 * @retval -EEXIST
 *   Bus and device are in the table.
 * @retval -ENOSPC
 *   The table is full.
 * @retval -EIO
 *   The chip does not answer (on the link side also: the link is down). Not added, call again.
 */
__rte_experimental
int rte_pmd_plx_ntb_requester_add(uint16_t dev_id, uint32_t id);

/**
 * Removes a requester. After 0 or -ENOENT the bridge passes no later request of it on. A read in
 * flight may get no completion: stop the requester first.
 *
 * @param dev_id
 *   Rawdev id, probed.
 * @param id
 *   As it was added; function bits are ignored.
 * @retval 0
 *   Removed.
 * @retval -ENODEV
 *   There is no such device, or it was closed.
 * @retval -EINVAL
 *   id is out of range.
 * @retval -ENOENT
 *   Not in the table.
 * @retval -EPERM
 *   It is the CPU's or the chip's own.
 * @retval -EIO
 *   The chip does not answer. It is removed as soon as the chip does; call again.
 */
__rte_experimental
int rte_pmd_plx_ntb_requester_remove(uint16_t dev_id, uint32_t id);

/**
 * Lists the requester-ID table, in the order of its slots.
 *
 * @param dev_id
 *   Rawdev id, probed.
 * @param list
 *   Room for n; NULL with n = 0.
 * @param n
 *   0 to 32.
 * @return
 *   Number of entries, which may be more than n.
 * @retval -ENODEV
 *   There is no such device, or it was closed.
 * @retval -EINVAL
 *   list is NULL and n is not 0.
 */
__rte_experimental
int rte_pmd_plx_ntb_requester_list(uint16_t dev_id, struct rte_pmd_plx_ntb_requester *list,
                                   uint32_t n);

#ifdef __cplusplus
}
#endif

#endif
