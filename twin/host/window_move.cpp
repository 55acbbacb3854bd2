// SPDX-License-Identifier: BSD-3-Clause
// Another address for a window, while somebody may still store to the old one.
#include "host/host.hpp"
#include "twin.hpp"

#include <cerrno>
#include <sys/mman.h>

namespace plx::twin
{

namespace
{
int index_of(unsigned bar)
{
    for (unsigned i = 0; i < window_count; i++)
        if (window_bars[i] == bar)
            return static_cast<int>(i);
    return -1;
}
} // namespace

int window_move(Host *host, unsigned bar, void **old)
{
    const int index = index_of(bar);
    if (index < 0)
        return -EINVAL;
    Window &window = host->windows[index];
    uint64_t bus;
    uint8_t *base;
    {
        Locked locked(*host);
        const int error = window_move(&window, static_cast<unsigned>(index), *host->own_view,
                                      host->remote, host->remote_fd, old);
        if (error != 0)
            return error;
        bus = window.bus;
        base = window.base;
    }
    // Without the host's lock: engines hold theirs while they ask for it. Until then they store
    // where the CPU's late stores go.
    dma_memory_move(&host->dma_memory, bus, base);
    return 0;
}

void window_forget(Host *host, unsigned bar, void *old)
{
    const int index = index_of(bar);
    if (index >= 0)
        munmap(old, host->windows[index].bytes);
}

} // namespace plx::twin
