/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RTE_PMD_PLX_NTB_DRIVER_H
#define RTE_PMD_PLX_NTB_DRIVER_H

/**
 * @file
 * Calls for drivers on top of a device, such as net_plx_ntb. Not installed, and no part of the
 * interface.
 */

#include <stdint.h>

#include <rte_compat.h>
#include <rte_power_intrinsics.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A device that a driver on top holds. */
struct rte_pmd_plx_ntb_holder;

/**
 * Holds a device for one driver on top. Until rte_pmd_plx_ntb_unhold(), what
 * rte_pmd_plx_ntb_burst_get() gave may be called, also when the device was closed or removed under
 * its holder: there is no peer then. Any thread.
 *
 * @param dev_id
 *   Rawdev id.
 * @param gone
 *   Called once when the device has been closed or is removed, by the thread that does it, before
 *   its id is given to another. It may call rte_pmd_plx_ntb_unhold(). Then no call by this id
 *   belongs to the device any more.
 * @param arg
 *   Passed to it.
 * @param out
 *   Filled in.
 * @retval 0
 *   Held.
 * @retval -ENODEV
 *   There is no such device, or it is closed.
 * @retval -EBUSY
 *   It is held.
 * @retval -ENOMEM
 *   No memory.
 */
__rte_internal
int rte_pmd_plx_ntb_hold(uint16_t dev_id, void (*gone)(void *arg), void *arg,
                         struct rte_pmd_plx_ntb_holder **out);

/**
 * Gives a device back. Any thread; `gone` does not run any more when this returns, unless it is the
 * caller.
 *
 * @param hold
 *   Of rte_pmd_plx_ntb_hold(); NULL does nothing.
 */
__rte_internal
void rte_pmd_plx_ntb_unhold(struct rte_pmd_plx_ntb_holder *hold);

/**
 * Returns where a change shows that a receiving half has something to do: the line in which the
 * next message will appear, or while there is no connection what changes with the next one. By the
 * thread of the receiving half, outside a burst, between start and stop of the device; valid until
 * the next burst, and until the device is stopped.
 *
 * @param rx_queue
 *   rte_pmd_plx_ntb_burst::rx_queue of a device that is held.
 * @param out
 *   Filled in for rte_power_monitor(), which returns at once if a burst has something to do.
 */
__rte_internal
void rte_pmd_plx_ntb_rx_monitor_get(const void *rx_queue, struct rte_power_monitor_cond *out);

#ifdef __cplusplus
}
#endif

#endif
