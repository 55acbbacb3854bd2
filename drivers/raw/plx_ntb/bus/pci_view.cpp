// SPDX-License-Identifier: BSD-3-Clause
#include "bus/pci_view.hpp"

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <bus_pci_driver.h>
#include <rte_bus_pci.h>

#include <unistd.h>

#include "hw/facts/plx_regs.hpp"

namespace plx::pmd
{

namespace
{

PciBar look_at_bar(const rte_pci_device &pci, unsigned index)
{
    const rte_mem_resource &resource = pci.mem_resource[index];
    PciBar bar{.bus = resource.phys_addr,
               .bytes = resource.len,
               .addr = static_cast<std::byte *>(resource.addr)};
    uint32_t config = 0;
    const auto at = static_cast<off_t>(facts::reg::pci_bar[index]);
    if (rte_pci_read_config(&pci, &config, sizeof(config), at) == sizeof(config))
        set_type(&bar, config);
    return bar;
}

/// The text of a file of /proc or /sys. @return to be freed; NULL: it cannot be read
char *read_text(const char *path)
{
    FILE *file = std::fopen(path, "re");
    if (file == nullptr)
        return nullptr;
    char *text = nullptr;
    size_t room = 0;
    // Delimiter 0, which no text contains: reads the whole file.
    const ssize_t length = getdelim(&text, &room, '\0', file);
    std::fclose(file);
    if (length > 0)
        return text;
    std::free(text);
    return nullptr;
}

/// How the BARs of a function are mapped.
class Mappings
{
public:
    explicit Mappings(const rte_pci_device &pci)
        : maps_(read_text("/proc/self/maps")), mtrr_(read_text("/proc/mtrr"))
    {
        char *wc = read_text("/sys/module/igb_uio/parameters/wc_activate");
        facts_ = {.driver = kernel_driver_of(pci),
                  .maps = maps_ == nullptr ? "" : maps_,
                  .mtrr = mtrr_ == nullptr ? "" : mtrr_,
                  .igb_uio_wc = wc != nullptr && wc[0] == '1'};
        std::free(wc);
    }
    ~Mappings()
    {
        std::free(maps_);
        std::free(mtrr_);
    }
    Mappings(const Mappings &) = delete;
    Mappings &operator=(const Mappings &) = delete;

    BarMapping of(const PciBar &bar) const
    {
        return bar_mapping(facts_, reinterpret_cast<uintptr_t>(bar.addr), bar.bus, bar.bytes);
    }

private:
    char *maps_;
    char *mtrr_;
    MappingFacts facts_;
};

} // namespace

KernelDriver kernel_driver_of(const rte_pci_device &pci)
{
    switch (pci.kdrv) {
    case RTE_PCI_KDRV_VFIO:
        return KernelDriver::vfio_pci;
    case RTE_PCI_KDRV_IGB_UIO:
        return KernelDriver::igb_uio;
    case RTE_PCI_KDRV_UIO_GENERIC:
        return KernelDriver::uio_pci_generic;
    default:
        return KernelDriver::none;
    }
}

const char *kernel_driver_name(const rte_pci_device &pci, char *name, size_t size)
{
    char link[PATH_MAX], path[PATH_MAX];
    std::snprintf(link, sizeof(link), "%s/%s/driver", rte_pci_get_sysfs_path(), pci.name);
    const ssize_t length = readlink(link, path, sizeof(path) - 1);
    path[length > 0 ? length : 0] = '\0';
    const char *slash = std::strrchr(path, '/');
    std::snprintf(name, size, "%s", slash == nullptr ? path : slash + 1);
    return name;
}

PciView pci_view(const rte_pci_device &pci)
{
    const PciBars bars = {look_at_bar(pci, csr_bar), look_at_bar(pci, data_bar),
                          look_at_bar(pci, shared_bar)};
    const Mappings mappings(pci);
    return {bars, mappings.of(bars.csr), mappings.of(bars.data), mappings.of(bars.shared)};
}

} // namespace plx::pmd
