// SPDX-License-Identifier: BSD-3-Clause
// The device as a vdev: a chip of the software twin.
#include <cerrno>
#include <cinttypes>

#include <bus_vdev_driver.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include <pmdinfo.hpp>

#include "api/devices.hpp"
#include "api/rawdev.hpp"
#include "bus/twin_platform.hpp"
#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

int probe(rte_vdev_device *vdev)
{
    const char *name = rte_vdev_device_name(vdev);
    if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
        PLX_INIT_LOG(ERR, "%s: secondary processes are not supported\n", name);
        return -ENOTSUP;
    }
    Options options;
    int rc = parse_options(name, rte_vdev_device_args(vdev), true, &options);
    if (rc != 0)
        return rc;
    // A twin's topology is given by devargs, not detected.
    if (options.topology == hw::Topology::automatic)
        options.topology = hw::Topology::back_to_back;
    Platform platform;
    rc = open_twin(name, options, &platform);
    return rc != 0 ? rc : device_create(name, platform, options, &vdev->device);
}

/// Maps memory that the application has registered itself, for rte_dev_dma_map() and _unmap().
/// @return NULL: there is no such device, or it is closed
const Platform *platform_of(rte_vdev_device *vdev)
{
    const Device *device = device_named(rte_vdev_device_name(vdev));
    return device == nullptr || device->closed() ? nullptr : &device->platform();
}

int dma_map(rte_vdev_device *vdev, void *address, uint64_t iova, size_t bytes)
{
    const Platform *twin = platform_of(vdev);
    const int rc = twin == nullptr ? -ENODEV : twin_dma_map(*twin, address, iova, bytes);
    if (rc != 0)
        PLX_LOG(ERR, "%s: 0x%" PRIx64 " + 0x%zx is not mapped for DMA: %s\n",
                rte_vdev_device_name(vdev), iova, bytes,
                rc == -EINVAL ? "expected a range below 2^48 that was not mapped before"
                              : rte_strerror(-rc));
    return rc;
}

int dma_unmap(rte_vdev_device *vdev, void *, uint64_t iova, size_t bytes)
{
    const Platform *twin = platform_of(vdev);
    return twin == nullptr ? -ENODEV : twin_dma_unmap(*twin, iova, bytes);
}

int remove(rte_vdev_device *vdev)
{
    return device_destroy(rte_vdev_device_name(vdev));
}

rte_vdev_driver driver = {
    .probe = probe, .remove = remove, .dma_map = dma_map, .dma_unmap = dma_unmap};

constexpr dpdk::PmdInfo info = {
    .name = "raw_plx_ntb", .params = PLX_TWIN_PARAMS PLX_COMMON_PARAMS, .kmod = "", .ids = {}};
[[gnu::used]] constexpr auto info_text = dpdk::pmd_info_text<info>();

} // namespace

} // namespace plx::pmd

using plx::pmd::driver;
RTE_PMD_REGISTER_VDEV(raw_plx_ntb, driver);
