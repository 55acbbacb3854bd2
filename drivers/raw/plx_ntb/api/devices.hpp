// SPDX-License-Identifier: BSD-3-Clause
// Finding the device of a rawdev.
#ifndef PLX_NTB_API_DEVICES_HPP
#define PLX_NTB_API_DEVICES_HPP

#include <rte_rawdev_pmd.h>

#include "device/device.hpp"

namespace plx::pmd
{

/// Operations of all rawdevs of this driver; their address identifies the driver.
[[gnu::visibility("hidden")]] extern const char driver_name[];

/// The device of a rawdev of this driver.
inline Device *device_of(const rte_rawdev *raw)
{
    return static_cast<Device *>(raw->dev_private);
}
/// The device of a rawdev id. @return NULL: none, or of another driver
inline Device *device_of(uint16_t dev_id)
{
    if (dev_id >= RTE_RAWDEV_MAX_DEVS)
        return nullptr;
    const rte_rawdev *raw = &rte_rawdevs[dev_id];
    if (raw->attached != RTE_RAWDEV_ATTACHED || raw->driver_name != driver_name)
        return nullptr;
    return device_of(raw);
}
/// The device of a name. @return NULL: none
inline Device *device_named(const char *name)
{
    const rte_rawdev *raw = rte_rawdev_pmd_get_named_dev(name);
    return raw == nullptr ? nullptr : device_of(raw->dev_id);
}

} // namespace plx::pmd

#endif
