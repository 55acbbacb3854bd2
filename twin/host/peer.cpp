// SPDX-License-Identifier: BSD-3-Clause
#include "host/host.hpp"
#include "memory/sealed.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace plx::twin
{

namespace
{
constexpr uint64_t block_bytes_min = uint64_t{1} << 20;
constexpr uint64_t block_bytes_max = uint64_t{1} << 30;

bool plausible(const Region &region)
{
    const uint64_t bytes = region.bytes;
    return bytes >= block_bytes_min && bytes <= block_bytes_max && (bytes & (bytes - 1)) == 0 &&
           region.bus % bytes == 0;
}

void forget(Host &host, unsigned slot)
{
    if (host.remote_map[slot] != nullptr)
        munmap(host.remote_map[slot], host.remote[slot].bytes);
    if (host.remote_fd[slot] >= 0)
        close(host.remote_fd[slot]);
    host.remote_map[slot] = nullptr;
    host.remote_fd[slot] = -1;
    host.remote[slot] = {};
}

/// @return whether there was anything to tell
bool deliver_one(Host &host)
{
    void (*callback)(void *, bool) = nullptr;
    void *ctx = nullptr;
    bool connected = false;
    {
        Locked locked(host);
        if (host.comings_told == host.comings)
            return false;
        connected = ++host.comings_told % 2 == 1;
        callback = host.callback;
        ctx = host.callback_ctx;
    }
    if (callback != nullptr)
        callback(ctx, connected);
    return true;
}
} // namespace

bool take_memory(Host &host, unsigned slot, const Region &region, int fd)
{
    Region next = region;
    void *map = nullptr;
    bool sane = slot < max_blocks && (!region.present || plausible(region));
    if (sane && fd >= 0) {
        next.page_bytes = sealed_check(fd, next.bytes);
        map = region.present && next.page_bytes != 0 ? map_shared(nullptr, next.bytes, fd, 0)
                                                     : nullptr;
        sane = map != nullptr;
    }
    if (!sane) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    forget(host, slot);
    if (!region.present)
        return true;
    // A number of our own: what the other end counts proves nothing.
    next.generation = fd >= 0 ? new_generation() : 0;
    host.remote[slot] = next;
    host.remote_fd[slot] = fd;
    host.remote_map[slot] = static_cast<uint8_t *>(map);
    return true;
}

bool take_chip(Host &host, int fd)
{
    Chip *chip = chip_map(fd);
    if (chip == nullptr || (host.one_chip && chip->id.load() != host.chip->id.load())) {
        chip_unmap(chip);
        close(fd);
        return false;
    }
    chip_unmap(host.peer_chip);
    if (host.peer_chip_fd >= 0)
        close(host.peer_chip_fd);
    host.peer_chip = chip;
    host.peer_chip_fd = fd;
    link_plug(*host.chip, *chip, now_ns(host));
    return true;
}

void peer_came(Host &host)
{
    host.connected = true;
    host.chip->met.store(1);
    for (Region &r : host.told)
        r = {};
    follow(host);
    host.ops->tell(host);
    wake(host);
}

void peer_went(Host &host)
{
    if (!host.connected)
        return;
    host.connected = false;
    host.departed = true;
    note_presence(host);
    let_go(host);
    for (unsigned slot = 0; slot < max_blocks; slot++)
        forget(host, slot);
    wake(host);
}

void note_presence(Host &host)
{
    const bool present = host.connected && !link_cable_pulled(*host.chip, host.peer_chip);
    if (present == host.present)
        return;
    host.present = present;
    host.comings++;
    wake(host);
}

void wake(Host &host)
{
    const uint64_t one = 1;
    // A full counter wakes just as well.
    [[maybe_unused]] const ssize_t n = write(host.wake_fd, &one, sizeof(one));
}

void deliver_events(Host &host)
{
    pthread_mutex_lock(&host.callback_lock);
    while (deliver_one(host))
        continue;
    pthread_mutex_unlock(&host.callback_lock);
    Locked locked(host);
    if (host.departed)
        follow(host);
}

} // namespace plx::twin
