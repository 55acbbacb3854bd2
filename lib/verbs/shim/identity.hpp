// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_SHIM_DEVICE_HPP
#define NTB_VERBS_SHIM_DEVICE_HPP

#include "shim/abi34.hpp"

namespace ntb::verbs::shim
{

/// Of the node daemon, as ntb-verbs was told.
const char *device_socket();
/// Of this host's device, in network byte order.
__be64 node_guid(const ibv_device *device);
/// What opens a device.
verbs_context *open_context(ibv_device *device, int cmd_fd, void *private_data);

} // namespace ntb::verbs::shim

#endif
