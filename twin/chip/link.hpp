// SPDX-License-Identifier: BSD-3-Clause
// The link between the two chips. Its state is no variable: it follows from both chips and the
// clock, and is worked out when a register is accessed. The consequences of a change (errors
// latched, link block reset) are carried out by the owner of each chip alone, the remark that this
// was done comes last: a process that dies in between leaves it to be done again.
#ifndef PLX_TWIN_CHIP_LINK_HPP
#define PLX_TWIN_CHIP_LINK_HPP

#include "chip/chip.hpp"
#include "chip/power_on.hpp"

namespace plx::twin
{

struct LinkRules {
    bool spads_survive;
    bool up_latches;
    bool down_resets_dma;
    uint32_t protect_us;
};

/// Whether the link is trained now. @p peer NULL: nothing is plugged in.
bool link_trained(const Chip &own, const Chip *peer, uint64_t now_ns);
/// When the training that is under way ends, or has ended; 0: none can. @p peer NULL: as above
uint64_t link_training_ends(const Chip &own, const Chip *peer);
/// Whether the consequences of the present state are carried out in @p own. Until then its link
/// block counts as reset.
bool link_settled(const Chip &own, const Chip &peer);
/// Whether link_carry_out() has anything to do for @p own.
bool link_has_news(const Chip &own, const Chip *peer, uint64_t now_ns);
/// Carries out what the present state means for @p own. By its owner, under its lock.
/// @return whether anything changed
bool link_carry_out(Chip &own, const Chip *peer, uint64_t now_ns, const LinkRules &rules,
                    const PowerOn &values);
/// Remarks that @p own is cabled to @p peer: with another chip training begins anew.
void link_plug(Chip &own, const Chip &peer, uint64_t now_ns);
/// Why a link is held down: bits of Chip::held_down.
enum LinkHold : uint32_t { hold_by_fault = 1, hold_by_cable = 2, hold_by_power = 4 };
/// Holds the link down, or lets it train again once nothing else holds it.
void link_hold(Chip &own, LinkHold why, bool down, uint64_t now_ns);
/// Whether the cable between the two is pulled out. @p peer NULL: no other end could have.
bool link_cable_pulled(const Chip &own, const Chip *peer);

} // namespace plx::twin

#endif
