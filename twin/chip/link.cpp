// SPDX-License-Identifier: BSD-3-Clause
#include "chip/link.hpp"

#include "chip/interrupt.hpp"
#include "chip/registers.hpp"
#include "plx_fields.hpp"

#include <algorithm>

namespace plx::twin
{

namespace
{
using facts::Side;
namespace reg = facts::reg;

constexpr uint32_t train_us_max = 60'000'000;

// A number that differs for every life of the link: by the chips and how often either end took it
// down. A collision in 63 bits is the only way to miss a short down.
uint64_t life_of(const Chip &own, const Chip *peer)
{
    uint64_t x = own.downs.load();
    if (peer != nullptr)
        x += peer->id.load() * 0x9E3779B97F4A7C15 + (uint64_t{peer->downs.load()} << 32);
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
    x = (x ^ x >> 27) * 0x94D049BB133111EB;
    return (x ^ x >> 31) << 1;
}

bool enabled(const Chip &chip)
{
    const CablePort port = cable_port(chip);
    return port.exists && (get(chip, port.control) & port.bit) == 0 && chip.held_down.load() == 0;
}

uint64_t train_ns(const Chip &chip)
{
    return uint64_t{std::min(chip.train_us.load(), train_us_max)} * 1000;
}

void latch_change(Chip &own)
{
    latch_link_errors(own, facts::field::err_link_change.mask());
}

void clear_spads(Chip &own)
{
    for (uint32_t i = 0; i < facts::spad_count; i++)
        own.csr[(nt_block(own, Side::virt) + reg::spad[i]) / 4].store(0);
}

void go_down(Chip &own, uint64_t now_ns, const LinkRules &rules, const PowerOn &values)
{
    own.protect_until.store(now_ns + uint64_t{rules.protect_us} * 1000); // E2
    if (!rules.spads_survive)
        clear_spads(own);
    if (facts::field::dl_down_reset_disable.get(get(own, reg::vs_debug)) == 0)
        reset_link_block(own, values); // E3
    if (rules.down_resets_dma)
        reset_link_dma(own, values);
    latch_change(own);
}
} // namespace

uint64_t link_training_ends(const Chip &own, const Chip *peer)
{
    // Plugged in at both ends: the time of a training counts from the later of them.
    if (peer == nullptr || own.partner.load() != peer->id.load() ||
        peer->partner.load() != own.id.load() || !enabled(own) || !enabled(*peer))
        return 0;
    const uint64_t begun = std::max(own.enabled_at.load(), peer->enabled_at.load());
    const uint64_t lasts = std::max(train_ns(own), train_ns(*peer));
    return begun > ~uint64_t{0} - lasts ? 0 : std::max<uint64_t>(begun + lasts, 1);
}

bool link_trained(const Chip &own, const Chip *peer, uint64_t now_ns)
{
    const uint64_t ends = link_training_ends(own, peer);
    return ends != 0 && now_ns >= ends;
}

bool link_settled(const Chip &own, const Chip &peer)
{
    return own.seen.load() == (life_of(own, &peer) | 1);
}

bool link_has_news(const Chip &own, const Chip *peer, uint64_t now_ns)
{
    const uint64_t seen = own.seen.load();
    const bool was_up = (seen & 1) != 0;
    const bool is_up = link_trained(own, peer, now_ns);
    return seen != (life_of(own, peer) | (is_up ? 1 : 0)) && (was_up || is_up);
}

bool link_carry_out(Chip &own, const Chip *peer, uint64_t now_ns, const LinkRules &rules,
                    const PowerOn &values)
{
    if (!link_has_news(own, peer, now_ns))
        return false;
    const bool was_up = (own.seen.load() & 1) != 0;
    const bool is_up = link_trained(own, peer, now_ns);
    const uint64_t life = life_of(own, peer);
    if (was_up)
        go_down(own, now_ns, rules, values);
    if (is_up && rules.up_latches)
        latch_change(own);
    own.seen.store(life | (is_up ? 1 : 0));
    return true;
}

void link_plug(Chip &own, const Chip &peer, uint64_t now_ns)
{
    const uint64_t id = peer.id.load();
    if (own.partner.load() == id)
        return;
    own.enabled_at.store(now_ns);
    own.partner.store(id);
}

// As with the port's control: a down is counted before it begins, the time of a training stored
// before it may begin.
void link_hold(Chip &own, LinkHold why, bool down, uint64_t now_ns)
{
    if (down == ((own.held_down.load() & why) != 0))
        return;
    if (down) {
        own.downs.fetch_add(1);
        own.held_down.fetch_or(why);
    } else {
        own.enabled_at.store(now_ns);
        own.held_down.fetch_and(~uint32_t{why});
    }
}

bool link_cable_pulled(const Chip &own, const Chip *peer)
{
    const uint32_t theirs = peer == nullptr ? 0 : peer->held_down.load();
    return ((own.held_down.load() | theirs) & hold_by_cable) != 0;
}

} // namespace plx::twin
