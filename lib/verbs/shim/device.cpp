// SPDX-License-Identifier: BSD-3-Clause
// The functions that the program finds here before those of libibverbs: the list of devices, with
// ours behind the machine's own, and those that would look for ours in sysfs or at a descriptor.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include <endian.h>

#include "shim/genuine.hpp"
#include "shim/identity.hpp"
#include "shim/objects.hpp"
#include "shim/rdma_cm.hpp"
#include "shim/ucx.hpp"

#define INTERPOSED extern "C" __attribute__((visibility("default")))

namespace ntb::verbs::shim
{
namespace
{

constexpr std::uint16_t default_pkey = 0xffff;

bool is_ours(const ibv_device *device)
{
    return device == &our_device().device;
}
bool is_ours(const ibv_context *context)
{
    return is_ours(context->device);
}

void fill_entry(const ibv_context *context, ibv_gid_entry &entry)
{
    entry = {};
    fill_gid(context, entry.gid);
    entry.port_num = 1;
    entry.gid_type = IBV_GID_TYPE_IB;
}

int missing(const char *name)
{
    fprintf(stderr, "ntbverbs: libibverbs has no %s\n", name);
    return EOPNOTSUPP;
}

} // namespace

} // namespace ntb::verbs::shim

using namespace ntb::verbs::shim;

INTERPOSED ibv_device **ibv_get_device_list(int *n)
{
    serve_librdmacm();
    serve_ucx();
    const Genuine &library = Genuine::get();
    auto *get = genuine<ibv_device **(int *)>("ibv_get_device_list");
    int found = 0;
    ibv_device **list = get ? get(&found) : nullptr;
    static std::once_flag once;
    if (!library.refusal.empty()) {
        std::call_once(once, [&] { fprintf(stderr, "ntbverbs: %s\n", library.refusal.c_str()); });
        if (n)
            *n = found;
        return list;
    }
    auto *longer = static_cast<ibv_device **>(
        realloc(list, (static_cast<std::size_t>(found) + 2) * sizeof(ibv_device *)));
    if (!longer) {
        if (n)
            *n = found;
        return list;
    }
    // The library drops a reference of each when the list is freed.
    __atomic_fetch_add(&our_device().references, 1, __ATOMIC_RELAXED);
    longer[found++] = &our_device().device;
    longer[found] = nullptr;
    if (n)
        *n = found;
    errno = 0;
    return longer;
}

INTERPOSED __be64 ibv_get_device_guid(ibv_device *device)
{
    if (is_ours(device))
        return node_guid(device);
    auto *get = genuine<__be64(ibv_device *)>("ibv_get_device_guid");
    return get ? get(device) : 0;
}

INTERPOSED int ibv_get_device_index(ibv_device *device)
{
    if (is_ours(device))
        return device_index;
    auto *get = genuine<int(ibv_device *)>("ibv_get_device_index");
    return get ? get(device) : -1;
}

INTERPOSED ibv_context *ibv_import_device(int cmd_fd)
{
    // It looks for the device behind the descriptor, and ours has none.
    auto *import = genuine<ibv_context *(int)>("ibv_import_device");
    if (cmd_fd >= 0 && import)
        return import(cmd_fd);
    errno = EOPNOTSUPP;
    return nullptr;
}

INTERPOSED int ibv_query_gid(ibv_context *context, std::uint8_t port, int index, ibv_gid *gid)
{
    if (!is_ours(context)) {
        auto *query = genuine<int(ibv_context *, std::uint8_t, int, ibv_gid *)>("ibv_query_gid");
        return query ? query(context, port, index, gid) : -1;
    }
    if (port != 1 || index != 0) {
        errno = EINVAL;
        return -1;
    }
    fill_gid(context, *gid);
    return 0;
}

INTERPOSED int ibv_query_gid_type(ibv_context *context, std::uint8_t port, unsigned index,
                                  unsigned *type)
{
    if (!is_ours(context)) {
        auto *query =
            genuine<int(ibv_context *, std::uint8_t, unsigned, unsigned *)>("ibv_query_gid_type");
        return query ? query(context, port, index, type) : -1;
    }
    *type = 0; // InfiniBand
    return port == 1 && index == 0 ? 0 : -1;
}

INTERPOSED int _ibv_query_gid_ex(ibv_context *context, std::uint32_t port, std::uint32_t index,
                                 ibv_gid_entry *entry, std::uint32_t flags, std::size_t bytes)
{
    if (!is_ours(context)) {
        auto *query = genuine<int(ibv_context *, std::uint32_t, std::uint32_t, ibv_gid_entry *,
                                  std::uint32_t, std::size_t)>("_ibv_query_gid_ex");
        return query ? query(context, port, index, entry, flags, bytes)
                     : missing("_ibv_query_gid_ex");
    }
    if (flags != 0)
        return EOPNOTSUPP;
    if (port != 1 || index != 0 || bytes < sizeof(*entry))
        return EINVAL;
    fill_entry(context, *entry);
    return 0;
}

INTERPOSED ssize_t _ibv_query_gid_table(ibv_context *context, ibv_gid_entry *entries, std::size_t n,
                                        std::uint32_t flags, std::size_t bytes)
{
    if (!is_ours(context)) {
        auto *query = genuine<ssize_t(ibv_context *, ibv_gid_entry *, std::size_t, std::uint32_t,
                                      std::size_t)>("_ibv_query_gid_table");
        return query ? query(context, entries, n, flags, bytes) : -missing("_ibv_query_gid_table");
    }
    if (flags != 0)
        return -EOPNOTSUPP;
    if (n < 1 || bytes < sizeof(*entries))
        return -EINVAL;
    fill_entry(context, entries[0]);
    return 1;
}

INTERPOSED int ibv_query_pkey(ibv_context *context, std::uint8_t port, int index, __be16 *pkey)
{
    if (!is_ours(context)) {
        auto *query = genuine<int(ibv_context *, std::uint8_t, int, __be16 *)>("ibv_query_pkey");
        return query ? query(context, port, index, pkey) : -1;
    }
    if (port != 1 || index != 0) {
        errno = EINVAL;
        return -1;
    }
    *pkey = default_pkey;
    return 0;
}

INTERPOSED int ibv_get_pkey_index(ibv_context *context, std::uint8_t port, __be16 pkey)
{
    if (!is_ours(context)) {
        auto *get = genuine<int(ibv_context *, std::uint8_t, __be16)>("ibv_get_pkey_index");
        return get ? get(context, port, pkey) : -1;
    }
    return port == 1 && pkey == default_pkey ? 0 : -1;
}

INTERPOSED ibv_comp_channel *ibv_create_comp_channel(ibv_context *context)
{
    if (!is_ours(context)) {
        auto *create = genuine<ibv_comp_channel *(ibv_context *)>("ibv_create_comp_channel");
        return create ? create(context) : nullptr;
    }
    auto *channel = make<Channel>();
    if (!channel)
        return nullptr;
    const int error = ntbv_channel_create(context_of(context)->engine, &channel->own);
    if (error != 0)
        return fail(channel, error);
    channel->channel.context = context;
    channel->channel.fd = ntbv_channel_descriptor(channel->own);
    return &channel->channel;
}

INTERPOSED int ibv_destroy_comp_channel(ibv_comp_channel *channel)
{
    if (!is_ours(channel->context)) {
        auto *destroy = genuine<int(ibv_comp_channel *)>("ibv_destroy_comp_channel");
        return destroy ? destroy(channel) : EOPNOTSUPP;
    }
    const int error = ntbv_channel_destroy(own<Channel>(channel)->own);
    if (error == 0)
        free(channel);
    return -error;
}
