// SPDX-License-Identifier: BSD-3-Clause
#include "sync/log.hpp"

extern "C" {
RTE_LOG_REGISTER_SUFFIX(plx_ntb_logtype_init, init, NOTICE);
RTE_LOG_REGISTER_SUFFIX(plx_ntb_logtype_driver, driver, NOTICE);
}
