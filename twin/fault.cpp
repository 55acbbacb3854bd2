// SPDX-License-Identifier: BSD-3-Clause
#include "fault.hpp"

#include "host.hpp"
#include "interrupt.hpp"

#include "plx_fields.hpp"

#include <algorithm>
#include <cerrno>

namespace plx::twin
{

namespace
{
using facts::Side;
namespace reg = facts::reg;

constexpr uint32_t late_us_max = 60'000'000;
constexpr uint32_t gone_with_ones = 1;
constexpr uint32_t gone_with_zeros = 2;

uint32_t doorbell_set(const Chip &chip, unsigned side)
{
    return nt_block(chip, Side::virt) + (side == 0 ? reg::db_virt_set : reg::db_link_set);
}

bool is_link_set(uint32_t offset)
{
    return (offset & (facts::block_size - 1)) == reg::db_link_set;
}

bool doorbell_lost(Chip &chip)
{
    uint32_t left = chip.drop_doorbells.load();
    while (left != 0)
        if (chip.drop_doorbells.compare_exchange_weak(left, left - 1))
            return true;
    return false;
}

// Bits first, then when they arrive: who sees the time sees the bits.
bool doorbell_late(Chip &chip, uint32_t offset, uint32_t value, uint64_t now_ns)
{
    const uint32_t late_us = std::min(chip.late_us.load(), late_us_max);
    if (late_us == 0)
        return false;
    chip.late_bits[is_link_set(offset) ? 1 : 0].fetch_or(value);
    uint64_t none = 0;
    chip.late_until.compare_exchange_strong(none, now_ns + uint64_t{late_us} * 1000);
    return true;
}

int hold(Host &host, LinkHold why, uint32_t argument)
{
    if (argument > 1)
        return -EINVAL;
    link_hold(*host.chip, why, argument != 0, now_ns(host));
    follow(host);
    host.ops->tell(host); // also where nothing was mapped: the other end shall see it at once
    return 0;
}

int set_port(Host &host, uint32_t argument)
{
    const CablePort port = cable_port(*host.chip);
    if (argument > 1 || !port.exists)
        return -EINVAL;
    const uint32_t others = get(*host.chip, port.control) & ~port.bit;
    if (reg_write(*host.chip, port.control, argument != 0 ? others | port.bit : others,
                  now_ns(host)))
        settle(host);
    tell_interrupt(host);
    return 0;
}

// Nothing of what was in the chip is left but the damage that the removal did at the other end.
void power_cycle(Host &host)
{
    for (std::atomic<uint32_t> &word : host.chip->csr)
        word.store(0);
    power_on(*host.chip, power_values(host));
    power_up(host);
}

int take_card(Host &host, uint32_t argument)
{
    if (argument > gone_with_zeros)
        return -EINVAL;
    if (argument == 0 && host.gone)
        power_cycle(host);
    host.gone = argument != 0;
    host.gone_reads_as = argument == gone_with_ones ? ~uint32_t{0} : 0;
    return hold(host, hold_by_power, host.gone ? 1 : 0);
}

int freeze(Host &host, uint32_t argument)
{
    if (argument > 1)
        return -EINVAL;
    host.frozen = argument != 0;
    if (!host.frozen)
        host.ops->unfreeze(host);
    look_at_interrupt(host);
    return 0;
}

// Engines have locks of their own, taken before the host's.
int inject_dma(Host &host, Fault fault, uint32_t argument)
{
    int error = 0;
    for (unsigned channel = 0; error == 0 && channel < dma_channels(&host); channel++)
        error = host.dma[channel].fault(fault, argument);
    return error;
}
} // namespace

void faults_end(Chip &chip, uint64_t now_ns)
{
    chip.drop_doorbells.store(0);
    chip.late_us.store(0);
    for (std::atomic<uint32_t> &bits : chip.late_bits)
        bits.store(0);
    chip.late_until.store(0);
    if (chip.held_down.load() == 0)
        return;
    chip.enabled_at.store(now_ns);
    chip.held_down.store(0);
}

bool doorbell_faulty(Chip &chip, uint32_t offset, uint32_t value, uint64_t now_ns)
{
    return is_doorbell_set(offset) &&
           (doorbell_lost(chip) || doorbell_late(chip, offset, value, now_ns));
}

void doorbells_arrive(Chip &chip, uint64_t now_ns)
{
    const uint64_t until = chip.late_until.load();
    if (until == 0 || now_ns < until)
        return;
    // The time first: bits that come after this start a wait of their own.
    chip.late_until.store(0);
    for (unsigned side = 0; side < 2; side++)
        reg_write(chip, doorbell_set(chip, side), chip.late_bits[side].exchange(0), now_ns);
}

int inject(Host *host, Fault fault, uint32_t argument)
{
    if (fault >= Fault::dma_stall)
        return inject_dma(*host, fault, argument);
    Locked locked(*host);
    switch (fault) {
    case Fault::link_down:
        return hold(*host, hold_by_fault, argument);
    case Fault::port_disabled:
        return set_port(*host, argument);
    case Fault::cable_pulled:
        return hold(*host, hold_by_cable, argument);
    case Fault::card_gone:
        return take_card(*host, argument);
    case Fault::drop_doorbells:
        host->chip->drop_doorbells.store(argument);
        return 0;
    case Fault::late_doorbells:
        if (argument > late_us_max)
            return -EINVAL;
        host->chip->late_us.store(argument);
        return 0;
    case Fault::freeze_remaps:
        return freeze(*host, argument);
    default:
        break;
    }
    return -ENOTSUP;
}

} // namespace plx::twin
