// SPDX-License-Identifier: BSD-3-Clause
/**
 * @file
 * One source for DPDK 22.11, 23.11 and 24.11: the code is written for the newest, and what an
 * older release lacks is defined here. No other file asks for DPDK's version.
 */
#ifndef NTB_DPDK_COMPAT_HPP
#define NTB_DPDK_COMPAT_HPP

#include <cstdint>

#include <rte_telemetry.h>
#include <rte_version.h>

#if RTE_VERSION < RTE_VERSION_NUM(23, 3, 0, 0)

inline int rte_tel_data_add_dict_uint(rte_tel_data *data, const char *name, uint64_t value)
{
    return rte_tel_data_add_dict_u64(data, name, value);
}

#endif

#endif
