// SPDX-License-Identifier: BSD-3-Clause
#include "host/topology.hpp"

#include "host/fault.hpp"
#include "host/host.hpp"
#include "host/interrupt.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace plx::twin
{

namespace
{
constexpr uint32_t word_one_chip = 1;
constexpr uint32_t word_nt = 2;
constexpr uint32_t word_link_side = 4;
constexpr uint32_t word_dma_shift = 3; // a count
constexpr uint32_t word_dma_max = facts::dma_function_count;

// Firmware enumerates what has trained: it does not find the endpoint halfway.
void plug_root_port(Host &host)
{
    Chip &chip = *host.chip;
    const uint64_t id = chip.id.load();
    if (chip.partner.load() == id)
        return;
    const uint64_t now = now_ns(host);
    const uint64_t train = uint64_t{chip.train_us.load()} * 1000;
    chip.enabled_at.store(now > train ? now - train : 0);
    chip.partner.store(id);
}

// Nothing of what another host left there, nor of what this one told its former chip, is true.
bool move_to(Host &host, int fd)
{
    if (!chip_remap(host.chip, fd)) {
        close(fd);
        return false;
    }
    close(host.chip_fd);
    host.chip_fd = fd;
    chip_unmap(host.peer_chip);
    host.peer_chip = nullptr;
    restart_chip(host);
    settle_in(host);
    return take_place(host);
}
} // namespace

Wiring wiring_of(const Config &config)
{
    const bool one_chip = config.topology == Topology::root_port;
    return {one_chip, config.nt, config.link_side, one_chip ? config.dma_link_channels : 0};
}

uint32_t wiring_word(const Wiring &w)
{
    return (w.one_chip ? word_one_chip : 0) | (w.nt != 0 ? word_nt : 0) |
           (w.link_side ? word_link_side : 0) | w.dma_link_channels << word_dma_shift;
}

bool wiring_from(uint32_t word, Wiring *out)
{
    if (word >> word_dma_shift > word_dma_max)
        return false;
    *out = {(word & word_one_chip) != 0, (word & word_nt) != 0 ? 1u : 0u,
            (word & word_link_side) != 0, word >> word_dma_shift};
    return true;
}

const char *wiring_conflict(const Wiring &own, const Wiring &theirs)
{
    if (own.one_chip != theirs.one_chip)
        return own.one_chip ? "root-port topology here, back to back there"
                            : "back to back here, root-port topology there";
    if (own.nt != theirs.nt)
        return own.nt != 0 ? "NT port 1 here, 0 there" : "NT port 0 here, 1 there";
    if (own.one_chip && own.link_side == theirs.link_side)
        return own.link_side ? "both are on the link side" : "both are on the virtual side";
    if (own.dma_link_channels != theirs.dma_link_channels)
        return "another number of DMA channels on the link side here than there";
    return nullptr;
}

bool take_place(Host &host)
{
    host.link_seen = 0;
    if (host.side == facts::Side::link)
        plug_root_port(host);
    if (host.chip->partner.load() != host.chip->id.load())
        return true; // nothing has ever been plugged in
    const int fd = fcntl(host.chip_fd, F_DUPFD_CLOEXEC, 0);
    return fd >= 0 && take_chip(host, fd);
}

bool meet_chip(Host &host, int fd, bool yields)
{
    Chip *theirs = fd < 0 ? nullptr : chip_map(fd);
    if (theirs == nullptr) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    const bool same = theirs->id.load() == host.chip->id.load();
    const bool own_met = host.chip->met.load() != 0;
    const bool their_met = theirs->met.load() != 0;
    chip_unmap(theirs);
    if (!same && !own_met && (their_met || yields))
        return move_to(host, fd);
    close(fd);
    return same || !own_met || !their_met; // else two that are both in use
}

bool cut_off(const Host &host)
{
    if (!host.one_chip || host.side != facts::Side::link)
        return false;
    const Chip &chip = *host.chip;
    if (!link_trained(chip, &chip, now_ns(host)))
        return true;
    // Up again before the down was carried out: what is written now would be wiped with the rest.
    return !link_settled(chip, chip) && (chip.seen.load() & 1) != 0;
}

bool carries_out(const Host &host)
{
    return host.side == facts::Side::virt || !host.connected;
}

bool notice_link(Host &host)
{
    const uint64_t seen = host.chip->seen.load();
    if (!host.one_chip || seen == host.link_seen)
        return false;
    host.link_seen = seen;
    if ((seen & 1) != 0)
        power_up(host);
    return true;
}

} // namespace plx::twin
