// SPDX-License-Identifier: BSD-3-Clause
#ifndef NTB_VERBS_SHIM_IDENTITY_HPP
#define NTB_VERBS_SHIM_IDENTITY_HPP

#include "shim/abi34.hpp"

namespace ntb::verbs::shim
{

/// Of the node daemon, as ntb-verbs got it.
const char *device_socket();
constexpr int device_index = 0x6e7462; // no kernel counts so far
Device &our_device();
/// Of an open device of ours.
void fill_gid(const ibv_context *context, ibv_gid &gid);
/// Of this host's device, in network byte order.
__be64 node_guid(const ibv_device *device);
/// What opens a device.
verbs_context *open_context(ibv_device *device, int cmd_fd, void *private_data);

} // namespace ntb::verbs::shim

#endif
