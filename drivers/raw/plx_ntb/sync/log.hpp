// SPDX-License-Identifier: BSD-3-Clause
#ifndef PLX_NTB_SYNC_LOG_HPP
#define PLX_NTB_SYNC_LOG_HPP

#include <rte_log.h>

extern "C" {
extern int plx_ntb_logtype_init;
extern int plx_ntb_logtype_driver;
}

/// One line about set-up: probe, devargs, configure, start.
#define PLX_INIT_LOG(level, ...)                                                                   \
    rte_log(RTE_LOG_##level, static_cast<uint32_t>(plx_ntb_logtype_init), "plx_ntb: " __VA_ARGS__)
/// One line about a running device.
#define PLX_LOG(level, ...)                                                                        \
    rte_log(RTE_LOG_##level, static_cast<uint32_t>(plx_ntb_logtype_driver), "plx_ntb: " __VA_ARGS__)

#endif
