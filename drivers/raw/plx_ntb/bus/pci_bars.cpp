// SPDX-License-Identifier: BSD-3-Clause
#include "bus/pci_bars.hpp"

#include <bit>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

#include "hw/facts/plx_regs.hpp"
#include "queue/wire.hpp"

namespace plx::pmd
{

namespace
{

struct Need {
    unsigned index;
    const char *use;
    uint64_t bytes_min;
    bool wide; ///< 64-bit: it takes two registers, and its translation reaches all memory
    const char *setup;
};

constexpr Need csr_need = {csr_bar, "registers", facts::bar0_size, false, "a chip fault"};
constexpr Need data_need = {data_bar, "data window", wire::block_bytes_min, true,
                            "EEPROM, NT virtual set-up D4/D8"};
constexpr Need shared_need = {shared_bar, "shared window", 2 * wire::block_bytes_min, true,
                              "EEPROM, NT virtual set-up DC/E0"};

__attribute__((format(printf, 2, 3))) bool fail(BarFault *fault, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    std::vsnprintf(fault->text, sizeof(fault->text), format, args);
    va_end(args);
    return false;
}

bool check(const Need &need, const PciBar &bar, BarFault *fault)
{
    if (bar.bytes == 0)
        return fail(fault, "BAR%u (%s) is absent: expected at least %" PRIu64 " KiB (%s)",
                    need.index, need.use, need.bytes_min >> 10, need.setup);
    if (bar.bus == 0)
        return fail(fault,
                    "BAR%u (%s) of %" PRIu64 " KiB has no address: turn on decoding above 4 GB in "
                    "the firmware, or boot Linux with pci=realloc",
                    need.index, need.use, bar.bytes >> 10);
    if (!std::has_single_bit(bar.bytes) || bar.bytes < need.bytes_min)
        return fail(fault,
                    "BAR%u (%s) is of %" PRIu64 " bytes: expected a power of two, at least %" PRIu64
                    " KiB (%s)",
                    need.index, need.use, bar.bytes, need.bytes_min >> 10, need.setup);
    if ((bar.bus & (bar.bytes - 1)) != 0)
        return fail(fault, "BAR%u (%s) lies at 0x%" PRIx64 ": expected a multiple of its size",
                    need.index, need.use, bar.bus);
    if (need.wide && !bar.is_64bit)
        return fail(fault, "BAR%u (%s) is 32-bit: expected 64-bit, low nibble C (%s)", need.index,
                    need.use, need.setup);
    if (bar.addr == nullptr)
        return fail(fault, "BAR%u (%s) was not mapped by EAL", need.index, need.use);
    return true;
}

} // namespace

bool check_bars(const PciBars &bars, BarFault *fault)
{
    return check(csr_need, bars.csr, fault) && check(data_need, bars.data, fault) &&
           check(shared_need, bars.shared, fault);
}

} // namespace plx::pmd
