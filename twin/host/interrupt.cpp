// SPDX-License-Identifier: BSD-3-Clause
#include "host/interrupt.hpp"

#include "chip/doorbell_faults.hpp"
#include "chip/interrupt.hpp"
#include "chip/link.hpp"
#include "host/follow.hpp"
#include "host/host.hpp"
#include "host/shared_chip.hpp"

namespace plx::twin
{

namespace
{
bool may_interrupt(const Host &host)
{
    return !host.frozen && !host.gone && !host.stuck && !cut_off(host);
}

/// @return whether there was one
bool take_due(Host &host)
{
    if (!may_interrupt(host) || !interrupt_due(*host.chip, host.side))
        return false;
    // A message is taken; a level stays.
    return !msi_enabled(*host.chip, host.side) ||
           host.chip->msi[index_of(host.side)].exchange(0) != 0;
}
} // namespace

void check_interrupt(Host &host)
{
    if (host.interrupt != nullptr && interrupt_due(*host.chip, host.side))
        wake(host);
}

void notify_peer_interrupt(Host &host)
{
    // Sent once until its thread has read it: a stopped process finds one message, not many.
    if (!host.connected || host.peer_chip == nullptr)
        return;
    const uint64_t now = now_ns(host);
    const bool due = interrupt_due(*host.peer_chip, peer_side(host)) ||
                     link_has_news(*host.peer_chip, host.chip, now) ||
                     link_training_ends(*host.peer_chip, host.chip) > now;
    if (due && host.peer_chip->interrupt_notified[index_of(peer_side(host))].exchange(1) == 0)
        host.ops->interrupt(host);
}

namespace
{
// A level, too: it comes again while it stays.
void deliver_dma_interrupt(Host &host, unsigned channel)
{
    void (*callback)(void *) = nullptr;
    void *ctx = nullptr;
    {
        Locked locked(host);
        if (!may_interrupt(host) || !host.owns_dma(channel) ||
            !dma_interrupt_due(*host.chip, channel))
            return;
        callback = host.dma_interrupt[channel];
        ctx = host.dma_interrupt_ctx[channel];
    }
    if (callback == nullptr)
        return;
    callback(ctx);
    if (dma_interrupt_due(*host.chip, channel))
        wake(host);
}
} // namespace

void deliver_interrupt(Host &host)
{
    pthread_mutex_lock(&host.callback_lock);
    void (*callback)(void *) = nullptr;
    void *ctx = nullptr;
    {
        Locked locked(host);
        if (host.interrupt != nullptr) {
            host.chip->interrupt_notified[index_of(host.side)].store(
                0); // before the check: what comes after it notifies again
            update_link(host);
            doorbells_arrive(*host.chip, now_ns(host));
        }
        if (host.interrupt != nullptr && take_due(host)) {
            callback = host.interrupt;
            ctx = host.interrupt_ctx;
        }
    }
    if (callback != nullptr) {
        callback(ctx);
        // A level that is still there comes again, as when a kernel lets the line through again.
        Locked locked(host);
        check_interrupt(host);
    }
    for (unsigned channel = 0; channel < facts::dma_function_count; channel++)
        deliver_dma_interrupt(host, channel);
    pthread_mutex_unlock(&host.callback_lock);
}

void on_interrupt(Host *host, void (*callback)(void *ctx), void *ctx)
{
    change_callback(*host, [&] {
        host->interrupt = callback;
        host->interrupt_ctx = ctx;
        wake(*host); // what was pending before the callback was set
    });
}

void on_dma_interrupt(Host *host, unsigned index, void (*callback)(void *ctx), void *ctx)
{
    const unsigned channel = dma_channel(host, index);
    if (channel >= facts::dma_function_count)
        return;
    change_callback(*host, [&] {
        host->dma_interrupt[channel] = callback;
        host->dma_interrupt_ctx[channel] = ctx;
        wake(*host);
    });
}

} // namespace plx::twin
