// SPDX-License-Identifier: BSD-3-Clause
// "/ntbd/stats", "/ntbd/carrier" and "/ntbd/users" of DPDK's telemetry.
#ifndef NTBD_DEVICE_TELEMETRY_HPP
#define NTBD_DEVICE_TELEMETRY_HPP

#include "device/device.hpp"
#include "server/server.hpp"

namespace ntbd
{

/// @param server lives until EAL has ended @param device likewise
void offer_telemetry(const Server &server, const Device &device);

} // namespace ntbd

#endif
