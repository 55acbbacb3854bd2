// SPDX-License-Identifier: BSD-3-Clause
// The device as a PCI function: a card. Written from the sources named in doc/hardware.md; not
// verified on hardware.
#include <cerrno>

#include <bus_pci_driver.h>
#include <rte_atomic.h>
#include <rte_bus_pci.h>
#include <rte_cycles.h>
#include <rte_devargs.h>
#include <rte_eal.h>
#include <rte_io.h>
#include <rte_malloc.h>

#include <pmdinfo.hpp>

#include "api/rawdev.hpp"
#include "bus/pci_dma.hpp"
#include "bus/pci_interrupt.hpp"
#include "bus/pci_memory.hpp"
#include "bus/pci_view.hpp"
#include "hw/facts/plx_ids.hpp"
#include "sync/log.hpp"

namespace plx::pmd
{

namespace
{

/// Registers behind a BAR.
struct RegSpace {
    std::byte *base;
    /// Mapped write-combining, as a prefetchable BAR may be: then stores need fences to be ordered
    /// and to leave the core before a load.
    bool combined;
};

struct PciPlatform {
    rte_pci_device *pci;
    PciInterrupt interrupt;
    RegSpace own;  ///< BAR0: the chip's registers
    RegSpace peer; ///< BAR4: the peer's registers at its start
    PciBar window; ///< BAR2, where DMA engines reach it
};

PciPlatform *self(void *ctx)
{
    return static_cast<PciPlatform *>(ctx);
}

uint32_t read_reg(const RegSpace &space, uint32_t offset)
{
    if (space.combined)
        rte_mb();
    return rte_read32(space.base + offset);
}
void write_reg(const RegSpace &space, uint32_t offset, uint32_t value)
{
    if (space.combined)
        rte_wmb();
    rte_write32(value, space.base + offset);
    if (space.combined)
        rte_wmb();
}

uint32_t own_read32(void *ctx, uint32_t offset)
{
    return read_reg(self(ctx)->own, offset);
}
void own_write32(void *ctx, uint32_t offset, uint32_t value)
{
    write_reg(self(ctx)->own, offset, value);
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
    return read_reg(self(ctx)->peer, offset);
}
void peer_write32(void *ctx, uint32_t offset, uint32_t value)
{
    write_reg(self(ctx)->peer, offset, value);
}
void delay_us(void *, uint32_t microseconds)
{
    rte_delay_us_sleep(microseconds);
}

const hw::RegIoOps own_ops = {own_read32, own_write32, own_config_read32, own_config_write32,
                              delay_us};
const hw::RegIoOps peer_ops = {peer_read32, peer_write32, nullptr, nullptr, delay_us};

int memory_alloc(void *ctx, size_t bytes, int node, const hw::WindowRules &rules, WindowMemory *out)
{
    return pci_memory_alloc(self(ctx)->pci->name, bytes, node, rules, out);
}

void memory_free(void *, const WindowMemory &memory)
{
    pci_memory_free(memory);
}

bool peer_present(void *)
{
    return true; // unknown to the bridge; the heartbeat shows it
}

void watch_peer(void *, void (*)(void *), void *) {}

int watch_interrupt(void *ctx, void (*fn)(void *arg), void *arg)
{
    return pci_interrupt_watch(self(ctx)->pci->intr_handle, &self(ctx)->interrupt, fn, arg);
}

void detach(void *ctx)
{
    pci_dma_release(*self(ctx)->pci, self(ctx)->window);
    rte_free(ctx);
}

const PlatformOps pci_ops = {"pci",           memory_alloc, memory_free, peer_present, watch_peer,
                             watch_interrupt, detach,       nullptr,     nullptr,      nullptr};

// ---- probe and remove

void report_mapping(const char *name, const PciView &view)
{
    const PciBar &data = view.bars.data;
    if (view.data.write_combining) {
        PLX_INIT_LOG(INFO, "%s: BAR2 is mapped write-combining: %s\n", name, view.data.why);
        return;
    }
    PLX_INIT_LOG(WARNING,
                 "%s: BAR2 is mapped uncached (%s): every store crosses alone, many times slower. "
                 "Bind it to uio_pci_generic%s, load igb_uio with wc_activate=1, or: echo "
                 "\"base=0x%" PRIx64 " size=0x%" PRIx64 " type=write-combining\" > /proc/mtrr\n",
                 name, view.data.why,
                 data.prefetchable ? "" : " (and make BAR2 prefetchable in the EEPROM)", data.bus,
                 data.bytes);
}

/// Maps the BARs here (no RTE_PCI_DRV_NEED_MAPPING): EAL would silently skip a function without a
/// suitable kernel driver.
int map_device(rte_pci_device *pci)
{
    if (kernel_driver_of(*pci) == KernelDriver::none) {
        char driver[64];
        PLX_INIT_LOG(ERR,
                     "%s: the kernel driver %s gives user space no access: bind vfio-pci or "
                     "uio_pci_generic, as by: driverctl set-override %s vfio-pci\n",
                     pci->name, kernel_driver_name(*pci, driver, sizeof(driver)), pci->name);
        return 1; // to EAL: not ours
    }
    const int rc = rte_pci_map_device(pci);
    if (rc != 0)
        PLX_INIT_LOG(ERR, "%s: EAL cannot map its BARs\n", pci->name);
    return rc;
}

int open_card(rte_pci_device *pci, const Options &options)
{
    const PciView view = pci_view(*pci);
    BarFault fault;
    if (!check_bars(view.bars, &fault)) {
        PLX_INIT_LOG(ERR, "%s: %s\n", pci->name, fault.text);
        return -EINVAL;
    }
    auto *made = static_cast<PciPlatform *>(rte_zmalloc("plx_pci", sizeof(PciPlatform), 0));
    if (made == nullptr)
        return -ENOMEM;
    report_mapping(pci->name, view);
    if (!dma_reaches(view.bars.data))
        PLX_INIT_LOG(WARNING,
                     "%s: BAR2 lies at 0x%" PRIx64
                     ", where the chip's DMA engines do not reach (48 "
                     "bits): lower the firmware's base of 64-bit MMIO\n",
                     pci->name, view.bars.data.bus);
    made->pci = pci;
    made->own = {view.bars.csr.addr, view.csr.write_combining};
    made->peer = {view.bars.shared.addr, view.shared.write_combining};
    Platform platform{.ops = &pci_ops,
                      .ctx = made,
                      .own = {&own_ops, made},
                      .peer = {&peer_ops, made},
                      .window = view.bars.data.addr,
                      .window_bytes = view.bars.data.bytes,
                      .shared_bytes = view.bars.shared.bytes,
                      .write_combining = view.data.write_combining,
                      .node = pci->device.numa_node};
    // A chip that cannot be identified is refused by the device, with a reason.
    if (hw::Identity id; hw::identify(platform.own, &id, nullptr) == 0)
        pci_dma_claim(*pci, id.side, view.bars.data, &platform);
    if (platform.window_bus != 0)
        made->window = view.bars.data;
    return device_create(pci->name, platform, options, &pci->device);
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
        rc = map_device(pci);
    if (rc != 0)
        return rc;
    rc = open_card(pci, options);
    if (rc != 0)
        rte_pci_unmap_device(pci);
    return rc;
}

int remove(rte_pci_device *pci)
{
    const int rc = device_destroy(pci->name);
    if (rc == 0)
        rte_pci_unmap_device(pci);
    return rc;
}

constexpr rte_pci_id ids[] = {
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
    .drv_flags = RTE_PCI_DRV_WC_ACTIVATE,
};

constexpr dpdk::PmdInfo info = {.name = "raw_plx_ntb_pci",
                                .params = PLX_COMMON_PARAMS,
                                .kmod = "* igb_uio | uio_pci_generic | vfio-pci",
                                .ids = ids};
[[gnu::used]] constexpr auto info_text = dpdk::pmd_info_text<info>();

} // namespace

} // namespace plx::pmd

using plx::pmd::pci_driver;
RTE_PMD_REGISTER_PCI(raw_plx_ntb_pci, pci_driver);
