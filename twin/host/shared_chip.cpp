// SPDX-License-Identifier: BSD-3-Clause
#include "host/shared_chip.hpp"

#include "chip/link.hpp"
#include "host/host.hpp"
#include "host/peer.hpp"
#include "host/power.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace plx::twin
{

namespace
{
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

// Nothing of what another host left there, nor of what this one wrote to its former chip, is true.
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

bool take_offered_chip(Host &host, int fd, bool yields)
{
    Chip *theirs = fd < 0 ? nullptr : chip_map(fd);
    if (theirs == nullptr) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    const bool same = theirs->id.load() == host.chip->id.load();
    const bool own_was_shared = host.chip->was_shared.load() != 0;
    const bool their_was_shared = theirs->was_shared.load() != 0;
    chip_unmap(theirs);
    if (!same && !own_was_shared && (their_was_shared || yields))
        return move_to(host, fd);
    close(fd);
    return same || !own_was_shared || !their_was_shared; // else two that are both in use
}

bool cut_off(const Host &host)
{
    if (!host.beyond_link())
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
