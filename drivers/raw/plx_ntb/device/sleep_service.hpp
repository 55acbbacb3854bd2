// SPDX-License-Identifier: BSD-3-Clause
// service=1: a service lcore re-checks sleeping receivers.
#ifndef PLX_NTB_DEVICE_SLEEP_SERVICE_HPP
#define PLX_NTB_DEVICE_SLEEP_SERVICE_HPP

#include "device/sleepers.hpp"

namespace plx::pmd
{

/// Registers an EAL service that calls Sleepers::check_all().
/// @param name of the device; @param node NUMA node. @return 0 or negative errno, logged
int sleep_service_register(const char *name, int node, Sleepers &sleepers, uint32_t *id);
void sleep_service_unregister(uint32_t id);

} // namespace plx::pmd

#endif
