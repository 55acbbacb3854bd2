// SPDX-License-Identifier: BSD-3-Clause
// Public calls: exposed memory and the memory window.
#include <cerrno>

#include <sized.hpp>

#include <new>

#include <rte_malloc.h>

#include "api/devices.hpp"
#include "window/writer.hpp"

struct rte_pmd_plx_ntb_window_writer {
    plx::pmd::Writer writer;
};

namespace
{

/// Runs @p call on the device's exposed memory, under its lock. A closed device has none.
template <class Call>
int with(uint16_t dev_id, Call call)
{
    plx::pmd::Device *device = plx::pmd::device_of(dev_id);
    if (device == nullptr)
        return -ENODEV;
    const plx::pmd::ControlLock locked(*device);
    return device->closed() ? -ENODEV : call(*device, device->exposed());
}

} // namespace

using plx::pmd::Device;
using plx::pmd::ExposedMemory;

int rte_pmd_plx_ntb_memory_info_get(uint16_t dev_id, rte_pmd_plx_ntb_memory_info *info)
{
    return with(dev_id, [info](Device &, ExposedMemory &exposed) {
        if (info == nullptr)
            return -EINVAL;
        rte_pmd_plx_ntb_memory_info now{};
        exposed.info(&now);
        return ntb::write_sized(now, sizeof(now), *info);
    });
}

int rte_pmd_plx_ntb_memory_align_get(uint16_t dev_id, uint64_t bytes,
                                     rte_pmd_plx_ntb_memory_align *align)
{
    return with(dev_id, [bytes, align](Device &, ExposedMemory &exposed) {
        if (align == nullptr || bytes == 0)
            return -EINVAL;
        rte_pmd_plx_ntb_memory_align now{};
        const int rc = exposed.align(bytes, &now);
        const int written = ntb::write_sized(now, sizeof(now), *align);
        return written != 0 ? written : rc;
    });
}

int rte_pmd_plx_ntb_memory_alloc(uint16_t dev_id, size_t bytes, rte_pmd_plx_ntb_memory *memory)
{
    return with(dev_id, [bytes, memory](Device &device, ExposedMemory &exposed) {
        return memory == nullptr ? -EINVAL : exposed.alloc(bytes, device.node(), memory);
    });
}

int rte_pmd_plx_ntb_memory_free(uint16_t dev_id, void *address)
{
    return with(dev_id,
                [address](Device &, ExposedMemory &exposed) { return exposed.free(address); });
}

int rte_pmd_plx_ntb_memory_expose(uint16_t dev_id, void *address, size_t bytes, uint32_t rights,
                                  uint32_t part, uint64_t *offset)
{
    return with(dev_id, [=](Device &, ExposedMemory &exposed) {
        return offset == nullptr ? -EINVAL : exposed.expose(address, bytes, rights, part, offset);
    });
}

int rte_pmd_plx_ntb_memory_revoke(uint16_t dev_id, void *address, size_t bytes)
{
    return with(dev_id,
                [=](Device &, ExposedMemory &exposed) { return exposed.revoke(address, bytes); });
}

int rte_pmd_plx_ntb_memory_find(uint16_t dev_id, const void *address,
                                rte_pmd_plx_ntb_memory_exposed *range)
{
    return with(dev_id, [=](Device &, ExposedMemory &exposed) {
        return range == nullptr ? -EINVAL : exposed.find(address, range);
    });
}

int rte_pmd_plx_ntb_window_view_get(uint16_t dev_id, uint64_t offset, size_t bytes,
                                    rte_pmd_plx_ntb_window_view *view)
{
    return with(dev_id, [=](Device &, ExposedMemory &exposed) {
        return view == nullptr ? -EINVAL : exposed.peer(offset, bytes, view);
    });
}

int rte_pmd_plx_ntb_window_store_get(uint16_t dev_id, rte_pmd_plx_ntb_window_store_fn *store)
{
    return with(dev_id, [store](Device &device, ExposedMemory &) {
        if (store == nullptr)
            return -EINVAL;
        *store = device.ops()->copy;
        return 0;
    });
}

int rte_pmd_plx_ntb_window_writer_create(uint16_t dev_id, rte_pmd_plx_ntb_window_writer **writer)
{
    return with(dev_id, [writer](Device &device, ExposedMemory &) {
        if (writer == nullptr)
            return -EINVAL;
        void *memory =
            rte_zmalloc("plx_writer", sizeof(rte_pmd_plx_ntb_window_writer), RTE_CACHE_LINE_SIZE);
        if (memory == nullptr)
            return -ENOMEM;
        *writer =
            new (memory) rte_pmd_plx_ntb_window_writer{plx::pmd::Writer(device.writer_setup())};
        return 0;
    });
}

void rte_pmd_plx_ntb_window_writer_free(rte_pmd_plx_ntb_window_writer *writer)
{
    rte_free(writer);
}

void rte_pmd_plx_ntb_window_writer_store(rte_pmd_plx_ntb_window_writer *writer, void *to,
                                         const void *from, size_t bytes)
{
    writer->writer.store(static_cast<std::byte *>(to), static_cast<const std::byte *>(from), bytes);
}
