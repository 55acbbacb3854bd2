// SPDX-License-Identifier: BSD-3-Clause
// The library's log type, "lib.ntbmsg" to EAL's --log-level.
#ifndef NTBMSG_BASE_LOG_HPP
#define NTBMSG_BASE_LOG_HPP

#include <rte_log.h>

extern "C" int ntbmsg_logtype;

#define NTBMSG_LOG(level, fmt, ...)                                                                \
    rte_log(RTE_LOG_##level, static_cast<uint32_t>(ntbmsg_logtype),                                \
            "ntbmsg: " fmt "\n" __VA_OPT__(, ) __VA_ARGS__)

#endif
