// SPDX-License-Identifier: BSD-3-Clause
// The rawdev: its operations, creation and removal.
#ifndef PLX_NTB_API_RAWDEV_HPP
#define PLX_NTB_API_RAWDEV_HPP

#include "device/options.hpp"
#include "platform/platform.hpp"

struct rte_device;

namespace plx::pmd
{

/// Creates a rawdev with its Device and probes the chip. Takes ownership of the platform in any
/// case.
/// @return 0 or negative errno, logged
int device_create(const char *name, const Platform &platform, const Options &options,
                  rte_device *device);
/// Stops, closes and releases it. @return 0; -ENODEV; -EBUSY mbufs of its pools are still held
int device_destroy(const char *name);

} // namespace plx::pmd

#endif
