// SPDX-License-Identifier: BSD-3-Clause
#include "chip/doorbell_faults.hpp"

#include "chip/registers.hpp"

#include <algorithm>

namespace plx::twin
{

namespace
{
using facts::Side;
namespace reg = facts::reg;

constexpr Side sides[] = {Side::virt, Side::link};

uint32_t doorbell_set(const Chip &chip, Side side)
{
    return nt_block(chip, Side::virt) + (side == Side::virt ? reg::db_virt_set : reg::db_link_set);
}

bool doorbell_lost(std::atomic<uint32_t> &to_lose)
{
    uint32_t left = to_lose.load();
    while (left != 0)
        if (to_lose.compare_exchange_weak(left, left - 1))
            return true;
    return false;
}

// Bits first, then when they arrive: who sees the time sees the bits.
bool doorbell_late(Chip &chip, Side side, uint32_t value, uint64_t now_ns)
{
    const unsigned i = index_of(side);
    const uint32_t late_us = std::min(chip.late_us[i].load(), late_us_max);
    if (late_us == 0)
        return false;
    chip.late_bits[i].fetch_or(value);
    uint64_t none = 0;
    chip.late_until[i].compare_exchange_strong(none, now_ns + uint64_t{late_us} * 1000);
    return true;
}
} // namespace

void end_doorbell_faults(Chip &chip, Side side)
{
    const unsigned i = index_of(side);
    chip.drop_doorbells[i].store(0);
    chip.late_us[i].store(0);
    chip.late_bits[i].store(0);
    chip.late_until[i].store(0);
}

bool doorbell_faulty(Chip &chip, uint32_t offset, uint32_t value, uint64_t now_ns)
{
    if (!is_doorbell_set(offset))
        return false;
    const Side side = offset % facts::block_size == reg::db_link_set ? Side::link : Side::virt;
    return doorbell_lost(chip.drop_doorbells[index_of(side)]) ||
           doorbell_late(chip, side, value, now_ns);
}

void doorbells_arrive(Chip &chip, uint64_t now_ns)
{
    for (const Side side : sides) {
        const unsigned i = index_of(side);
        const uint64_t until = chip.late_until[i].load();
        if (until == 0 || now_ns < until)
            continue;
        // The time first: bits that come after this start a wait of their own.
        chip.late_until[i].store(0);
        reg_write(chip, doorbell_set(chip, side), chip.late_bits[i].exchange(0), now_ns);
    }
}

} // namespace plx::twin
