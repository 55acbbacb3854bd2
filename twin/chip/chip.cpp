// SPDX-License-Identifier: BSD-3-Clause
#include "chip/chip.hpp"

#include "memory/sealed.hpp"

#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>

namespace plx::twin
{

namespace
{
constexpr size_t chip_bytes = (sizeof(Chip) + small_page - 1) / small_page * small_page;
}

int chip_create()
{
    return sealed_create("plx-twin-chip", chip_bytes, false);
}

Chip *chip_map(int fd)
{
    if (sealed_check(fd, chip_bytes) != small_page)
        return nullptr;
    return static_cast<Chip *>(map_shared(nullptr, chip_bytes, fd, 0));
}

bool chip_remap(Chip *chip, int fd)
{
    return sealed_check(fd, chip_bytes) == small_page &&
           map_shared(chip, chip_bytes, fd, 0) != nullptr;
}

void chip_unmap(Chip *chip)
{
    if (chip != nullptr)
        munmap(chip, chip_bytes);
}

uint64_t fresh_id()
{
    uint64_t id = 0;
    if (getrandom(&id, sizeof(id), GRND_NONBLOCK) != sizeof(id)) {
        timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        id = static_cast<uint64_t>(now.tv_sec) << 32 ^ static_cast<uint64_t>(now.tv_nsec);
    }
    return id | 1;
}

} // namespace plx::twin
