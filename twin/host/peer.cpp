// SPDX-License-Identifier: BSD-3-Clause
#include "host/peer.hpp"

#include "chip/link.hpp"
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
} // namespace

void forget_memory(Host &host, unsigned slot)
{
    if (host.remote_map[slot] != nullptr)
        munmap(host.remote_map[slot], host.remote[slot].bytes);
    if (host.remote_fd[slot] >= 0)
        close(host.remote_fd[slot]);
    host.remote_map[slot] = nullptr;
    host.remote_fd[slot] = -1;
    host.remote[slot] = {};
}

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
    forget_memory(host, slot);
    if (!region.present)
        return true;
    // A number of our own: what the other end counts proves nothing.
    next.generation = fd >= 0 ? new_generation() : 0;
    host.remote[slot] = next;
    host.remote_fd[slot] = fd;
    host.remote_map[slot] = static_cast<uint8_t *>(map);
    return true;
}

namespace
{
// A chip of ours would return as that of the next one to take the peer's place.
bool fits(const Host &host, const Chip &chip, int fd)
{
    const bool own = is_same_file(fd, host.chip_fd);
    return own == host.one_chip && (own || shows_identity(chip, host.config.nt));
}
} // namespace

bool take_chip(Host &host, int fd)
{
    Chip *chip = chip_map(fd);
    if (chip == nullptr || !fits(host, *chip, fd)) {
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

} // namespace plx::twin
