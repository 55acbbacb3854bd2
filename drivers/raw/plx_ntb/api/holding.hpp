// SPDX-License-Identifier: BSD-3-Clause
// Devices that a driver on top holds (rte_pmd_plx_ntb_driver.h): who is informed when one goes, and
// whose memory outlives its rawdev.
#ifndef PLX_NTB_API_HOLDING_HPP
#define PLX_NTB_API_HOLDING_HPP

#include <cstdint>

#include "device/device.hpp"

namespace plx::pmd
{

/// The device is closed: informs its holder, once.
void tell_gone(uint16_t dev_id);
/// Frees a closed device, now or when its holder lets go, who was informed.
void free_device(uint16_t dev_id, Device *device);

} // namespace plx::pmd

#endif
