// SPDX-License-Identifier: BSD-3-Clause
// Public calls: devices, their link and events.
#include <cerrno>

#include <rte_rawdev.h>
#include <rte_rawdev_pmd.h>

#include "api/devices.hpp"

using plx::pmd::Device;

int rte_pmd_plx_ntb_find(const char *name)
{
    if (name == nullptr)
        return -EINVAL;
    const rte_rawdev *raw = rte_rawdev_pmd_get_named_dev(name);
    return raw != nullptr && plx::pmd::device_of(raw->dev_id) != nullptr ? raw->dev_id : -ENODEV;
}

int rte_pmd_plx_ntb_link_get(uint16_t dev_id, rte_pmd_plx_ntb_link *link)
{
    Device *device = plx::pmd::device_of(dev_id);
    if (device == nullptr)
        return -ENODEV;
    if (link == nullptr)
        return -EINVAL;
    device->link_info(link);
    return 0;
}

int rte_pmd_plx_ntb_stop(uint16_t dev_id, uint32_t linger_ms, uint64_t *unconfirmed)
{
    Device *device = plx::pmd::device_of(dev_id);
    if (device == nullptr)
        return -ENODEV;
    const int rc = device->stop(linger_ms);
    rte_rawdevs[dev_id].started = 0; // as rte_rawdev_stop(), which would try once more
    if (unconfirmed != nullptr)
        *unconfirmed = device->left_unconfirmed();
    return rc;
}

int rte_pmd_plx_ntb_tx_unconfirmed(uint16_t dev_id, uint16_t queue, uint32_t *count)
{
    Device *device = plx::pmd::device_of(dev_id);
    if (device == nullptr)
        return -ENODEV;
    return count == nullptr ? -EINVAL : device->tx_unconfirmed(queue, count);
}

int rte_pmd_plx_ntb_inject(uint16_t dev_id, rte_pmd_plx_ntb_fault fault, uint32_t argument)
{
    Device *device = plx::pmd::device_of(dev_id);
    if (device == nullptr || device->closed())
        return -ENODEV;
    const plx::pmd::Platform &platform = device->platform();
    return platform.ops->inject == nullptr ? -ENOTSUP
                                           : platform.ops->inject(platform.ctx, fault, argument);
}

int rte_pmd_plx_ntb_event_register(uint16_t dev_id, rte_pmd_plx_ntb_event_fn fn, void *arg)
{
    Device *device = plx::pmd::device_of(dev_id);
    if (device == nullptr)
        return -ENODEV;
    device->set_callback(fn, arg);
    return 0;
}
