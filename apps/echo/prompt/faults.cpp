// SPDX-License-Identifier: BSD-3-Clause
#include "prompt/faults.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <rte_pmd_plx_ntb_test.h>

namespace echo
{

namespace
{

struct Fault {
    const char *name;
    rte_pmd_plx_ntb_fault fault;
};
constexpr Fault faults[] = {
    {"link-down", RTE_PMD_PLX_NTB_FAULT_LINK_DOWN},
    {"port-disabled", RTE_PMD_PLX_NTB_FAULT_PORT_DISABLED},
    {"cable-pulled", RTE_PMD_PLX_NTB_FAULT_CABLE_PULLED},
    {"card-gone", RTE_PMD_PLX_NTB_FAULT_CARD_GONE},
    {"drop-doorbells", RTE_PMD_PLX_NTB_FAULT_DROP_DOORBELLS},
    {"late-doorbells", RTE_PMD_PLX_NTB_FAULT_LATE_DOORBELLS},
    {"freeze-remaps", RTE_PMD_PLX_NTB_FAULT_FREEZE_REMAPS},
    {"dma-stall", RTE_PMD_PLX_NTB_FAULT_DMA_STALL},
    {"dma-hang", RTE_PMD_PLX_NTB_FAULT_DMA_HANG},
    {"dma-read-error", RTE_PMD_PLX_NTB_FAULT_DMA_READ_ERROR},
    {"dma-write-error", RTE_PMD_PLX_NTB_FAULT_DMA_WRITE_ERROR},
    {"dma-link-loss", RTE_PMD_PLX_NTB_FAULT_DMA_LINK_LOSS},
    {"dma-late", RTE_PMD_PLX_NTB_FAULT_DMA_LATE},
};

} // namespace

std::string inject(uint16_t device, const std::string &fault, uint64_t argument)
{
    const auto *found =
        std::ranges::find_if(faults, [&](const Fault &f) { return fault == f.name; });
    if (found == std::end(faults))
        return "there is no fault " + fault + ": " + fault_names('|');
    if (argument > UINT32_MAX)
        return "inject " + fault + ": the argument is more than 32 bits hold";
    switch (const int rc =
                rte_pmd_plx_ntb_inject(device, found->fault, static_cast<uint32_t>(argument))) {
    case 0:
        return {};
    case -ENOTSUP:
        return "faults can be caused on a twin alone, not on a card";
    case -EINVAL:
        return "inject " + fault + " does not take " + std::to_string(argument);
    default:
        return "inject " + fault + ": " + std::strerror(-rc);
    }
}

std::string fault_names(char separator)
{
    std::string names;
    for (const Fault &fault : faults) {
        if (!names.empty())
            names += separator;
        names += fault.name;
    }
    return names;
}

} // namespace echo
