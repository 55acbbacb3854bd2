// SPDX-License-Identifier: BSD-3-Clause
#ifndef PLX_NTB_NET_LOG_HPP
#define PLX_NTB_NET_LOG_HPP

#include <rte_log.h>

extern "C" {
extern int plx_ntb_net_logtype;
}

#define PLX_NET_LOG(level, ...)                                                                    \
    rte_log(RTE_LOG_##level, static_cast<uint32_t>(plx_ntb_net_logtype), "plx_ntb: " __VA_ARGS__)

#endif
