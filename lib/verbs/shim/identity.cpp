// SPDX-License-Identifier: BSD-3-Clause
#include "shim/identity.hpp"

#include <climits>
#include <cstdio>
#include <cstdlib>

#include <endian.h>

#include "shim/objects.hpp"

namespace ntb::verbs::shim
{
namespace
{

const DeviceOps device_ops = {
    .name = "ntb",
    .min_abi = 0,
    .max_abi = INT_MAX,
    .match_table = nullptr,
    .static_providers = nullptr,
    .match_device = nullptr,
    .alloc_context = open_context,
    .import_context = nullptr,
    .alloc_device = nullptr,
    .uninit_device = nullptr,
};

} // namespace

Device &our_device()
{
    static Device *const once = [] {
        auto *device = new Device{};
        device->ops = &device_ops;
        device->references = INT_MAX / 2; // it is never freed
        device->device.node_type = IBV_NODE_CA;
        device->device.transport_type = IBV_TRANSPORT_IB;
        const char *name = getenv("NTB_VERBS_DEVICE");
        snprintf(device->device.name, sizeof(device->device.name), "%s", name ? name : "ntb0");
        snprintf(device->device.dev_name, sizeof(device->device.dev_name), "uverbs-%.50s",
                 device->device.name);
        return device;
    }();
    return *once;
}

// A link-local address, of the host as its LID.
void fill_gid(const ibv_context *context, ibv_gid &gid)
{
    gid.global.subnet_prefix = htobe64(0xfe80000000000000);
    gid.global.interface_id =
        node_guid(context->device) | htobe64(context_of(const_cast<ibv_context *>(context))->lid);
}

const char *device_socket()
{
    const char *socket = getenv("NTB_VERBS_SOCKET");
    return socket ? socket : "/run/ntbmsg/ntb0.sock";
}

// The same for all processes of a host; the lower half of the interface is for the host's LID.
__be64 node_guid(const ibv_device *device)
{
    std::uint32_t hash = 2166136261;
    for (const char *at = device->name; *at; ++at)
        hash = (hash ^ static_cast<unsigned char>(*at)) * 16777619;
    return htobe64(std::uint64_t{0x026e7462} << 32 | (hash & 0xffff0000));
}

} // namespace ntb::verbs::shim
