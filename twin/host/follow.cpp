// SPDX-License-Identifier: BSD-3-Clause
#include "host/follow.hpp"

#include "chip/link.hpp"
#include "host/host.hpp"
#include "host/power.hpp"
#include "host/shared_chip.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace plx::twin
{

namespace
{
bool open_both_ways(const Host &host)
{
    return host.connected && host.peer_chip != nullptr &&
           link_trained(*host.chip, beyond_link(host), now_ns(host)) &&
           link_settled(*host.chip, *host.peer_chip) && link_settled(*host.peer_chip, *host.chip);
}

bool carry_out(Host &host)
{
    const LinkRules rules{
        host.config.switches.spads_survive_link_down, host.config.switches.link_up_latches_fe0,
        host.config.switches.dma_link_down_resets, host.config.switches.pattern_protect_us};
    const bool changed =
        carries_out(host) &&
        link_carry_out(*host.chip, beyond_link(host), now_ns(host), rules, power_values(host));
    return notice_link(host) || changed;
}

bool follow_own(Host &host)
{
    resolve(way_out(host), host.self, host.next_view);
    if (same_view(*host.own_view, *host.next_view))
        return false;
    windows_follow(host.windows, *host.own_view, *host.next_view, host.remote_fd);
    std::swap(host.own_view, host.next_view);
    host.view_changes++;
    return true;
}

/// @return false, and the host is stuck, when there is no memory to move to: the peer may still
/// reach the block, so the chip must not say that it cannot.
bool move_away(Host &host, unsigned slot)
{
    if (block_rehome(&host.blocks[slot]) == 0)
        return true;
    if (!host.stuck_reported)
        fprintf(stderr,
                "plx twin: no memory to take a window block of %zu bytes back from the peer: the "
                "chip answers again when there is\n",
                host.blocks[slot].bytes);
    host.stuck = true;
    host.stuck_reported = true;
    return false;
}

// Whatever it could reach, whatever the registers say by now: the next one to come is another.
void revoke_all(Host &host)
{
    for (unsigned slot = 0; slot < max_blocks; slot++)
        if (host.blocks[slot].base != nullptr && reaches(*host.peer_view, slot) &&
            !move_away(host, slot))
            return;
    host.peer_view->count = 0;
    host.peer_view->overflow = false;
    host.departed = false;
}

bool shrinks_by_next(const Host &host, unsigned slot)
{
    return host.blocks[slot].base != nullptr && shrinks(*host.peer_view, *host.next_view, slot);
}

/// Works out in next_view what the other end may reach now.
void resolve_peer(Host &host)
{
    Region own[max_blocks];
    resolve(way_in(host, own), host.peer, host.next_view);
}

bool peer_loses_access(const Host &host)
{
    for (unsigned slot = 0; slot < max_blocks; slot++)
        if (shrinks_by_next(host, slot))
            return true;
    return false;
}

/// Makes next_view true of the other end. @return whether that end has to follow
bool follow_peer(Host &host)
{
    // A way that closed and opened again meanwhile: the other end knows it closed.
    const bool asked = std::exchange(host.asked_to_cut, false);
    if (same_view(*host.peer_view, *host.next_view))
        return asked;
    bool moved = false;
    for (unsigned slot = 0; slot < max_blocks; slot++) {
        if (!shrinks_by_next(host, slot))
            continue;
        if (!move_away(host, slot))
            return false; // still in view: the next access tries again
        moved = true;
    }
    if (moved)
        resolve_peer(host);
    std::swap(host.peer_view, host.next_view);
    return true;
}

/// What both ways of following begin with. @return whether this host's windows changed
bool follow_chip(Host &host)
{
    host.behind = false;
    host.stuck = false;
    if (host.departed)
        revoke_all(host);
    note_presence(host);
    carry_out(host);
    return follow_own(host);
}
} // namespace

Way way_out(const Host &host)
{
    return {host.chip, host.peer_chip, open_both_ways(host), host.remote, host.side, host.one_chip};
}

Way way_in(const Host &host, Region *scratch)
{
    for (unsigned slot = 0; slot < max_blocks; slot++) {
        const Block &b = host.blocks[slot];
        scratch[slot] = {b.base != nullptr, reinterpret_cast<uintptr_t>(b.base), b.bytes,
                         b.page_bytes, b.generation};
    }
    return {host.peer_chip,       host.peer_chip == nullptr ? nullptr : host.chip,
            open_both_ways(host), scratch,
            peer_side(host),      host.one_chip};
}

bool follow(Host &host)
{
    if (host.frozen)
        return false;
    // Both, always: the second is what takes access away.
    const bool own = follow_chip(host);
    resolve_peer(host);
    const bool theirs = follow_peer(host);
    host.stuck_reported = host.stuck;
    return own || theirs;
}

bool follow_after_peer(Host &host)
{
    if (host.frozen)
        return false;
    bool news = follow_chip(host);
    resolve_peer(host);
    // A block moves piece by piece. A peer that still stores meanwhile would lose what it stores
    // into a piece that has moved, and not what it stores after it into one that has not: to this
    // host posted writes would have changed their order. So the peer cuts its own window first.
    if (host.connected && peer_loses_access(host)) {
        host.asked_to_cut = true;
        host.ops->update_peer(host);
        resolve_peer(host);
        news = false;
    }
    news |= follow_peer(host);
    host.stuck_reported = host.stuck;
    return news;
}

void unmap_lost_peer(Host &host)
{
    if (!host.frozen)
        follow_own(host);
}

void settle(Host &host)
{
    if (follow_after_peer(host))
        host.ops->update_peer(host);
}

namespace
{
// -1: there is none to wait for. A clock that a test moves is no time to wait by.
int until_trained_ms(const Host &host)
{
    constexpr uint64_t ns_per_ms = 1'000'000;
    constexpr uint64_t wait_ms_max = 60'000; // the peer's times are only what it says
    if (host.config.clock != nullptr || host.frozen || !carries_out(host))
        return -1;
    const Chip *const peer = beyond_link(host);
    const uint64_t now = now_ns(host);
    if (peer == nullptr)
        return -1; // the other end is still to show its chip: a kept link is up by then
    if (link_has_news(*host.chip, peer, now))
        return 0;
    const uint64_t ends = link_training_ends(*host.chip, peer);
    if (ends <= now)
        return -1;
    return static_cast<int>(std::min((ends - now + ns_per_ms - 1) / ns_per_ms, wait_ms_max));
}

int sooner(int one_ms, int other_ms)
{
    return one_ms < 0 || other_ms < 0 ? std::max(one_ms, other_ms) : std::min(one_ms, other_ms);
}
} // namespace

int until_catch_up_ms(const Host &host, int timeout_ms)
{
    constexpr int moment_ms = 2;
    const int behind_ms = host.behind && !host.frozen ? moment_ms : -1;
    return sooner(timeout_ms, sooner(behind_ms, until_trained_ms(host)));
}

void catch_up(Host &host)
{
    Locked locked(host);
    if (host.behind)
        settle(host);
    if (until_trained_ms(host) == 0)
        update_link(host);
}

void meet_training(Host &host)
{
    if (until_trained_ms(host) >= 0)
        wake(host);
}

void update_link(Host &host)
{
    if (!host.frozen && carry_out(host))
        settle(host);
}

Region exposed(const Host &host, unsigned slot)
{
    const Block &b = host.blocks[slot];
    if (b.base == nullptr)
        return {};
    return {true, reinterpret_cast<uintptr_t>(b.base), b.bytes, b.page_bytes,
            reaches(*host.peer_view, slot) ? b.generation : 0};
}

bool same_region(const Region &a, const Region &b)
{
    return a.present == b.present && a.bus == b.bus && a.bytes == b.bytes &&
           a.page_bytes == b.page_bytes && a.generation == b.generation;
}

} // namespace plx::twin
