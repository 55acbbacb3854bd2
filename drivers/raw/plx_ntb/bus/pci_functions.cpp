// SPDX-License-Identifier: BSD-3-Clause
#include "bus/pci_functions.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "hw/facts/plx_ids.hpp"
#include "hw/facts/plx_regs.hpp"

namespace plx::pmd
{

namespace
{

/// NT-parent port and upstream port; the link endpoint's device is its own engines'.
constexpr unsigned bridges_above(facts::Side side)
{
    return side == facts::Side::virt ? 2 : 0;
}

/// Where the part of @p path before @p end begins.
const char *part_before(const char *path, const char *end)
{
    while (end > path && end[-1] != '/')
        --end;
    return end;
}

} // namespace

bool is_engine(const PciFunction &f)
{
    if (f.class_id != facts::class_dma)
        return false;
    return std::any_of(std::begin(facts::pci_ids), std::end(facts::pci_ids), [&f](const auto &id) {
        return id.function == facts::Function::dma && id.vendor == f.vendor_id &&
               id.device == f.device_id;
    });
}

unsigned dma_functions_of(facts::Side side, const char *path, std::span<const PciFunction> all,
                          std::span<unsigned> found)
{
    if (path[0] != '/')
        return 0;
    const char *part = part_before(path, path + std::strlen(path));
    for (unsigned i = 0; i < bridges_above(side) && part > path; ++i)
        part = part_before(path, part - 1);
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    if (std::sscanf(part, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
        return 0;
    unsigned count = 0;
    for (unsigned number = 1; number <= facts::dma_function_count; ++number) {
        for (unsigned i = 0; i < all.size() && count < found.size(); ++i) {
            const PciFunction &f = all[i];
            if (f.domain == domain && f.bus == bus && f.device == device && f.function == number &&
                is_engine(f))
                found[count++] = i;
        }
    }
    return count;
}

} // namespace plx::pmd
