// SPDX-License-Identifier: BSD-3-Clause
// The public border of exposed memory.
#include <cerrno>

#include "api/devices.hpp"
#include "sync/sized.hpp"

namespace
{

/// Runs @p call on the device's lent memory, under its lock. A closed device has none.
template <class Call>
int with(uint16_t dev_id, Call call)
{
    plx::pmd::Device *device = plx::pmd::device_of(dev_id);
    if (device == nullptr)
        return -ENODEV;
    const plx::pmd::ControlLock locked(*device);
    return device->closed() ? -ENODEV : call(*device, device->lending());
}

} // namespace

using plx::pmd::Device;
using plx::pmd::Lending;

int rte_pmd_plx_ntb_window_info_get(uint16_t dev_id, rte_pmd_plx_ntb_window_info *info)
{
    return with(dev_id, [info](Device &, Lending &lending) {
        if (info == nullptr)
            return -EINVAL;
        rte_pmd_plx_ntb_window_info now{};
        lending.info(&now);
        return plx::pmd::write_sized(now, sizeof(now), *info);
    });
}

int rte_pmd_plx_ntb_window_align_get(uint16_t dev_id, uint64_t bytes,
                                     rte_pmd_plx_ntb_window_align *align)
{
    return with(dev_id, [bytes, align](Device &, Lending &lending) {
        if (align == nullptr || bytes == 0)
            return -EINVAL;
        rte_pmd_plx_ntb_window_align now{};
        const int rc = lending.align(bytes, &now);
        const int written = plx::pmd::write_sized(now, sizeof(now), *align);
        return written != 0 ? written : rc;
    });
}

int rte_pmd_plx_ntb_window_alloc(uint16_t dev_id, size_t bytes,
                                 rte_pmd_plx_ntb_window_memory *memory)
{
    return with(dev_id, [bytes, memory](Device &device, Lending &lending) {
        return memory == nullptr ? -EINVAL : lending.alloc(bytes, device.node(), memory);
    });
}

int rte_pmd_plx_ntb_window_free(uint16_t dev_id, void *address)
{
    return with(dev_id, [address](Device &, Lending &lending) { return lending.free(address); });
}

int rte_pmd_plx_ntb_window_expose(uint16_t dev_id, void *address, size_t bytes, uint32_t rights,
                                  uint32_t window, uint64_t *offset)
{
    return with(dev_id, [=](Device &, Lending &lending) {
        return offset == nullptr ? -EINVAL : lending.expose(address, bytes, rights, window, offset);
    });
}

int rte_pmd_plx_ntb_window_revoke(uint16_t dev_id, void *address, size_t bytes)
{
    return with(dev_id, [=](Device &, Lending &lending) { return lending.revoke(address, bytes); });
}

int rte_pmd_plx_ntb_window_find(uint16_t dev_id, const void *address,
                                rte_pmd_plx_ntb_window_grant *grant)
{
    return with(dev_id, [=](Device &, Lending &lending) {
        return grant == nullptr ? -EINVAL : lending.find(address, grant);
    });
}

int rte_pmd_plx_ntb_window_peer(uint16_t dev_id, uint64_t offset, size_t bytes,
                                rte_pmd_plx_ntb_window_view *view)
{
    return with(dev_id, [=](Device &, Lending &lending) {
        return view == nullptr ? -EINVAL : lending.peer(offset, bytes, view);
    });
}

int rte_pmd_plx_ntb_window_store_get(uint16_t dev_id, rte_pmd_plx_ntb_store_fn *store)
{
    return with(dev_id, [store](Device &device, Lending &) {
        if (store == nullptr)
            return -EINVAL;
        *store = device.ops()->copy;
        return 0;
    });
}
