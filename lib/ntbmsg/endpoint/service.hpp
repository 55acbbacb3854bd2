// SPDX-License-Identifier: BSD-3-Clause
// A dedicated worker as a DPDK service.
#ifndef NTBMSG_ENDPOINT_SERVICE_HPP
#define NTBMSG_ENDPOINT_SERVICE_HPP

#include "transport/worker.hpp"

namespace ntbmsg
{

/// Registers the service; the application maps it to a service lcore and runs it.
/// @return 0 or negative errno with the reason logged
int start_service(Worker &w);
/// Unregisters it, if it is registered, and waits until no service lcore runs it.
void stop_service(Worker &w);

} // namespace ntbmsg

#endif
