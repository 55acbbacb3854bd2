// SPDX-License-Identifier: BSD-3-Clause
#include "api/requesters.hpp"

#include <cerrno>

#include "api/devices.hpp"
#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

using Entry = hw::Chip::Entry;

rte_pmd_plx_ntb_requester_kind kind_of(Entry entry)
{
    switch (entry) {
    case Entry::given:
        return RTE_PMD_PLX_NTB_REQUESTER_ENGINE;
    case Entry::added:
        return RTE_PMD_PLX_NTB_REQUESTER_ADDED;
    case Entry::leaving:
        return RTE_PMD_PLX_NTB_REQUESTER_LEAVING;
    case Entry::own:
    case Entry::none:
        break;
    }
    return RTE_PMD_PLX_NTB_REQUESTER_CPU;
}

const char *reason(int rc)
{
    switch (rc) {
    case -EEXIST:
        return "its bus and device are in the table";
    case -ENOENT:
        return "it is not in the table";
    case -EPERM:
        return "it is the CPU's or the chip's own";
    case -ENOSPC:
        return "the requester-ID table is full: expected one that is removed first";
    default:
        return "the chip does not answer";
    }
}

/// Runs @p call on the chip of a device, under its lock.
template <class Call>
int change(uint16_t dev_id, uint32_t id, const char *what, Call call)
{
    Device *device = device_of(dev_id);
    if (device == nullptr)
        return -ENODEV;
    const ControlLock locked(*device);
    if (device->closed())
        return -ENODEV;
    if (id >= UINT16_MAX) { // 0xffff: a function that does not answer
        PLX_LOG(ERR, "%s: requester 0x%x: expected bus << 8 | device << 3, below 0xffff\n",
                device->name(), id);
        return -EINVAL;
    }
    const auto bus_device = static_cast<uint16_t>(id);
    const int rc = call(device->chip(), bus_device);
    char name[16];
    requester_name(bus_device, name, sizeof(name));
    if (rc == 0)
        PLX_LOG(INFO, "%s: requester %s is %s\n", device->name(), name, what);
    else
        PLX_LOG(ERR, "%s: requester %s is not %s: %s\n", device->name(), name, what, reason(rc));
    return rc == -ENODEV ? -EIO : rc;
}

} // namespace

void requester_name(uint16_t id, char *text, size_t size)
{
    std::snprintf(text, size, "%02x:%02x.x", id >> 8, id >> 3 & 0x1F);
}

const char *requester_kind_name(rte_pmd_plx_ntb_requester_kind kind)
{
    static constexpr const char *names[] = {"CPU", "DMA functions", "added", "leaving"};
    return names[kind];
}

unsigned list_requesters(Device &device, rte_pmd_plx_ntb_requester *list, uint32_t n)
{
    const ControlLock locked(device);
    unsigned count = 0;
    for (uint16_t slot = 0; slot < facts::lut_entry_count; ++slot) {
        const hw::Chip::Requester r = device.chip().requester(slot);
        if (r.entry == Entry::none)
            continue;
        if (count < n)
            list[count] = {
                .id = static_cast<uint16_t>(r.id & 0xFFF8), .slot = slot, .kind = kind_of(r.entry)};
        ++count;
    }
    return count;
}

} // namespace plx::pmd

int rte_pmd_plx_ntb_requester_add(uint16_t dev_id, uint32_t id)
{
    return plx::pmd::change(dev_id, id, "let through", [](plx::hw::Chip &chip, uint16_t requester) {
        return chip.requester_add(requester);
    });
}

int rte_pmd_plx_ntb_requester_remove(uint16_t dev_id, uint32_t id)
{
    return plx::pmd::change(dev_id, id, "taken out", [](plx::hw::Chip &chip, uint16_t requester) {
        return chip.requester_remove(requester);
    });
}

int rte_pmd_plx_ntb_requester_list(uint16_t dev_id, rte_pmd_plx_ntb_requester *list, uint32_t n)
{
    plx::pmd::Device *device = plx::pmd::device_of(dev_id);
    if (device == nullptr || device->closed())
        return -ENODEV;
    if (list == nullptr && n != 0)
        return -EINVAL;
    return static_cast<int>(plx::pmd::list_requesters(*device, list, n));
}
