/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NTBMSG_TEST_H
#define NTBMSG_TEST_H

/**
 * @file
 * Calls for tests of this project. Not installed, and no part of the interface.
 */

#include <stdint.h>

#include <rte_compat.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A clock in microseconds that never goes backwards. */
typedef uint64_t (*ntbmsg_clock_fn)(void);

/**
 * Sets the clock of the library's time-outs. Called before the first endpoint is opened.
 *
 * @param clock
 *   The clock; NULL: the TSC.
 */
__rte_internal
void ntbmsg_clock_set(ntbmsg_clock_fn clock);

#ifdef __cplusplus
}
#endif

#endif
