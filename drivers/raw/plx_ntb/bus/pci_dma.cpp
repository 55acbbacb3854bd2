// SPDX-License-Identifier: BSD-3-Clause
#include "bus/pci_dma.hpp"

#include <array>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>

#include <bus_driver.h>
#include <bus_pci_driver.h>
#include <rte_bus_pci.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_io.h>
#include <rte_vfio.h>

#include <pmdinfo.hpp>

#include "bus/pci_functions.hpp"
#include "bus/pci_view.hpp"
#include "hw/facts/plx_ids.hpp"
#include "hw/facts/plx_regs.hpp"
#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

/// The registers that a channel has, its function's configuration space in front.
constexpr uint64_t bar_bytes_min = 0x2B0;
constexpr unsigned engine_bar = 0;

/// Holds all that the NT endpoint's device uses, since EAL's clean-up frees a function that it
/// could not remove.
struct Engine {
    const rte_pci_device *pci = nullptr;   ///< not accessed after the probe
    const rte_pci_device *owner = nullptr; ///< NT endpoint
    std::byte *registers = nullptr;
    PciFunction function = {};
};
/// For eight cards. Only accessed at probe and remove, which EAL serializes.
std::array<Engine, 8 * facts::dma_function_count> engines;

uint32_t read32(void *ctx, uint32_t offset)
{
    return rte_read32(static_cast<Engine *>(ctx)->registers + offset);
}
void write32(void *ctx, uint32_t offset, uint32_t value)
{
    rte_write32(value, static_cast<Engine *>(ctx)->registers + offset);
}
void delay_us(void *, uint32_t microseconds)
{
    rte_delay_us_sleep(microseconds);
}
const hw::RegIoOps engine_ops = {read32, write32, nullptr, nullptr, delay_us};

PciFunction function_of(const rte_pci_device &pci)
{
    return {.domain = pci.addr.domain,
            .bus = pci.addr.bus,
            .device = pci.addr.devid,
            .function = pci.addr.function,
            .vendor_id = pci.id.vendor_id,
            .device_id = pci.id.device_id,
            .class_id = pci.id.class_id};
}

/// Behind an IOMMU the window must be mapped, too. It is mapped at its own bus address, so that
/// requests arrive whether the switch routes them itself or sends them up.
bool behind_iommu(const rte_pci_device &nt)
{
    return kernel_driver_of(nt) == KernelDriver::vfio_pci && rte_vfio_noiommu_is_enabled() != 1;
}

uint64_t reach_window(const rte_pci_device &nt, const PciBar &window)
{
    if (!dma_reaches(window))
        return 0; // logged by the probe
    if (!behind_iommu(nt) || rte_vfio_container_dma_map(RTE_VFIO_DEFAULT_CONTAINER_FD,
                                                        reinterpret_cast<uintptr_t>(window.addr),
                                                        window.bus, window.bytes) == 0)
        return window.bus;
    PLX_INIT_LOG(WARNING,
                 "%s: the IOMMU does not take BAR2 at 0x%" PRIx64
                 ": DMA engines do not reach the peer, the CPU copies\n",
                 nt.name, window.bus);
    return 0;
}

bool beside(const PciFunction &a, const PciFunction &b)
{
    return a.domain == b.domain && a.bus == b.bus && a.device == b.device &&
           a.function != b.function;
}

/// EAL probes in the order of addresses, so the functions beside a link endpoint come after it. EAL
/// skips what is probed already.
void probe_beside(const rte_pci_device &nt)
{
    const PciFunction own = function_of(nt);
    rte_dev_iterator iterator;
    rte_device *found = nullptr;
    RTE_DEV_FOREACH(found, "bus=pci", &iterator)
    {
        const PciFunction f = function_of(*RTE_DEV_TO_PCI(found));
        if (beside(f, own) && is_engine(f) && rte_dev_is_probed(found) == 0)
            found->bus->plug(found); // logs its errors
    }
}

} // namespace

void pci_dma_claim(const rte_pci_device &nt, facts::Side side, const PciBar &window,
                   Platform *platform)
{
    if (side == facts::Side::link)
        probe_beside(nt);
    PciFunction all[engines.size()];
    Engine *known[engines.size()];
    size_t count = 0;
    for (Engine &engine : engines) {
        if (engine.pci == nullptr || engine.owner != nullptr)
            continue;
        all[count] = engine.function;
        known[count++] = &engine;
    }
    char link[PATH_MAX];
    char path[PATH_MAX];
    std::snprintf(link, sizeof(link), "%s/%s", rte_pci_get_sysfs_path(), nt.name);
    unsigned found[facts::dma_function_count];
    const unsigned engines_found =
        realpath(link, path) == nullptr ? 0 : dma_functions_of(side, path, {all, count}, found);
    for (unsigned i = 0; i < engines_found; ++i) {
        Engine *engine = known[found[i]];
        engine->owner = &nt;
        platform->dma[i] = {&engine_ops, engine};
        platform->dma_requesters[i] = all[found[i]].requester();
        PLX_INIT_LOG(INFO, "%s: DMA channel %u is %s\n", nt.name, i, engine->pci->name);
    }
    platform->dma_channels = engines_found;
    platform->window_bus = reach_window(nt, window); // also for engines of other devices
}

void pci_dma_release(const rte_pci_device &nt, const PciBar &window)
{
    for (Engine &engine : engines)
        if (engine.owner == &nt)
            engine.owner = nullptr;
    // The container outlives the function: a remaining mapping would make the next probe fail.
    if (window.bytes != 0 && behind_iommu(nt))
        rte_vfio_container_dma_unmap(RTE_VFIO_DEFAULT_CONTAINER_FD,
                                     reinterpret_cast<uintptr_t>(window.addr), window.bus,
                                     window.bytes);
}

// ---- the engines' own probe

namespace
{

int take(rte_pci_device *pci)
{
    const rte_mem_resource &bar = pci->mem_resource[engine_bar];
    if (bar.addr == nullptr || bar.len < bar_bytes_min) {
        PLX_INIT_LOG(ERR,
                     "%s: BAR0 of %" PRIu64 " bytes: expected the registers of a DMA engine, "
                     "at least %" PRIu64 " bytes\n",
                     pci->name, bar.len, bar_bytes_min);
        return -EINVAL;
    }
    for (Engine &engine : engines) {
        if (engine.pci == nullptr) {
            engine = {pci, nullptr, static_cast<std::byte *>(bar.addr), function_of(*pci)};
            return 0;
        }
    }
    PLX_INIT_LOG(ERR, "%s: more than %zu DMA engines\n", pci->name, engines.size());
    return -ENOSPC;
}

int probe(rte_pci_driver *, rte_pci_device *pci)
{
    if (rte_eal_process_type() != RTE_PROC_PRIMARY || kernel_driver_of(*pci) == KernelDriver::none)
        return 1; // to EAL: not ours
    int rc = rte_pci_map_device(pci);
    if (rc != 0) {
        PLX_INIT_LOG(ERR, "%s: EAL cannot map its BARs\n", pci->name);
        return rc;
    }
    rc = take(pci);
    if (rc != 0)
        rte_pci_unmap_device(pci);
    return rc;
}

int remove(rte_pci_device *pci)
{
    for (Engine &engine : engines) {
        if (engine.pci != pci)
            continue;
        if (engine.owner != nullptr) {
            PLX_LOG(ERR, "%s: a DMA channel of %s: remove that first\n", pci->name,
                    engine.owner->name);
            return -EBUSY;
        }
        engine = {};
    }
    rte_pci_unmap_device(pci);
    return 0;
}

constexpr rte_pci_id ids[] = {
    {RTE_PCI_DEVICE(facts::vendor_plx, facts::device_dma)},
    {RTE_PCI_DEVICE(facts::vendor_plx, facts::device_dma_alt)},
    {},
};

rte_pci_driver dma_driver = {.probe = probe, .remove = remove, .id_table = ids};

constexpr dpdk::PmdInfo info = {.name = "raw_plx_ntb_dma",
                                .params = "",
                                .kmod = "* igb_uio | uio_pci_generic | vfio-pci",
                                .ids = ids};
[[gnu::used]] constexpr auto info_text = dpdk::pmd_info_text<info>();

} // namespace

} // namespace plx::pmd

using plx::pmd::dma_driver;
RTE_PMD_REGISTER_PCI(raw_plx_ntb_dma, dma_driver);
