// SPDX-License-Identifier: BSD-3-Clause
// A cable between two hosts of one process: function calls under one lock.
#include "cable/ops.hpp"
#include "host/error.hpp"
#include "host/follow.hpp"
#include "host/host.hpp"
#include "host/interrupt.hpp"
#include "host/peer.hpp"
#include "host/presence.hpp"
#include "host/shared_chip.hpp"
#include "host/wiring.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <poll.h>
#include <unistd.h>

namespace plx::twin
{

namespace
{
// One cable; lives while a host is plugged into it.
struct MemCable {
    char name[sizeof(Host::cable_name)];
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    Host *ends[2] = {};
    unsigned users = 0; // guarded by the registry's lock
    MemCable *next = nullptr;
};

constexpr unsigned rounds_max = 8; // until two ends agree; two suffice unless registers move

pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
MemCable *registry = nullptr;

class RegistryLocked
{
public:
    RegistryLocked() { pthread_mutex_lock(&registry_lock); }
    ~RegistryLocked() { pthread_mutex_unlock(&registry_lock); }
    RegistryLocked(const RegistryLocked &) = delete;
    RegistryLocked &operator=(const RegistryLocked &) = delete;
};

int duplicate(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

MemCable *find_or_make(const char *name)
{
    for (MemCable *c = registry; c != nullptr; c = c->next)
        if (strcmp(c->name, name) == 0)
            return c;
    auto *cable = new (std::nothrow) MemCable;
    if (cable == nullptr)
        return nullptr;
    strcpy(cable->name, name);
    cable->next = registry;
    registry = cable;
    return cable;
}

void drop(MemCable *cable)
{
    if (--cable->users != 0)
        return;
    MemCable **at = &registry;
    while (*at != cable)
        at = &(*at)->next;
    *at = cable->next;
    delete cable;
}

MemCable &cable_of(const Host &host)
{
    return *static_cast<MemCable *>(host.cable);
}

Host *mate_of(const Host &host)
{
    Host *const *ends = cable_of(host).ends;
    return ends[0] == &host ? ends[1] : ends[0];
}

int join(Host &host, Error *error)
{
    RegistryLocked registered;
    MemCable *cable = find_or_make(host.cable_name);
    if (cable == nullptr)
        return fail(error, -ENOMEM, "no memory for a cable");
    if (cable->users == 2)
        return fail(error, -EBUSY, "the cable %s has two ends already", host.cable_name);
    for (const Host *end : cable->ends) {
        const char *conflict =
            end == nullptr ? nullptr
                           : wiring_conflict(wiring_of(host.config), wiring_of(end->config));
        if (conflict != nullptr)
            return fail(error, -EINVAL, "the ends of the cable %s do not fit: %s", host.cable_name,
                        conflict);
    }
    cable->users++;
    host.cable = cable;
    host.lock = &cable->lock;
    Locked locked(host);
    cable->ends[cable->ends[0] == nullptr ? 0 : 1] = &host;
    const Host *mate = mate_of(host);
    const int offer = mate == nullptr ? -1 : mate->one_chip ? mate->chip_fd : mate->peer_chip_fd;
    if (offer >= 0)
        host.offered_chip_fd = duplicate(offer);
    return 0;
}

// Half of a plug: what @p host gets to know of @p mate.
bool introduce(Host &host, const Host &mate)
{
    host.peer = mate.self;
    const int fd = duplicate(mate.chip_fd);
    return fd >= 0 && take_chip(host, fd);
}

void present(Host &host)
{
    Host *mate = mate_of(host);
    if (mate == nullptr || mate->chip == nullptr)
        return; // which introduces both when it has chosen
    // Both may have come at once, each with a chip of its own.
    if (host.one_chip && !take_offered_chip(host, duplicate(mate->chip_fd), true))
        return;
    if (!introduce(host, *mate) || !introduce(*mate, host))
        return;
    peer_connected(*mate);
    peer_connected(host);
}

/// @return whether there was anything new for the other end
bool announce(Host &from, Host &to)
{
    bool news = false;
    for (unsigned slot = 0; slot < max_blocks; slot++) {
        const Region now = exposed(from, slot);
        if (same_region(now, from.announced[slot]))
            continue;
        const int fd = now.generation != 0 ? duplicate(from.blocks[slot].fd) : -1;
        if (take_memory(to, slot, now, fd)) {
            from.announced[slot] = now;
            news = true;
        }
    }
    return news;
}

void update_peer(Host &host)
{
    Host *mate = mate_of(host);
    if (mate == nullptr || !host.connected || !mate->connected || host.frozen || mate->frozen)
        return;
    bool moving = true;
    for (unsigned round = 0; moving && round < rounds_max; round++) {
        moving = announce(host, *mate);
        moving |= follow(*mate);
        moving |= announce(*mate, host);
        moving |= follow(host);
    }
    check_interrupt(*mate);
    meet_training(*mate);
}

void unfreeze(Host &host)
{
    follow(host);
    update_peer(host);
}

void interrupt(Host &host)
{
    if (Host *mate = mate_of(host))
        wake(*mate);
}

void leave(Host &host)
{
    RegistryLocked registered;
    {
        Locked locked(host);
        Host *mate = mate_of(host);
        peer_lost(host);
        Host **ends = cable_of(host).ends;
        ends[ends[0] == &host ? 0 : 1] = nullptr;
        if (mate != nullptr)
            peer_lost(*mate);
    }
    drop(&cable_of(host));
}

// Nothing to wait for but presence_changes and goings.
void *run(void *arg)
{
    Host &host = *static_cast<Host *>(arg);
    {
        Locked locked(host);
        host.thread_self = pthread_self();
        host.thread_known = true;
    }
    for (;;) {
        pollfd waiting{host.wake_fd, POLLIN, 0};
        int timeout = -1;
        {
            Locked locked(host);
            timeout = until_catch_up_ms(host, timeout);
        }
        if (poll(&waiting, 1, timeout) == 0)
            catch_up(host);
        uint64_t count;
        [[maybe_unused]] const ssize_t n = read(host.wake_fd, &count, sizeof(count));
        deliver_events(host);
        deliver_interrupt(host);
        Locked locked(host);
        if (host.stop)
            return nullptr;
    }
}
} // namespace

const CableOps mem_cable = {join, present, update_peer, unfreeze, interrupt, leave, run};

} // namespace plx::twin
