// SPDX-License-Identifier: BSD-3-Clause
#include "host/presence.hpp"

#include "host/follow.hpp"
#include "host/host.hpp"
#include "host/peer.hpp"
#include "host/power.hpp"
#include "twin.hpp"

#include <sched.h>

namespace plx::twin
{

namespace
{
/// @return whether there was anything to report
bool deliver_one(Host &host)
{
    void (*callback)(void *, bool) = nullptr;
    void *ctx = nullptr;
    bool connected = false;
    {
        Locked locked(host);
        if (host.presence_reported == host.presence_changes)
            return false;
        connected = ++host.presence_reported % 2 == 1;
        callback = host.callback;
        ctx = host.callback_ctx;
    }
    if (callback != nullptr)
        callback(ctx, connected);
    return true;
}

bool has_departed(const Host &host)
{
    Locked locked(host);
    return host.departed;
}
} // namespace

void peer_connected(Host &host)
{
    host.connected = true;
    host.chip->was_shared.store(1);
    for (Region &r : host.announced)
        r = {};
    follow(host);
    host.ops->update_peer(host);
    wake(host);
}

void peer_lost(Host &host)
{
    if (!host.connected)
        return;
    host.connected = false;
    host.departed = true;
    mend_chip(host);
    note_presence(host);
    unmap_lost_peer(host);
    for (unsigned slot = 0; slot < max_blocks; slot++)
        forget_memory(host, slot);
    wake(host);
}

void deliver_events(Host &host)
{
    pthread_mutex_lock(&host.callback_lock);
    while (deliver_one(host))
        continue;
    pthread_mutex_unlock(&host.callback_lock);
    if (!has_departed(host))
        return;
    sched_yield(); // moving blocks takes milliseconds: who was called just now goes first
    Locked locked(host);
    if (host.departed)
        follow(host);
}

bool cable_connected(Host *host)
{
    return host->present.load();
}

void on_cable(Host *host, void (*callback)(void *ctx, bool connected), void *ctx)
{
    change_callback(*host, [&] {
        host->callback = callback;
        host->callback_ctx = ctx;
    });
}

} // namespace plx::twin
