// SPDX-License-Identifier: BSD-3-Clause
// The device as a PCI function: a card. Written from the sources named in doc/hardware.md; not
// verified on hardware.
#include "pmd.hpp"

#include <cerrno>

#include <bus_pci_driver.h>
#include <rte_bus_pci.h>
#include <rte_cycles.h>
#include <rte_devargs.h>
#include <rte_eal.h>
#include <rte_io.h>
#include <rte_malloc.h>
#include <rte_memzone.h>

#include <plx_ids.hpp>

#include "plx_log.hpp"

namespace plx::pmd
{

namespace
{

constexpr unsigned csr_bar = 0;
constexpr unsigned data_bar = 2;
constexpr unsigned shared_bar = 4;

struct PciPlatform {
    rte_pci_device *pci;
    std::byte *csr;    ///< BAR0: the chip's registers
    std::byte *shared; ///< BAR4: the peer's registers at its start
    const rte_memzone *zone;
};

PciPlatform *self(void *ctx)
{
    return static_cast<PciPlatform *>(ctx);
}

uint32_t own_read32(void *ctx, uint32_t offset)
{
    return rte_read32(self(ctx)->csr + offset);
}
void own_write32(void *ctx, uint32_t offset, uint32_t value)
{
    rte_write32(value, self(ctx)->csr + offset);
}
uint32_t own_config_read32(void *ctx, uint32_t offset)
{
    uint32_t value = 0;
    const int got = rte_pci_read_config(self(ctx)->pci, &value, sizeof(value), offset);
    return got == sizeof(value) ? value : ~0u;
}
void own_config_write32(void *ctx, uint32_t offset, uint32_t value)
{
    rte_pci_write_config(self(ctx)->pci, &value, sizeof(value), offset);
}
uint32_t peer_read32(void *ctx, uint32_t offset)
{
    return rte_read32(self(ctx)->shared + offset);
}
void peer_write32(void *ctx, uint32_t offset, uint32_t value)
{
    rte_write32(value, self(ctx)->shared + offset);
}
void delay_us(void *, uint32_t microseconds)
{
    rte_delay_us_sleep(microseconds);
}

const hw::RegIoOps own_ops = {own_read32, own_write32, own_config_read32, own_config_write32,
                              delay_us};
const hw::RegIoOps peer_ops = {peer_read32, peer_write32, nullptr, nullptr, delay_us};

/// Memory whose IOVA, not only whose virtual address, is aligned to its size: reserve_aligned
/// promises the latter, so the former is looked for inside twice the size.
int memory_alloc(void *ctx, size_t bytes, int node, WindowMemory *out)
{
    char name[RTE_MEMZONE_NAMESIZE];
    std::snprintf(name, sizeof(name), "plx_%s", self(ctx)->pci->name);
    for (const size_t reserve : {bytes, 2 * bytes}) {
        const rte_memzone *zone = rte_memzone_reserve_aligned(
            name, reserve, node, RTE_MEMZONE_IOVA_CONTIG, static_cast<unsigned>(bytes));
        if (zone == nullptr)
            return -ENOMEM;
        const uint64_t skip = -zone->iova & (bytes - 1);
        if (skip + bytes <= reserve) {
            self(ctx)->zone = zone;
            *out = {static_cast<std::byte *>(zone->addr) + skip, zone->iova + skip, bytes,
                    zone->hugepage_sz};
            return 0;
        }
        rte_memzone_free(zone);
    }
    return -ENOMEM;
}

void memory_free(void *ctx, const WindowMemory &)
{
    rte_memzone_free(self(ctx)->zone);
    self(ctx)->zone = nullptr;
}

bool peer_present(void *)
{
    return true; // the bridge does not tell; the heartbeat does
}

void watch_peer(void *, void (*)(void *), void *) {}

void detach(void *ctx)
{
    rte_free(ctx);
}

const PlatformOps pci_ops = {"pci", memory_alloc, memory_free, peer_present, watch_peer, detach};

int check_bars(const rte_pci_device *pci)
{
    struct Need {
        unsigned bar;
        uint64_t bytes;
    };
    constexpr Need needs[] = {{csr_bar, facts::bar0_size},
                              {data_bar, wire::block_bytes_min},
                              {shared_bar, 2 * wire::block_bytes_min}};
    for (const Need &need : needs) {
        const rte_mem_resource &resource = pci->mem_resource[need.bar];
        if (resource.addr == nullptr || resource.len < need.bytes) {
            PLX_INIT_LOG(ERR,
                         "%s: BAR%u is %" PRIu64 " bytes%s: expected at least %" PRIu64
                         ", mapped (64-bit windows in BAR2 and BAR4)\n",
                         pci->name, need.bar, resource.len,
                         resource.addr == nullptr ? " and not mapped" : "", need.bytes);
            return -EINVAL;
        }
    }
    return 0;
}

int probe(rte_pci_driver *, rte_pci_device *pci)
{
    if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
        PLX_INIT_LOG(ERR, "%s: secondary processes are not supported\n", pci->name);
        return -ENOTSUP;
    }
    Options options;
    const rte_devargs *devargs = pci->device.devargs;
    int rc =
        parse_options(pci->name, devargs == nullptr ? nullptr : devargs->args, false, &options);
    if (rc == 0)
        rc = check_bars(pci);
    if (rc != 0)
        return rc;
    auto *made = static_cast<PciPlatform *>(rte_zmalloc("plx_pci", sizeof(PciPlatform), 0));
    if (made == nullptr)
        return -ENOMEM;
    made->pci = pci;
    made->csr = static_cast<std::byte *>(pci->mem_resource[csr_bar].addr);
    made->shared = static_cast<std::byte *>(pci->mem_resource[shared_bar].addr);
    const Platform platform{.ops = &pci_ops,
                            .ctx = made,
                            .own = {&own_ops, made},
                            .peer = {&peer_ops, made},
                            .window = static_cast<std::byte *>(pci->mem_resource[data_bar].addr),
                            .window_bytes = pci->mem_resource[data_bar].len,
                            .shared_bytes = pci->mem_resource[shared_bar].len,
                            .write_combining = true, // right for an uncached mapping too, if slower
                            .node = pci->device.numa_node};
    return device_create(pci->name, platform, options, &pci->device);
}

int remove(rte_pci_device *pci)
{
    return device_destroy(pci->name);
}

const rte_pci_id ids[] = {
    {RTE_PCI_DEVICE(facts::vendor_plx, facts::device_nt0_virtual)},
    {RTE_PCI_DEVICE(facts::vendor_plx, facts::device_nt1_virtual)},
    {RTE_PCI_DEVICE(facts::vendor_plx, facts::device_nt0_link)},
    {RTE_PCI_DEVICE(facts::vendor_plx, facts::device_nt1_link)},
    {},
};

rte_pci_driver pci_driver = {
    .probe = probe,
    .remove = remove,
    .id_table = ids,
    .drv_flags = RTE_PCI_DRV_NEED_MAPPING | RTE_PCI_DRV_WC_ACTIVATE,
};

} // namespace

} // namespace plx::pmd

using plx::pmd::pci_driver;
RTE_PMD_REGISTER_PCI(raw_plx_ntb_pci, pci_driver);
RTE_PMD_REGISTER_KMOD_DEP(raw_plx_ntb_pci, "* igb_uio | uio_pci_generic | vfio-pci");
RTE_PMD_REGISTER_PARAM_STRING(raw_plx_ntb_pci, PLX_COMMON_PARAMS);
