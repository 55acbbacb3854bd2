// SPDX-License-Identifier: BSD-3-Clause
// Faults on demand: twin::inject().
#include "chip/doorbell_faults.hpp"
#include "chip/link.hpp"
#include "chip/registers.hpp"
#include "host/follow.hpp"
#include "host/host.hpp"
#include "host/interrupt.hpp"
#include "host/power.hpp"
#include "twin.hpp"

#include <cerrno>

namespace plx::twin
{

namespace
{
using facts::Side;

constexpr uint32_t gone_with_ones = 1;
constexpr uint32_t gone_with_zeros = 2;

constexpr Side sides[] = {Side::virt, Side::link};

int hold(Host &host, LinkHold why, uint32_t argument)
{
    if (argument > 1)
        return -EINVAL;
    link_hold(*host.chip, why, argument != 0, now_ns(host));
    follow_after_peer(host);
    // Also where nothing was mapped: the other end has to see it at once.
    host.ops->update_peer(host);
    meet_training(host);
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
    meet_training(host);
    notify_peer_interrupt(host);
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
    // From beyond the link, it is the link that goes: the card stays in its own machine.
    if (argument == 0 && host.gone && host.side == Side::virt)
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
    check_interrupt(host);
    return 0;
}

// Engines have locks of their own, taken before the host's.
int inject_dma(Host &host, Fault fault, uint32_t argument)
{
    int error = 0;
    for (DmaChannel &channel : host.dma)
        if (error == 0)
            error = channel.fault(fault, argument);
    return error;
}

int inject_into_chip(Host &host, Fault fault, uint32_t argument)
{
    Locked locked(host);
    switch (fault) {
    case Fault::link_down:
        return hold(host, hold_by_fault, argument);
    case Fault::port_disabled:
        return set_port(host, argument);
    case Fault::cable_pulled:
        return hold(host, hold_by_cable, argument);
    case Fault::card_gone:
        return take_card(host, argument);
    case Fault::drop_doorbells:
        for (const Side side : sides)
            if (has_doorbells(host, side))
                host.chip->drop_doorbells[index_of(side)].store(argument);
        return 0;
    case Fault::late_doorbells:
        if (argument > late_us_max)
            return -EINVAL;
        for (const Side side : sides)
            if (has_doorbells(host, side))
                host.chip->late_us[index_of(side)].store(argument);
        return 0;
    case Fault::freeze_remaps:
        return freeze(host, argument);
    default:
        break;
    }
    return -ENOTSUP;
}
} // namespace

int inject(Host *host, Fault fault, uint32_t argument)
{
    if (fault >= Fault::dma_stall)
        return inject_dma(*host, fault, argument);
    const int error = inject_into_chip(*host, fault, argument);
    // What they have in hand is lost with the card, also if no register is accessed before it is
    // back.
    for (DmaChannel &channel : host->dma)
        if (fault == Fault::card_gone)
            channel.card_changed();
    return error;
}

} // namespace plx::twin
