// SPDX-License-Identifier: BSD-3-Clause
#include "host/host.hpp"

#include "chip/link.hpp"

#include <time.h>
#include <unistd.h>

namespace plx::twin
{

uint64_t now_ns(const Host &host)
{
    if (host.config.clock != nullptr)
        return host.config.clock(host.config.clock_ctx);
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

bool on_cable_thread(Host &host)
{
    Locked locked(host);
    return host.thread_known && pthread_equal(host.thread_self, pthread_self()) != 0;
}

void note_presence(Host &host)
{
    const bool present = host.connected && !link_cable_pulled(*host.chip, host.peer_chip);
    if (present == host.present)
        return;
    host.present = present;
    host.presence_changes++;
    wake(host);
}

void wake(Host &host)
{
    const uint64_t one = 1;
    // A full counter wakes just as well.
    [[maybe_unused]] const ssize_t n = write(host.wake_fd, &one, sizeof(one));
}

} // namespace plx::twin
