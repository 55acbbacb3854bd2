// SPDX-License-Identifier: BSD-3-Clause
// One end of a cable: what it owns, what it knows of the other end, and the two things that keep
// mappings true to the registers, follow() and settle().
#ifndef PLX_TWIN_HOST_HOST_HPP
#define PLX_TWIN_HOST_HOST_HPP

#include "chip/power_on.hpp"
#include "chip/routing.hpp"
#include "dma/engine.hpp"
#include "host/config.hpp"
#include "host/register_dump.hpp"
#include "host/window.hpp"
#include "memory/block.hpp"
#include "twin.hpp"

#include <atomic>
#include <pthread.h>

namespace plx::twin
{

/// How a cable is plugged in, and how the other end is notified. Every function but join runs under
/// the host's lock.
struct CableOps {
    /// Finds the other end, bounded and short. Sets what it offers: a former chip, its viewer.
    int (*join)(Host &host, Error *error);
    /// The chip is chosen: introduces it to the other end, if there is one.
    void (*present)(Host &host);
    /// Announces to the other end what memory it may see and has it follow; waits for that for a
    /// bounded time.
    void (*update_peer)(Host &host);
    void (*unfreeze)(Host &host);
    /// Makes the other end look at its interrupt. Never blocks.
    void (*interrupt)(Host &host);
    void (*leave)(Host &host);
    void *(*thread)(void *host);
};

class Host final : public DmaHost
{
public:
    // As its engines see it (dma_host.cpp).
    const Switches &switches() const override { return config.switches; }
    DmaMemory &bus_memory() override { return dma_memory; }
    bool card_gone() const override { return gone; }
    bool cut_off() const override;
    bool beyond_link() const override { return one_chip && side == facts::Side::link; }
    bool owns_dma(unsigned channel) const override
    {
        return dma_owner(*chip, channel) == dma_owner_on(side);
    }
    uint16_t dma_requester(unsigned channel) const override;
    void reset_dma(unsigned channel, bool hung) override;
    bool renew_direct(DirectAccess &direct, uint8_t window, uint64_t offset,
                      uint16_t requester) override;
    bool read_window(unsigned window, uint64_t offset, void *out, size_t bytes,
                     uint16_t requester) override;
    bool write_window(unsigned window, uint64_t offset, const void *in, size_t bytes,
                      uint16_t requester) override;
    bool link_open() override;
    void dma_event() override;
    void drop_link() override;

    Config config;
    char cable_name[cable_name_max + 1] = {};
    const CableOps *ops = nullptr;
    void *cable = nullptr; ///< of the cable's kind

    /// Guards everything below; two hosts of one process share theirs.
    pthread_mutex_t *lock = nullptr;
    pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;

    facts::Side side = facts::Side::virt; ///< the endpoint that this host sees
    bool one_chip = false;                ///< root-port topology: both hosts are on `chip`
    RegisterDump former;                  ///< of ChipState::file, while attach() runs
    Chip *chip = nullptr;
    int chip_fd = -1;
    uint64_t chip_id = 0; ///< of `chip`, with what it says it is, as this host found it
    ChipIdentity identity;
    Chip *peer_chip = nullptr; ///< stays when the other process goes: a card stays powered
    int peer_chip_fd = -1;
    int offered_chip_fd = -1; ///< what the other end held of this end's former chip
    uint64_t link_seen = 0;   ///< of a shared chip: Chip::seen as of the last enumeration
    bool conflict_reported = false;
    bool stranger_reported = false;
    bool narrow_bar_reported = false;

    bool connected = false;
    /// As reported to the callback: connected, over a cable that is plugged in. Written under the
    /// lock, read without: a block that is being moved does not delay it.
    std::atomic<bool> present{false};
    bool departed = false; ///< the peer was lost, and may still map memory of ours
    bool frozen = false;
    std::atomic<bool> gone{false}; ///< the card, by surprise; engines look without the lock
    uint32_t gone_reads_as = ~0u;  ///< what registers give then
    /// A-LUT RAM was written, and views do not show it yet. An A-LUT is written entry by entry:
    /// followed one by one, a block would be moved for each segment that is revoked. So they
    /// are followed together, before the host's next read, which is what a driver has to flush
    /// with, or after a moment.
    bool behind = false;
    bool stuck = false; ///< memory that the peer may reach could not be revoked
    bool stuck_reported = false;
    /// The other end was asked to follow a loss of access that it has here still.
    bool asked_to_cut = false;

    Viewer self;
    Viewer peer;
    Window windows[window_count];
    View *own_view = nullptr;  ///< as mapped
    View *peer_view = nullptr; ///< of our blocks, as the other end may have mapped it
    View *next_view = nullptr; ///< being worked out
    Block blocks[max_blocks];
    Region announced[max_blocks]; ///< what the other end was sent of our blocks

    DmaMemory dma_memory;
    DmaChannel dma[facts::dma_function_count];
    uint64_t view_changes = 0; ///< of own_view

    Region remote[max_blocks]; ///< the other end's blocks
    int remote_fd[max_blocks];
    uint8_t *remote_map[max_blocks] = {};

    void *thread = nullptr;
    pthread_t thread_self{};
    bool thread_known = false;
    int wake_fd = -1;
    bool stop = false;
    uint64_t presence_changes = 0; ///< counts each time the peer connects or is lost
    uint64_t presence_reported = 0;

    pthread_mutex_t callback_lock = PTHREAD_MUTEX_INITIALIZER;
    void (*callback)(void *ctx, bool connected) = nullptr;
    void *callback_ctx = nullptr;
    void (*interrupt)(void *ctx) = nullptr;
    void *interrupt_ctx = nullptr;
    void (*dma_interrupt[facts::dma_function_count])(void *ctx) = {};
    void *dma_interrupt_ctx[facts::dma_function_count] = {};
};

class Locked
{
public:
    explicit Locked(const Host &host) : lock_(host.lock) { pthread_mutex_lock(lock_); }
    ~Locked() { pthread_mutex_unlock(lock_); }
    Locked(const Locked &) = delete;
    Locked &operator=(const Locked &) = delete;

private:
    pthread_mutex_t *lock_;
};

uint64_t now_ns(const Host &host);
/// The chip at the other end of the link: a shared one is there itself, as soon as the root port
/// is.
inline const Chip *beyond_link(const Host &host)
{
    if (!host.one_chip)
        return host.peer_chip;
    return host.chip->partner.load() == host.chip->id.load() ? host.chip : nullptr;
}
inline facts::Side peer_side(const Host &host)
{
    return host.one_chip ? other(host.side) : host.side;
}
/// Whether the caller is the cable's thread. Without the lock.
bool on_cable_thread(Host &host);
/// Runs @p change, which sets a callback and its context, under the lock and, unless a callback
/// does so itself, while none runs: what was set before is not called any more when this returns.
template <typename Change>
void change_callback(Host &host, Change change)
{
    const bool inside = on_cable_thread(host);
    if (!inside)
        pthread_mutex_lock(&host.callback_lock);
    {
        Locked locked(host);
        change();
    }
    if (!inside)
        pthread_mutex_unlock(&host.callback_lock);
}
/// Whether the doorbells towards @p side are this host's: all of a chip of its own, those to its
/// side of a shared one.
inline bool has_doorbells(const Host &host, facts::Side side)
{
    return !host.one_chip || side == host.side;
}
/// Wakes the cable's thread.
void wake(Host &host);
/// Notes whether the other end is within reach, for deliver_events() to report.
void note_presence(Host &host);

} // namespace plx::twin

#endif
