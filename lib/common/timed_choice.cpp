// SPDX-License-Identifier: BSD-3-Clause
#include "timed_choice.hpp"

#include <algorithm>

namespace ntb
{

namespace
{

constexpr std::uint64_t scale = 256;
constexpr std::uint64_t worth_it = scale - scale / 20, plain_to_see = scale - scale / 4;
constexpr std::uint64_t relative_max = 64 * scale;
/// A cost is unusual from 1.5 times the usual one on, either way, in so many blocks in a row.
constexpr std::uint8_t jumps_min = 4;
/// After a jump no other block is tried sooner than after so many times what the last one cost, so
/// that a peer which provokes jumps gains little.
constexpr std::uint64_t jump_share = 16;

} // namespace

TimedChoice::TimedChoice(unsigned in_force, bool fixed, Unseen unseen)
    : until_other_(2 * block_units), unseen_(unseen), way_(static_cast<std::uint8_t>(in_force)),
      fixed_(fixed), in_force_(way_)
{
    // Somebody has found that way already, and a look at the other one is long.
    if (way_ == 1)
        until_other_ = std::max(until_other_, jump_share * unseen_.begin_of_0);
}

/// One division in hundreds of units.
void TimedChoice::end_block()
{
    const std::uint64_t counted = way_ == 0 ? cycles_ : cycles_ * unseen_.left_by_1;
    const std::uint64_t cost = std::max<std::uint64_t>(counted * scale / units_, 1);
    if (way_ != in_force()) {
        look(cost);
    } else {
        paid_ += units_;
        follow(cost);
        if (!fixed_ && paid_ >= until_other_)
            way_ ^= 1;
    }
    units_ = cycles_ = 0;
}

void TimedChoice::follow(std::uint64_t cost)
{
    if (usual_ == 0)
        usual_ = cost;
    if (2 * cost <= 3 * usual_ && 2 * usual_ <= 3 * cost) {
        usual_ = (7 * usual_ + cost) / 8;
        jumps_ = 0;
        return;
    }
    if (++jumps_ < jumps_min)
        return; // somebody else had the CPU
    // The CPUs may have been moved: what is known is of another place.
    usual_ = cost;
    jumps_ = 0;
    taken_ = 0;
    until_other_ = std::min(until_other_, jump_share * charge_);
}

/// A block of the other way, which may be the last one of a look at it.
void TimedChoice::look(std::uint64_t cost)
{
    const std::uint64_t relative = std::min(cost * scale / usual_, relative_max);
    if (looked_ == 0)
        charge_ = hopeless_ = 0;
    looked_ += units_;
    charge_ += units_ * std::max(relative, scale) / scale;
    hopeless_ = relative >= hopeless * scale ? hopeless_ + 1 : 0;
    if (!may_get_cheaper(relative))
        judge(cost, relative);
}

bool TimedChoice::may_get_cheaper(std::uint64_t relative) const
{
    return way_ == 0 && relative > plain_to_see && looked_ < unseen_.begin_of_0 &&
           hopeless_ < hopeless_blocks;
}

void TimedChoice::judge(std::uint64_t cost, std::uint64_t relative)
{
    relative_[taken_++ % samples] = static_cast<std::uint32_t>(relative);
    if (saves()) {
        in_force_.store(way_, std::memory_order_relaxed);
        usual_ = cost;
        taken_ = 0;
    }
    way_ = static_cast<std::uint8_t>(in_force());
    rest(relative);
}

/// Until the next look at the other way. @param relative  what the end of the last one cost
void TimedChoice::rest(std::uint64_t relative)
{
    until_other_ = charge_ * (taken_ < young_samples ? young_share : old_share);
    // The first ones follow one another, until they agree. A long one that stayed dear says enough.
    if (taken_ < plain_samples && (looked_ == units_ || relative <= plain_to_see))
        until_other_ = 2 * block_units;
    paid_ = looked_ = 0;
}

/// Whether the other way is cheap enough by enough samples: by the dearest but one of four.
bool TimedChoice::saves() const
{
    if (taken_ >= plain_samples) {
        const std::uint32_t last = relative_[(taken_ - 1) % samples];
        const std::uint32_t before = relative_[(taken_ - 2) % samples];
        if (std::max(last, before) <= plain_to_see)
            return true;
    }
    if (taken_ < samples)
        return false;
    std::uint32_t sorted[samples];
    std::copy_n(relative_, samples, sorted);
    std::sort(sorted, sorted + samples);
    return sorted[samples - 2] <= worth_it;
}

} // namespace ntb
