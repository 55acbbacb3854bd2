// SPDX-License-Identifier: BSD-3-Clause
// Listing of requester IDs.
#ifndef PLX_NTB_API_REQUESTERS_HPP
#define PLX_NTB_API_REQUESTERS_HPP

#include <cstddef>
#include <cstdint>

#include "device/device.hpp"
#include "rte_pmd_plx_ntb.h"

namespace plx::pmd
{

/// As rte_pmd_plx_ntb_requester_list().
unsigned list_requesters(Device &device, rte_pmd_plx_ntb_requester *list, uint32_t n);
/// "42:02.x"
void requester_name(uint16_t id, char *text, size_t size);
const char *requester_kind_name(rte_pmd_plx_ntb_requester_kind kind);

} // namespace plx::pmd

#endif
