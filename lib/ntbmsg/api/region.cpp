// SPDX-License-Identifier: BSD-3-Clause
// Public calls: memory regions.
#include <cerrno>
#include <cstring>

#include <sized.hpp>

#include "endpoint/endpoint.hpp"

using namespace ntbmsg;

int ntbmsg_region_alloc(ntbmsg_endpoint *endpoint, size_t bytes, uint32_t rights,
                        ntbmsg_region **out)
{
    if (!is_live(endpoint, __func__) || out == nullptr)
        return -EINVAL;
    return endpoint->regions.alloc(bytes, rights, out);
}

int ntbmsg_region_register(ntbmsg_endpoint *endpoint, void *address, size_t bytes, uint32_t rights,
                           ntbmsg_region **out)
{
    if (!is_live(endpoint, __func__) || out == nullptr)
        return -EINVAL;
    return endpoint->regions.add(address, bytes, rights, out);
}

int ntbmsg_region_release(ntbmsg_region *region)
{
    return region != nullptr ? region->table->revoke(*region) : -EINVAL;
}

int ntbmsg_region_info_get(const ntbmsg_region *region, ntbmsg_region_info *info)
{
    if (region == nullptr || info == nullptr || region->key.load(std::memory_order_relaxed) == 0)
        return -EINVAL;
    const ntbmsg_region_info found = {.size = sizeof(found),
                                      .address = region->address,
                                      .bytes = region->bytes,
                                      .rights = region->rights,
                                      .direct = region->direct ? 1U : 0U,
                                      .writes = region->writes.load(std::memory_order_relaxed),
                                      .reads = region->reads.load(std::memory_order_relaxed),
                                      .atomics = region->atomics.load(std::memory_order_relaxed),
                                      .refused = region->refused.load(std::memory_order_relaxed)};
    return ntb::write_sized(found, sizeof(found), *info);
}

int ntbmsg_region_token_get(const ntbmsg_region *region, ntbmsg_region_token *token)
{
    if (region == nullptr || token == nullptr)
        return -EINVAL;
    protocol::Token made;
    if (const int rc = region->table->token(*region, made); rc != 0)
        return rc;
    static_assert(sizeof(token->bytes) == sizeof(made));
    std::memcpy(token->bytes, &made, sizeof(made));
    return 0;
}
