// SPDX-License-Identifier: BSD-3-Clause
// "/ntbd/stats" and "/ntbd/users" of DPDK's telemetry.
#ifndef NTBD_DEVICE_TELEMETRY_HPP
#define NTBD_DEVICE_TELEMETRY_HPP

#include "server/server.hpp"

namespace ntbd
{

/// @param server lives until EAL has ended
void offer_telemetry(const Server &server);

} // namespace ntbd

#endif
